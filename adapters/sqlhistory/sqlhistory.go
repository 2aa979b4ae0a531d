// Package sqlhistory keeps the sessions of the reference harness in a SQL
// database, through sqlx: in SQLite, or in MySQL and what speaks its protocol.
// It also reads transcripts, the files from which a session can be loaded.
//
// A host with a message table of its own needs none of this.
package sqlhistory

import (
	"context"
	"database/sql"
	_ "embed" // For the schemas.
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"sessiondate/domain"
	"sessiondate/ports"
)

// SchemaSQLite creates the table message in SQLite, unless it is there.
//
//go:embed schema_sqlite.sql
var SchemaSQLite string

// SchemaMySQL creates the table message in MySQL, MariaDB or TiDB. It is for the
// operator to run: this package never changes a server's schema.
//
//go:embed schema_mysql.sql
var SchemaMySQL string

// The cast, the comparison of bytes and the limit are for the reasons that package
// sqlstamp gives.
const (
	selectMessages = "SELECT id, role, content, parts, tool_calls, tool_call_id, tool_failed, CAST(created_at AS CHAR) AS created_at FROM `message` WHERE session_id = ?%s AND deleted = 0 AND id > ? ORDER BY id ASC" + noLimit
	selectAny      = "SELECT COUNT(*) FROM `message` WHERE session_id = ?%s"
	selectMessage  = "SELECT COUNT(*) FROM `message` WHERE session_id = ?%s AND id = ?"
	insertMessage  = "INSERT INTO `message` (session_id, role, content, parts, tool_calls, tool_call_id, tool_failed, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

	noLimit = " LIMIT 9223372036854775807"

	sameBytesMySQL  = " AND BINARY CONVERT(session_id USING utf8mb4) = ?"
	sameBytesSQLite = " AND CAST(session_id AS BLOB) = CAST(? AS BLOB)"
)

// ErrSessionExists is the error of creating a session that has messages.
var ErrSessionExists = errors.New("the session exists")

// A Store keeps sessions in a table named message.
type Store struct {
	db     *sqlx.DB
	sqlite bool
}

var (
	_ ports.History = (*Store)(nil)
	_ ports.Archive = (*Store)(nil)
)

// New returns a store over db. The caller opens db, sees to its schema, and
// closes it. A db whose driver's name contains "sqlite" is used as SQLite, and
// every other as MySQL's family.
func New(db *sqlx.DB) *Store {
	return &Store{db, strings.Contains(db.DriverName(), "sqlite")}
}

// row is a row of the table.
type row struct {
	ID         string         `db:"id"`
	Role       string         `db:"role"`
	Content    string         `db:"content"`
	Parts      sql.NullString `db:"parts"`
	ToolCalls  sql.NullString `db:"tool_calls"`
	ToolCallID sql.NullString `db:"tool_call_id"`
	ToolFailed bool           `db:"tool_failed"`
	CreatedAt  sql.NullString `db:"created_at"`
}

// Window implements [ports.History]. A row that holds no message is an error that
// names the message.
func (s *Store) Window(ctx context.Context, sessionID string) (domain.Window, error) {
	// What follows a boundary is read after the boundary, so a compaction in
	// between changes nothing: the older window is whole.
	c, err := s.newestCompaction(ctx, s.db, sessionID)
	if err != nil {
		return domain.Window{}, fmt.Errorf("read boundary of session %s: %w", sessionID, ended(ctx, err))
	}
	messages, err := s.messages(ctx, s.db, sessionID, c.ThroughID)
	if err != nil {
		return domain.Window{}, fmt.Errorf("read messages of session %s: %w", sessionID, ended(ctx, err))
	}
	return domain.Window{Handoff: c.Handoff, Messages: messages, Whole: c == compaction{}}, nil
}

// messages reads the messages of a session behind the one with the id afterID.
func (s *Store) messages(ctx context.Context, q sqlx.QueryerContext, sessionID string, afterID int64) (messages []domain.Message, err error) {
	query, args := s.ofSession(ctx, selectMessages, sessionID)
	rows, err := q.QueryxContext(ctx, query, append(args, afterID)...)
	if err != nil {
		return nil, err
	}
	defer func() {
		// A server that dies while it sends rows says so here.
		if closeErr := rows.Close(); err == nil && closeErr != nil {
			messages, err = nil, closeErr
		}
	}()
	for rows.Next() {
		var r row
		if err := rows.StructScan(&r); err != nil {
			return nil, err
		}
		m, err := r.message()
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", r.ID, err)
		}
		messages = append(messages, m)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return messages, nil
}

func (r row) message() (domain.Message, error) {
	role, err := domain.ParseRole(r.Role)
	if err != nil {
		return domain.Message{}, err
	}
	m := domain.Message{
		ID: r.ID, Role: role, Text: r.Content,
		ToolCallID: r.ToolCallID.String, ToolFailed: r.ToolFailed, CreatedAt: r.CreatedAt.String,
	}
	if r.Parts.Valid {
		if m.Parts, err = decodeParts([]byte(r.Parts.String)); err != nil {
			return domain.Message{}, err
		}
	}
	if r.ToolCalls.Valid {
		if m.ToolCalls, err = decodeToolCalls([]byte(r.ToolCalls.String)); err != nil {
			return domain.Message{}, err
		}
	}
	return m, nil
}

