// Package sqlstamp reads session stamps from a host's own message table through
// sqlx: on MySQL and what speaks its protocol (MariaDB, TiDB, Vitess), and on
// SQLite.
//
// The table is named message and has the columns id, session_id, role, deleted
// and created_at. Two statements read it and nothing writes to it, so a
// read-only user is enough. An index that begins with session_id keeps both
// fast; (session_id, role, deleted, id) makes both read one row.
package sqlstamp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"sessiondate/domain"
	"sessiondate/ports"
)

// The cast gives the stored spelling under every DSN: no time.Time stands
// between the column and the date, so neither parseTime nor loc can move it. The
// executable comment keeps MySQL's family from walking the primary key in search
// of the first row; to SQLite it is a comment.
const (
	selectFirst    = "SELECT id, CAST(created_at AS CHAR) AS createdAt FROM `message` /*! IGNORE INDEX (PRIMARY) */ WHERE session_id = ?%s AND role = 'USER' AND deleted = 0 ORDER BY id ASC LIMIT 1"
	selectPrevious = "SELECT id, CAST(created_at AS CHAR) AS createdAt FROM `message` WHERE session_id = ?%s AND role = 'USER' AND deleted = 0 AND id < ? ORDER BY id DESC LIMIT 1"

	// Both of them, in one statement. A union's rows have no order. Its limit is
	// there because a server's sql_select_limit would take its place.
	selectBoth = "SELECT 1 AS previous, id, createdAt FROM (%[2]s) AS p UNION ALL SELECT 0, id, createdAt FROM (%[1]s) AS f LIMIT 2"
)

// What stands behind the comparison of the session's id, because a column's
// collation may hold ids for equal that differ in case, accents, trailing spaces
// or emoji, and a numeric column holds '7abc' (MySQL's family) or '07' (both) for
// 7. The plain comparison before it finds the rows in the index. The conversion is
// for columns in another character set than the connection's, which is utf8mb4.
const (
	sameBytesMySQL  = " AND BINARY CONVERT(session_id USING utf8mb4) = ?"
	sameBytesSQLite = " AND CAST(session_id AS BLOB) = CAST(? AS BLOB)"
)

// A Reader is a [ports.SessionStampReader] over a table named message.
type Reader struct {
	db              *sqlx.DB
	sqlite          bool
	first, previous string
	both            string
}

var _ ports.StampPairReader = (*Reader)(nil)

// New returns a reader of the table message in db. The caller opens db and
// closes it. A db whose driver's name contains "sqlite" is read as SQLite, and
// every other as MySQL's family.
func New(db *sqlx.DB) *Reader {
	sqlite, sameBytes := strings.Contains(db.DriverName(), "sqlite"), sameBytesMySQL
	if sqlite {
		sameBytes = sameBytesSQLite
	}
	first, previous := fmt.Sprintf(selectFirst, sameBytes), fmt.Sprintf(selectPrevious, sameBytes)
	return &Reader{db, sqlite, first, previous, fmt.Sprintf(selectBoth, first, previous)}
}

// FirstUserStamp implements [ports.SessionStampReader].
func (r *Reader) FirstUserStamp(ctx context.Context, sessionID string) (domain.Stamp, error) {
	s, err := r.stamp(ctx, r.first, sessionID, sessionID)
	if err != nil {
		return domain.Stamp{}, fmt.Errorf("read first user stamp of session %s: %w", sessionID, err)
	}
	return s, nil
}

// PreviousUserStamp implements [ports.SessionStampReader].
func (r *Reader) PreviousUserStamp(ctx context.Context, sessionID, beforeID string) (domain.Stamp, error) {
	s, err := r.stamp(ctx, r.previous, sessionID, sessionID, beforeID)
	if err != nil {
		return domain.Stamp{}, fmt.Errorf("read user stamp of session %s before message %s: %w", sessionID, beforeID, err)
	}
	return s, nil
}

// UserStamps implements [ports.StampPairReader].
func (r *Reader) UserStamps(ctx context.Context, sessionID, beforeID string) (first, previous domain.Stamp, err error) {
	var rows []struct {
		Previous bool `db:"previous"`
		row
	}
	if err := r.db.SelectContext(ctx, &rows, r.capped(ctx, r.both), sessionID, sessionID, beforeID, sessionID, sessionID); err != nil {
		return domain.Stamp{}, domain.Stamp{}, fmt.Errorf("read first user stamp of session %s and the one before message %s: %w", sessionID, beforeID, ended(ctx, err))
	}
	for _, r := range rows {
		if r.Previous {
			previous = r.stamp()
		} else {
			first = r.stamp()
		}
	}
	return first, previous, nil
}

// A row is a row of the answers.
type row struct {
	ID        string         `db:"id"`
	CreatedAt sql.NullString `db:"createdAt"`
}

func (r row) stamp() domain.Stamp {
	return domain.Stamp{MessageID: r.ID, CreatedAt: r.CreatedAt.String}
}

// The ids are sent as strings also where the column is a number: a number
// compared with a text column reads the whole table, a string compared with a
// number column does not.
func (r *Reader) stamp(ctx context.Context, query string, args ...any) (domain.Stamp, error) {
	var answer row
	err := r.db.GetContext(ctx, &answer, r.capped(ctx, query), args...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return domain.Stamp{}, nil
	case err != nil:
		return domain.Stamp{}, ended(ctx, err)
	}
	return answer.stamp(), nil
}

// capSlack is how much later than the context's deadline a server ends a
// statement, so that it is the context that ends the call.
const capSlack = 100 * time.Millisecond

// capped returns a statement that a server ends by itself soon after the
// context's deadline. Without that it runs on when nobody waits for it any more.
// The first comment is MariaDB's to execute, where a shorter time that the account
// or the server is held to stays; the second is a hint to MySQL and TiDB.
func (r *Reader) capped(ctx context.Context, statement string) string {
	deadline, ok := ctx.Deadline()
	if !ok || r.sqlite {
		return statement
	}
	left := max(time.Until(deadline), 0) + capSlack
	return fmt.Sprintf("/*M! SET STATEMENT max_statement_time=IF(@@max_statement_time BETWEEN 0.000001 AND %.3[1]f, @@max_statement_time, %.3[1]f) FOR */ SELECT /*+ MAX_EXECUTION_TIME(%[2]d) */%[3]s",
		left.Seconds(), left.Milliseconds(), strings.TrimPrefix(statement, "SELECT"))
}

// ended puts the context's error in front of err if the context has ended: what
// the driver or the server say then is not always the context's error, as that of
// a statement that the server ended.
func ended(ctx context.Context, err error) error {
	done := ctx.Err()
	// Where the machine is slow, the deadline passes before the context says so.
	if deadline, ok := ctx.Deadline(); ok && done == nil && time.Until(deadline) <= 0 {
		done = context.DeadlineExceeded
	}
	if done == nil || errors.Is(err, done) {
		return err
	}
	return fmt.Errorf("%w: %w", done, err)
}
