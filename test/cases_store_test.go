package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate"
	"sessiondate/adapters/memory"
	"sessiondate/adapters/recording"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/app"
	"sessiondate/domain"
)

// Cases about ids, about what a column holds, and about sessions that come from
// other sessions.

// buildOf builds the prompt of any session.
func buildOf(ctx context.Context, e *app.PromptEngine, sessionID string) app.BuiltPrompt {
	GinkgoHelper()
	built, err := e.Build(ctx, app.PromptRequest{
		SessionID: sessionID,
		Sections:  []domain.Section{{Name: "persona", Text: "You are helpful."}, {Name: domain.CurrentDateSection}, {Name: "guide", Text: "Be brief."}},
	})
	Expect(err).NotTo(HaveOccurred())
	return built
}

// undated returns which messages a log in JSON says to have no date, in the
// order in which it says so.
func undated(log *bytes.Buffer) []string {
	GinkgoHelper()
	ids := []string{}
	for text := range strings.Lines(log.String()) {
		var line struct{ Level, Msg, Session, Message, Reason string }
		Expect(json.Unmarshal([]byte(text), &line)).To(Succeed())
		Expect(line.Msg).To(ContainSubstring("no date"))
		Expect(line.Session).To(Equal(session))
		Expect(line.Reason).NotTo(BeEmpty())
		ids = append(ids, line.Level+" "+line.Message)
	}
	return ids
}

var _ = Describe("Case A33: ids that sort before older ones (anomalyco/opencode#24476, #23092)", func() {
	It("follows the conversation and not the spelling of its ids", func(ctx SpecContext) {
		r := requestsOf(ctx,
			user("m5", "2026-04-25 23:50:00", "Question 1."),
			assistant("m6", "2026-04-25 23:50:10", "Answer 1."),
			user("m2", "2026-04-26 00:10:00", "Question 2."),
			assistant("m1", "2026-04-26 00:10:10", "Answer 2."),
			user("m0", "2026-04-26 00:20:00", "Question 3."))
		expectDates(r[2], "2026-04-25", "U2 2026-04-26")
		for _, w := range caseWires() {
			for i, u := range decodeBody(w.request(r[2].Prompt)).users() {
				Expect(u.text()).To(HaveSuffix(fmt.Sprintf("Question %d.", i+1)), w.name)
			}
		}
		expectPrefix(r, 1, 3, 5)
	})

	It("compares a window with the message before it where ids get one digit more", func(ctx SpecContext) {
		db, store := newStore(ctx)
		// U1 to U5 have the ids 1 to 9, and U6 has 11. As texts, "11" < "3" < "9".
		Expect(store.Append(ctx, session, dialogue(
			"2026-04-24 10:00:00", "2026-04-24 11:00:00", "2026-04-24 12:00:00", "2026-04-25 10:00:00",
			"2026-04-26 10:00:00", "2026-04-24 13:00:00")...)).To(Succeed())
		built := build(ctx, storeEngine(db, "2026-04-26 11:00:01"))
		Expect(built.Prompt.Messages[10].ID).To(Equal("11"))
		expectDates(built, "2026-04-24", "U4 2026-04-25", "U5 2026-04-26", "U6 2026-04-24")

		dates, err := app.NewSessionDate(app.Options{Stamps: sqlstamp.New(db)}).Resolve(ctx, app.Window{
			SessionID: session,
			Messages:  []app.WindowMessage{{ID: "11", Role: domain.RoleUser, CreatedAt: "2026-04-24 13:00:00"}},
		})
		Expect(err).NotTo(HaveOccurred())
		// U6 has the anchor's date, so it is only by U5 that it is news.
		Expect(notices(app.BuiltPrompt{Dates: dates})).To(Equal([]string{"0 2026-04-24"}))
	})
})

var _ = Describe("Case A34: messages of the same second (OpenFn/lightning#5081)", func() {
	It("reads them in one order, and tells the second that begins the next day", func(ctx SpecContext) {
		db, store := newStore(ctx)
		story := dialogue("2026-06-17 23:59:59", "2026-06-17 23:59:59", "2026-06-18 00:00:00")
		Expect(store.Append(ctx, session, story...)).To(Succeed())
		first := build(ctx, storeEngine(db, "2026-06-18 00:00:00"))
		expectDates(first, "2026-06-17", "U3 2026-06-18")
		for range 100 {
			Expect(build(ctx, storeEngine(db, "2026-06-18 00:00:00"))).To(Equal(first))
		}
		var texts []string
		for _, m := range first.Prompt.Messages[:4] {
			texts = append(texts, m.Text)
		}
		Expect(texts).To(Equal([]string{"Question 1.", "Answer 1.", "Question 2.", "Answer 2."}))
	})
})

