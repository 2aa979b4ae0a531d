package test

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/app"
	"sessiondate/domain"
)

// compact compacts the session of a pipeline, with the model's reply.
func (p *pipeline) compact(ctx context.Context, reply string) (handoff string, err error) {
	p.sink.Reply = domain.Reply{Text: reply}
	return compactorOf(p).Compact(ctx, buildRequest())
}

// brokenBoundaries cannot be moved.
type brokenBoundaries struct{}

func (brokenBoundaries) MoveBoundary(context.Context, string, string, string) error {
	return errConnection
}

var _ = Describe("Compaction", func() {
	DescribeTable("R12: the next prompt states the day that it is, where the system prompt does not",
		func(ctx SpecContext, story, handoff string, messages int, want string) {
			p := newPipeline(nil, chat(story)...)
			window, err := p.sessions.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.sessions.MoveBoundary(ctx, session, domain.CompactionBoundary(window.Messages), handoff)).To(Succeed())
			built := build(ctx, p.engine)
			Expect(built.Prompt.Messages).To(HaveLen(messages))
			Expect(built.Dates.Anchor.Date).To(Equal(date("2026-10-12")))
			Expect(notices(built)).To(Equal(told(want)))
		},
		Entry("on day four, without a handoff", "12 a12 13 14 a14 15 a15 15", "", 1, "0:15"),
		Entry("on day four, with a handoff in front", "12 a12 13 14 a14 15 a15 15", "They talked.", 2, "1:15"),
		Entry("on the anchor's day, nowhere", "12 a12 12 a12 12", "They talked.", 2, ""),
		Entry("back on the anchor's day, because the day before was another", "12 a12 13 a13 12", "They talked.", 2, "1:12"),
	)

	It("R12: with no user message left in the window, it is stated with the next one", func(ctx SpecContext) {
		p := newPipeline(nil, chat("12 a12 13 14 15 a15")...)
		Expect(p.sessions.MoveBoundary(ctx, session, "5", "They talked.")).To(Succeed())
		Expect(notices(build(ctx, p.engine))).To(BeEmpty())
		p.sessions.Add(session, user("7", "2026-10-15 09:00:00", "Still there?"), assistant("8", "2026-10-15 09:00:05", "Yes."), user("9", "2026-10-15 10:00:00", "Good."))
		Expect(notices(build(ctx, p.engine))).To(Equal([]string{"2 2026-10-15"}))
	})

	It("R12, Case A07: is stated exactly once, and at the same message in every later prompt until the boundary moves again", func(ctx SpecContext) {
		p := newPipeline(nil, chat("12 a12 13 a13 15")...)
		_, err := p.compact(ctx, "They talked.")
		Expect(err).NotTo(HaveOccurred())
		for i := range 3 {
			Expect(notices(build(ctx, p.engine))).To(Equal([]string{"1 2026-10-15"}))
			p.sessions.Add(session,
				assistant(fmt.Sprint("answer", i), "2026-10-15 12:00:00", "It is."), user(fmt.Sprint("question", i), "2026-10-15 12:00:10", "On."))
		}
		_, err = p.compact(ctx, "They went on.")
		Expect(err).NotTo(HaveOccurred())
		built := build(ctx, p.engine)
		Expect(built.Prompt.Messages[0].Text).To(Equal("## 会话任务交接\n\nThey went on."))
		Expect(notices(built)).To(Equal([]string{"1 2026-10-15"}))
	})

	It("R15: sends the main request and one system notice behind it, once", func(ctx SpecContext) {
		p := newPipeline(nil, chat("12 a12 13")...)
		main := build(ctx, p.engine).Prompt
		handoff, err := p.compact(ctx, "\n They talked. \n")
		Expect(err).NotTo(HaveOccurred())
		Expect(handoff).To(Equal("They talked."))
		Expect(p.sink.Prompts()).To(HaveLen(1))
		sent := p.sink.Prompts()[0]
		last := sent.Messages[len(sent.Messages)-1]
		Expect(last).To(Equal(domain.SystemNotice(domain.Wording{}.CompactionInstruction(false))))
		sent.Messages = sent.Messages[:len(sent.Messages)-1]
		Expect(sent).To(Equal(main))
	})

	DescribeTable("forbids date-change tags in the handoff only where the host says so",
		func(ctx SpecContext, forbid bool, language domain.Language) {
			p := newPipeline(nil, chat("12 a12 13")...)
			p.sink.Reply = domain.Reply{Text: "They talked."}
			request := buildRequest()
			request.Wording.Language = language
			compactor := app.NewCompactor(app.CompactorOptions{Engine: p.engine, Boundaries: &p.sessions, Count: wordCount, ForbidTags: forbid})
			_, err := compactor.Compact(ctx, request)
			Expect(err).NotTo(HaveOccurred())
			messages := p.sink.Prompts()[0].Messages
			if forbid {
				Expect(messages[3].Text).To(ContainSubstring("<date-change>"))
			} else {
				Expect(messages[3].Text).NotTo(ContainSubstring("date-change"))
			}
			Expect(messages[3].IsRealUserMessage()).To(BeFalse())
		},
		Entry("off, in Chinese", false, domain.Chinese), Entry("off, in English", false, domain.English),
		Entry("on, in Chinese", true, domain.Chinese), Entry("on, in English", true, domain.English),
	)

	It("keeps the newest real user message, and what stands behind it, in the window", func(ctx SpecContext) {
		p := newPipeline(nil,
			user("1", "2026-10-12 23:50:00", "One."), assistant("2", "2026-10-12 23:50:05", "1"),
			user("3", "2026-10-12 23:51:00", "Two."),
			assistant("4", "2026-10-12 23:51:05", "", domain.ToolCall{ID: "c", Name: "read", Arguments: "{}"}),
			toolResult("5", "2026-10-12 23:51:06", "c", "text"))
		_, err := p.compact(ctx, "They talked.")
		Expect(err).NotTo(HaveOccurred())
		window, err := p.sessions.Window(ctx, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(window.Messages).To(HaveLen(3))
		Expect(window.Messages[0].Text).To(Equal("Two."))
	})

	DescribeTable("moves nothing", func(ctx SpecContext, story, reply string, want error) {
		p := newPipeline(nil, chat(story)...)
		before, err := p.sessions.Window(ctx, session)
		Expect(err).NotTo(HaveOccurred())
		handoff, err := p.compact(ctx, reply)
		Expect(err).To(MatchError(want))
		Expect(err).To(MatchError(ContainSubstring("session " + session)))
		Expect(handoff).To(BeEmpty())
		Expect(p.sessions.Window(ctx, session)).To(Equal(before))
	},
		Entry("for an empty reply", "12 a12 13", "", app.ErrNoHandoff),
		Entry("for a reply of white space", "12 a12 13", " \n", app.ErrNoHandoff),
		Entry("where nothing stands before the newest user message", "12", "They talked.", app.ErrNothingToCompact),
		Entry("in an empty session", "", "They talked.", app.ErrNothingToCompact),
	)

	It("moves nothing where the request fails or the boundary cannot be moved, and says why and of which session", func(ctx SpecContext) {
		p := newPipeline(nil, chat("12 a12 13")...)
		failing := app.NewPromptEngine(app.PromptOptions{
			Dates: app.NewSessionDate(app.Options{Stamps: &p.sessions}), History: &p.sessions, Sink: failingSink{},
		})
		for _, c := range []*app.Compactor{
			app.NewCompactor(app.CompactorOptions{Engine: failing, Boundaries: &p.sessions, Count: wordCount}),
			app.NewCompactor(app.CompactorOptions{Engine: p.engine, Boundaries: brokenBoundaries{}, Count: wordCount}),
		} {
			p.sink.Reply = domain.Reply{Text: "They talked."}
			_, err := c.Compact(ctx, buildRequest())
			Expect(err).To(MatchError(errConnection))
			window, err := p.sessions.Window(ctx, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(window.Whole).To(BeTrue())
		}
	})

	Context("when it is due", func() {
		limited := func(p *pipeline, limit int) *app.Compactor {
			return app.NewCompactor(app.CompactorOptions{Engine: p.engine, Boundaries: &p.sessions, Count: wordCount, Limit: limit})
		}

		It("is so past the limit, and never without one", func(ctx SpecContext) {
			p := newPipeline(nil, user("1", "2026-10-12 23:50:00", "one two"), user("2", "2026-10-13 08:00:00", "three"))
			for limit, due := range map[int]bool{0: false, 2: true, 3: false, 4: false} {
				Expect(limited(p, limit).Due(ctx, session)).To(Equal(due), "limit %d", limit)
			}
		})

		It("counts the provider's tokens of the newest turn, and what is newer from its text", func(ctx SpecContext) {
			p := newPipeline(nil, user("1", "2026-10-12 23:50:00", "one two"))
			p.sink.Reply = domain.Reply{Usage: domain.Usage{Input: domain.Reported(100)}}
			_, err := p.engine.Send(ctx, buildRequest(), nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(limited(p, 0).ActiveContext(ctx, session)).To(Equal(100))
			p.sessions.Add(session, assistant("2", "2026-10-12 23:50:05", "three four", domain.ToolCall{ID: "c", Name: "read", Arguments: "{}"}))
			Expect(limited(p, 0).ActiveContext(ctx, session)).To(Equal(104))
		})

		It("counts the handoff, and neither a compaction's call nor one from before the boundary", func(ctx SpecContext) {
			p := newPipeline(nil, user("1", "2026-10-12 23:50:00", "one"), assistant("2", "2026-10-12 23:50:05", "two"), user("3", "2026-10-12 23:51:00", "three four"))
			p.sink.Reply = domain.Reply{Text: "five six seven", Usage: domain.Usage{Input: domain.Reported(100)}}
			_, err := limited(p, 0).Compact(ctx, buildRequest())
			Expect(err).NotTo(HaveOccurred())
			Expect(limited(p, 0).ActiveContext(ctx, session)).To(Equal(5))
		})

		It("says of a history that fails why, and of which session", func(ctx SpecContext) {
			e := app.NewPromptEngine(app.PromptOptions{Dates: app.NewSessionDate(app.Options{}), History: failingHistory{}})
			_, err := app.NewCompactor(app.CompactorOptions{Engine: e, Boundaries: &memory.Sessions{}, Count: wordCount, Limit: 1}).Due(ctx, session)
			Expect(err).To(MatchError(errConnection))
			Expect(err).To(MatchError(ContainSubstring("session " + session)))
			Expect(errors.Is(err, app.ErrNothingToCompact)).To(BeFalse())
		})
	})
})
