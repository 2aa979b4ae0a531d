package test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
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

// A statementLog is a database that holds nothing and keeps what it was asked.
type statementLog struct {
	statements []string
	arguments  [][]driver.Value
}

func (l *statementLog) Connect(context.Context) (driver.Conn, error) { return l, nil }
func (l *statementLog) Driver() driver.Driver                        { return nil }
func (l *statementLog) Prepare(statement string) (driver.Stmt, error) {
	return logged{l, statement}, nil
}
func (l *statementLog) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }
func (l *statementLog) Close() error              { return nil }

// A logged statement has no rows.
type logged struct {
	log       *statementLog
	statement string
}

func (s logged) NumInput() int                              { return -1 }
func (s logged) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s logged) Columns() []string                          { return []string{"id", "createdAt"} }
func (s logged) Next([]driver.Value) error                  { return io.EOF }
func (s logged) Close() error                               { return nil }

func (s logged) Query(arguments []driver.Value) (driver.Rows, error) {
	s.log.statements = append(s.log.statements, s.statement)
	s.log.arguments = append(s.log.arguments, arguments)
	return s, nil
}

// A harnessInSQLite is what a host of the requirement has: stored messages, and
// the engine over them.
type harnessInSQLite struct {
	db      *sqlx.DB
	history *sqlhistory.Store
	engine  *app.PromptEngine
}

func openHarnessInSQLite(ctx context.Context) harnessInSQLite {
	GinkgoHelper()
	db := openSQLite()
	_, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite)
	Expect(err).NotTo(HaveOccurred())
	history := sqlhistory.New(db)
	return harnessInSQLite{db, history, sessiondate.New(sessiondate.Host{
		DB: db, History: history, Sink: &recording.Sink{}, Now: clockAt("2031-01-01 12:00:00"),
	})}
}

// store appends messages to the session. The ids are those of the store.
func (h harnessInSQLite) store(ctx context.Context, messages ...domain.Message) {
	GinkgoHelper()
	Expect(h.history.Append(ctx, session, messages...)).To(Succeed())
}

// rows spells everything that is stored.
func (h harnessInSQLite) rows(ctx context.Context) string {
	GinkgoHelper()
	rows, err := h.db.QueryxContext(ctx, "SELECT * FROM message ORDER BY id")
	Expect(err).NotTo(HaveOccurred())
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		row, err := rows.SliceScan()
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintln(&all, row...)
	}
	Expect(rows.Err()).NotTo(HaveOccurred())
	return all.String()
}

// tail returns the window of what is stored from the message with index i on.
func (h harnessInSQLite) tail(ctx context.Context, i int) app.Window {
	GinkgoHelper()
	messages, err := messagesOf(ctx, h.history, session)
	Expect(err).NotTo(HaveOccurred())
	return windowOf(messages[i:]...)
}

