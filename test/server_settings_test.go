package test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/domain"
)

// What a server is set to, and what others do there at the same time, changes no
// answer.
var _ = Describe("A server that is set otherwise, or busy", Label("mariadb"), func() {
	var name string
	BeforeEach(func(ctx SpecContext) {
		name = newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL)
	})
	// talk stores messages of two days, and returns their ids.
	talk := func(ctx context.Context, texts ...string) (ids []string) {
		GinkgoHelper()
		store := sqlhistory.New(openMariaDB(name, ""))
		for i, text := range texts {
			createdAt := "2026-10-12 23:50:00"
			if i > 0 {
				createdAt = "2026-10-13 08:00:00"
			}
			Expect(store.Append(ctx, session, user("", createdAt, text))).To(Succeed())
		}
		messages, err := messagesOf(ctx, store, session)
		Expect(err).NotTo(HaveOccurred())
		for _, m := range messages {
			ids = append(ids, m.ID)
		}
		return ids
	}
	// spied opens the database over a spy.
	spied := func(parameters string, spy *spiedConnector) *sqlx.DB {
		GinkgoHelper()
		config, err := mysql.ParseDSN("root@unix(" + mariaDBSocket + ")/" + name + "?" + parameters)
		Expect(err).NotTo(HaveOccurred())
		spy.Connector, err = mysql.NewConnector(config)
		Expect(err).NotTo(HaveOccurred())
		db := sqlx.NewDb(sql.OpenDB(spy), "mysql")
		DeferCleanup(db.Close)
		return db
	}

	It("answers in full, however few rows it is set to select", func(ctx SpecContext) {
		ids := talk(ctx, "One.", "Two.", "Three.")
		db := openMariaDB(name, "sql_select_limit=1")
		store := sqlhistory.New(db)
		messages, err := messagesOf(ctx, store, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(messages).To(HaveLen(3))
		first, previous, err := sqlstamp.New(db).UserStamps(ctx, session, ids[2])
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{first.MessageID, previous.MessageID}).To(Equal(ids[:2]))
		for range 2 {
			Expect(store.Record(ctx, domain.Call{SessionID: session, At: "2026-10-13 08:00:01", Purpose: domain.ForTurn})).To(Succeed())
		}
		Expect(store.Calls(ctx, session)).To(HaveLen(2))
	})

	It("forks a session that grows meanwhile, though its transactions see what others commit", func(ctx SpecContext) {
		ids := talk(ctx, "One.", "Two.", "Three.", "Four.")
		other := sqlhistory.New(openMariaDB(name, ""))
		Expect(other.MoveBoundary(ctx, session, ids[1], "One and two.")).To(Succeed())
		grows := &spiedConnector{before: func(statement string) {
			if strings.Contains(statement, "SELECT id, role, content") {
				Expect(other.Append(ctx, session, user("", "2026-10-13 08:00:00", "Late."))).To(Succeed())
			}
		}}
		store := sqlhistory.New(spied("tx_isolation=%27READ-COMMITTED%27", grows))
		Expect(store.Fork(ctx, session, "fork", "")).To(Succeed())
		window, err := other.Window(ctx, "fork")
		Expect(err).NotTo(HaveOccurred())
		Expect(window.Handoff).To(Equal("One and two."))
		var texts []string
		for _, m := range window.Messages {
			texts = append(texts, m.Text)
		}
		Expect(texts).To(Equal([]string{"Three.", "Four.", "Late."}))
	})

	It("leaves the boundary where it was, when moving it took too long", func(ctx SpecContext) {
		ids := talk(ctx, "One.", "Two.")
		db := openMariaDB(name, "")
		store := sqlhistory.New(db)
		Expect(store.MoveBoundary(ctx, session, ids[0], "One.")).To(Succeed())
		other, err := openMariaDB(name, "").BeginTxx(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = other.ExecContext(ctx, "SELECT id FROM compaction FOR UPDATE")
		Expect(err).NotTo(HaveOccurred())
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		Expect(store.MoveBoundary(short, session, ids[1], "All.")).To(MatchError(context.DeadlineExceeded))
		Expect(other.Rollback()).To(Succeed())
		Consistently(func() (string, error) {
			window, err := store.Window(ctx, session)
			return window.Handoff, err
		}).WithContext(ctx).WithTimeout(time.Second).Should(Equal("One."))
		Expect(db.Stats().InUse).To(BeZero())
	})

	It("ends a write that is cancelled right before it is committed in the context's error, and stores nothing", func(ctx SpecContext) {
		cancelled, cancel := context.WithCancel(ctx)
		defer cancel()
		cancels := &spiedConnector{after: func(string) {
			cancel()
			// The transaction is rolled back in the background.
			time.Sleep(100 * time.Millisecond)
		}}
		db := spied("", cancels)
		err := sqlhistory.New(db).Append(cancelled, session, user("", "2026-10-12 23:50:00", "One."))
		Expect(err).To(MatchError(context.Canceled))
		Expect(err).To(MatchError(ContainSubstring("session " + session)))
		Expect(talk(ctx)).To(BeEmpty())
		Expect(db.Stats().InUse).To(BeZero())
	})

	It("keeps no connection and nothing stored of a transaction that panics", func(ctx SpecContext) {
		panics := &spiedConnector{before: func(statement string) {
			if strings.HasPrefix(statement, "INSERT") {
				panic("no memory")
			}
		}}
		db := spied("", panics)
		Expect(func() { _ = sqlhistory.New(db).Append(ctx, session, user("", "", "One.")) }).To(PanicWith("no memory"))
		Expect(db.Stats().InUse).To(BeZero())
		Expect(talk(ctx)).To(BeEmpty())
	})
})

