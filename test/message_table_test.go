package test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
)

// A messageTable generates the rows of a table message, the same each time. The
// rows of its ordinary sessions, named 0, 1, 2 and so on, are interleaved and
// spread over the whole table; every third message is a user's. Four sessions
// have a thirtieth of the rows each:
//
//   - hugeSpread over the whole table, and hugeEarly in its first third and
//     hugeLate in its last, with one user message in 200,
//   - hugeSilent in the last third, of which the first message alone is a user's.
type messageTable struct {
	rows, sessions int
}

const (
	hugeSpread = "huge-spread"
	hugeEarly  = "huge-early"
	hugeLate   = "huge-late"
	hugeSilent = "huge-silent"

	// hugeTurn is how many messages of a huge session there are to one user's.
	hugeTurn = 200
)

// A tableRow is a row of a message table.
type tableRow struct {
	id                       int
	session, role, createdAt string
	deleted                  int
}

// all yields the rows in the order of their ids, which begin with 1.
func (t messageTable) all(yield func(tableRow) bool) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	huge := make(map[string]int)
	ordinary := 0
	for id := 1; id <= t.rows; id++ {
		r := tableRow{id: id, role: "ASSISTANT", createdAt: day.Add(time.Duration(id) * 10 * time.Second).Format(time.DateTime)}
		switch early, late := id <= t.rows/3, id > t.rows-t.rows/3; {
		case id%30 == 0:
			r.session = hugeSpread
		case early && id%10 == 1:
			r.session = hugeEarly
		case late && id%10 == 1:
			r.session = hugeLate
		case late && id%10 == 2:
			r.session = hugeSilent
		}
		if r.session != "" {
			if n := huge[r.session]; n == 0 || n%hugeTurn == 0 && r.session != hugeSilent {
				r.role = "USER"
			}
			huge[r.session]++
		} else {
			r.session = strconv.Itoa(ordinary % t.sessions)
			if ordinary/t.sessions%3 == 0 {
				r.role = "USER"
			}
			if ordinary%101 == 100 {
				r.deleted = 1
			}
			ordinary++
		}
		if !yield(r) {
			return
		}
	}
}

const (
	rowsAtOnce = 1000
	// rowContent is as long as short messages are.
	rowContent = "It went through at 02:14. The disk is at 61 %. The log ends with: export done, 48 211 rows, 0 errors."
)

// fill stores the rows in an empty table message of package sqlhistory, and calls
// stored with how many have been stored since it was last called.
func (t messageTable) fill(ctx context.Context, db *sqlx.DB, stored func(rows int) error) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("fill table message: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	args := make([]any, 0, rowsAtOnce*6)
	insert := func() error {
		rows := len(args) / 6
		statement := "INSERT INTO message (id, session_id, role, content, created_at, deleted) VALUES " +
			strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?),", rows), ",")
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("fill table message: %w", err)
		}
		args = args[:0]
		return stored(rows)
	}
	for r := range t.all {
		args = append(args, r.id, r.session, r.role, rowContent, r.createdAt, r.deleted)
		if len(args) == cap(args) {
			if err := insert(); err != nil {
				return err
			}
		}
	}
	if len(args) > 0 {
		if err := insert(); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// lastUserRows returns the ids of a session's last user message that is not
// deleted and of the one before it.
func (t messageTable) lastUserRows(session string) (last, previous int) {
	for r := range t.all {
		if r.session == session && r.role == "USER" && r.deleted == 0 {
			last, previous = r.id, last
		}
	}
	return last, previous
}

var _ = Describe("The generated message table", func() {
	table := messageTable{rows: 30_000, sessions: 200}

	holds := func(ctx context.Context, db *sqlx.DB) {
		GinkgoHelper()
		stored := 0
		Expect(table.fill(ctx, db, func(rows int) error { stored += rows; return nil })).To(Succeed())
		Expect(stored).To(Equal(30_000))
		reader := sqlstamp.New(db)
		for _, name := range []string{"0", "199", hugeSpread, hugeEarly, hugeLate} {
			last, previous := table.lastUserRows(name)
			Expect(previous).To(BeNumerically(">", 0))
			stamp, err := reader.PreviousUserStamp(ctx, name, strconv.Itoa(last))
			Expect(err).NotTo(HaveOccurred())
			Expect(stamp.MessageID).To(Equal(strconv.Itoa(previous)), "session %s", name)
		}
		for name, first := range map[string]string{"0": "2", hugeSpread: "30", hugeEarly: "1", hugeLate: "20001", hugeSilent: "20002"} {
			stamp, err := reader.FirstUserStamp(ctx, name)
			Expect(err).NotTo(HaveOccurred())
			Expect(stamp.MessageID).To(Equal(first), "session %s", name)
		}
		for _, name := range []string{hugeSpread, hugeEarly, hugeLate, hugeSilent} {
			var n int
			Expect(db.GetContext(ctx, &n, "SELECT COUNT(*) FROM message WHERE session_id = ?", name)).To(Succeed())
			Expect(n).To(Equal(1000), "session %s", name)
		}
	}

	It("has its sessions in SQLite", func(ctx SpecContext) {
		db := openSQLite()
		_, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite)
		Expect(err).NotTo(HaveOccurred())
		holds(ctx, db)
	})

	It("has its sessions in MariaDB", Label("mariadb"), func(ctx SpecContext) {
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL)
		holds(ctx, openMariaDB(name, "interpolateParams=true"))
	})
})
