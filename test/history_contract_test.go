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
	"github.com/onsi/gomega/types"
	"modernc.org/sqlite"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A historyBackend is one place where sessions are kept, and ways to put some
// there. Messages put into it get the ids 1, 2, 3 and so on, whatever their
// session.
type historyBackend struct {
	history ports.History
	put     func(ctx context.Context, session string, messages ...domain.Message)
	remove  func(ctx context.Context, session, id string)
	// dump spells everything that is stored.
	dump func(ctx context.Context) string
}

// holdsSessions is the contract of every [ports.History].
func holdsSessions(open func(ctx context.Context) historyBackend) {
	var b historyBackend
	BeforeEach(func(ctx SpecContext) { b = open(ctx) })

	read := func(ctx context.Context, session string) []domain.Message {
		GinkgoHelper()
		messages, err := messagesOf(ctx, b.history, session)
		Expect(err).NotTo(HaveOccurred())
		return messages
	}

	It("answers with the session's messages, oldest first", func(ctx SpecContext) {
		story := make([]domain.Message, 11) // In the store's order 9 is before 10.
		for i := range story {
			// The clock steps back, and is not what orders them.
			story[i] = user(fmt.Sprint(i+1), fmt.Sprintf("2026-10-12 23:50:%02d", 59-i), fmt.Sprintf("Text %d.", i))
			b.put(ctx, session, story[i])
		}
		Expect(read(ctx, session)).To(Equal(story))
	})

	It("leaves out soft-deleted messages", func(ctx SpecContext) {
		one, two, three := user("1", "2026-10-12 23:50:00", "One."), assistant("2", "2026-10-12 23:50:09", "Two."), user("3", "2026-10-13 08:00:00", "Three.")
		b.put(ctx, session, one, two, three)
		b.remove(ctx, session, "2")
		Expect(read(ctx, session)).To(Equal([]domain.Message{one, three}))
	})

	It("answers with none for a session that it does not know", func(ctx SpecContext) {
		b.put(ctx, session, user("1", "2026-10-12 23:50:00", "One."))
		Expect(read(ctx, "s2")).To(BeEmpty())
	})

	It("keeps sessions apart", func(ctx SpecContext) {
		one, two, three := user("1", "2026-10-12 23:50:00", "One."), user("2", "2026-10-12 23:51:00", "Two."), user("3", "2026-10-12 23:52:00", "Three.")
		b.put(ctx, "s1", one)
		b.put(ctx, "s2", two)
		b.put(ctx, "s1", three)
		Expect(read(ctx, "s1")).To(Equal([]domain.Message{one, three}))
		Expect(read(ctx, "s2")).To(Equal([]domain.Message{two}))
	})

	DescribeTable("gives a message back as it was stored", func(ctx SpecContext, m domain.Message) {
		m.ID = "1"
		b.put(ctx, session, m)
		Expect(read(ctx, session)).To(Equal([]domain.Message{m}))
	},
		Entry("with text", user("", "2026-10-12 23:50:00", "Hello.")),
		Entry("with text that is JSON, markup and white space", user("", "2026-10-12 23:50:00", " [{\"type\":\"text\"}] <date-change>&lt;\\u003c\r\n\t\u2028 ")),
		Entry("with text in any script", user("", "2026-10-12 23:50:00", "早上好 😀 e\u0301 \u00e9")),
		Entry("with an empty text", user("", "2026-10-12 23:50:00", "")),
		Entry("without a stored time", user("", "", "Hello.")),
		Entry("with one part, which stays parts", domain.Message{Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{{Text: "Hello."}}}),
		Entry("with no parts, which stay parts", domain.Message{Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{}}),
		Entry("with text and images in order", domain.Message{Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{
			{Image: domain.Image{URL: "https://example.com/a.png?b=1&c=<2>"}},
			{Text: "<between> & \u2028"},
			{Text: ""},
			{Image: domain.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}},
		}}),
		Entry("with tool calls, whose arguments keep their text", assistant("", "2026-10-12 23:50:00", "",
			domain.ToolCall{ID: "call_1", Name: "read_file", Arguments: `{"z": 1, "a": 1.50, "u": "\u00e9<é>"}`},
			domain.ToolCall{ID: "call_2", Name: "read_file", Arguments: `{"broken`},
			domain.ToolCall{ID: "call_3", Name: "now", Arguments: ``},
		)),
		Entry("with text and a tool call", assistant("", "2026-10-12 23:50:00", "Let me look.", domain.ToolCall{ID: "call_1", Name: "now", Arguments: "{}"})),
		Entry("with a tool's result", toolResult("", "2026-10-12 23:50:00", "call_1", "12 files")),
		Entry("with a tool's failure", domain.Message{Role: domain.RoleTool, CreatedAt: "2026-10-12 23:50:00", ToolCallID: "call_1", ToolFailed: true, Text: "no such file"}),
		Entry("with a tool's image", domain.Message{Role: domain.RoleTool, CreatedAt: "2026-10-12 23:50:00", ToolCallID: "call_1", Parts: []domain.Part{
			{Text: "A picture:"}, {Image: domain.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}},
		}}),
	)

	It("answers with what was stored, whatever is done to the caller's messages afterwards", func(ctx SpecContext) {
		given := []domain.Message{
			{ID: "1", Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{{Text: "Hello."}}},
			assistant("2", "2026-10-12 23:50:09", "", domain.ToolCall{ID: "call_1", Name: "now", Arguments: "{}"}),
		}
		b.put(ctx, session, given...)
		given[0].Parts[0].Text, given[1].ToolCalls[0].Name = "Forged.", "forged"
		given[0], given[1] = given[1], given[0]
		Expect(read(ctx, session)).To(Equal([]domain.Message{
			{ID: "1", Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{{Text: "Hello."}}},
			assistant("2", "2026-10-12 23:50:09", "", domain.ToolCall{ID: "call_1", Name: "now", Arguments: "{}"}),
		}))
	})

	It("answers the same when it is read again, whatever was done to the first answer", func(ctx SpecContext) {
		story := []domain.Message{
			{ID: "1", Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{{Text: "Hello."}}},
			assistant("2", "2026-10-12 23:50:09", "", domain.ToolCall{ID: "call_1", Name: "now", Arguments: "{}"}),
		}
		b.put(ctx, session, story[0].Clone(), story[1].Clone())
		answer := read(ctx, session)
		Expect(answer).To(Equal(story))
		answer[0].Parts[0].Text, answer[1].ToolCalls[0].Name = "Forged.", "forged"
		answer[0], answer[1] = answer[1], answer[0]
		Expect(read(ctx, session)).To(Equal(story))
	})

	It("writes nothing", func(ctx SpecContext) {
		b.put(ctx, session, user("1", "2026-10-12 23:50:00", "One."), user("2", "", "Two."))
		before := b.dump(ctx)
		read(ctx, session)
		read(ctx, "s2")
		Expect(b.dump(ctx)).To(Equal(before))
	})

	It("fails with the context's error and the session, having been cancelled", func(ctx SpecContext) {
		b.put(ctx, session, user("1", "2026-10-12 23:50:00", "One."))
		done, cancel := context.WithCancel(ctx)
		cancel()
		messages, err := messagesOf(done, b.history, session)
		Expect(err).To(And(MatchError(context.Canceled), MatchError(ContainSubstring("session s1"))))
		Expect(messages).To(BeNil())
	})

	It("fails with the context's error and the session, being past its deadline", func(ctx SpecContext) {
		b.put(ctx, session, user("1", "2026-10-12 23:50:00", "One."))
		done, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
		defer cancel()
		messages, err := messagesOf(done, b.history, session)
		Expect(err).To(And(MatchError(context.DeadlineExceeded), MatchError(ContainSubstring("session s1"))))
		Expect(messages).To(BeNil())
	})

	It("answers many at once, each with its own", func(ctx SpecContext) {
		const readers, readings = 16, 12
		for i := range readers {
			b.put(ctx, fmt.Sprint("s", i), domain.Message{ID: fmt.Sprint(i + 1), Role: domain.RoleUser, Parts: []domain.Part{{Text: fmt.Sprint("Text ", i)}}})
		}
		Expect(together(readers, func(i int) error {
			for range readings {
				messages, err := messagesOf(ctx, b.history, fmt.Sprint("s", i))
				if err != nil || len(messages) != 1 || messages[0].Parts[0].Text != fmt.Sprint("Text ", i) {
					return fmt.Errorf("reader %d: %v, %w", i, messages, err)
				}
				messages[0].Parts[0].Text = "Mine."
			}
			return nil
		})).To(BeEmpty())
	})
}

