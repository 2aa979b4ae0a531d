package test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"sessiondate/adapters/sqlstamp"
	"sessiondate/domain"
	"sessiondate/ports"
)

// storedTime reads the stored time of message 1 of session 7 by both statements
// and checks that they agree.
func storedTime(ctx context.Context, reader ports.SessionStampReader) string {
	GinkgoHelper()
	first, err := reader.FirstUserStamp(ctx, "7")
	Expect(err).NotTo(HaveOccurred())
	Expect(first.MessageID).To(Equal("1"))
	previous, err := reader.PreviousUserStamp(ctx, "7", "2")
	Expect(err).NotTo(HaveOccurred())
	Expect(previous).To(Equal(first))
	return first.CreatedAt
}

// putStoredTime stores message 1 of session 7.
func putStoredTime(ctx context.Context, db *sqlx.DB, createdAt any) {
	GinkgoHelper()
	_, err := db.ExecContext(ctx, "INSERT INTO message (id, session_id, role, created_at) VALUES (1, '7', 'USER', ?)", createdAt)
	Expect(err).NotTo(HaveOccurred())
}

// dateOf spells the date of a stored time, and "" for none.
func dateOf(createdAt string) string {
	d, err := domain.StoredDate(createdAt)
	Expect(d.IsZero()).To(Equal(err != nil))
	return d.String()
}

