package test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A sessionStore is an adapter that keeps whole sessions.
type sessionStore interface {
	ports.History
	ports.Archive
	ports.Boundaries
	ports.CallLog
}

// A sessionStoreBackend is a session store, how it is opened anew, and what else
// specs need of it. What a store in memory does not have is nil.
type sessionStoreBackend struct {
	store sessionStore
	// reopen returns the store as another process finds it.
	reopen func() sessionStore
	db     *sqlx.DB
	// refuse makes the database refuse a message whose content is "refused".
	refuse string
}

// anyMessages are messages with one of everything.
func anyMessages() []domain.Message {
	return []domain.Message{
		user("", "2026-10-12 23:50:00", "你好 😀 \"<b>\" \\ \n\t"),
		user("", "2026-10-12 23:50:01", ""),
		{Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:02", Parts: []domain.Part{
			{Image: domain.Image{URL: "https://example.com/a?b=1&c=2"}},
			{Text: "See."},
			{Text: ""},
			{Image: domain.Image{MediaType: "image/png", Data: "aGk="}},
		}},
		{Role: domain.RoleUser, Parts: []domain.Part{}},
		assistant("", "2026-10-12 23:50:03", "Let me look.", domain.ToolCall{ID: "c1", Name: "read", Arguments: `{"z": 1,"a":1.50}`}),
		{Role: domain.RoleTool, CreatedAt: "2026-10-12 23:50:04", ToolCallID: "c1", ToolFailed: true, Text: "no such file"},
	}
}