// matchesHistoriesByByte is the part of the contract that a column's collation
// can break: a session's id matches byte for byte.
func matchesHistoriesByByte(open func(ctx context.Context) historyBackend) {
	DescribeTable("tells session ids apart", func(ctx SpecContext, stored, asked string) {
		b := open(ctx)
		one := user("1", "2026-10-12 23:50:00", "One.")
		b.put(ctx, stored, one)
		Expect(messagesOf(ctx, b.history, asked)).To(BeEmpty())
		Expect(messagesOf(ctx, b.history, stored)).To(Equal([]domain.Message{one}))
	}, sessionsThatDiffer)
}

// A sqlStore is what the specs of a [sqlhistory.Store] need to know of its
// database.
type sqlStore struct {
	open func(ctx context.Context) *sqlx.DB
	// refuse is a statement that makes the database refuse a message whose content
	// is "refused".
	refuse string
	// missingTable matches the error of a table that is not there.
	missingTable types.GomegaMatcher
}

func (s sqlStore) backend(ctx context.Context) historyBackend {
	db := s.open(ctx)
	store := sqlhistory.New(db)
	return historyBackend{
		history: store,
		put: func(ctx context.Context, session string, messages ...domain.Message) {
			GinkgoHelper()
			Expect(store.Append(ctx, session, messages...)).To(Succeed())
		},
		remove: func(ctx context.Context, session, id string) {
			GinkgoHelper()
			softDelete(ctx, db, session, id)
		},
		dump: func(ctx context.Context) string { return dumpMessages(ctx, db) },
	}
}