var _ = Describe("R3: the date of a stored time", func() {
	for _, parameters := range mariaDBParameters {
		Context(fmt.Sprintf("in MariaDB with the DSN parameters %q", parameters), Label("mariadb"), func() {
			DescribeTable("is that of the stored spelling", func(ctx SpecContext, column string, stored any, text, date string) {
				name := newMariaDB(ctx)
				writer := openMariaDB(name, "")
				hostTable{"BIGINT", "VARCHAR(64) NOT NULL", column}.create(ctx, writer)
				putStoredTime(ctx, writer, stored)

				createdAt := storedTime(ctx, sqlstamp.New(openMariaDB(name, parameters)))
				Expect(createdAt).To(Equal(text))
				Expect(dateOf(createdAt)).To(Equal(date))
			},
				Entry("in a DATETIME", "DATETIME NULL", "2026-10-12 23:50:00", "2026-10-12 23:50:00", "2026-10-12"),
				Entry("in a DATETIME, in an hour that Cairo skips", "DATETIME NULL", "2026-04-24 00:30:00", "2026-04-24 00:30:00", "2026-04-24"),
				Entry("in a DATETIME, in an hour that Santiago skips", "DATETIME NULL", "2026-09-06 00:30:00", "2026-09-06 00:30:00", "2026-09-06"),
				Entry("in a DATETIME(6), at the last moment of a day", "DATETIME(6) NULL", "2026-10-12 23:59:59.999999", "2026-10-12 23:59:59.999999", "2026-10-12"),
				Entry("in a DATETIME(6), in an hour that Cairo skips", "DATETIME(6) NULL", "2026-04-24 00:30:00", "2026-04-24 00:30:00.000000", "2026-04-24"),
				Entry("in a TIMESTAMP", "TIMESTAMP NULL", "2026-10-12 23:50:00", "2026-10-12 23:50:00", "2026-10-12"),
				Entry("in a TIMESTAMP(6), in an hour that Cairo skips", "TIMESTAMP(6) NULL", "2026-04-24 00:30:00", "2026-04-24 00:30:00.000000", "2026-04-24"),
				Entry("in a text", "VARCHAR(40)", "2026-10-12T23:50:00Z", "2026-10-12T23:50:00Z", "2026-10-12"),
				Entry("none for NULL", "DATETIME NULL", nil, "", ""),
				Entry("none for NULL in a TIMESTAMP", "TIMESTAMP NULL", nil, "", ""),
				Entry("none for the zero time", "DATETIME NULL", "0000-00-00 00:00:00", "0000-00-00 00:00:00", ""),
				Entry("none for the zero time in a DATETIME(6)", "DATETIME(6) NULL", "0000-00-00 00:00:00", "0000-00-00 00:00:00.000000", ""),
				Entry("none for the zero time in a TIMESTAMP", "TIMESTAMP NULL", "0000-00-00 00:00:00", "0000-00-00 00:00:00", ""),
				Entry("none for a day that no calendar has", "DATETIME NULL", "2026-10-00 23:50:00", "2026-10-00 23:50:00", ""),
			)

			// A TIMESTAMP is kept in UTC and shown in the connection's time zone. That
			// zone is the server's and not the driver's.
			It("is the writer's in a TIMESTAMP that is read in the writer's time zone", func(ctx SpecContext) {
				const shanghai = "time_zone=%27%2B08%3A00%27"
				name := newMariaDB(ctx)
				writer := openMariaDB(name, shanghai)
				hostTable{"BIGINT", "VARCHAR(64) NOT NULL", "TIMESTAMP NULL"}.create(ctx, writer)
				putStoredTime(ctx, writer, "2026-10-13 00:30:00")

				Expect(storedTime(ctx, sqlstamp.New(openMariaDB(name, parameters+"&"+shanghai)))).To(Equal("2026-10-13 00:30:00"))
				Expect(storedTime(ctx, sqlstamp.New(openMariaDB(name, parameters+"&time_zone=%27%2B00%3A00%27")))).To(Equal("2026-10-12 16:30:00"),
					"the two zones show the same, so this spec sees nothing")
			})
		})
	}

	for _, declared := range []string{"TEXT", "DATETIME"} {
		Context("in SQLite with created_at declared "+declared, func() {
			DescribeTable("is that of the stored spelling", func(ctx SpecContext, stored any, text, date string) {
				db := openSQLite()
				hostTable{"INTEGER", "TEXT NOT NULL", declared}.create(ctx, db)
				putStoredTime(ctx, db, stored)

				createdAt := storedTime(ctx, sqlstamp.New(db))
				Expect(createdAt).To(Equal(text))
				Expect(dateOf(createdAt)).To(Equal(date))
			},
				Entry("with a space before the time", "2026-10-12 23:50:00", "2026-10-12 23:50:00", "2026-10-12"),
				Entry("with a T before the time", "2026-10-12T23:50:00", "2026-10-12T23:50:00", "2026-10-12"),
				Entry("with a fraction of a second", "2026-10-12 23:59:59.999999", "2026-10-12 23:59:59.999999", "2026-10-12"),
				Entry("with a zone, which is not applied", "2026-10-12T23:50:00Z", "2026-10-12T23:50:00Z", "2026-10-12"),
				Entry("with an offset, which is not applied", "2026-10-13T00:10:00+08:00", "2026-10-13T00:10:00+08:00", "2026-10-13"),
				Entry("without a time", "2026-10-12", "2026-10-12", "2026-10-12"),
				Entry("none for NULL", nil, "", ""),
				Entry("none for an empty text", "", "", ""),
				Entry("none for garbage", "garbage", "garbage", ""),
				Entry("none for the zero time", "0000-00-00 00:00:00", "0000-00-00 00:00:00", ""),
				Entry("none for a day that no calendar has", "2026-02-29 10:00:00", "2026-02-29 10:00:00", ""),
				Entry("none for seconds since an epoch", int64(1791820200), "1791820200", ""),
				Entry("none for milliseconds since an epoch", int64(1791820200000), "1791820200000", ""),
			)
		})
	}
})

// A spiedConnector records the text of every statement that is prepared over
// its connections, so that a spec can have the server explain just those.
type spiedConnector struct {
	driver.Connector
	mu         sync.Mutex
	statements []string
	// before and after are called with each statement, if they are there.
	before, after func(statement string)
}

func (c *spiedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return spiedConn{conn, c}, nil
}

