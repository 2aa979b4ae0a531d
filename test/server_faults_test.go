package test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/domain"
)

// What happens to a server happens to one of these specs' own.
var _ = Describe("A server that fails", Label("mariadb"), Ordered, func() {
	var (
		server *mariaDBServer
		db     *sqlx.DB
	)
	const faults = "faults"
	firstStamp := domain.Stamp{MessageID: "1", CreatedAt: "2026-10-12 23:50:00"}

	BeforeAll(func(ctx SpecContext) {
		if mariaDBSocket == "" {
			Skip("MariaDB is not installed")
		}
		server = installMariaDB(ctx)
		server.start(ctx, "--max-connections=10", "--extra-max-connections=2")
		root := connectMariaDB(server.socket, "", "multiStatements=true")
		defer root.Close()
		for _, statement := range []string{
			"CREATE DATABASE faults DEFAULT CHARACTER SET utf8mb4", "USE faults; " + sqlhistory.SchemaMySQL,
			"INSERT INTO faults.message (session_id, role, content, created_at) VALUES ('s1', 'USER', 'Hello.', '2026-10-12 23:50:00'), ('s1', 'USER', 'Again.', '2026-10-13 08:00:00')",
			"CREATE DATABASE slow DEFAULT CHARACTER SET utf8mb4", "CREATE TABLE slow.message LIKE faults.message", "CREATE TABLE slow.compaction LIKE faults.compaction",
			// Whether a message is deleted takes 10 ms to find out, and each is.
			"ALTER TABLE slow.message DROP KEY message_session, ADD KEY (session_id), DROP deleted, ADD deleted INT AS (LENGTH(SHA2(REPEAT(session_id, 2000000), 512)) > 0) VIRTUAL",
			"INSERT INTO slow.message (session_id, role, content) SELECT 's1', 'USER', 'Hello.' FROM seq_1_to_2000",
			"CREATE USER reader@localhost", "GRANT SELECT (id, session_id, role, deleted, created_at) ON faults.message TO reader@localhost",
		} {
			_, err := root.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred(), statement)
		}
	}, NodeTimeout(time.Minute))
	BeforeEach(func() {
		db = connectMariaDB(server.socket, faults, "")
		db.SetMaxOpenConns(4)
		// The server may be gone, and its connections with it.
		DeferCleanup(func() { _ = db.Close() })
	})
	// nextIsRight expects the next call to be right, and nothing to be held.
	nextIsRight := func(ctx context.Context) {
		GinkgoHelper()
		stamp, err := sqlstamp.New(db).FirstUserStamp(ctx, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(stamp).To(Equal(firstStamp))
		first, previous, err := sqlstamp.New(db).UserStamps(ctx, session, "2")
		Expect(err).NotTo(HaveOccurred())
		Expect([]domain.Stamp{first, previous}).To(Equal([]domain.Stamp{firstStamp, firstStamp}))
		Expect(db.Stats().InUse).To(BeZero())
		Expect(db.Stats().OpenConnections).To(BeNumerically("<=", 4))
	}
	// leavesNoGoroutine expects none to be there that was not there before.
	leavesNoGoroutine := func(ctx context.Context, before []gleak.Goroutine) {
		GinkgoHelper()
		Eventually(ctx, gleak.Goroutines).WithTimeout(5 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	}
	// running counts the statements that the server runs on that database.
	running := func(ctx context.Context) (n int, err error) {
		err = db.GetContext(ctx, &n, "SELECT COUNT(*) FROM information_schema.processlist WHERE info IS NOT NULL AND db = 'slow'")
		return n, err
	}

	// asReader connects as a user who may read the five columns and nothing else.
	asReader := func() *sqlx.DB {
		GinkgoHelper()
		config, err := mysql.ParseDSN("reader@unix(" + server.socket + ")/" + faults)
		Expect(err).NotTo(HaveOccurred())
		reader, err := sqlx.Open("mysql", config.FormatDSN())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(reader.Close)
		return reader
	}

	It("answers a user who may read those columns of the table and nothing else", func(ctx SpecContext) {
		reader := asReader()
		first, previous, err := sqlstamp.New(reader).UserStamps(ctx, session, "2")
		Expect(err).NotTo(HaveOccurred())
		Expect([]domain.Stamp{first, previous}).To(Equal([]domain.Stamp{firstStamp, firstStamp}))
		_, err = reader.ExecContext(ctx, "UPDATE message SET deleted = 1")
		Expect(err).To(HaveOccurred())
	})

	It("refuses that user whatever reads more than those columns", func(ctx SpecContext) {
		_, err := sqlhistory.New(asReader()).Window(ctx, session)
		Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring("denied"))))
	})

	DescribeTable("is asked about sessions with odd ids, and answers of no other", func(ctx SpecContext, id string) {
		store := sqlhistory.New(db)
		Expect(store.Append(ctx, id, user("", "2026-10-14 08:00:00", "Odd."))).To(Succeed())
		stamp, err := sqlstamp.New(db).FirstUserStamp(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		Expect(stamp.CreatedAt).To(Equal("2026-10-14 08:00:00"))
		nextIsRight(ctx)
	},
		Entry("with quotes", `s1' OR '1'='1"; -- `),
		Entry("with a backslash", `s1\`),
		Entry("with emoji", "s1😀"),
		Entry("with a NUL", "s1\x00"),
		Entry("of 64 characters", strings.Repeat("长", 64)),
	)

	It("is done with a statement when its deadline has passed, not only with the call", func(ctx SpecContext) {
		Expect(running(ctx)).To(BeZero())
		before := gleak.Goroutines()
		for _, interpolated := range []string{"", "interpolateParams=true"} {
			hasty := connectMariaDB(server.socket, "slow", interpolated)
			for name, ask := range map[string]func(context.Context) error{
				"first user stamp": func(ctx context.Context) error {
					_, err := sqlstamp.New(hasty).FirstUserStamp(ctx, session)
					return err
				},
				"before message 2001": func(ctx context.Context) error {
					_, err := sqlstamp.New(hasty).PreviousUserStamp(ctx, session, "2001")
					return err
				},
				"read messages": func(ctx context.Context) error {
					_, err := sqlhistory.New(hasty).Window(ctx, session)
					return err
				},
				"and the one before message 2001": func(ctx context.Context) error {
					_, _, err := sqlstamp.New(hasty).UserStamps(ctx, session, "2001")
					return err
				},
			} {
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				err := ask(short)
				cancel()
				Expect(err).To(MatchError(context.DeadlineExceeded), name)
				Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring(name))))
				Eventually(running).WithContext(ctx).WithTimeout(2*time.Second).Should(BeZero(), name)
				Expect(hasty.Stats().InUse).To(BeZero())
			}
			Expect(hasty.Close()).To(Succeed())
		}
		leavesNoGoroutine(ctx, before)
		nextIsRight(ctx)
	}, NodeTimeout(40*time.Second))

	It("ends a read at the deadline in the context's error, also where the context is late to say so", func(ctx SpecContext) {
		slow := connectMariaDB(server.socket, "slow", "")
		defer slow.Close()
		_, err := sqlstamp.New(slow).FirstUserStamp(newLateContext(ctx), session)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(err).To(MatchError(&mysql.MySQLError{Number: 1969}))
		_, _, err = sqlstamp.New(slow).UserStamps(newLateContext(ctx), session, "2001")
		Expect(err).To(MatchError(context.DeadlineExceeded))
		_, err = sqlhistory.New(slow).Window(newLateContext(ctx), session)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(slow.Stats().InUse).To(BeZero())
	})

	It("keeps to a shorter time that the account is held to", func(ctx SpecContext) {
		for _, statement := range []string{
			"CREATE USER hasty@localhost WITH MAX_STATEMENT_TIME 0.3", "GRANT SELECT ON slow.* TO hasty@localhost",
		} {
			_, err := db.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred(), statement)
		}
		slow, err := sqlx.Open("mysql", "hasty@unix("+server.socket+")/slow")
		Expect(err).NotTo(HaveOccurred())
		defer slow.Close()
		patient, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		// Both would take 20 s, and would end well.
		_, err = sqlstamp.New(slow).FirstUserStamp(patient, session)
		Expect(err).To(MatchError(&mysql.MySQLError{Number: 1969}))
		_, err = sqlhistory.New(slow).Window(patient, session)
		Expect(err).To(MatchError(&mysql.MySQLError{Number: 1969}))
	}, NodeTimeout(time.Minute))

	It("would go on with a statement that says nothing of the deadline", func(ctx SpecContext) {
		slow := connectMariaDB(server.socket, "slow", "")
		defer slow.Close()
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		var n int
		Expect(slow.GetContext(short, &n, "SELECT COUNT(*) FROM message WHERE session_id = 's1' AND deleted = 0")).To(MatchError(context.DeadlineExceeded))
		Consistently(running).WithContext(ctx).WithTimeout(2 * time.Second).Should(Equal(1))
		var id string
		Expect(db.GetContext(ctx, &id, "SELECT id FROM information_schema.processlist WHERE info IS NOT NULL AND db = 'slow'")).To(Succeed())
		_, err := db.ExecContext(ctx, "KILL "+id)
		Expect(err).NotTo(HaveOccurred())
		nextIsRight(ctx)
	}, NodeTimeout(40*time.Second))

	It("would be seen to be left with a connection or a goroutine of a call that gave it not back", func(ctx SpecContext) {
		conn, err := db.Connx(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(InterceptGomegaFailures(func() { nextIsRight(ctx) })).NotTo(BeEmpty())
		Expect(conn.Close()).To(Succeed())
		nextIsRight(ctx)

		before, done := gleak.Goroutines(), make(chan struct{})
		go func() { <-done }()
		Expect(InterceptGomegaFailures(func() { leavesNoGoroutine(ctx, before) })).NotTo(BeEmpty())
		close(done)
		leavesNoGoroutine(ctx, before)
	}, NodeTimeout(40*time.Second))

	It("refuses when it has too many connections, and answers when it has not", func(ctx SpecContext) {
		before := gleak.Goroutines()
		greedy := connectMariaDB(server.socket, faults, "")
		greedy.SetMaxIdleConns(20)
		var held []*sqlx.Conn
		for range 12 {
			conn, err := greedy.Connx(ctx)
			if err != nil {
				break
			}
			held = append(held, conn)
		}
		Expect(len(held)).To(BeNumerically("<", 12))
		_, err := sqlstamp.New(db).FirstUserStamp(ctx, session)
		Expect(err).To(MatchError(&mysql.MySQLError{Number: 1040}))
		Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring("first user stamp"))))
		for _, conn := range held {
			Expect(conn.Close()).To(Succeed())
		}
		Expect(greedy.Close()).To(Succeed())
		leavesNoGoroutine(ctx, before)
		// The server takes its time to see that connections are gone.
		Eventually(func() error {
			other := connectMariaDB(server.socket, faults, "")
			defer other.Close()
			return other.PingContext(ctx)
		}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
		nextIsRight(ctx)
	}, NodeTimeout(40*time.Second))

	It("is killed in the middle of a query and started again, and is asked as before", func(ctx SpecContext) {
		slow := connectMariaDB(server.socket, "slow", "")
		defer slow.Close()
		Expect(running(ctx)).To(BeZero())
		before := gleak.Goroutines()
		asked := make(chan error, 1)
		go func() {
			_, err := sqlstamp.New(slow).FirstUserStamp(ctx, session)
			asked <- err
		}()
		Eventually(running).WithContext(ctx).WithTimeout(5 * time.Second).Should(Equal(1))
		server.kill()
		var err error
		Eventually(ctx, asked).Should(Receive(&err))
		Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring("first user stamp"))))
		Expect(fmt.Sprint(err)).To(Or(ContainSubstring("invalid connection"), ContainSubstring("EOF")))
		Expect(slow.Stats().InUse).To(BeZero())
		leavesNoGoroutine(ctx, before)

		// Nothing listens now.
		_, err = sqlstamp.New(db).FirstUserStamp(ctx, session)
		Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring("first user stamp"))))
		Expect(db.Stats().InUse).To(BeZero())
		_, err = sqlhistory.New(db).Window(ctx, session)
		Expect(err).To(MatchError(ContainSubstring("session " + session)))

		server.start(ctx)
		nextIsRight(ctx)
	}, NodeTimeout(time.Minute))
})

// A lateContext has a deadline and does not say when it has passed, as on a
// machine that is too busy for its timers.
type lateContext struct {
	context.Context
	deadline time.Time
}

func newLateContext(ctx context.Context) context.Context {
	GinkgoHelper()
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	DeferCleanup(cancel)
	deadline, _ := short.Deadline()
	return lateContext{ctx, deadline}
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }
