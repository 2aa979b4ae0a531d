package test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// brokenCalls is a log of calls that has lost its connection.
type brokenCalls struct{}

func (brokenCalls) LastCall(context.Context, string) (domain.Call, bool, error) {
	return domain.Call{}, false, errConnection
}
func (brokenCalls) Record(context.Context, domain.Call) error { return errConnection }

var _ = Describe("A call to a model", func() {
	var (
		sessions *memory.Sessions
		sink     *scriptedModel
		log      *bytes.Buffer
	)
	BeforeEach(func() {
		sessions, log = &memory.Sessions{}, &bytes.Buffer{}
		sink = &scriptedModel{look: func() []string { return nil }, replies: []any{domain.Reply{
			Provider: "anthropic", Model: "claude-opus-5", ID: "msg_1", Text: "secret answer",
			Usage:     domain.Usage{Input: domain.Reported(2000), Output: domain.Reported(30), CacheRead: domain.Reported(0)},
			CacheMiss: "system_changed",
		}}}
		sessions.Add(session, user("1", "2026-10-12 23:50:00", "secret question"))
	})
	send := func(ctx context.Context, calls ports.CallLog, change func(*app.PromptRequest)) (domain.Reply, error) {
		// Each call is by an engine of its own, as after a restart.
		e := app.NewPromptEngine(app.PromptOptions{
			Dates: app.NewSessionDate(app.Options{Stamps: sessions}), History: sessions, Sink: sink, Calls: calls,
			Logger: slog.New(slog.NewJSONHandler(log, nil)), Now: clockAt("2026-10-12 23:50:01"),
		})
		request := storyRequest(session)
		if change != nil {
			change(&request)
		}
		return e.Send(ctx, request, nil)
	}
	// logged returns the log's lines about calls.
	logged := func() (lines []map[string]any) {
		GinkgoHelper()
		for line := range strings.Lines(log.String()) {
			var fields map[string]any
			Expect(json.Unmarshal([]byte(line), &fields)).To(Succeed())
			if fields["msg"] == "model call" {
				lines = append(lines, fields)
			}
		}
		return lines
	}

	It("is logged under the names of OpenTelemetry's conventions, with what the provider reported and nothing that was said", func(ctx SpecContext) {
		_, err := send(ctx, sessions, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(logged()).To(HaveLen(1))
		line := logged()[0]
		for name, value := range map[string]any{
			"level": "INFO", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.response.model": "claude-opus-5",
			"gen_ai.conversation.id": "s1", "gen_ai.response.id": "msg_1", "gen_ai.usage.input_tokens": 2000.0, "gen_ai.usage.output_tokens": 30.0,
			"gen_ai.usage.cache_read.input_tokens": 0.0, "sessiondate.call.purpose": "turn", "sessiondate.cache_miss_reason": "system_changed",
			// Two tools, three sections and a message.
			"sessiondate.prefix.units": 6.0, "sessiondate.prefix.previous_units": 0.0, "sessiondate.prefix.repeated_units": 0.0,
			"changedSections": BeNil(), "changedTools": BeNil(),
		} {
			Expect(line).To(HaveKeyWithValue(name, value))
		}
		Expect(line["sessiondate.prefix.hash"]).To(MatchRegexp(`^[0-9a-f]{32}$`))
		Expect(line).NotTo(HaveKey("gen_ai.usage.cache_write.input_tokens"))
		Expect(log.String()).NotTo(ContainSubstring("secret"))
	})

	It("R14: repeats the whole of the session's previous call, also after a restart and across midnight", func(ctx SpecContext) {
		_, err := send(ctx, sessions, nil)
		Expect(err).NotTo(HaveOccurred())
		sessions.Add(session, assistant("2", "2026-10-12 23:50:05", "secret answer"), user("3", "2026-10-13 08:00:00", "And now?"))
		_, err = send(ctx, sessions, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(logged()[1]).To(And(
			HaveKeyWithValue("sessiondate.prefix.previous_units", 6.0), HaveKeyWithValue("sessiondate.prefix.repeated_units", 6.0),
			HaveKeyWithValue("sessiondate.prefix.units", 8.0), HaveKeyWithValue("changedSections", BeNil())))
		Expect(sink.sent[1].PreviousReplyID).To(Equal("msg_1"))
	})

	It("names the sections and the tools that changed since the session's previous call", func(ctx SpecContext) {
		_, err := send(ctx, sessions, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = send(ctx, sessions, func(r *app.PromptRequest) {
			r.Sections[2].Text = "Be long."
			r.Sections = append(r.Sections, domain.Section{Name: "added", Text: "New."})
			r.Tools[1].Description = "Draw two charts."
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(logged()[1]).To(And(
			HaveKeyWithValue("changedSections", []any{"added", "guide"}), HaveKeyWithValue("changedTools", []any{"chart"}),
			HaveKeyWithValue("sessiondate.prefix.repeated_units", 1.0)))
	})

	It("that failed is logged and recorded as failed, and no later one is compared with it", func(ctx SpecContext) {
		_, err := send(ctx, sessions, nil)
		Expect(err).NotTo(HaveOccurred())
		answer := sink.replies
		sink.replies = []any{errConnection}
		_, err = send(ctx, sessions, func(r *app.PromptRequest) { r.Sections[0].Text = "Another." })
		Expect(err).To(MatchError(errConnection))
		sink.replies = answer
		_, err = send(ctx, sessions, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(logged()[1]).To(HaveKeyWithValue("failed", true))
		Expect(logged()[1]).NotTo(HaveKey("gen_ai.usage.input_tokens"))
		Expect(logged()[2]).To(HaveKeyWithValue("sessiondate.prefix.repeated_units", 6.0))
	})

	It("whose log fails is answered all the same, and the log says so", func(ctx SpecContext) {
		reply, err := send(ctx, brokenCalls{}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Text).To(Equal("secret answer"))
		Expect(log.String()).To(And(ContainSubstring(`"msg":"previous call is not known"`), ContainSubstring(`"msg":"call is not recorded"`), ContainSubstring("connection lost")))
		Expect(log.String()).NotTo(ContainSubstring("secret"))
	})

	It("that is cut off is recorded nevertheless", func(ctx SpecContext) {
		cut, cancel := context.WithCancel(ctx)
		sink.look = func() []string { cancel(); return nil }
		sink.replies = []any{context.Canceled}
		_, err := send(cut, sessions, nil)
		Expect(err).To(MatchError(context.Canceled))
		Expect(logged()).To(HaveLen(1))
		sink.look = func() []string { return nil }
		_, known, err := sessions.LastCall(ctx, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeFalse())
	})

	It("needs no log of calls", func(ctx SpecContext) {
		_, err := send(ctx, nil, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(sink.sent[0].PreviousReplyID).To(BeEmpty())
	})
})