func softDelete(ctx context.Context, db *sqlx.DB, session, id string) {
	GinkgoHelper()
	_, err := db.ExecContext(ctx, "UPDATE message SET deleted = 1 WHERE session_id = ? AND id = ?", session, id)
	Expect(err).NotTo(HaveOccurred())
}

// keepsSessions is what a [sqlhistory.Store] promises beyond the port.
func keepsSessions(s sqlStore) {
	var (
		db    *sqlx.DB
		store *sqlhistory.Store
	)
	BeforeEach(func(ctx SpecContext) {
		db = s.open(ctx)
		store = sqlhistory.New(db)
	})

	messages := func(ctx context.Context, session string) []domain.Message {
		GinkgoHelper()
		messages, err := messagesOf(ctx, store, session)
		Expect(err).NotTo(HaveOccurred())
		return messages
	}
	one, two := user("1", "2026-10-12 23:50:00", "One."), user("2", "2026-10-12 23:51:00", "Two.")
	allOrNone := func(ctx context.Context, appended func(ctx context.Context, session string, messages ...domain.Message) error) {
		GinkgoHelper()
		_, err := db.ExecContext(ctx, s.refuse)
		Expect(err).NotTo(HaveOccurred())
		Expect(appended(ctx, session, one)).To(Succeed())
		err = appended(ctx, session, two, user("", "2026-10-12 23:52:00", "refused"))
		Expect(err).To(MatchError(And(ContainSubstring("session s1"), ContainSubstring("message 1"), ContainSubstring("the database refuses"))))
		Expect(messages(ctx, session)).To(Equal([]domain.Message{one}))
	}

	It("appends at the end, and ignores the ids that messages come with", func(ctx SpecContext) {
		Expect(store.Append(ctx, session, one)).To(Succeed())
		second := two
		second.ID = "1"
		Expect(store.Append(ctx, session, second)).To(Succeed())
		Expect(messages(ctx, session)).To(Equal([]domain.Message{one, two}))
	})

	It("appends all messages or none, and fails with the cause and the session", func(ctx SpecContext) {
		allOrNone(ctx, store.Append)
	})

	It("is seen to append the first of two messages alone, were each stored for itself", func(ctx SpecContext) {
		failures := InterceptGomegaFailures(func() {
			allOrNone(ctx, func(ctx context.Context, session string, messages ...domain.Message) error {
				for i, m := range messages {
					if err := store.Append(ctx, session, m); err != nil {
						return fmt.Errorf("session %s, message %d: %w", session, i, err)
					}
				}
				return nil
			})
		})
		Expect(failures).To(ConsistOf(ContainSubstring("Two.")))
	})

	It("creates a session", func(ctx SpecContext) {
		Expect(store.Create(ctx, session, []domain.Message{one, two})).To(Succeed())
		Expect(messages(ctx, session)).To(Equal([]domain.Message{one, two}))
	})

	It("creates all of a session or nothing", func(ctx SpecContext) {
		_, err := db.ExecContext(ctx, s.refuse)
		Expect(err).NotTo(HaveOccurred())
		err = store.Create(ctx, session, []domain.Message{one, user("", "2026-10-12 23:52:00", "refused")})
		Expect(err).To(MatchError(And(ContainSubstring("session s1"), ContainSubstring("message 1"), ContainSubstring("the database refuses"))))
		Expect(messages(ctx, session)).To(BeEmpty())
		Expect(store.Create(ctx, session, []domain.Message{one})).To(Succeed())
	})

	It("does not create a session that has messages", func(ctx SpecContext) {
		Expect(store.Append(ctx, session, one)).To(Succeed())
		Expect(store.Create(ctx, session, []domain.Message{two})).To(And(
			MatchError(sqlhistory.ErrSessionExists), MatchError(ContainSubstring("session s1"))))
		Expect(messages(ctx, session)).To(Equal([]domain.Message{one}))
	})

	It("does not create a session whose messages are all deleted", func(ctx SpecContext) {
		Expect(store.Append(ctx, session, one)).To(Succeed())
		softDelete(ctx, db, session, "1")
		Expect(store.Create(ctx, session, []domain.Message{two})).To(MatchError(sqlhistory.ErrSessionExists))
		Expect(messages(ctx, session)).To(BeEmpty())
	})

	It("reads rows as the schema tells to write them", func(ctx SpecContext) {
		for _, row := range []string{
			`(11, 's1', 'USER', '', '[{"type":"text","text":"Hello."},{"type":"image","url":"https://example.com/a.png"},{"type":"image","media_type":"image/png","data":"iVBORw0KGgo="}]', NULL, NULL, 0, '2026-10-12 23:50:00', 0)`,
			`(13, 's1', 'TOOL', 'no such file', NULL, NULL, 'call_1', 1, NULL, 0)`,
			`(12, 's1', 'ASSISTANT', 'Let me look.', NULL, '[{"id":"call_1","name":"read_file","arguments":"{\"z\":1,\"a\":1.50}"}]', NULL, 0, '2026-10-12 23:50:09', 0)`,
			`(14, 's1', 'USER', 'Gone.', NULL, NULL, NULL, 0, '2026-10-12 23:50:10', 1)`,
		} {
			// A server reads a backslash in a literal as the start of an escape.
			if db.DriverName() == "mysql" {
				row = strings.ReplaceAll(row, `\`, `\\`)
			}
			_, err := db.ExecContext(ctx, "INSERT INTO message (id, session_id, role, content, parts, tool_calls, tool_call_id, tool_failed, created_at, deleted) VALUES "+row)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(messages(ctx, session)).To(Equal([]domain.Message{
			{ID: "11", Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{
				{Text: "Hello."},
				{Image: domain.Image{URL: "https://example.com/a.png"}},
				{Image: domain.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}},
			}},
			assistant("12", "2026-10-12 23:50:09", "Let me look.", domain.ToolCall{ID: "call_1", Name: "read_file", Arguments: `{"z":1,"a":1.50}`}),
			{ID: "13", Role: domain.RoleTool, Text: "no such file", ToolCallID: "call_1", ToolFailed: true},
		}))
	})

	It("writes rows as the schema tells to read them, in which markup can be searched and read", func(ctx SpecContext) {
		Expect(store.Append(ctx, session,
			domain.Message{Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Parts: []domain.Part{
				{Text: "<b> & </b>"}, {Image: domain.Image{URL: "https://example.com/a?b=1&c=<2>"}},
			}},
			assistant("", "2026-10-12 23:50:09", "",
				domain.ToolCall{ID: "call_1", Name: "search", Arguments: `{"q": "<b> & </b>"}`}),
		)).To(Succeed())
		var parts, calls string
		Expect(db.GetContext(ctx, &parts, "SELECT parts FROM message WHERE id = 1")).To(Succeed())
		Expect(db.GetContext(ctx, &calls, "SELECT tool_calls FROM message WHERE id = 2")).To(Succeed())
		Expect(parts).To(Equal(`[{"type":"text","text":"<b> & </b>"},{"type":"image","url":"https://example.com/a?b=1&c=<2>"}]`))
		Expect(calls).To(Equal(`[{"id":"call_1","name":"search","arguments":"{\"q\": \"<b> & </b>\"}"}]`))
	})

	It("keeps the fingerprint of a session's newest answered call alone", func(ctx SpecContext) {
		printed := domain.Prompt{Messages: []domain.Message{one}}.Fingerprint()
		record := func(session string, failed bool) {
			GinkgoHelper()
			Expect(store.Record(ctx, domain.Call{
				SessionID: session, At: "2026-10-12 23:50:00", Purpose: domain.ForTurn, Failed: failed, Fingerprint: printed,
			})).To(Succeed())
		}
		// kept are the fingerprints of a session's calls, oldest first.
		kept := func(session string) (kept []domain.Fingerprint) {
			GinkgoHelper()
			calls, err := store.Calls(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			for _, c := range calls {
				kept = append(kept, c.Fingerprint)
			}
			return kept
		}
		record(session, false)
		record("s2", false)
		record(session, true)
		Expect(kept(session)).To(Equal([]domain.Fingerprint{printed, nil}))
		record(session, false)
		Expect(kept(session)).To(Equal([]domain.Fingerprint{nil, nil, printed}))
		Expect(kept("s2")).To(Equal([]domain.Fingerprint{printed}))
	})

	DescribeTable("fails with the session and the message for a row that holds none", func(ctx SpecContext, role string, parts, calls any) {
		_, err := db.ExecContext(ctx, "INSERT INTO message (id, session_id, role, content, parts, tool_calls) VALUES (4711, 's1', ?, '', ?, ?)", role, parts, calls)
		Expect(err).NotTo(HaveOccurred())
		_, err = messagesOf(ctx, store, session)
		Expect(err).To(MatchError(And(ContainSubstring("session s1"), ContainSubstring("message 4711"))))
	},
		Entry("of no known role", "WIZARD", nil, nil),
		Entry("with parts that are no JSON", "USER", "Hello.", nil),
		Entry("with a part of no known type", "USER", `[{"type":"sound"}]`, nil),
		Entry("with tool calls that are no JSON", "ASSISTANT", nil, "{"),
		Entry("with a tool call without a name", "ASSISTANT", nil, `[{"id":"call_1"}]`),
	)

	It("fails with the cause and the session where the table is missing", func(ctx SpecContext) {
		_, err := db.ExecContext(ctx, "DROP TABLE message")
		Expect(err).NotTo(HaveOccurred())
		_, err = messagesOf(ctx, store, session)
		Expect(err).To(And(s.missingTable, MatchError(ContainSubstring("session s1"))))
		Expect(store.Append(ctx, session, one)).To(And(s.missingTable, MatchError(ContainSubstring("session s1"))))
		Expect(store.Create(ctx, session, []domain.Message{one})).To(And(s.missingTable, MatchError(ContainSubstring("session s1"))))
	})

	// A compacted session would be read as one that never was.
	It("fails with the cause and the session where the table of boundaries is missing", func(ctx SpecContext) {
		Expect(store.Append(ctx, session, one, two)).To(Succeed())
		_, err := db.ExecContext(ctx, "DROP TABLE compaction")
		Expect(err).NotTo(HaveOccurred())
		window, err := store.Window(ctx, session)
		Expect(err).To(And(s.missingTable, MatchError(And(ContainSubstring("boundary"), ContainSubstring("session s1")))))
		Expect(window).To(Equal(domain.Window{}))
	})

	It("fails with the cause and the session where a read breaks off between two messages", func(ctx SpecContext) {
		Expect(store.Append(ctx, session, one, two)).To(Succeed())
		window, err := sqlhistory.New(breaking(db, breaks{afterRows: 1})).Window(ctx, session)
		Expect(err).To(And(MatchError(errConnection), MatchError(ContainSubstring("session s1"))))
		Expect(window).To(Equal(domain.Window{}))
	})

	It("fails with the cause and the session where what was written cannot be committed", func(ctx SpecContext) {
		Expect(store.Append(ctx, session, one)).To(Succeed())
		broken := sqlhistory.New(breaking(db, breaks{atCommit: true}))
		fails := func(session string) types.GomegaMatcher {
			return And(MatchError(errConnection), MatchError(ContainSubstring("session "+session)))
		}
		Expect(broken.Append(ctx, session, two)).To(fails("s1"))
		Expect(broken.Create(ctx, "s2", []domain.Message{two})).To(fails("s2"))
		Expect(broken.Fork(ctx, session, "s3", "")).To(fails("s1 as s3"))
		Expect(broken.Record(ctx, domain.Call{SessionID: session, At: "2026-10-12 23:50:00"})).To(fails("s1"))
		Expect(broken.MoveBoundary(ctx, session, "1", "They talked.")).To(fails("s1"))
		Expect(messages(ctx, session)).To(Equal([]domain.Message{one}))
		Expect(messages(ctx, "s2")).To(BeEmpty())
		Expect(messages(ctx, "s3")).To(BeEmpty())
		Expect(store.Calls(ctx, session)).To(BeEmpty())
	})

	It("fails with the cause and the session where the database is closed", func(ctx SpecContext) {
		Expect(db.Close()).To(Succeed())
		closed := db.PingContext(ctx)
		Expect(closed).To(HaveOccurred())
		_, err := messagesOf(ctx, store, session)
		Expect(err).To(And(MatchError(closed), MatchError(ContainSubstring("session s1"))))
	})
}

// createsBesideOthers is the part of that which a column's collation can break.
func createsBesideOthers(open func(ctx context.Context) *sqlx.DB) {
	DescribeTable("creates a session beside one of another id", func(ctx SpecContext, existing, created string) {
		store := sqlhistory.New(open(ctx))
		Expect(store.Append(ctx, existing, user("", "2026-10-12 23:50:00", "One."))).To(Succeed())
		two := user("2", "2026-10-12 23:51:00", "Two.")
		Expect(store.Create(ctx, created, []domain.Message{two})).To(Succeed())
		Expect(messagesOf(ctx, store, created)).To(Equal([]domain.Message{two}))
	}, sessionsThatDiffer)
}

func memoryHistory(context.Context) historyBackend {
	var sessions memory.Sessions
	known := map[string]bool{}
	return historyBackend{
		history: &sessions,
		put: func(_ context.Context, session string, messages ...domain.Message) {
			sessions.Add(session, messages...)
			known[session] = true
		},
		remove: func(_ context.Context, session, id string) { sessions.Delete(session, id) },
		dump: func(ctx context.Context) string {
			GinkgoHelper()
			all := map[string][]domain.Message{}
			for session := range known {
				messages, err := messagesOf(ctx, &sessions, session)
				Expect(err).NotTo(HaveOccurred())
				all[session] = messages
			}
			return fmt.Sprint(all)
		},
	}
}

// sqliteStore is a store with the schema for SQLite, changed by replacing a text.
func sqliteStore(text, replacement string) sqlStore {
	return sqlStore{
		open: func(ctx context.Context) *sqlx.DB {
			GinkgoHelper()
			Expect(sqlhistory.SchemaSQLite).To(ContainSubstring(text))
			db := openSQLite()
			_, err := db.ExecContext(ctx, strings.Replace(sqlhistory.SchemaSQLite, text, replacement, 1))
			Expect(err).NotTo(HaveOccurred())
			return db
		},
		refuse:       "CREATE TRIGGER refuse BEFORE INSERT ON message WHEN NEW.content = 'refused' BEGIN SELECT RAISE(ABORT, 'the database refuses'); END",
		missingTable: Satisfy(isError[*sqlite.Error]),
	}
}

// mariaDBStore is a store with the schema for servers, changed by replacing a
// text.
func mariaDBStore(parameters, text, replacement string) sqlStore {
	return sqlStore{
		open: func(ctx context.Context) *sqlx.DB {
			GinkgoHelper()
			Expect(sqlhistory.SchemaMySQL).To(ContainSubstring(text))
			name := newMariaDB(ctx)
			createStore(ctx, name, strings.ReplaceAll(sqlhistory.SchemaMySQL, text, replacement))
			return openMariaDB(name, parameters)
		},
		refuse:       "CREATE TRIGGER refuse BEFORE INSERT ON message FOR EACH ROW IF NEW.content = 'refused' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the database refuses'; END IF",
		missingTable: MatchError(&mysql.MySQLError{Number: 1146}),
	}
}

var _ = Describe("A history in memory", func() {
	holdsSessions(memoryHistory)
	matchesHistoriesByByte(memoryHistory)
})

var _ = Describe("A history in SQLite", func() {
	s := sqliteStore("", "")
	holdsSessions(s.backend)
	keepsSessions(s)

	matchesHistoriesByByte(s.backend)
	createsBesideOthers(s.open)

	for _, collation := range []string{"NOCASE", "RTRIM"} {
		Context("with the collation "+collation, func() {
			s := sqliteStore("session_id   TEXT    NOT NULL", "session_id TEXT NOT NULL COLLATE "+collation)
			matchesHistoriesByByte(s.backend)
			createsBesideOthers(s.open)
		})
	}

	DescribeTable("keeps a stored time as it is spelled", func(ctx SpecContext, createdAt string) {
		store := sqlhistory.New(s.open(ctx))
		Expect(store.Append(ctx, session, user("", createdAt, "One."))).To(Succeed())
		messages, err := messagesOf(ctx, store, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(messages).To(Equal([]domain.Message{user("1", createdAt, "One.")}))
	},
		Entry("with a fraction of a second", "2026-10-12 23:59:59.6"),
		Entry("with a T and an offset", "2026-10-12T23:59:59.6+08:00"),
		Entry("with a T and a zone", "2026-10-12T23:59:59Z"),
		Entry("that is a date", "2026-10-12"),
		Entry("that is none", "garbage"),
	)

	It("creates its table, unless it is there", func(ctx SpecContext) {
		db := s.open(ctx)
		Expect(sqlhistory.New(db).Append(ctx, session, user("1", "2026-10-12 23:50:00", "One."))).To(Succeed())
		_, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite)
		Expect(err).NotTo(HaveOccurred())
		Expect(messagesOf(ctx, sqlhistory.New(db), session)).To(HaveLen(1))
	})
})

var _ = Describe("A history in MariaDB", Label("mariadb"), func() {
	for _, parameters := range []string{"", "parseTime=true&loc=Africa%2FCairo", "interpolateParams=true"} {
		Context(fmt.Sprintf("with the DSN parameters %q", parameters), func() {
			holdsSessions(mariaDBStore(parameters, "", "").backend)
		})
	}
	keepsSessions(mariaDBStore("", "", ""))

	It("ends the reads of boundaries and of calls in the server, when their deadline has passed", func(ctx SpecContext) {
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL)
		db := openMariaDB(name, "")
		store := sqlhistory.New(db)
		Expect(store.Append(ctx, session, user("", "2026-10-12 23:50:00", "One."))).To(Succeed())
		Expect(store.MoveBoundary(ctx, session, "1", "They talked.")).To(Succeed())
		Expect(store.Record(ctx, domain.Call{SessionID: session, At: "2026-10-12 23:50:00"})).To(Succeed())
		for _, table := range []string{"compaction", "model_call"} {
			// A row takes half a minute to find.
			for _, statement := range []string{
				"RENAME TABLE " + table + " TO fast_" + table,
				"CREATE VIEW " + table + " AS SELECT * FROM fast_" + table + " WHERE BENCHMARK(50000000, SHA2(id, 512)) = 0",
			} {
				_, err := db.ExecContext(ctx, statement)
				Expect(err).NotTo(HaveOccurred(), statement)
			}
		}
		watcher := connectMariaDB(mariaDBSocket, "", "")
		defer watcher.Close()
		running := func(ctx context.Context) (n int, err error) {
			err = watcher.GetContext(ctx, &n,
				"SELECT COUNT(*) FROM information_schema.processlist WHERE info IS NOT NULL AND db = ?", name)
			return n, err
		}
		for step, do := range map[string]func(context.Context) error{
			"read boundary":  func(ctx context.Context) error { _, err := store.Window(ctx, session); return err },
			"read last call": func(ctx context.Context) error { _, _, err := store.LastCall(ctx, session); return err },
			"read calls":     func(ctx context.Context) error { _, err := store.Calls(ctx, session); return err },
			"record call":    func(ctx context.Context) error { return store.Record(ctx, domain.Call{SessionID: session}) },
		} {
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			err := do(short)
			cancel()
			Expect(err).To(MatchError(context.DeadlineExceeded), step)
			Expect(err).To(MatchError(And(ContainSubstring(step), ContainSubstring("session "+session))))
			Eventually(running).WithContext(ctx).WithTimeout(2*time.Second).Should(BeZero(), step)
		}
	}, NodeTimeout(40*time.Second))

	for _, collation := range []string{"utf8mb4_unicode_ci", "utf8mb4_general_ci"} {
		Context("with the collation "+collation, func() {
			s := mariaDBStore("", "CHARSET = utf8mb4", "CHARSET = utf8mb4 COLLATE = "+collation)
			matchesHistoriesByByte(s.backend)
			createsBesideOthers(s.open)
		})
	}

	DescribeTable("keeps the date and the time to the second", func(ctx SpecContext, createdAt, kept string) {
		store := sqlhistory.New(mariaDBStore("", "", "").open(ctx))
		Expect(store.Append(ctx, session, user("", createdAt, "One."))).To(Succeed())
		messages, err := messagesOf(ctx, store, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(messages).To(Equal([]domain.Message{user("1", kept, "One.")}))
	},
		Entry("of a moment before midnight", "2026-10-12 23:59:59.6", "2026-10-12 23:59:59"),
		Entry("of the last moment before midnight", "2026-10-12 23:59:59.999999", "2026-10-12 23:59:59"),
		Entry("with a T before the time", "2026-10-12T23:59:59.6", "2026-10-12 23:59:59"),
		Entry("with an offset, which is not applied", "2026-10-13T00:30:00+08:00", "2026-10-13 00:30:00"),
		Entry("with a zone, which is not applied", "2026-10-12T23:59:59.6Z", "2026-10-12 23:59:59"),
		Entry("with no seconds", "2026-10-12 23:59", "2026-10-12 23:59:00"),
		Entry("without a time", "2026-10-12", "2026-10-12 00:00:00"),
	)
})