// ofSession completes a query about one session for the store's dialect. A server
// ends it by itself soon after the context's deadline, as package sqlstamp
// explains.
func (s *Store) ofSession(ctx context.Context, query, sessionID string) (string, []any) {
	sameBytes := sameBytesMySQL
	if s.sqlite {
		sameBytes = sameBytesSQLite
	}
	query = fmt.Sprintf(query, sameBytes)
	if deadline, ok := ctx.Deadline(); ok && !s.sqlite {
		left := max(time.Until(deadline), 0) + 100*time.Millisecond
		query = fmt.Sprintf("/*M! SET STATEMENT max_statement_time=IF(@@max_statement_time BETWEEN 0.000001 AND %.3[1]f, @@max_statement_time, %.3[1]f) FOR */ SELECT /*+ MAX_EXECUTION_TIME(%[2]d) */%[3]s",
			left.Seconds(), left.Milliseconds(), strings.TrimPrefix(query, "SELECT"))
	}
	return query, []any{sessionID, sessionID}
}

// Append implements [ports.Archive]. SQLite keeps a stored time as it
// is spelled; a server's DATETIME keeps its date and its time to the second.
func (s *Store) Append(ctx context.Context, sessionID string, messages ...domain.Message) error {
	err := s.inTransaction(ctx, func(tx *sqlx.Tx) error {
		_, err := s.insert(ctx, tx, sessionID, messages)
		return err
	})
	if err != nil {
		return fmt.Errorf("store messages of session %s: %w", sessionID, err)
	}
	return nil
}

// Create stores a new session, all of it or nothing. The error wraps
// [ErrSessionExists] if the session has messages, deleted ones included. A server
// does not keep two from creating the same session at the same moment: that ids
// are new is the caller's to see to.
func (s *Store) Create(ctx context.Context, sessionID string, messages []domain.Message) error {
	err := s.inTransaction(ctx, func(tx *sqlx.Tx) error {
		if err := s.mustBeNew(ctx, tx, sessionID); err != nil {
			return err
		}
		_, err := s.insert(ctx, tx, sessionID, messages)
		return err
	})
	if err != nil {
		return fmt.Errorf("create session %s: %w", sessionID, err)
	}
	return nil
}

func (s *Store) mustBeNew(ctx context.Context, tx *sqlx.Tx, sessionID string) error {
	var n int
	query, args := s.ofSession(ctx, selectAny, sessionID)
	if err := tx.GetContext(ctx, &n, query, args...); err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%w and has messages: %d", ErrSessionExists, n)
	}
	return nil
}

// inTransaction does something in a transaction, which is rolled back if it fails.
func (s *Store) inTransaction(ctx context.Context, do func(*sqlx.Tx) error) (err error) {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return ended(ctx, err)
	}
	committed := false
	defer func() {
		if !committed {
			err = errors.Join(ended(ctx, err), rollback(tx))
		}
	}()
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	committed = true
	return nil
}

func rollback(tx *sqlx.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// ended puts the context's error in front of err if the context has ended, for the
// reasons that package sqlstamp gives.
func ended(ctx context.Context, err error) error {
	done := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && done == nil && time.Until(deadline) <= 0 {
		done = context.DeadlineExceeded
	}
	if done == nil || errors.Is(err, done) {
		return err
	}
	return fmt.Errorf("%w: %w", done, err)
}

// insert stores messages and returns the id of the last one.
func (s *Store) insert(ctx context.Context, tx *sqlx.Tx, sessionID string, messages []domain.Message) (lastID int64, err error) {
	for i, m := range messages {
		parts, err := encodeParts(m.Parts)
		if err != nil {
			return 0, fmt.Errorf("message %d: %w", i, err)
		}
		calls, err := encodeToolCalls(m.ToolCalls)
		if err != nil {
			return 0, fmt.Errorf("message %d: %w", i, err)
		}
		result, err := tx.ExecContext(ctx, insertMessage, sessionID, strings.ToUpper(m.Role.String()), m.Text,
			parts, calls, orNull(m.ToolCallID), m.ToolFailed, orNull(s.storedTime(m.CreatedAt)))
		if err != nil {
			return 0, fmt.Errorf("message %d: %w", i, err)
		}
		if lastID, err = result.LastInsertId(); err != nil {
			return 0, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return lastID, nil
}

// storedTime spells a creation time as the store takes it. A server would round
// a fraction of a second, and 23:59:59.6 would become the next day.
func (s *Store) storedTime(createdAt string) string {
	const wholeSeconds = len("2006-01-02 15:04:05")
	if s.sqlite || len(createdAt) < wholeSeconds {
		return createdAt
	}
	return strings.Replace(createdAt[:wholeSeconds], "T", " ", 1)
}

func orNull(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
