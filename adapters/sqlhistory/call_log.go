package sqlhistory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sessiondate/domain"
	"sessiondate/ports"
)

const (
	selectLastCall = "SELECT " + readColumns + " FROM model_call WHERE session_id = ?%s AND failed = 0 ORDER BY id DESC LIMIT 1"
	selectCalls    = "SELECT " + readColumns + " FROM model_call WHERE session_id = ?%s ORDER BY id ASC" + noLimit
	selectPrints   = "SELECT id FROM model_call WHERE session_id = ?%s AND fingerprint IS NOT NULL" + noLimit
	forgetPrint    = "UPDATE model_call SET fingerprint = NULL WHERE id = ?"
	insertCall     = "INSERT INTO model_call (" + callColumns + ") VALUES (" +
		":session_id, :at, :purpose, :last_message_id, :provider, :model, :reply_id, :failed, :units, :previous_units, :repeated_units, " +
		":changed_sections, :changed_tools, :input_tokens, :output_tokens, :cache_read_tokens, :cache_write_tokens, :cache_miss, :fingerprint)"
	callColumns = "session_id, at, " + otherColumns
	// The cast is for the reason that package sqlstamp gives.
	readColumns  = "session_id, CAST(at AS CHAR) AS at, " + otherColumns
	otherColumns = "purpose, last_message_id, provider, model, reply_id, failed, units, previous_units, repeated_units, " +
		"changed_sections, changed_tools, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cache_miss, fingerprint"
)

var _ ports.CallLog = (*Store)(nil)

// callRow is a row of the table of calls.
type callRow struct {
	SessionID       string         `db:"session_id"`
	At              string         `db:"at"`
	Purpose         string         `db:"purpose"`
	LastMessageID   string         `db:"last_message_id"`
	Provider        string         `db:"provider"`
	Model           string         `db:"model"`
	ReplyID         string         `db:"reply_id"`
	Failed          bool           `db:"failed"`
	Units           int            `db:"units"`
	PreviousUnits   int            `db:"previous_units"`
	RepeatedUnits   int            `db:"repeated_units"`
	ChangedSections string         `db:"changed_sections"`
	ChangedTools    string         `db:"changed_tools"`
	Input           sql.NullInt64  `db:"input_tokens"`
	Output          sql.NullInt64  `db:"output_tokens"`
	CacheRead       sql.NullInt64  `db:"cache_read_tokens"`
	CacheWrite      sql.NullInt64  `db:"cache_write_tokens"`
	CacheMiss       string         `db:"cache_miss"`
	Fingerprint     sql.NullString `db:"fingerprint"`
}

// Record implements [ports.CallLog]. The fingerprint is kept for the session's
// newest answered call alone: no other is ever compared with.
func (s *Store) Record(ctx context.Context, call domain.Call) error {
	err := s.inTransaction(ctx, func(tx *sqlx.Tx) error { return s.record(ctx, tx, call) })
	if err != nil {
		return fmt.Errorf("record call of session %s: %w", call.SessionID, err)
	}
	return nil
}

func (s *Store) record(ctx context.Context, tx *sqlx.Tx, call domain.Call) error {
	sections, err := encode(call.Comparison.ChangedSections)
	if err != nil {
		return err
	}
	tools, err := encode(call.Comparison.ChangedTools)
	if err != nil {
		return err
	}
	row := callRow{
		SessionID: call.SessionID, At: call.At, Purpose: string(call.Purpose), LastMessageID: call.LastMessageID,
		Provider: call.Provider, Model: call.Model, ReplyID: call.ReplyID, Failed: call.Failed,
		Units: len(call.Fingerprint), PreviousUnits: call.Comparison.PreviousUnits, RepeatedUnits: call.Comparison.RepeatedUnits,
		ChangedSections: sections.String, ChangedTools: tools.String,
		Input: countOrNull(call.Usage.Input), Output: countOrNull(call.Usage.Output),
		CacheRead: countOrNull(call.Usage.CacheRead), CacheWrite: countOrNull(call.Usage.CacheWrite), CacheMiss: call.CacheMiss,
	}
	if !call.Failed {
		if row.Fingerprint, err = encode(call.Fingerprint); err != nil {
			return err
		}
		// By their ids, because an update by session locks gaps, or the whole of a
		// small table, and two sessions' calls would wait for one another.
		var older []int64
		query, args := s.ofSession(ctx, selectPrints, call.SessionID)
		if err := tx.SelectContext(ctx, &older, query, args...); err != nil {
			return err
		}
		for _, id := range older {
			if _, err := tx.ExecContext(ctx, forgetPrint, id); err != nil {
				return err
			}
		}
	}
	_, err = tx.NamedExecContext(ctx, insertCall, row)
	return err
}

// LastCall implements [ports.CallLog].
func (s *Store) LastCall(ctx context.Context, sessionID string) (domain.Call, bool, error) {
	var row callRow
	query, args := s.ofSession(ctx, selectLastCall, sessionID)
	err := s.db.GetContext(ctx, &row, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return domain.Call{}, false, nil
	}
	var call domain.Call
	if err == nil {
		call, err = row.call()
	}
	if err != nil {
		return domain.Call{}, false, fmt.Errorf("read last call of session %s: %w", sessionID, ended(ctx, err))
	}
	return call, true, nil
}

// Calls returns all calls of a session, oldest first. Only the newest answered
// one has its fingerprint.
func (s *Store) Calls(ctx context.Context, sessionID string) ([]domain.Call, error) {
	var rows []callRow
	query, args := s.ofSession(ctx, selectCalls, sessionID)
	if err := s.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("read calls of session %s: %w", sessionID, ended(ctx, err))
	}
	calls := make([]domain.Call, len(rows))
	for i, row := range rows {
		var err error
		if calls[i], err = row.call(); err != nil {
			return nil, fmt.Errorf("read calls of session %s: %w", sessionID, err)
		}
	}
	return calls, nil
}

func (r callRow) call() (domain.Call, error) {
	call := domain.Call{
		SessionID: r.SessionID, At: r.At, Purpose: domain.CallPurpose(r.Purpose), LastMessageID: r.LastMessageID,
		Provider: r.Provider, Model: r.Model, ReplyID: r.ReplyID, Failed: r.Failed,
		Comparison: domain.Comparison{PreviousUnits: r.PreviousUnits, RepeatedUnits: r.RepeatedUnits},
		Usage: domain.Usage{
			Input: tokenCount(r.Input), Output: tokenCount(r.Output),
			CacheRead: tokenCount(r.CacheRead), CacheWrite: tokenCount(r.CacheWrite),
		},
		CacheMiss: r.CacheMiss,
	}
	for _, field := range []struct {
		text  string
		value any
	}{
		{r.ChangedSections, &call.Comparison.ChangedSections},
		{r.ChangedTools, &call.Comparison.ChangedTools},
		{r.Fingerprint.String, &call.Fingerprint},
	} {
		if field.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(field.text), field.value); err != nil {
			return domain.Call{}, fmt.Errorf("decode call: %w", err)
		}
	}
	return call, nil
}

func countOrNull(c domain.TokenCount) sql.NullInt64 {
	return sql.NullInt64{Int64: c.Tokens, Valid: c.Reported}
}

func tokenCount(n sql.NullInt64) domain.TokenCount {
	return domain.TokenCount{Tokens: n.Int64, Reported: n.Valid}
}