var _ = Describe("Case A35: what a driver makes of a stored time (go-sql-driver/mysql#9, #1379)", func() {
	// 2026-06-17 16:30:00 in UTC, as a number of seconds.
	const epoch int64 = 1781713800

	dsns := []string{
		"", "loc=Asia%2FShanghai", "parseTime=true", "parseTime=true&loc=UTC",
		"parseTime=true&loc=Asia%2FShanghai", "parseTime=true&loc=America%2FNew_York",
		"parseTime=true&loc=America%2FSantiago", "parseTime=true&interpolateParams=true&loc=America%2FSantiago",
	}

	// hostTable makes a host's own table on the server with a column of a type and
	// one message in it.
	hostTable := func(ctx context.Context, name, columnType string, createdAt any) {
		GinkgoHelper()
		db := openMariaDB(name, "")
		_, err := db.ExecContext(ctx, "CREATE TABLE message (id BIGINT AUTO_INCREMENT PRIMARY KEY, session_id VARCHAR(64) NOT NULL,"+
			" role VARCHAR(16) NOT NULL, deleted TINYINT NOT NULL DEFAULT 0, created_at "+columnType+" NULL)")
		Expect(err).NotTo(HaveOccurred())
		_, err = db.ExecContext(ctx, "INSERT INTO message (session_id, role, created_at) VALUES (?, 'USER', ?)", session, createdAt)
		Expect(err).NotTo(HaveOccurred())
	}

	Context("on MariaDB", Label("backend:mariadb"), func() {
		It("sends the same request under every DSN", func(ctx SpecContext) {
			name := newMariaDB(ctx)
			createStore(ctx, name, sqlhistory.SchemaMySQL)
			// In Santiago there is no 2026-09-06 00:30, the clocks skip that hour.
			story := dialogue("2026-09-04 16:30:00", "2026-09-05 23:59:59", "2026-09-06 00:30:00", "2026-09-06 08:00:00")
			Expect(sqlhistory.New(openMariaDB(name, "")).Append(ctx, session, story...)).To(Succeed())
			for _, dsn := range dsns {
				db := openMariaDB(name, dsn)
				built := build(ctx, storeEngine(db, "2031-01-01 12:00:00"))
				Expect(built.Dates.Anchor.Source).To(Equal(domain.FromFirstUserMessage), dsn)
				Expect(built.Prompt.Messages[4].CreatedAt).To(Equal("2026-09-06 00:30:00"), dsn)
				expectDates(built, "2026-09-04", "U2 2026-09-05", "U3 2026-09-06")
			}
		})

		DescribeTable("anchors on the column's own spelling under every DSN",
			func(ctx SpecContext, columnType, createdAt, want string) {
				name := newMariaDB(ctx)
				hostTable(ctx, name, columnType, createdAt)
				for _, dsn := range dsns {
					dates, err := app.NewSessionDate(app.Options{Stamps: sqlstamp.New(openMariaDB(name, dsn)), Now: clockAt("2031-01-01 12:00:00")}).
						Resolve(ctx, app.Window{SessionID: session})
					Expect(err).NotTo(HaveOccurred(), dsn)
					Expect(dates.Anchor).To(Equal(domain.Anchor{Date: date(want), Source: domain.FromFirstUserMessage}), dsn)
				}
			},
			Entry("DATETIME", "DATETIME", "2026-06-17 16:30:00", "2026-06-17"),
			Entry("DATETIME, late in the evening", "DATETIME", "2026-06-17 23:59:59", "2026-06-17"),
			Entry("DATETIME, in an hour that Santiago skips", "DATETIME", "2026-09-06 00:30:00", "2026-09-06"),
			Entry("DATETIME(6)", "DATETIME(6)", "2026-06-17 16:30:00.000000", "2026-06-17"),
			Entry("DATETIME(6), in the last microsecond", "DATETIME(6)", "2026-06-17 23:59:59.999999", "2026-06-17"),
			Entry("TIMESTAMP", "TIMESTAMP", "2026-06-17 23:30:00", "2026-06-17"),
			Entry("VARCHAR", "VARCHAR(40)", "2026-06-17 16:30:00", "2026-06-17"),
			Entry("VARCHAR with a T and a Z", "VARCHAR(40)", "2026-06-17T16:30:00Z", "2026-06-17"),
			Entry("VARBINARY", "VARBINARY(40)", "2026-06-17 16:30:00", "2026-06-17"),
		)

		DescribeTable("takes no date from a number, and says so once",
			func(ctx SpecContext, number int64) {
				name := newMariaDB(ctx)
				hostTable(ctx, name, "BIGINT", number)
				for _, dsn := range dsns {
					var log bytes.Buffer
					dates, err := app.NewSessionDate(app.Options{
						Stamps: sqlstamp.New(openMariaDB(name, dsn)), Now: clockAt("2031-01-01 12:00:00"),
						Logger: slog.New(slog.NewJSONHandler(&log, nil)),
					}).Resolve(ctx, app.Window{SessionID: session, Messages: []app.WindowMessage{
						{ID: "1", Role: domain.RoleUser, CreatedAt: fmt.Sprint(number)},
						{ID: "2", Role: domain.RoleUser, CreatedAt: "2026-06-18 09:00:00"},
					}})
					Expect(err).NotTo(HaveOccurred(), dsn)
					Expect(dates.Anchor).To(Equal(domain.Anchor{Date: date("2026-06-18"), Source: domain.FromLoadedHistory}), dsn)
					Expect(dates.Notices).To(BeEmpty(), dsn)
					Expect(undated(&log)).To(Equal([]string{"WARN 1"}), dsn)
				}
			},
			Entry("of seconds", epoch),
			Entry("of milliseconds", epoch*1000),
		)
	})

	Context("on SQLite", Label("backend:sqlite"), func() {
		// The reference store's column is a TEXT, which makes text of a number.
		// Hosts have columns that keep it, and the driver makes times of DATETIME.
		columns := []string{"TEXT", "INTEGER", "DATETIME", "TIMESTAMP", ""}

		// stored builds the prompt of a session with messages of the user that
		// were created at the given times, one to each.
		stored := func(ctx context.Context, column string, createdAt ...any) (app.BuiltPrompt, *bytes.Buffer) {
			GinkgoHelper()
			db := openSQLite()
			schema := strings.Replace(sqlhistory.SchemaSQLite, "created_at   TEXT,", "created_at "+column+",", 1)
			Expect(schema).To(ContainSubstring("created_at " + column + ","))
			_, err := db.ExecContext(ctx, schema)
			Expect(err).NotTo(HaveOccurred())
			for _, t := range createdAt {
				_, err := db.ExecContext(ctx, "INSERT INTO message (session_id, role, content, created_at) VALUES (?, 'USER', 'Hello.', ?)", session, t)
				Expect(err).NotTo(HaveOccurred())
			}
			var log bytes.Buffer
			built := build(ctx, sessiondate.New(sessiondate.Host{
				DB: db, History: sqlhistory.New(db), Sink: &recording.Sink{}, Now: clockAt("2031-01-01 12:00:00"),
				Logger: slog.New(slog.NewJSONHandler(&log, nil)),
			}))
			return built, &log
		}

		It("takes the date from the spelling in a column of any type", func(ctx SpecContext) {
			for _, column := range columns {
				built, log := stored(ctx, column,
					"2026-06-17 16:30:00", "2026-06-17 16:30:00.000000", []byte("2026-06-17 16:30:00"), "2026-06-17T16:30:00Z", "2026-06-17T23:59:59.6+08:00",
					"2026-06-18 00:00:00")
				Expect(built.Dates.Anchor.Source).To(Equal(domain.FromFirstUserMessage), column)
				expectDates(built, "2026-06-17", "U6 2026-06-18")
				Expect(undated(log)).To(BeEmpty(), column)
			}
		})

		It("takes no date from a number, and anchors on the first message that has one", func(ctx SpecContext) {
			for _, column := range columns {
				built, log := stored(ctx, column, epoch, epoch*1000, "2026-06-17 16:30:00", epoch+86400, "2026-06-18 09:00:00")
				Expect(built.Dates.Anchor).To(Equal(domain.Anchor{Date: date("2026-06-17"), Source: domain.FromLoadedHistory}), column)
				expectDates(built, "2026-06-17", "U5 2026-06-18")
				Expect(undated(log)).To(Equal([]string{"WARN 1", "WARN 2", "WARN 4"}), column)
			}
		})

		It("takes the clock's date where nothing but numbers is stored, and tells no change", func(ctx SpecContext) {
			for _, column := range columns {
				built, log := stored(ctx, column, epoch, epoch+86400)
				Expect(built.Dates.Anchor).To(Equal(domain.Anchor{Date: date("2031-01-01"), Source: domain.FromClock}), column)
				expectDates(built, "2031-01-01")
				Expect(undated(log)).To(Equal([]string{"WARN 1", "WARN 2"}), column)
			}
		})
	})
})

