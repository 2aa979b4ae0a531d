package test

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/sqlstamp"
	"sessiondate/domain"
)

// A contract that no reader can break says nothing. These are tests of the tests:
// readers that break one promise each, on a real server.

// A collatingReader compares ids as their column does.
type collatingReader struct {
	*sqlstamp.Reader
	db *sqlx.DB
}

func (r collatingReader) FirstUserStamp(ctx context.Context, sessionID string) (stamp domain.Stamp, err error) {
	err = r.db.QueryRowContext(ctx, "SELECT id, CAST(created_at AS CHAR) FROM message WHERE session_id = ? AND role = 'USER' AND deleted = 0 ORDER BY id LIMIT 1", sessionID).
		Scan(&stamp.MessageID, &stamp.CreatedAt)
	if err == sql.ErrNoRows {
		err = nil
	}
	return stamp, err
}

// A timedReader has the driver make times of stored times.
type timedReader struct {
	*sqlstamp.Reader
	db *sqlx.DB
}

func (r timedReader) FirstUserStamp(ctx context.Context, sessionID string) (stamp domain.Stamp, err error) {
	var createdAt time.Time
	err = r.db.QueryRowContext(ctx, "SELECT id, created_at FROM message WHERE session_id = ? AND role = 'USER' AND deleted = 0 ORDER BY id LIMIT 1", sessionID).
		Scan(&stamp.MessageID, &createdAt)
	stamp.CreatedAt = createdAt.UTC().Format(time.DateTime)
	return stamp, err
}

// A silentReader takes an error for an absence.
type silentReader struct{ *sqlstamp.Reader }

func (r silentReader) FirstUserStamp(ctx context.Context, sessionID string) (domain.Stamp, error) {
	stamp, _ := r.Reader.FirstUserStamp(ctx, sessionID)
	return stamp, nil
}

var _ = Describe("A broken stamp reader", Label("mariadb"), func() {
	DescribeTable("is seen to take another session for the one that is asked for, comparing ids as their column does", func(ctx SpecContext, stored, asked string) {
		name := newMariaDB(ctx)
		db := openMariaDB(name, "")
		hostTable{"BIGINT", "VARCHAR(64) COLLATE utf8mb4_general_ci NOT NULL", "DATETIME NULL"}.create(ctx, db)
		reader := sqlstamp.New(db)
		Expect(InterceptGomegaFailures(func() { tellsApart(ctx, sqlStamps(collatingReader{reader, db}, db), stored, asked) })).NotTo(BeEmpty())
	},
		Entry("that differs in case", "s1", "S1"),
		Entry("that ends in a space", "s1", "s1 "),
		Entry("that is a different emoji", "😀", "😁"),
	)

	It("is seen to move a message to another day, making a time of its stored time", func(ctx SpecContext) {
		db := openMariaDB(newMariaDB(ctx), "parseTime=true&loc=Asia%2FShanghai")
		textMariaDB.create(ctx, db)
		putStoredTime(ctx, db, "2026-10-13 00:30:00")
		reader := sqlstamp.New(db)
		Expect(storedTime(ctx, reader)).To(Equal("2026-10-13 00:30:00"))
		failures := InterceptGomegaFailures(func() { storedTime(ctx, timedReader{reader, db}) })
		Expect(failures).To(ConsistOf(ContainSubstring("2026-10-12 16:30:00")))
	})

	It("is seen to take an error for an absence", func(ctx SpecContext) {
		db := openMariaDB(newMariaDB(ctx), "")
		reader := sqlstamp.New(db)
		failsWith(ctx, reader, Not(BeNil()))
		Expect(InterceptGomegaFailures(func() { failsWith(ctx, silentReader{reader}, Not(BeNil())) })).NotTo(BeEmpty())
	})
})
