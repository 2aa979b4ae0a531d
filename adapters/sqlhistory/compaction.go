package sqlhistory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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

// MoveBoundary implements [ports.Boundaries].
func (s *Store) MoveBoundary(ctx context.Context, sessionID, throughID, handoff string) error {
	if _, err := s.db.ExecContext(ctx, insertCompaction, sessionID, throughID, handoff); err != nil {
		return fmt.Errorf("move boundary of session %s: %w", sessionID, err)
	}
	return nil
}
