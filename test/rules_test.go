package test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/recording"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// session is the id of the session in specs that need one only.
const session = "s1"

// date returns the date that s spells.
func date(s string) domain.Date {
	GinkgoHelper()
	d, err := domain.ParseDate(s)
	Expect(err).NotTo(HaveOccurred())
	return d
}

// user, assistant and toolResult make messages of a story, with text content.
func user(id, createdAt, text string) domain.Message {
	return domain.Message{ID: id, Role: domain.RoleUser, CreatedAt: createdAt, Text: text}
}

func assistant(id, createdAt, text string, calls ...domain.ToolCall) domain.Message {
	return domain.Message{ID: id, Role: domain.RoleAssistant, CreatedAt: createdAt, Text: text, ToolCalls: calls}
}

func toolResult(id, createdAt, callID, text string) domain.Message {
	return domain.Message{ID: id, Role: domain.RoleTool, CreatedAt: createdAt, ToolCallID: callID, Text: text}
}

// clockAt returns a clock that stands at a time in Shanghai, "2026-10-12 23:50:00".
func clockAt(s string) func() time.Time {
	GinkgoHelper()
	t, err := time.ParseInLocation(time.DateTime, s, time.FixedZone("Asia/Shanghai", 8*60*60))
	Expect(err).NotTo(HaveOccurred())
	return func() time.Time { return t }
}

// engine returns a prompt engine over sessions in memory, whose stamps it reads.
// Its clock stands far from every date in the specs, so that a date taken from
// it is seen.
func engine(sessions *memory.Sessions) *app.PromptEngine {
	GinkgoHelper()
	return engineOver(sessions, sessions)
}

// engineOver returns a prompt engine over a history and a stamp reader, which
// may be nil.
func engineOver(history ports.History, stamps ports.SessionStampReader) *app.PromptEngine {
	GinkgoHelper()
	dates := app.NewSessionDate(app.Options{Stamps: stamps, Now: clockAt("2031-01-01 12:00:00")})
	return app.NewPromptEngine(app.PromptOptions{Dates: dates, History: history, Sink: &recording.Sink{}})
}

// messagesOf returns the messages of a session's window.
func messagesOf(ctx context.Context, history ports.History, sessionID string) ([]domain.Message, error) {
	window, err := history.Window(ctx, sessionID)
	return window.Messages, err
}

// build builds the prompt of a session as it stands, with a persona before the
// date and a guide behind it.
func build(ctx context.Context, e *app.PromptEngine) app.BuiltPrompt {
	GinkgoHelper()
	built, err := e.Build(ctx, buildRequest())
	Expect(err).NotTo(HaveOccurred())
	return built
}

// buildRequest asks for the prompt that build builds.
func buildRequest() app.PromptRequest {
	return app.PromptRequest{
		SessionID: session,
		Sections: []domain.Section{
			{Name: "persona", Text: "You are helpful."},
			{Name: domain.CurrentDateSection},
			{Name: "guide", Text: "Be brief."},
		},
	}
}

// notices spells the notices of a prompt as "index date", in order.
func notices(b app.BuiltPrompt) []string {
	spelled := []string{}
	for _, n := range b.Dates.Notices {
		spelled = append(spelled, fmt.Sprintf("%d %v", n.Index, n.Date))
	}
	return spelled
}

var _ = Describe("The date story", func() {
	It("anchors the first day and tells the next one in front of its first user message", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session,
			user("1", "2026-10-12 23:50:00", "Hello."),
			assistant("2", "2026-10-12 23:50:09", "Hello!"),
			user("3", "2026-10-13 08:00:00", "Good morning."),
		)
		built := build(ctx, engine(&sessions))
		Expect(built.Dates.Anchor).To(Equal(domain.Anchor{Date: date("2026-10-12"), Source: domain.FromFirstUserMessage}))
		Expect(notices(built)).To(Equal([]string{"2 2026-10-13"}))
	})
})