// keepsWholeSessions is the contract of every [ports.Archive], [ports.Boundaries]
// and [ports.CallLog], seen through the [ports.History] beside them.
func keepsWholeSessions(open func(ctx context.Context) sessionStoreBackend) {
	var b sessionStoreBackend
	BeforeEach(func(ctx SpecContext) { b = open(ctx) })

	stored := func(ctx context.Context, sessionID string) []domain.Message {
		GinkgoHelper()
		messages, err := messagesOf(ctx, b.store, sessionID)
		Expect(err).NotTo(HaveOccurred())
		return messages
	}
	// ids are those of a session's messages.
	ids := func(ctx context.Context, sessionID string) (ids []string) {
		GinkgoHelper()
		for _, m := range stored(ctx, sessionID) {
			ids = append(ids, m.ID)
		}
		return ids
	}

	Context("the archive", func() {
		It("adds messages at the end, as they are, with their stored times, and gives them ids of its own", func(ctx SpecContext) {
			for range 2 {
				messages := anyMessages()
				for i := range messages {
					messages[i].ID = "ignored"
				}
				Expect(b.store.Append(ctx, session, messages...)).To(Succeed())
			}
			got := stored(ctx, session)
			Expect(got).To(HaveLen(12))
			seen := map[string]bool{}
			for i, m := range got {
				Expect(m.ID).NotTo(Or(BeEmpty(), Equal("ignored")))
				seen[m.ID] = true
				m.ID = ""
				Expect(m).To(Equal(anyMessages()[i%6]))
			}
			Expect(seen).To(HaveLen(12))
		})

		It("keeps the messages as they were, whatever is done to the caller's afterwards", func(ctx SpecContext) {
			given := anyMessages()
			Expect(b.store.Append(ctx, session, given...)).To(Succeed())
			given[2].Parts[1].Text, given[4].ToolCalls[0].Name = "Forged.", "forged"
			given[0] = given[1]
			got := stored(ctx, session)
			for i := range got {
				got[i].ID = ""
			}
			Expect(got).To(Equal(anyMessages()))
		})

		It("keeps sessions apart byte for byte", func(ctx SpecContext) {
			for i, id := range []string{"s1", "S1", "s1 ", "ß", "ss", "😀", "😁"} {
				Expect(b.store.Append(ctx, id, user("", "2026-10-12 23:50:00", strconv.Itoa(i)))).To(Succeed())
			}
			for i, id := range []string{"s1", "S1", "s1 ", "ß", "ss", "😀", "😁"} {
				got := stored(ctx, id)
				Expect(got).To(HaveLen(1), id)
				Expect(got[0].Text).To(Equal(strconv.Itoa(i)))
			}
		})

		It("stores all of the messages or none, and says why and of which session", func(ctx SpecContext) {
			if b.db == nil {
				// What is in memory refuses nothing.
				Expect(b.refuse).To(BeEmpty())
				return
			}
			Expect(b.store.Append(ctx, session, user("", "2026-10-12 23:50:00", "Kept."))).To(Succeed())
			_, err := b.db.ExecContext(ctx, b.refuse)
			Expect(err).NotTo(HaveOccurred())
			err = b.store.Append(ctx, session, user("", "2026-10-12 23:51:00", "One."), user("", "2026-10-12 23:52:00", "refused"))
			Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring("the database refuses"))))
			Expect(stored(ctx, session)).To(HaveLen(1))
		})

		It("fails with the context's error and stores nothing, having been cancelled", func(ctx SpecContext) {
			done, cancel := context.WithCancel(ctx)
			cancel()
			err := b.store.Append(done, session, user("", "2026-10-12 23:50:00", "Hello."))
			Expect(err).To(MatchError(context.Canceled))
			Expect(err).To(MatchError(ContainSubstring("session " + session)))
			Expect(stored(ctx, session)).To(BeEmpty())
		})

		It("stores many at once, each in its session and in its order", func(ctx SpecContext) {
			Expect(together(8, func(i int) error {
				for n := range 5 {
					if err := b.store.Append(ctx, fmt.Sprint(i), user("", "2026-10-12 23:50:00", fmt.Sprint(n)), assistant("", "", "ok")); err != nil {
						return err
					}
				}
				return nil
			})).To(BeEmpty())
			for i := range 8 {
				got := stored(ctx, fmt.Sprint(i))
				Expect(got).To(HaveLen(10))
				for n := range 5 {
					Expect(got[2*n].Text).To(Equal(fmt.Sprint(n)))
				}
			}
		})
	})

	Context("the boundaries", func() {
		BeforeEach(func(ctx SpecContext) { Expect(b.store.Append(ctx, session, anyMessages()...)).To(Succeed()) })

		It("move, so that the window begins behind the message and has the handoff, and no message is written to", func(ctx SpecContext) {
			before := stored(ctx, session)
			Expect(b.store.Window(ctx, session)).To(Equal(domain.Window{Messages: before, Whole: true}))
			Expect(b.store.MoveBoundary(ctx, session, before[2].ID, "They said hello. 你好")).To(Succeed())
			Expect(b.store.Window(ctx, session)).To(Equal(domain.Window{Handoff: "They said hello. 你好", Messages: before[3:]}))
		})

		It("move again, and the newest one holds", func(ctx SpecContext) {
			before := stored(ctx, session)
			Expect(b.store.MoveBoundary(ctx, session, before[0].ID, "First.")).To(Succeed())
			Expect(b.store.MoveBoundary(ctx, session, before[4].ID, "")).To(Succeed())
			Expect(b.store.Window(ctx, session)).To(Equal(domain.Window{Messages: before[5:]}))
		})

		It("move back, too, and the newest one holds", func(ctx SpecContext) {
			before := stored(ctx, session)
			Expect(b.store.MoveBoundary(ctx, session, before[4].ID, "Far.")).To(Succeed())
			Expect(b.store.MoveBoundary(ctx, session, before[0].ID, "Near.")).To(Succeed())
			Expect(b.store.Window(ctx, session)).To(Equal(domain.Window{Handoff: "Near.", Messages: before[1:]}))
		})

		It("move up to the last message, and what comes later is the window", func(ctx SpecContext) {
			before := stored(ctx, session)
			Expect(b.store.MoveBoundary(ctx, session, before[5].ID, "All.")).To(Succeed())
			window, err := b.store.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(window.Messages).To(BeEmpty())
			Expect(b.store.Append(ctx, session, user("", "2026-10-13 08:00:00", "Later."))).To(Succeed())
			window, err = b.store.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(window.Messages).To(HaveLen(1))
			Expect(window.Handoff).To(Equal("All."))
			Expect(window.Whole).To(BeFalse())
		})

		It("are a session's own, byte for byte", func(ctx SpecContext) {
			Expect(b.store.Append(ctx, "S1", anyMessages()...)).To(Succeed())
			Expect(b.store.MoveBoundary(ctx, session, ids(ctx, session)[2], "Small.")).To(Succeed())
			Expect(stored(ctx, session)).To(HaveLen(3))
			window, err := b.store.Window(ctx, "S1")
			Expect(err).NotTo(HaveOccurred())
			Expect(window.Messages).To(HaveLen(6))
			Expect(window.Handoff).To(BeEmpty())
		})

		It("stay where they were, with the context's error, having been cancelled", func(ctx SpecContext) {
			done, cancel := context.WithCancel(ctx)
			cancel()
			err := b.store.MoveBoundary(done, session, ids(ctx, session)[2], "Lost.")
			Expect(err).To(MatchError(context.Canceled))
			Expect(err).To(MatchError(ContainSubstring("session " + session)))
			window, err := b.store.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(window.Messages).To(HaveLen(6))
			Expect(window.Handoff).To(BeEmpty())
		})

		It("stay where they were, where the session does not have the message", func(ctx SpecContext) {
			Expect(b.store.Append(ctx, "other", user("", "2026-10-12 23:50:00", "Another's."))).To(Succeed())
			before := stored(ctx, session)
			Expect(b.store.MoveBoundary(ctx, session, before[2].ID, "Kept.")).To(Succeed())
			for _, id := range []string{ids(ctx, "other")[0], "99", ""} {
				err := b.store.MoveBoundary(ctx, session, id, "Lost.")
				Expect(err).To(MatchError(And(ContainSubstring("session "+session), ContainSubstring("message "+id))))
				Expect(b.store.Window(ctx, session)).To(Equal(domain.Window{Handoff: "Kept.", Messages: before[3:]}))
			}
		})

		It("are there after a restart", func(ctx SpecContext) {
			Expect(b.store.MoveBoundary(ctx, session, ids(ctx, session)[2], "Kept.")).To(Succeed())
			want, err := b.store.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(b.reopen().Window(ctx, session)).To(Equal(want))
		})
	})

	Context("the log of calls", func() {
		call := func(sessionID, at string) domain.Call {
			return domain.Call{
				SessionID: sessionID, At: at, Purpose: domain.ForTurn, LastMessageID: "7",
				Provider: "anthropic", Model: "claude-opus-5", ReplyID: "msg_1",
				Fingerprint: domain.Prompt{
					Tools:    []domain.Tool{{Name: "read"}},
					Sections: []domain.Section{{Name: domain.CurrentDateSection, Text: "2026-10-12"}},
					Messages: []domain.Message{user("7", at, "Hello.")},
				}.Fingerprint(),
				Comparison: domain.Comparison{PreviousUnits: 3, RepeatedUnits: 2, ChangedSections: []string{"guide", "persona"}, ChangedTools: []string{"read"}},
				Usage:      domain.Usage{Input: domain.Reported(2000), Output: domain.Reported(30), CacheRead: domain.Reported(0)},
				CacheMiss:  "system_changed",
			}
		}

		It("knows no last call of a session that had none", func(ctx SpecContext) {
			last, known, err := b.store.LastCall(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeFalse())
			Expect(last).To(Equal(domain.Call{}))
		})

		It("gives the newest answered call back as it was recorded, in which 0 tokens and none reported are two things", func(ctx SpecContext) {
			Expect(b.store.Record(ctx, call(session, "2026-10-12 23:50:00"))).To(Succeed())
			newest := call(session, "2026-10-13 08:00:00")
			newest.Usage, newest.Comparison = domain.Usage{Input: domain.Reported(0), CacheWrite: domain.Reported(64)}, domain.Comparison{}
			Expect(b.store.Record(ctx, newest)).To(Succeed())
			for _, store := range []sessionStore{b.store, b.reopen()} {
				last, known, err := store.LastCall(ctx, session)
				Expect(err).NotTo(HaveOccurred())
				Expect(known).To(BeTrue())
				Expect(last).To(Equal(newest))
			}
		})

		It("takes no count for reported because there is a number", func(ctx SpecContext) {
			unreported := call(session, "2026-10-12 23:50:00")
			guess := domain.TokenCount{Tokens: 5}
			unreported.Usage = domain.Usage{Input: guess, Output: guess, CacheRead: guess, CacheWrite: guess}
			Expect(b.store.Record(ctx, unreported)).To(Succeed())
			last, known, err := b.store.LastCall(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeTrue())
			u := last.Usage
			for _, count := range []domain.TokenCount{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
				Expect(count.Reported).To(BeFalse())
			}
		})

		It("passes over calls that failed", func(ctx SpecContext) {
			answered, failed := call(session, "2026-10-12 23:50:00"), call(session, "2026-10-12 23:51:00")
			failed.Failed = true
			Expect(b.store.Record(ctx, answered)).To(Succeed())
			Expect(b.store.Record(ctx, failed)).To(Succeed())
			last, known, err := b.store.LastCall(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeTrue())
			Expect(last).To(Equal(answered))
		})

		It("keeps sessions apart byte for byte", func(ctx SpecContext) {
			for _, id := range []string{"s1", "S1", "s1 "} {
				Expect(b.store.Record(ctx, call(id, "2026-10-12 23:50:00"))).To(Succeed())
			}
			for _, id := range []string{"s1", "S1", "s1 "} {
				last, known, err := b.store.LastCall(ctx, id)
				Expect(err).NotTo(HaveOccurred())
				Expect(known).To(BeTrue())
				Expect(last.SessionID).To(Equal(id))
				Expect(last.Fingerprint).To(HaveLen(3))
			}
			_, known, err := b.store.LastCall(ctx, "s1  ")
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeFalse())
		})

		It("fails with the context's error and names the session, having been cancelled", func(ctx SpecContext) {
			done, cancel := context.WithCancel(ctx)
			cancel()
			Expect(b.store.Record(done, call(session, "2026-10-12 23:50:00"))).To(And(MatchError(context.Canceled), MatchError(ContainSubstring("session "+session))))
			_, known, err := b.store.LastCall(done, session)
			Expect(err).To(And(MatchError(context.Canceled), MatchError(ContainSubstring("session "+session))))
			Expect(known).To(BeFalse())
			_, known, err = b.store.LastCall(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeFalse())
		})

		It("records many at once", func(ctx SpecContext) {
			Expect(together(8, func(i int) error {
				for range 3 {
					if err := b.store.Record(ctx, call(fmt.Sprint(i), "2026-10-12 23:50:00")); err != nil {
						return err
					}
				}
				last, known, err := b.store.LastCall(ctx, fmt.Sprint(i))
				if err == nil && (!known || last.SessionID != fmt.Sprint(i)) {
					err = errors.New(last.SessionID)
				}
				return err
			})).To(BeEmpty())
		})
	})

	It("says of every write and read that failed why, and of which session", func(ctx SpecContext) {
		if b.db == nil {
			return
		}
		Expect(b.db.Close()).To(Succeed())
		closed := b.db.PingContext(ctx)
		fails := And(MatchError(closed), MatchError(ContainSubstring("session "+session)))
		Expect(b.store.Append(ctx, session, user("", "", "Hello."))).To(fails)
		Expect(b.store.MoveBoundary(ctx, session, "1", "")).To(fails)
		Expect(b.store.Record(ctx, domain.Call{SessionID: session})).To(fails)
		_, _, err := b.store.LastCall(ctx, session)
		Expect(err).To(fails)
	})
}

