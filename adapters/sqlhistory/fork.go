package sqlhistory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"

	"sessiondate/domain"
)

// The errors of what is not there.
var (
	// ErrNoSession says that a session has no messages.
	ErrNoSession = errors.New("the session has no messages")
	// ErrNoMessage says that a session does not have a message.
	ErrNoMessage = errors.New("the session has no such message")
)

// Fork stores a new session with the messages of another, up to the message
// throughID, itself included, or all of them if throughID is empty. Stored times
// are copied, so the fork has the anchor and the days of its source. So is its
// compaction, unless the fork ends before the boundary. All is stored or nothing.
//
// The error wraps [ErrSessionExists] if the new session has messages,
// [ErrNoSession] if the other has none, and [ErrNoMessage] if throughID is none of
// its own.
func (s *Store) Fork(ctx context.Context, fromID, toID, throughID string) error {
	err := s.inTransaction(ctx, func(tx *sqlx.Tx) error { return s.fork(ctx, tx, fromID, toID, throughID) })
	if err != nil {
		return fmt.Errorf("fork session %s as %s: %w", fromID, toID, err)
	}
	return nil
}

func (s *Store) fork(ctx context.Context, tx *sqlx.Tx, fromID, toID, throughID string) error {
	if err := s.mustBeNew(ctx, tx, toID); err != nil {
		return err
	}
	// What follows the boundary is read after it, as in Window.
	c, err := s.newestCompaction(ctx, tx, fromID)
	if err != nil {
		return err
	}
	messages, err := s.messages(ctx, tx, fromID, 0)
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return ErrNoSession
	}
	compacted, err := through(messages, c.ThroughID)
	if err != nil {
		return err
	}
	if throughID != "" {
		n := slices.IndexFunc(messages, func(m domain.Message) bool { return m.ID == throughID })
		if n < 0 {
			return fmt.Errorf("message %s: %w", throughID, ErrNoMessage)
		}
		messages = messages[:n+1]
	}
	if compacted > len(messages) {
		c, compacted = compaction{}, 0
	}
	boundary, err := s.insert(ctx, tx, toID, messages[:compacted])
	if err != nil {
		return err
	}
	if c != (compaction{}) {
		if _, err := tx.ExecContext(ctx, insertCompaction, toID, boundary, c.Handoff); err != nil {
			return err
		}
	}
	_, err = s.insert(ctx, tx, toID, messages[compacted:])
	return err
}

// through returns how many of a session's messages a compaction through the
// message with that id has behind it.
func through(messages []domain.Message, throughID int64) (n int, err error) {
	for _, m := range messages {
		id, err := strconv.ParseInt(m.ID, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("message %s: %w", m.ID, err)
		}
		if id > throughID {
			break
		}
		n++
	}
	return n, nil
}
