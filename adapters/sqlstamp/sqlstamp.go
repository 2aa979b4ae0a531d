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
	first, previous string
}

var _ ports.SessionStampReader = (*Reader)(nil)

// New returns a reader of the table message in db. The caller opens db and
// closes it. A db whose driver's name contains "sqlite" is read as SQLite, and
// every other as MySQL's family.
func New(db *sqlx.DB) *Reader {
	sameBytes := sameBytesMySQL
	if strings.Contains(db.DriverName(), "sqlite") {
		sameBytes = sameBytesSQLite
	}
	return &Reader{db, fmt.Sprintf(selectFirst, sameBytes), fmt.Sprintf(selectPrevious, sameBytes)}
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

// The ids are sent as strings also where the column is a number: a number
// compared with a text column reads the whole table, a string compared with a
// number column does not.
func (r *Reader) stamp(ctx context.Context, query string, args ...any) (domain.Stamp, error) {
	var row struct {
		ID        string         `db:"id"`
		CreatedAt sql.NullString `db:"createdAt"`
	}
	err := r.db.GetContext(ctx, &row, query, args...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return domain.Stamp{}, nil
	case err != nil:
		return domain.Stamp{}, err
	}
	return domain.Stamp{MessageID: row.ID, CreatedAt: row.CreatedAt.String}, nil
}