// A spiedConn hides that the connection can do more than prepare, which makes
// database/sql prepare every statement.
type spiedConn struct {
	driver.Conn
	spy *spiedConnector
}

func (c spiedConn) Prepare(query string) (driver.Stmt, error) {
	c.spy.mu.Lock()
	c.spy.statements = append(c.spy.statements, query)
	c.spy.mu.Unlock()
	if c.spy.before != nil {
		c.spy.before(query)
	}
	stmt, err := c.Conn.Prepare(query)
	if err != nil || c.spy.after == nil {
		return stmt, err
	}
	return spiedStmt{stmt, func() { c.spy.after(query) }}, nil
}

// A spiedStmt says when it was executed.
type spiedStmt struct {
	driver.Stmt
	after func()
}

func (s spiedStmt) Exec(args []driver.Value) (driver.Result, error) {
	result, err := s.Stmt.Exec(args) //nolint:staticcheck // Whatever the driver can do in its place is hidden.
	s.after()
	return result, err
}

// statementsOf returns the reader's two statements: that of the first user stamp
// and that of the previous one.
func statementsOf(ctx context.Context, database string) (first, previous string) {
	GinkgoHelper()
	config, err := mysql.ParseDSN("root@unix(" + mariaDBSocket + ")/" + database)
	Expect(err).NotTo(HaveOccurred())
	connector, err := mysql.NewConnector(config)
	Expect(err).NotTo(HaveOccurred())
	spy := &spiedConnector{Connector: connector}
	db := sqlx.NewDb(sql.OpenDB(spy), "mysql")
	defer db.Close()
	reader := sqlstamp.New(db)
	_, err = reader.FirstUserStamp(ctx, "7")
	Expect(err).NotTo(HaveOccurred())
	_, err = reader.PreviousUserStamp(ctx, "7", "2")
	Expect(err).NotTo(HaveOccurred())
	Expect(spy.statements).To(HaveLen(2))
	return spy.statements[0], spy.statements[1]
}

// A plan is what the server says of how it will find a statement's rows.
type plan struct {
	// Access is how: "ALL" reads the whole table, "index" a whole index, "ref" and
	// "range" a stretch of one.
	Access string
	// Key is the index that is used, and empty for none.
	Key string
	// Extra says, among other things, whether the rows have to be sorted.
	Extra string
}

func explain(ctx context.Context, db *sqlx.DB, statement string, args ...any) plan {
	GinkgoHelper()
	row := map[string]any{}
	Expect(db.QueryRowxContext(ctx, "EXPLAIN "+statement, args...).MapScan(row)).To(Succeed())
	Expect(row).To(And(HaveKey("type"), HaveKey("key"), HaveKey("Extra")))
	return plan{fmt.Sprintf("%s", row["type"]), fmt.Sprintf("%s", row["key"]), fmt.Sprintf("%s", row["Extra"])}
}

// useIndex succeeds for a plan that reads a stretch of an index.
func useIndex(key string) types.GomegaMatcher {
	return And(HaveField("Access", BeElementOf("ref", "range")), HaveField("Key", Equal(key)))
}

// rowsRead returns how many rows do had the server read by an index. Those that
// are read by none are left out, because asking for this number reads some.
func rowsRead(ctx context.Context, db *sqlx.DB, do func()) (sum int) {
	GinkgoHelper()
	db.SetMaxOpenConns(1) // The server counts for each connection.
	_, err := db.ExecContext(ctx, "FLUSH STATUS")
	Expect(err).NotTo(HaveOccurred())
	do()
	Expect(db.GetContext(ctx, &sum, "SELECT SUM(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME LIKE 'HANDLER\\_READ\\_%' AND VARIABLE_NAME NOT LIKE 'HANDLER\\_READ\\_RND%'")).To(Succeed())
	return sum
}