var _ = Describe("Case A37: a fork that loses its parent's prefix (openai/codex#24704)", func() {
	It("repeats the parent's request and tells the day on which the fork goes on", func(ctx SpecContext) {
		db, store := newStore(ctx)
		story := dialogue(
			"2026-05-23 10:00:00", "2026-05-23 11:00:00", "2026-05-23 12:00:00", "2026-05-24 10:00:00", "2026-05-24 11:00:00",
			"2026-05-24 12:00:00", "2026-05-24 13:00:00", "2026-05-24 14:00:00", "2026-05-24 15:00:00")
		sixth := story[:11]
		Expect(store.Append(ctx, session, sixth...)).To(Succeed())
		parent := build(ctx, storeEngine(db, "2026-05-24 12:00:01"))
		Expect(store.Append(ctx, session, story[11:]...)).To(Succeed())

		// The fork copies what is stored, the times of creation with it.
		Expect(store.Create(ctx, "fork", append(sixth[:11:11],
			assistant("", "2026-05-24 12:00:05", "Answer 6."),
			user("", "2026-05-27 10:00:00", "Let us go another way.")))).To(Succeed())
		fork := buildOf(ctx, storeEngine(db, "2026-05-27 10:00:01"), "fork")

		Expect(parent.Prompt.Messages[0].ID).NotTo(Equal(fork.Prompt.Messages[0].ID))
		expectDates(parent, "2026-05-23", "U4 2026-05-24")
		expectDates(fork, "2026-05-23", "U4 2026-05-24", "U7 2026-05-27")
		expectPrefix([]app.BuiltPrompt{parent, fork}, 11, 13)
		expectDates(build(ctx, storeEngine(db, "2026-05-27 10:00:01")), "2026-05-23", "U4 2026-05-24")
	})
})