var _ = Describe("The requirement", func() {
	Context("queries and loading", func() {
		DescribeTable("§7 queries: both ask for one user message that is not deleted, by their parameters, in their order",
			func(ctx SpecContext, driverName string) {
				var log statementLog
				db := sqlx.NewDb(sql.OpenDB(&log), driverName)
				DeferCleanup(db.Close)
				reader := sqlstamp.New(db)
				Expect(reader.FirstUserStamp(ctx, "s1")).To(Equal(domain.Stamp{}))
				Expect(reader.PreviousUserStamp(ctx, "s1", "7")).To(Equal(domain.Stamp{}))

				Expect(log.statements).To(HaveLen(2))
				for i, order := range []string{"ASC", "DESC"} {
					Expect(log.statements[i]).To(And(
						HavePrefix("SELECT id, "), ContainSubstring(" FROM `message` "), ContainSubstring("created_at"),
						ContainSubstring("WHERE session_id = ?"), ContainSubstring(" AND role = 'USER'"), ContainSubstring(" AND deleted = 0"),
						HaveSuffix(" ORDER BY id "+order+" LIMIT 1"),
					))
					Expect(log.statements[i]).NotTo(MatchRegexp(`(?i)\bOR\b|;`))
				}
				Expect(log.statements[0]).NotTo(ContainSubstring("id < ?"))
				Expect(log.statements[1]).To(ContainSubstring(" AND id < ? "))
				// The session's id is compared twice: as the column does, and by its bytes.
				Expect(log.arguments).To(Equal([][]driver.Value{{"s1", "s1"}, {"s1", "s1", "7"}}))
			},
			Entry("on SQLite", "sqlite"),
			Entry("on MySQL", "mysql"),
		)

		It("§7 loading: a message gets its date from its stored time, and none where that is missing", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx,
				user("", "2026-10-12 23:50:00", "Hello."),
				user("", "", "Nobody knows when I was written."),
				user("", "2026-10-13 08:00:00", "Good morning."),
			)
			messages, err := messagesOf(ctx, h.history, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(domain.StoredDate(messages[0].CreatedAt)).To(Equal(date("2026-10-12")))
			Expect(messages[1].CreatedAt).To(BeEmpty())
			Expect(domain.StoredDate(messages[2].CreatedAt)).To(Equal(date("2026-10-13")))
			Expect(notices(build(ctx, h.engine))).To(Equal(told("2:13")))
		})

		It("§7 loading: the first user message of a window is compared with the last one before the boundary", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 13 a13 12 a14")...)
			reader := sqlstamp.New(h.db)
			// The anchor's own day, which is news only after the 13th.
			Expect(notices(resolve(ctx, reader, h.tail(ctx, 3)))).To(Equal(told("1:12")))
		})

		It("§7 loading: without a user message in the window, nothing before it is asked for", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 13 a13 a14")...)
			reader := &scriptedReader{SessionStampReader: sqlstamp.New(h.db)}
			Expect(notices(resolve(ctx, reader, h.tail(ctx, 3)))).To(BeEmpty())
			Expect(reader.previousAsked).To(Equal(0))
		})
	})

	Context("anchor", func() {
		It("§7 anchor: is the first user message's date, whatever day the clock shows", func(ctx SpecContext) {
			var sessions memory.Sessions
			sessions.Add(session, chat("12 a12 13")...)
			for _, now := range []string{"2026-10-12 23:51:00", "2026-10-13 08:00:00", "2030-01-01 00:00:00"} {
				built := build(ctx, engineWithClock(&sessions, clockAt(now)(), nil))
				Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-12", domain.FromFirstUserMessage)), now)
			}
		})

		It("§7 anchor: falls back to today in Shanghai without a user message", func(ctx SpecContext) {
			var sessions memory.Sessions
			built := build(ctx, engineWithClock(&sessions, time.Date(2026, 10, 12, 16, 30, 0, 0, time.UTC), nil))
			Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-13", domain.FromClock)))
		})

		It("§7 anchor: moves in the next round when the first user message is soft-deleted", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 13")...)
			Expect(build(ctx, h.engine).Dates.Anchor.Date).To(Equal(date("2026-10-12")))
			_, err := h.db.ExecContext(ctx, "UPDATE message SET deleted = 1 WHERE id = (SELECT MIN(id) FROM message)")
			Expect(err).NotTo(HaveOccurred())
			built := build(ctx, h.engine)
			Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-13", domain.FromFirstUserMessage)))
			Expect(notices(built)).To(BeEmpty())
		})
	})

	Context("the pure function", func() {
		It("§7 pure function: inserts nothing in several messages of one day", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 12 a12 12")...)
			Expect(notices(build(ctx, h.engine))).To(BeEmpty())
		})

		It("§7 pure function: marks the first message of a new day and none of that day behind it", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 13 a13 13 13")...)
			Expect(notices(build(ctx, h.engine))).To(Equal(told("2:13")))
		})

		It("§7 pure function: tells a gap of three days once, and the new date", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 15 15")...)
			built := build(ctx, h.engine)
			Expect(notices(built)).To(Equal(told("2:15")))
			Expect(built.Prompt.Messages[2].Text).To(ContainSubstring("2026-10-15(星期四)"))
		})

		It("§7 pure function: marks no first message on the anchor's day, and compares a later one", func() {
			window := []domain.Entry{{Role: domain.RoleUser, Date: date("2026-10-13")}}
			Expect(domain.Changes(window, date("2026-10-13"), domain.Before{})).To(BeEmpty())
			Expect(domain.Changes(window, date("2026-10-12"), domain.Before{})).
				To(Equal([]domain.Change{{Index: 0, Date: date("2026-10-13")}}))
		})

		It("§7 pure function: puts a text part before the parts, keeps the images' order, and leaves the original alone", func(ctx SpecContext) {
			one, two := domain.Part{Image: domain.Image{URL: "https://example.com/1.png"}}, domain.Part{Image: domain.Image{URL: "https://example.com/2.png"}}
			content := append(make([]domain.Part, 0, 8), one, domain.Part{Text: "Compare."}, two)
			history := sharedHistory{
				user("1", "2026-10-12 23:50:00", "Hello."),
				{ID: "2", Role: domain.RoleUser, CreatedAt: "2026-10-13 08:00:00", Parts: content},
			}
			var sessions memory.Sessions
			sessions.Add(session, history...)
			built := build(ctx, engineOver(history, &sessions))
			Expect(built.Prompt.Messages[1].Parts).To(Equal([]domain.Part{{Text: noticeOf13}, one, {Text: "Compare."}, two}))
			Expect(history[1].Parts).To(Equal([]domain.Part{one, {Text: "Compare."}, two}))
			Expect(content[:8][3:]).To(Equal(make([]domain.Part, 5)))
		})

		It("§7 pure function: skips a message without a date and does not let it into the chain", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 ? 12 ? 13 ? 13")...)
			Expect(notices(build(ctx, h.engine))).To(Equal(told("4:13")))
		})
	})

	Context("the request", func() {
		It("§7 pure function: a message with a quick command keeps its date through the expansion, and so its notice", func(ctx SpecContext) {
			p := newPipeline(memory.Commands{skill("skill"): "the skill", command("cmd"): "the command"},
				user("1", "2026-10-12 23:50:00", "Hello."), user("2", "2026-10-13 08:00:00", "$skill$ #{cmd}#"))
			built := build(ctx, p.engine)
			Expect(built.Prompt.Messages[1]).To(Equal(user("2", "2026-10-13 08:00:00", noticeOf13+"\n\nthe skill the command")))
		})

		It("§7 request: built twice, is the same byte for byte, notices and tools included", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 13 a13 13")...)
			one, err := h.engine.Build(ctx, storyRequest(session))
			Expect(err).NotTo(HaveOccurred())
			two, err := h.engine.Build(ctx, storyRequest(session))
			Expect(err).NotTo(HaveOccurred())
			Expect(notices(one)).To(Equal(told("2:13")))
			for _, p := range caseWires() {
				Expect(string(p.request(two.Prompt))).To(Equal(string(p.request(one.Prompt))), p.name)
			}
		})

		DescribeTable("§7 request: one more message leaves all that stood before it as it was, byte for byte",
			func(ctx SpecContext, story string, notice ...string) {
				h := openHarnessInSQLite(ctx)
				h.store(ctx, chat("12 a12 12")...)
				before, err := h.engine.Build(ctx, storyRequest(session))
				Expect(err).NotTo(HaveOccurred())
				h.store(ctx, chat(story)...)
				after, err := h.engine.Build(ctx, storyRequest(session))
				Expect(err).NotTo(HaveOccurred())
				Expect(notices(after)).To(Equal(append([]string{}, notice...)))
				for _, p := range caseWires() {
					earlier, later := p.units(p.request(before.Prompt)), p.units(p.request(after.Prompt))
					repeated := domain.Repeats(earlier, later)
					Expect(repeated.Units).To(Equal(len(earlier)), p.name)
					Expect(later).To(HaveLen(len(earlier)+2), p.name)
				}
			},
			Entry("on the same day", "a12 12"),
			Entry("across midnight", "a12 13", "4 2026-10-13"),
		)

		It("§7 request: a compaction's request begins with the whole of the main request", func(ctx SpecContext) {
			p := newPipeline(nil, chat("12 a12 13")...)
			main := build(ctx, p.engine).Prompt
			p.sink.Reply = domain.Reply{Text: "They talked."}
			_, err := compactorOf(p).Compact(ctx, buildRequest())
			Expect(err).NotTo(HaveOccurred())
			sent := p.sink.Prompts()[0]
			Expect(sent.Sections).To(Equal(main.Sections))
			Expect(sent.Tools).To(Equal(main.Tools))
			Expect(sent.Messages).To(HaveLen(4))
			Expect(sent.Messages[:3]).To(Equal(main.Messages))
		})
	})

	Context("judgements", func() {
		It("§7 judgement: with a notice in front, the newest user message is still a real one, and the handoff in front of it is none", func(ctx SpecContext) {
			p := newPipeline(nil, chat("12 a12 13 a13")...)
			Expect(p.sessions.MoveBoundary(ctx, session, "2", "They talked.")).To(Succeed())
			built := build(ctx, p.engine)
			Expect(notices(built)).To(Equal(told("1:13")))
			Expect(built.Prompt.Messages[0].IsRealUserMessage()).To(BeFalse())
			Expect(built.Prompt.Messages[1].Text).To(HavePrefix("<date-change>"))
			Expect(built.Prompt.Messages[1].IsRealUserMessage()).To(BeTrue())
			Expect(domain.NewestRealUserMessage(built.Prompt.Messages)).To(Equal(1))
		})
	})

	Context("beside compaction", func() {
		It("§5.5 real user messages: are told by what they begin with, which a notice does not change", func(ctx SpecContext) {
			p := newPipeline(nil, chat("12 a12 13 a13 13")...)
			built := build(ctx, p.engine)
			for i, m := range built.Prompt.Messages {
				Expect(m.IsRealUserMessage()).To(Equal(built.Window.Messages[i].IsRealUserMessage()), "message %d", i)
			}
			Expect(domain.CompactionBoundary(built.Prompt.Messages)).To(Equal(domain.CompactionBoundary(built.Window.Messages)))
		})

		It("§5.5 compaction request: carries the notices of the main request, and its instruction comes last", func(ctx SpecContext) {
			p := newPipeline(nil, chat("12 a12 13")...)
			p.sink.Reply = domain.Reply{Text: "They talked."}
			_, err := compactorOf(p).Compact(ctx, buildRequest())
			Expect(err).NotTo(HaveOccurred())
			sent := p.sink.Prompts()[0].Messages
			Expect(sent[2].Text).To(HavePrefix(noticeOf13))
			Expect(sent[3].Text).To(HavePrefix("<system-notice>"))
		})

		It("§5.5 archive, export, snapshot: what is stored and what the window holds has no notice, before and after a compaction", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 13")...)
			before := h.rows(ctx)
			sink := &recording.Sink{Reply: domain.Reply{Text: "They talked."}}
			engine := sessiondate.New(sessiondate.Host{DB: h.db, History: h.history, Sink: sink})
			compactor := app.NewCompactor(app.CompactorOptions{Engine: engine, Boundaries: h.history, Count: wordCount})
			_, err := compactor.Compact(ctx, buildRequest())
			Expect(err).NotTo(HaveOccurred())
			Expect(h.rows(ctx)).To(Equal(before))
			built := build(ctx, engine)
			Expect(notices(built)).To(Equal(told("1:13")))
			Expect(built.Window.Messages).To(HaveLen(1))
			Expect(built.Window.Messages[0].Text + built.Window.Handoff).NotTo(ContainSubstring("date-change"))
		})

		It("§5.5 active context: is estimated from the stored text, without notices, until the provider has counted", func(ctx SpecContext) {
			p := newPipeline(nil, user("1", "2026-10-12 23:50:00", "one two"), user("2", "2026-10-13 08:00:00", "three"))
			Expect(notices(build(ctx, p.engine))).To(Equal([]string{"1 2026-10-13"}))
			Expect(compactorOf(p).ActiveContext(ctx, session)).To(Equal(3))
			p.sink.Reply = domain.Reply{Usage: domain.Usage{Input: domain.Reported(120)}}
			_, err := p.engine.Send(ctx, buildRequest(), nil)
			Expect(err).NotTo(HaveOccurred())
			p.sessions.Add(session, assistant("3", "2026-10-13 08:00:05", "four five"))
			Expect(compactorOf(p).ActiveContext(ctx, session)).To(Equal(122))
		})

		It("§5.5 manifest: counts a notice under the session's messages, as it is sent", func(ctx SpecContext) {
			p := newPipeline(nil, user("1", "2026-10-12 23:50:00", "one two"), user("2", "2026-10-13 08:00:00", "three"))
			manifest := build(ctx, p.engine).Prompt.Manifest(wordCount)
			// The notice has blanks around its date and in front of what follows, and
			// in "用 shell 执行 date".
			words := len(strings.Fields(noticeOf13))
			Expect(words).To(Equal(5))
			Expect(manifest.SessionMessages).To(Equal(3 + words))
		})
	})

	Context("nothing leaks", func() {
		It("§7 no leak: no protocol's body holds a stored time and, on one day, a notice", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx,
				user("", "2026-10-12 21:51:07", "Read the file."),
				assistant("", "2026-10-12 21:52:08", "", domain.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"a"}`}),
				toolResult("", "2026-10-12 21:53:09", "c1", "text"),
				user("", "2026-10-12 21:54:10", "Thanks."),
			)
			prompt := build(ctx, h.engine).Prompt
			for _, p := range caseWires() {
				body := string(p.request(prompt))
				Expect(body).To(ContainSubstring("Thanks."), p.name)
				Expect(body).NotTo(MatchRegexp(`21:5|(?i)created_?at|senderYmd`), p.name)
				// The section names the opening tag, to explain it.
				Expect(body).NotTo(ContainSubstring("/date-change"), p.name)
			}
		})

		It("§7 no leak: across days a body holds the notice and still no stored time", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, user("", "2026-10-12 23:51:07", "Hello."), user("", "2026-10-13 21:52:08", "Good morning."))
			prompt := build(ctx, h.engine).Prompt
			for _, p := range caseWires() {
				body := string(p.request(prompt))
				Expect(strings.Count(body, "/date-change")).To(Equal(1), p.name)
				Expect(body).NotTo(MatchRegexp(`51:07|52:08|(?i)created_?at|senderYmd`), p.name)
			}
		})

		It("§7 not stored: neither what is stored nor what is loaded again holds a tag", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 13 a13 14")...)
			before := h.rows(ctx)
			Expect(notices(build(ctx, h.engine))).To(Equal(told("2:13 4:14")))
			Expect(h.rows(ctx)).To(Equal(before))
			Expect(before).To(ContainSubstring("Hello."))
			Expect(before).NotTo(ContainSubstring("date-change"))
			messages, err := messagesOf(ctx, h.history, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(messages).To(HaveLen(5))
			for i, m := range chat("12 a12 13 a13 14") {
				Expect(messages[i].Text).To(Equal(m.Text))
			}
		})
	})

	Context("acceptance", func() {
		// crossing is the scene of §10.1.
		crossing := func(ctx context.Context) harnessInSQLite {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, user("", "2026-10-12 23:50:00", "Plan my week."), assistant("", "2026-10-12 23:50:08", "Gladly."))
			return h
		}

		It("§10.1: the system prompt still states 2026-10-12 (星期一) the next morning, and the message is preceded by the notice of 2026-10-13 (星期二)", func(ctx SpecContext) {
			h := crossing(ctx)
			evening := build(ctx, h.engine)
			h.store(ctx, user("", "2026-10-13 08:00:00", "What is today?"))
			morning := build(ctx, h.engine)
			Expect(morning.Prompt.System()).To(ContainSubstring("当前日期:`2026-10-12`(星期一)"))
			Expect(morning.Prompt.System()).To(Equal(evening.Prompt.System()))
			Expect(morning.Prompt.Messages[2].Text).To(Equal(noticeOf13 + "\n\nWhat is today?"))
			Expect(morning.Prompt.Messages[:2]).To(Equal(evening.Prompt.Messages))
		})

		It("§10.2: across midnight the log names no changed section, and the provider serves from its cache what it did before", func(ctx SpecContext) {
			h := crossing(ctx)
			provider := newChatProvider(chatProtocols[2], says("Tuesday."), says("Yes."), says("Gladly."))
			sink := messagesProtocol.open(provider.url)
			var log bytes.Buffer
			engine := sessiondate.New(sessiondate.Host{
				DB: h.db, History: h.history, Sink: sink, Calls: h.history, Now: clockAt("2026-10-13 08:00:00"),
				Logger: slog.New(slog.NewJSONHandler(&log, nil)),
			})
			h.store(ctx, user("", "2026-10-12 23:51:00", "First."))
			_, err := engine.Send(ctx, storyRequest(session), nil)
			Expect(err).NotTo(HaveOccurred())
			h.store(ctx, assistant("", "2026-10-12 23:51:05", "Tuesday."), user("", "2026-10-13 08:00:00", "What is today?"))
			_, err = engine.Send(ctx, storyRequest(session), nil)
			Expect(err).NotTo(HaveOccurred())

			calls, err := h.history.Calls(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(calls).To(HaveLen(2))
			Expect(calls[1].Comparison.ChangedSections).To(BeEmpty())
			Expect(calls[1].Comparison.RepeatedUnits).To(Equal(calls[1].Comparison.PreviousUnits))
			Expect(calls[1].Usage.CacheRead).To(Equal(calls[0].Usage.Input))
			Expect(log.String()).NotTo(ContainSubstring(`"changedSections":["current-date"]`))

			// Before, the date was that of the clock. The same log shows it.
			anew := app.NewPromptEngine(app.PromptOptions{
				Dates:   app.NewSessionDate(app.Options{Stamps: &scriptedReader{SessionStampReader: &memory.Sessions{}}, Now: clockAt("2026-10-13 08:01:00")}),
				History: sharedHistory{assistant("9", "2026-10-13 08:00:30", "A signal.")}, Sink: sink, Calls: h.history,
				Logger: slog.New(slog.NewJSONHandler(&log, nil)),
			})
			_, err = anew.Send(ctx, storyRequest(session), nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(log.String()).To(ContainSubstring(`"changedSections":["current-date"]`))
		})

		It("§10.3: rounds of one day carry no notice, and each repeats the one before byte for byte", func(ctx SpecContext) {
			h := crossing(ctx)
			var earlier [][]domain.PrefixUnit
			for round := range 5 {
				h.store(ctx, user("", fmt.Sprintf("2026-10-12 23:5%d:00", round+1), "Go on."))
				built := build(ctx, h.engine)
				Expect(notices(built)).To(BeEmpty())
				var now [][]domain.PrefixUnit
				for i, p := range caseWires() {
					now = append(now, p.units(p.request(built.Prompt)))
					if round > 0 {
						repeated := domain.Repeats(earlier[i], now[i])
						Expect(repeated.Units).To(Equal(len(earlier[i])), p.name)
						Expect(len(now[i])).To(BeNumerically(">", len(earlier[i])), p.name)
					}
				}
				earlier = now
				h.store(ctx, assistant("", fmt.Sprintf("2026-10-12 23:5%d:30", round+1), "I do."))
			}
		})

		It("§10.4: the message's text and time stay as they were in the store, and so in what is shown and exported", func(ctx SpecContext) {
			h := crossing(ctx)
			h.store(ctx, user("", "2026-10-13 08:00:00", "What is today?"))
			before := h.rows(ctx)
			_, err := h.engine.Send(ctx, app.PromptRequest{SessionID: session}, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(h.rows(ctx)).To(Equal(before))
			messages, err := messagesOf(ctx, h.history, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(messages[2].Text).To(Equal("What is today?"))
			Expect(messages[2].CreatedAt).To(Equal("2026-10-13 08:00:00"))
		})

		It("§10.5: a session with a message of the next day is compacted as any other, and goes on", func(ctx SpecContext) {
			h := crossing(ctx)
			h.store(ctx, user("", "2026-10-13 08:00:00", "What is today?"))
			sink := &recording.Sink{Reply: domain.Reply{Text: "A week is to be planned."}}
			engine := sessiondate.New(sessiondate.Host{DB: h.db, History: h.history, Sink: sink, Calls: h.history})
			handoff, err := app.NewCompactor(app.CompactorOptions{Engine: engine, Boundaries: h.history, Count: wordCount}).Compact(ctx, buildRequest())
			Expect(err).NotTo(HaveOccurred())
			Expect(handoff).To(Equal("A week is to be planned."))
			built := build(ctx, engine)
			Expect(built.Prompt.Messages).To(HaveLen(2))
			Expect(built.Prompt.Messages[0].Text).To(Equal("## 会话任务交接\n\nA week is to be planned."))
			Expect(built.Prompt.Messages[1].Text).To(Equal(noticeOf13 + "\n\nWhat is today?"))
			Expect(built.Prompt.System()).To(ContainSubstring("当前日期:`2026-10-12`(星期一)"))
		})

		It("§10.7: within one day a request has the very bytes of one that knows no notices", func(ctx SpecContext) {
			h := openHarnessInSQLite(ctx)
			h.store(ctx, chat("12 a12 12 a12 12")...)
			built := build(ctx, h.engine)
			without := build(ctx, engineOver(h.history, nil))
			for _, p := range caseWires() {
				Expect(string(p.request(built.Prompt))).To(Equal(string(p.request(without.Prompt))), p.name)
			}
			h.store(ctx, chat("a12 13")...)
			crossed := build(ctx, h.engine)
			for _, p := range caseWires() {
				Expect(string(p.request(crossed.Prompt))).NotTo(Equal(string(p.request(build(ctx, engineOver(h.history, nil)).Prompt))), p.name)
			}
		})

		DescribeTable("§10.6: without a user message a request is as it was: today's date, and the messages as stored",
			func(ctx SpecContext, stored ...domain.Message) {
				h := openHarnessInSQLite(ctx)
				h.store(ctx, stored...)
				built := build(ctx, h.engine)
				Expect(built.Prompt.System()).To(ContainSubstring("当前日期:`2031-01-01`(星期三)"))
				messages, err := messagesOf(ctx, h.history, session)
				Expect(err).NotTo(HaveOccurred())
				Expect(built.Prompt.Messages).To(HaveExactElements(asElements(messages)...))
				anchorOnly := build(ctx, engineOver(h.history, nil))
				for _, p := range caseWires() {
					Expect(string(p.request(built.Prompt))).To(Equal(string(p.request(anchorOnly.Prompt))), p.name)
				}
			},
			Entry("in a session of a signal", assistant("", "2026-10-12 08:00:00", "A signal came.")),
			Entry("in an empty session"),
		)
	})
})

// compactorOf returns a compactor of a pipeline that counts words.
func compactorOf(p *pipeline) *app.Compactor {
	return app.NewCompactor(app.CompactorOptions{Engine: p.engine, Boundaries: &p.sessions, Count: wordCount})
}

// wordCount counts the words of a text, as a tokenizer counts tokens.
func wordCount(text string) int { return len(strings.Fields(text)) }

// asElements returns the elements of a list, for a matcher that takes each.
func asElements[T any](list []T) []any {
	elements := make([]any, len(list))
	for i, e := range list {
		elements[i] = e
	}
	return elements
}