var _ = Describe("Moving a session's boundary", func() {
	for _, on := range []struct {
		name string
		open func(ctx context.Context) *sqlx.DB
	}{
		{"SQLite", func(ctx context.Context) *sqlx.DB {
			db, _ := newStore(ctx)
			return db
		}},
		{"MariaDB", func(ctx context.Context) *sqlx.DB {
			name := newMariaDB(ctx)
			createStore(ctx, name, sqlhistory.SchemaMySQL)
			return openMariaDB(name, "")
		}},
	} {
		DescribeTable("on "+on.name+" is refused behind a message that the session does not have, and nothing moves", func(ctx SpecContext, throughID string) {
			store := sqlhistory.New(on.open(ctx))
			Expect(store.Append(ctx, session, user("", "2026-10-12 23:50:00", "One."))).To(Succeed())
			Expect(store.Append(ctx, "other", user("", "2026-10-12 23:50:00", "Another's."))).To(Succeed())
			err := store.MoveBoundary(ctx, session, throughID, "All.")
			Expect(err).To(MatchError(sqlhistory.ErrNoMessage))
			Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring("message "+throughID))))
			window, err := store.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(window.Handoff).To(BeEmpty())
			Expect(window.Messages).To(HaveLen(1))
		},
			Entry("that nobody has", "99"),
			Entry("that another session has", "2"),
			Entry("without an id", ""),
			Entry("whose id is no number", "abc"),
			Entry("whose id only begins with a number", "1abc"),
			Entry("whose id is a fraction", "1.5"),
		)

		It("on "+on.name+" goes behind a message that was deleted meanwhile", func(ctx SpecContext) {
			db := on.open(ctx)
			store := sqlhistory.New(db)
			Expect(store.Append(ctx, session, user("", "2026-10-12 23:50:00", "One."), user("", "2026-10-12 23:51:00", "Two."))).To(Succeed())
			softDelete(ctx, db, session, "1")
			Expect(store.MoveBoundary(ctx, session, "1", "One.")).To(Succeed())
			window, err := store.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(fmt.Sprint(window.Handoff, len(window.Messages))).To(Equal("One.1"))
		})
	}
})
