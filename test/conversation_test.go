package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/app"
	"sessiondate/domain"
)

// A scriptedModel answers one prompt after the other as a script says.
type scriptedModel struct {
	replies []any
	// sent are the prompts, and seen what was stored when each came.
	sent []domain.Prompt
	seen [][]string
	look func() []string
}

func (m *scriptedModel) Send(_ context.Context, prompt domain.Prompt, onText func(string)) (domain.Reply, error) {
	m.sent = append(m.sent, prompt)
	m.seen = append(m.seen, m.look())
	reply := m.replies[0]
	if len(m.replies) > 1 {
		m.replies = m.replies[1:]
	}
	switch reply := reply.(type) {
	case error:
		return domain.Reply{}, reply
	case domain.Reply:
		if onText != nil {
			onText(reply.Text)
		}
		return reply, nil
	}
	panic(reply)
}

// A providerError is what an SDK makes of an answer that is no success.
type providerError struct{ answer string }

func (e providerError) Error() string { return e.answer }
func (e providerError) Unwrap() error { return errConnection }

// toolFunc is a tool runner.
type toolFunc func(domain.ToolCall) (string, bool)

func (f toolFunc) RunTool(_ context.Context, call domain.ToolCall) (string, bool) { return f(call) }

// calls is a reply that calls a tool with each of the ids.
func calls(text string, ids ...string) domain.Reply {
	reply := domain.Reply{Text: text}
	for _, id := range ids {
		reply.ToolCalls = append(reply.ToolCalls, domain.ToolCall{ID: id, Name: "read", Arguments: "{}"})
	}
	return reply
}

// A talkingHost is a host with a conversation.
type talkingHost struct {
	sessions memory.Sessions
	model    scriptedModel
	log      bytes.Buffer
	now      string
	tools    toolFunc
	limit    int
}

func (h *talkingHost) conversation(ctx context.Context) *app.Conversation {
	GinkgoHelper()
	h.model.look = func() []string { return h.stored(ctx) }
	e := app.NewPromptEngine(app.PromptOptions{
		Dates: app.NewSessionDate(app.Options{Stamps: &h.sessions}), History: &h.sessions, Sink: &h.model, Calls: &h.sessions,
		Logger: slog.New(slog.NewTextHandler(&h.log, nil)),
	})
	options := app.ConversationOptions{
		Engine: e, History: &h.sessions, Archive: &h.sessions, Now: clockAt(h.now),
		Compactor: app.NewCompactor(app.CompactorOptions{Engine: e, Boundaries: &h.sessions, Count: wordCount, Limit: h.limit}),
	}
	if h.tools != nil {
		options.Tools = h.tools
	}
	return app.NewConversation(options)
}

// stored spells the session's window.
func (h *talkingHost) stored(ctx context.Context) (said []string) {
	messages, err := messagesOf(ctx, &h.sessions, session)
	if err != nil {
		panic(err)
	}
	for _, m := range messages {
		line := m.Role.String() + " " + m.CreatedAt + ": " + m.Text
		for _, c := range m.ToolCalls {
			line += " [" + c.ID + "]"
		}
		if m.Role == domain.RoleTool {
			line += fmt.Sprintf(" (of %s, failed: %v)", m.ToolCallID, m.ToolFailed)
		}
		said = append(said, line)
	}
	return said
}

