package sqlhistory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"sessiondate/ports"
)

const (
	selectCompaction = "SELECT through_id, handoff FROM compaction WHERE session_id = ?%s ORDER BY id DESC LIMIT 1"
	insertCompaction = "INSERT INTO compaction (session_id, through_id, handoff) VALUES (?, ?, ?)"
)

var _ ports.Boundaries = (*Store)(nil)

// compaction is the newest compaction of a session; the zero one is none.
type compaction struct {
	ThroughID int64  `db:"through_id"`
	Handoff   string `db:"handoff"`
}

func (s *Store) newestCompaction(ctx context.Context, q sqlx.QueryerContext, sessionID string) (compaction, error) {
	var c compaction
	query, args := s.ofSession(ctx, selectCompaction, sessionID)
	if err := sqlx.GetContext(ctx, q, &c, query, args...); !errors.Is(err, sql.ErrNoRows) {
		return c, err
	}
	return compaction{}, nil
}

// MoveBoundary implements [ports.Boundaries]. The error wraps [ErrNoMessage] if the
// session does not have the message; a deleted one it has.
func (s *Store) MoveBoundary(ctx context.Context, sessionID, throughID, handoff string) error {
	err := s.inTransaction(ctx, func(tx *sqlx.Tx) error {
		id, err := strconv.ParseInt(throughID, 10, 64)
		if err != nil {
			return fmt.Errorf("message %s: %w", throughID, ErrNoMessage)
		}
		var n int
		query, args := s.ofSession(ctx, selectMessage, sessionID)
		if err := tx.GetContext(ctx, &n, query, append(args, id)...); err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("message %s: %w", throughID, ErrNoMessage)
		}
		_, err = tx.ExecContext(ctx, insertCompaction, sessionID, id, handoff)
		return err
	})
	if err != nil {
		return fmt.Errorf("move boundary of session %s: %w", sessionID, err)
	}
	return nil
}