var _ = Describe("A session store in memory", func() {
	keepsWholeSessions(func(context.Context) sessionStoreBackend {
		var sessions memory.Sessions
		return sessionStoreBackend{store: &sessions, reopen: func() sessionStore { return &sessions }}
	})

	It("gives no id that is there already, whatever the session", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session, user("1", "2026-10-12 08:00:00", "One."), user("2", "2026-10-13 08:00:00", "Two."))
		sessions.Add("other", user("4", "2026-10-12 08:00:00", "Other."))
		Expect(sessions.Append(ctx, session, user("", "2026-10-14 08:00:00", "Three."), user("", "2026-10-15 08:00:00", "Four."))).To(Succeed())
		Expect(sessions.Append(ctx, "other", user("", "2026-10-12 08:01:00", "Other, too."))).To(Succeed())
		mine, err := messagesOf(ctx, &sessions, session)
		Expect(err).NotTo(HaveOccurred())
		others, err := messagesOf(ctx, &sessions, "other")
		Expect(err).NotTo(HaveOccurred())
		seen := map[string]bool{}
		for _, m := range append(slices.Clone(mine), others...) {
			seen[m.ID] = true
		}
		Expect(seen).To(HaveLen(6))

		// With an id given twice, the first message of that id would be found.
		Expect(sessions.PreviousUserStamp(ctx, session, mine[3].ID)).
			To(Equal(domain.Stamp{MessageID: mine[2].ID, CreatedAt: "2026-10-14 08:00:00"}))
		sessions.Delete(session, mine[3].ID)
		Expect(messagesOf(ctx, &sessions, session)).To(Equal(mine[:3]))
	})
})

var _ = Describe("A session store in SQLite", func() {
	keepsWholeSessions(func(ctx context.Context) sessionStoreBackend {
		GinkgoHelper()
		file := filepath.Join(GinkgoT().TempDir(), "store.db")
		db := openSQLiteFile(file)
		_, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite)
		Expect(err).NotTo(HaveOccurred())
		return sessionStoreBackend{
			store: sqlhistory.New(db), db: db, refuse: sqliteStore("", "").refuse,
			reopen: func() sessionStore { return sqlhistory.New(openSQLiteFile(file)) },
		}
	})
})

var _ = Describe("A session store on MariaDB", Label("mariadb"), func() {
	keepsWholeSessions(func(ctx context.Context) sessionStoreBackend {
		GinkgoHelper()
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL)
		db := openMariaDB(name, "parseTime=true&loc=America%2FNew_York")
		return sessionStoreBackend{
			store: sqlhistory.New(db), db: db, refuse: mariaDBStore("", "", "").refuse,
			reopen: func() sessionStore { return sqlhistory.New(openMariaDB(name, "")) },
		}
	})
})
