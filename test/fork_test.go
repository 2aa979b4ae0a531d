package test

import (
	"context"

	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate"
	"sessiondate/adapters/recording"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/app"
	"sessiondate/domain"
)

// forks are the specs of forks in a database.
func forks(open func(ctx context.Context) *sqlx.DB) {
	var (
		db    *sqlx.DB
		store *sqlhistory.Store
	)
	BeforeEach(func(ctx SpecContext) {
		db = open(ctx)
		store = sqlhistory.New(db)
		Expect(store.Append(ctx, session, chat("12 a12 13 a13 14")...)).To(Succeed())
	})
	const fork = "fork"
	buildSession := func(ctx context.Context, id string) app.BuiltPrompt {
		GinkgoHelper()
		built, err := sessiondate.New(sessiondate.Host{DB: db, History: store, Sink: &recording.Sink{}, Now: clockAt("2031-01-01 12:00:00")}).
			Build(ctx, app.PromptRequest{SessionID: id})
		Expect(err).NotTo(HaveOccurred())
		return built
	}
	ids := func(ctx context.Context) (ids []string) {
		GinkgoHelper()
		messages, err := messagesOf(ctx, store, session)
		Expect(err).NotTo(HaveOccurred())
		for _, m := range messages {
			ids = append(ids, m.ID)
		}
		return ids
	}

	It("R1: are anchored like their source, days later, and have its notices", func(ctx SpecContext) {
		source := buildSession(ctx, session)
		Expect(store.Fork(ctx, session, fork, "")).To(Succeed())
		copied := buildSession(ctx, fork)
		Expect(copied.Dates.Anchor).To(Equal(source.Dates.Anchor))
		Expect(notices(copied)).To(Equal(told("2:13 4:14")))
		for _, w := range caseWires() {
			Expect(string(w.request(copied.Prompt))).To(Equal(string(w.request(source.Prompt))), w.name)
		}
		Expect(store.Append(ctx, fork, user("", "2026-10-20 08:00:00", "Here."))).To(Succeed())
		Expect(notices(buildSession(ctx, fork))).To(Equal(told("2:13 4:14 5:20")))
		Expect(buildSession(ctx, session).Prompt).To(Equal(source.Prompt))
	})

	It("end with the message that they are to end with", func(ctx SpecContext) {
		Expect(store.Fork(ctx, session, fork, ids(ctx)[2])).To(Succeed())
		Expect(notices(buildSession(ctx, fork))).To(Equal(told("2:13")))
	})

	It("R12: have the compaction of their source, unless they end before the boundary", func(ctx SpecContext) {
		all := ids(ctx)
		Expect(store.MoveBoundary(ctx, session, all[3], "They talked.")).To(Succeed())
		Expect(store.Fork(ctx, session, fork, "")).To(Succeed())
		built := buildSession(ctx, fork)
		Expect(built.Prompt.Messages[0]).To(Equal(domain.HandoffMessage("They talked.")))
		Expect(notices(built)).To(Equal(told("1:14")))
		Expect(store.Fork(ctx, session, "early", all[2])).To(Succeed())
		Expect(notices(buildSession(ctx, "early"))).To(Equal(told("2:13")))
	})

	It("R12: have it also where they end at the boundary, and what comes later is their window", func(ctx SpecContext) {
		all := ids(ctx)
		Expect(store.MoveBoundary(ctx, session, all[3], "They talked.")).To(Succeed())
		Expect(store.Fork(ctx, session, fork, all[3])).To(Succeed())
		window, err := store.Window(ctx, fork)
		Expect(err).NotTo(HaveOccurred())
		Expect(window.Handoff).To(Equal("They talked."))
		Expect(window.Messages).To(BeEmpty())
		Expect(window.Whole).To(BeFalse())
		// The day of the last message before the boundary is not the anchor's.
		Expect(store.Append(ctx, fork, user("", "2026-10-13 18:00:00", "Here."))).To(Succeed())
		Expect(notices(buildSession(ctx, fork))).To(Equal(told("1:13")))
	})

	It("R12: of forks have the handoff also where all that it stands for was soft-deleted", func(ctx SpecContext) {
		all := ids(ctx)
		Expect(store.MoveBoundary(ctx, session, all[1], "They talked.")).To(Succeed())
		softDelete(ctx, db, session, all[0])
		softDelete(ctx, db, session, all[1])
		source := buildSession(ctx, session)
		Expect(source.Prompt.Messages[0]).To(Equal(domain.HandoffMessage("They talked.")))
		Expect(store.Fork(ctx, session, fork, "")).To(Succeed())
		Expect(store.Fork(ctx, fork, "fork of a fork", "")).To(Succeed())
		for _, id := range []string{fork, "fork of a fork"} {
			for _, w := range caseWires() {
				Expect(string(w.request(buildSession(ctx, id).Prompt))).To(Equal(string(w.request(source.Prompt))), "%s, %s", id, w.name)
			}
		}
	})

	It("leave out what was soft-deleted", func(ctx SpecContext) {
		softDelete(ctx, db, session, ids(ctx)[0])
		Expect(store.Fork(ctx, session, fork, "")).To(Succeed())
		Expect(buildSession(ctx, fork).Dates.Anchor.Date).To(Equal(date("2026-10-13")))
	})

	It("are refused where there is no source, no such message, or a session of that name, and store nothing", func(ctx SpecContext) {
		Expect(store.Append(ctx, "other", user("", "2026-10-12 08:00:00", "Mine."))).To(Succeed())
		Expect(store.Fork(ctx, "unknown", fork, "")).To(MatchError(sqlhistory.ErrNoSession))
		Expect(store.Fork(ctx, session, fork, "999999")).To(MatchError(sqlhistory.ErrNoMessage))
		Expect(store.Fork(ctx, session, "other", "")).To(MatchError(sqlhistory.ErrSessionExists))
		Expect(messagesOf(ctx, store, fork)).To(BeEmpty())
		Expect(messagesOf(ctx, store, "other")).To(HaveLen(1))
		Expect(store.Fork(ctx, session, fork, "999999")).To(MatchError(And(ContainSubstring(session), ContainSubstring(fork))))
	})

	It("are not sub-agents' sessions, which have anchors of their own", func(ctx SpecContext) {
		Expect(store.Append(ctx, "sub-agent", user("", "2026-10-14 09:00:00", "Look it up."))).To(Succeed())
		built := buildSession(ctx, "sub-agent")
		Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-14", domain.FromFirstUserMessage)))
		Expect(notices(built)).To(BeEmpty())
	})
}

var _ = Describe("Forks in SQLite", func() {
	forks(func(ctx context.Context) *sqlx.DB {
		db, _ := newStore(ctx)
		return db
	})
})

var _ = Describe("Forks on MariaDB", Label("mariadb"), func() {
	forks(func(ctx context.Context) *sqlx.DB {
		GinkgoHelper()
		name := newMariaDB(ctx)
		createStore(ctx, name, sqlhistory.SchemaMySQL)
		return openMariaDB(name, "")
	})
})