var _ = Describe("The statements on a large table in MariaDB", Label("mariadb"), func() {
	// fill stores 8000 rows. Session 7 has half of them, interleaved with those of
	// 500 others, because the planner is tempted by large sessions only. Every
	// third message is a user's.
	fill := func(ctx context.Context, db *sqlx.DB) {
		GinkgoHelper()
		for _, statement := range []string{
			"INSERT INTO message (id, session_id, role, created_at) " +
				"SELECT seq, IF(seq % 2 = 0, 7, 1000 + seq % 1000), IF(seq % 3 = 0, 'USER', 'ASSISTANT'), '2026-10-12 23:50:00' FROM seq_1_to_8000",
			"ANALYZE TABLE message PERSISTENT FOR ALL",
		} {
			_, err := db.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred())
		}
	}

	for _, parameters := range []string{"", "interpolateParams=true"} {
		for _, session := range []string{"VARCHAR(64) NOT NULL", "VARCHAR(64) COLLATE utf8mb4_unicode_ci NOT NULL", "BIGINT NOT NULL"} {
			Context(fmt.Sprintf("with session_id declared %s and the DSN parameters %q", session, parameters), func() {
				It("find a session by its index", func(ctx SpecContext) {
					name := newMariaDB(ctx)
					db := openMariaDB(name, parameters)
					hostTable{"BIGINT", session, "DATETIME NULL"}.create(ctx, db)
					fill(ctx, db)
					first, previous := statementsOf(ctx, name)
					for _, id := range []string{"7", "1001"} {
						inOrder := HaveField("Extra", Not(ContainSubstring("filesort")))
						Expect(explain(ctx, db, first, id, id)).To(And(useIndex("message_session"), inOrder))
						Expect(explain(ctx, db, previous, id, id, "7001")).To(And(useIndex("message_session"), inOrder))
					}

					reader := sqlstamp.New(db)
					Expect(rowsRead(ctx, db, func() {
						s, err := reader.FirstUserStamp(ctx, "7")
						Expect(err).NotTo(HaveOccurred())
						Expect(s.MessageID).To(Equal("6"))
					})).To(BeNumerically("<", 20))
					// At worst it walks back over the window's rows, which the host has read
					// too: 500 from message 7000 to the end.
					Expect(rowsRead(ctx, db, func() {
						s, err := reader.PreviousUserStamp(ctx, "7", "7000")
						Expect(err).NotTo(HaveOccurred())
						Expect(s.MessageID).To(Equal("6996"))
					})).To(BeNumerically("<", 520))
				})
			})
		}
	}

	// withTimeIndex fills a table whose index goes on with the time.
	withTimeIndex := func(ctx context.Context) (name string, db *sqlx.DB) {
		GinkgoHelper()
		name = newMariaDB(ctx)
		db = openMariaDB(name, "")
		hostTable{"BIGINT", "VARCHAR(64) NOT NULL", "DATETIME NULL"}.create(ctx, db)
		for _, statement := range []string{
			"DROP INDEX message_session ON message",
			"CREATE INDEX message_session_time ON message (session_id, created_at)",
		} {
			_, err := db.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred())
		}
		fill(ctx, db)
		return name, db
	}

	It("find a session's first message by its index also where the index goes on with the time", func(ctx SpecContext) {
		name, db := withTimeIndex(ctx)
		first, _ := statementsOf(ctx, name)
		Expect(explain(ctx, db, first, "7", "7")).To(useIndex("message_session_time"))
	})

	It("would look for a session's first message along the whole table without their hint", func(ctx SpecContext) {
		_, db := withTimeIndex(ctx)
		const unhinted = "SELECT id FROM message WHERE session_id = ? AND role = 'USER' AND deleted = 0 ORDER BY id ASC LIMIT 1"
		Expect(explain(ctx, db, unhinted, "7")).To(And(HaveField("Access", Equal("index")), HaveField("Key", Equal("PRIMARY"))))
	})
})