var _ = Describe("A conversation", func() {
	var h *talkingHost
	BeforeEach(func() { h = &talkingHost{now: "2026-10-12 23:50:00"} })
	say := func(ctx context.Context, text string) error {
		return h.conversation(ctx).Say(ctx, buildRequest(), text, app.Listener{})
	}
	goOn := func(ctx context.Context) error {
		return h.conversation(ctx).Continue(ctx, buildRequest(), app.Listener{})
	}

	It("stores the user's message before the call, and the answer behind it, with the clock's time", func(ctx SpecContext) {
		h.model.replies = []any{domain.Reply{Text: "Hello!"}}
		Expect(say(ctx, "Hello.")).To(Succeed())
		Expect(h.model.seen).To(Equal([][]string{{"user 2026-10-12 23:50:00: Hello."}}))
		Expect(h.stored(ctx)).To(Equal([]string{"user 2026-10-12 23:50:00: Hello.", "assistant 2026-10-12 23:50:00: Hello!"}))
	})

	It("keeps the message of a call that failed, and asks again with it once", func(ctx SpecContext) {
		h.model.replies = []any{errConnection, domain.Reply{Text: "Hello!"}}
		err := say(ctx, "Hello.")
		Expect(err).To(MatchError(errConnection))
		Expect(err).To(MatchError(ContainSubstring("session " + session)))
		Expect(h.conversation(ctx).Waiting(ctx, session)).To(BeTrue())
		Expect(goOn(ctx)).To(Succeed())
		Expect(h.model.sent[1].Messages).To(Equal(h.model.sent[0].Messages))
		Expect(h.stored(ctx)).To(HaveLen(2))
		Expect(h.conversation(ctx).Waiting(ctx, session)).To(BeFalse())
		Expect(goOn(ctx)).To(Succeed())
		Expect(h.model.sent).To(HaveLen(2))
	})

	It("is not waited for in an empty session, and does nothing there", func(ctx SpecContext) {
		Expect(h.conversation(ctx).Waiting(ctx, session)).To(BeFalse())
		Expect(goOn(ctx)).To(Succeed())
		Expect(h.model.sent).To(BeEmpty())
	})

	It("runs the tools that the model calls one by one, stores each result as it comes, and tells what happens in order", func(ctx SpecContext) {
		var told []string
		h.tools = func(c domain.ToolCall) (string, bool) {
			told = append(told, fmt.Sprintf("run %s with %d stored", c.ID, len(h.stored(ctx))))
			return "result of " + c.ID, c.ID == "b"
		}
		h.model.replies = []any{calls("Let me look.", "a", "b"), domain.Reply{Text: "There."}}
		Expect(h.conversation(ctx).Say(ctx, buildRequest(), "Look.", app.Listener{
			Text:       func(s string) { told = append(told, "text "+s) },
			ToolCall:   func(c domain.ToolCall) { told = append(told, "call "+c.ID) },
			ToolResult: func(text string, failed bool) { told = append(told, fmt.Sprintf("%s, failed: %v", text, failed)) },
		})).To(Succeed())
		Expect(told).To(Equal([]string{
			"text Let me look.", "call a", "run a with 2 stored", "result of a, failed: false",
			"call b", "run b with 3 stored", "result of b, failed: true", "text There.",
		}))
		Expect(h.stored(ctx)[1:4]).To(Equal([]string{
			"assistant 2026-10-12 23:50:00: Let me look. [a] [b]",
			"tool 2026-10-12 23:50:00: result of a (of a, failed: false)", "tool 2026-10-12 23:50:00: result of b (of b, failed: true)",
		}))
	})

	It("runs only what has no result yet, when it goes on after it was cut off", func(ctx SpecContext) {
		h.sessions.Add(session,
			user("1", "2026-10-12 23:50:00", "Look."),
			assistant("2", "2026-10-12 23:50:01", "", calls("", "a", "b").ToolCalls...), toolResult("3", "2026-10-12 23:50:02", "a", "done"))
		Expect(h.conversation(ctx).Waiting(ctx, session)).To(BeTrue())
		var ran []string
		h.tools = func(c domain.ToolCall) (string, bool) { ran = append(ran, c.ID); return "done", false }
		h.model.replies = []any{domain.Reply{Text: "There."}}
		Expect(goOn(ctx)).To(Succeed())
		Expect(ran).To(Equal([]string{"b"}))
		Expect(h.model.sent).To(HaveLen(1))
	})

	It("fails every call where there are no tools, and tells the model so", func(ctx SpecContext) {
		h.model.replies = []any{calls("", "a"), domain.Reply{Text: "I cannot."}}
		Expect(say(ctx, "Look.")).To(Succeed())
		Expect(h.stored(ctx)[2]).To(Equal("tool 2026-10-12 23:50:00: error: there are no tools (of a, failed: true)"))
	})

	It("stores no result of a tool that was cut off", func(ctx SpecContext) {
		cut, cancel := context.WithCancel(ctx)
		h.tools = func(domain.ToolCall) (string, bool) { cancel(); return "killed", true }
		h.model.replies = []any{calls("", "a")}
		err := h.conversation(ctx).Say(cut, buildRequest(), "Look.", app.Listener{})
		Expect(err).To(MatchError(context.Canceled))
		Expect(h.stored(ctx)).To(HaveLen(2))
		Expect(h.conversation(ctx).Waiting(ctx, session)).To(BeTrue())
	})

	It("ends a turn in which the model calls tools without end, at its fiftieth reply, and runs that one's when it goes on", func(ctx SpecContext) {
		ran := 0
		h.tools = func(domain.ToolCall) (string, bool) { ran++; return "again", false }
		h.model.replies = []any{calls("", "a")}
		Expect(say(ctx, "Look.")).To(MatchError(app.ErrTooManyRounds))
		Expect(h.model.sent).To(HaveLen(50))
		Expect(ran).To(Equal(49))
		Expect(h.stored(ctx)).To(HaveLen(1 + 50 + 49))
		h.model.replies = []any{domain.Reply{Text: "There."}}
		Expect(goOn(ctx)).To(Succeed())
		Expect(ran).To(Equal(50))
		Expect(h.stored(ctx)).To(HaveLen(1 + 50 + 50 + 1))
	})

	It("takes a fiftieth reply that is the answer", func(ctx SpecContext) {
		h.tools = func(domain.ToolCall) (string, bool) { return "again", false }
		for range 49 {
			h.model.replies = append(h.model.replies, calls("", "a"))
		}
		h.model.replies = append(h.model.replies, domain.Reply{Text: "There."})
		Expect(say(ctx, "Look.")).To(Succeed())
		Expect(h.model.sent).To(HaveLen(50))
		Expect(h.conversation(ctx).Waiting(ctx, session)).To(BeFalse())
	})

	DescribeTable("runs each call of a reply in which calls share an id once, also when it was cut off between them",
		func(ctx SpecContext, stored []domain.Message, want []string) {
			h.sessions.Add(session, append([]domain.Message{
				user("1", "2026-10-12 23:50:00", "Look."),
				assistant("2", "2026-10-12 23:50:01", "",
					domain.ToolCall{ID: "a", Name: "read", Arguments: "1"}, domain.ToolCall{ID: "a", Name: "read", Arguments: "2"},
					domain.ToolCall{ID: "b", Name: "read", Arguments: "3"}),
			}, stored...)...)
			var ran []string
			h.tools = func(c domain.ToolCall) (string, bool) { ran = append(ran, c.Arguments); return "done", false }
			h.model.replies = []any{domain.Reply{Text: "There."}}
			Expect(goOn(ctx)).To(Succeed())
			Expect(ran).To(Equal(want))
			Expect(h.model.sent).To(HaveLen(1))
		},
		Entry("before the first", nil, []string{"1", "2", "3"}),
		Entry("behind the first", []domain.Message{toolResult("3", "2026-10-12 23:50:02", "a", "done")}, []string{"2", "3"}),
		Entry("behind the second", []domain.Message{
			toolResult("3", "2026-10-12 23:50:02", "a", "done"), toolResult("4", "2026-10-12 23:50:03", "a", "done"),
		}, []string{"3"}),
		Entry("behind the first and the last", []domain.Message{
			toolResult("3", "2026-10-12 23:50:02", "b", "done"), toolResult("4", "2026-10-12 23:50:03", "a", "done"),
		}, []string{"2"}))

	It("R18: tells a run that passes midnight of the new day with the next user message, and not before", func(ctx SpecContext) {
		h.now = "2026-10-12 23:59:59"
		h.model.replies = []any{calls("", "a"), calls("", "b"), domain.Reply{Text: "There."}, domain.Reply{Text: "Good morning!"}}
		h.tools = func(domain.ToolCall) (string, bool) { return "slow", false }
		h.sessions.Add(session, user("1", "2026-10-12 23:59:00", "Look."))
		// The results and the replies are stored on the 13th.
		h.now = "2026-10-13 00:10:00"
		Expect(goOn(ctx)).To(Succeed())
		for _, p := range h.model.sent {
			for _, m := range p.Messages {
				Expect(m.Text).NotTo(ContainSubstring("date-change"))
			}
		}
		Expect(say(ctx, "Good morning.")).To(Succeed())
		last := h.model.sent[3].Messages
		Expect(last[len(last)-1].Text).To(Equal(noticeOf13 + "\n\nGood morning."))
	})

	It("R16: stores nothing that the user did not write or the model did not answer", func(ctx SpecContext) {
		h.model.replies = []any{domain.Reply{Text: "Hello!"}}
		Expect(say(ctx, "Hello.")).To(Succeed())
		h.now = "2026-10-13 08:00:00"
		Expect(say(ctx, "Good morning.")).To(Succeed())
		Expect(strings.Join(h.stored(ctx), "\n")).NotTo(ContainSubstring("date-change"))
		Expect(h.model.sent[1].Messages[2].Text).To(HavePrefix("<date-change>"))
	})

	It("compacts a session that has grown too long before it answers, and tells so", func(ctx SpecContext) {
		h.sessions.Add(session, user("one", "2026-10-12 23:40:00", "a b c"), assistant("two", "2026-10-12 23:40:05", "d e f"))
		h.limit = 5
		h.model.replies = []any{domain.Reply{Text: "They spelled."}, domain.Reply{Text: "g"}}
		compacted := 0
		Expect(h.conversation(ctx).Say(ctx, buildRequest(), "Next?", app.Listener{Compacted: func() { compacted++ }})).To(Succeed())
		Expect(compacted).To(Equal(1))
		Expect(h.model.sent[1].Messages[0].Text).To(Equal("## 会话任务交接\n\nThey spelled."))
		Expect(h.stored(ctx)).To(HaveLen(2))
	})

	It("answers also where the session cannot be compacted, tells why, and logs the kind of failure without a provider's words", func(ctx SpecContext) {
		h.sessions.Add(session, user("one", "2026-10-12 23:40:00", "secret words"), assistant("two", "2026-10-12 23:40:05", "d e f"))
		h.limit = 3
		echoed := fmt.Errorf("request: %w", providerError{"400: cannot read \"secret words\""})
		h.model.replies = []any{echoed, domain.Reply{Text: "g"}}
		var told []error
		Expect(h.conversation(ctx).Say(ctx, buildRequest(), "Next?",
			app.Listener{
				Compacted:    func() { Fail("the session was not compacted") },
				NotCompacted: func(err error) { told = append(told, err) },
			})).To(Succeed())
		Expect(told).To(HaveExactElements(MatchError(echoed)))
		Expect(h.log.String()).To(ContainSubstring(
			`level=WARN msg="session is not compacted" session=s1 error="send prompt of session s1: test.providerError"`))
		Expect(h.log.String()).To(MatchRegexp(`msg="model call" .*failed=true error.type=test.providerError\n`))
		Expect(h.log.String()).NotTo(ContainSubstring("secret"))
	})

	It("says of an archive that fails what was to be stored, and in which session", func(ctx SpecContext) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		err := h.conversation(ctx).Say(done, buildRequest(), "Hello.", app.Listener{})
		Expect(err).To(MatchError(context.Canceled))
		Expect(err).To(MatchError(And(ContainSubstring("user message"), ContainSubstring("session "+session))))
		Expect(errors.Is(err, app.ErrTooManyRounds)).To(BeFalse())
		Expect(h.model.sent).To(BeEmpty())
	})
})