var _ = Describe("Case A38: a session without any date (bytedance/deer-flow#4781, openclaw/openclaw#32363)", func() {
	It("anchors a sub-agent on the day of its own task", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session, dialogue("2026-08-11 10:00:00", "2026-08-12 10:00:00")...)
		sessions.Add("sub-agent", user("t1", "2026-08-12 10:01:00", "Read the log."))
		e := engine(&sessions)
		expectDates(build(ctx, e), "2026-08-11", "U2 2026-08-12")
		task := buildOf(ctx, e, "sub-agent")
		Expect(task.Dates.Anchor.Source).To(Equal(domain.FromFirstUserMessage))
		expectDates(task, "2026-08-12")
	})

	It("states today in an empty session, and the same once the first message is there", func(ctx SpecContext) {
		var sessions memory.Sessions
		e := engineAt(&sessions, clockAt("2026-08-12 23:59:00"))
		empty := build(ctx, e)
		Expect(empty.Dates.Anchor).To(Equal(domain.Anchor{Date: date("2026-08-12"), Source: domain.FromClock}))
		expectDates(empty, "2026-08-12")
		sessions.Add(session, user("1", "2026-08-12 23:59:30", "Hello."))
		first := build(ctx, e)
		expectDates(first, "2026-08-12")
		expectPrefix([]app.BuiltPrompt{empty, first}, 0, 1)
	})

	It("states the day of the message being sent where midnight passed before it came", func(ctx SpecContext) {
		var sessions memory.Sessions
		e := engineAt(&sessions, clockAt("2026-08-12 23:59:59"))
		sessions.Add(session, user("1", "2026-08-13 00:00:00", "Hello."))
		expectDates(build(ctx, e), "2026-08-13")
	})
})

var _ = Describe("Case A40: a queued message without a time of its own (PrimeIntellect-ai/prime-agent#823)", func() {
	DescribeTable("goes by the stored time, and never writes it again",
		func(ctx SpecContext, createdAt string, told ...string) {
			db, store := newStore(ctx)
			Expect(store.Append(ctx, session, dialogue("2026-08-10 23:50:00", createdAt)...)).To(Succeed())
			before := tableRows(ctx, db)
			// The message was taken from the queue at 00:06.
			for _, now := range []string{"2026-08-11 00:06:00", "2026-08-12 09:00:00"} {
				expectDates(build(ctx, storeEngine(db, now)), "2026-08-10", told...)
			}
			Expect(tableRows(ctx, db)).To(Equal(before))
			Expect(before[2]).To(ContainElement(createdAt))
		},
		Entry("where the host stored when it was written", "2026-08-10 23:58:00"),
		Entry("where the host stored when it was taken from the queue", "2026-08-11 00:06:00", "U2 2026-08-11"),
	)
})
