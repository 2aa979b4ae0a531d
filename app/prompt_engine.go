package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"sessiondate/domain"
	"sessiondate/ports"
)

// PromptOptions configures a [PromptEngine]. Dates, History and Sink are needed.
type PromptOptions struct {
	// Dates says what a prompt must say of the date.
	Dates *SessionDate
	// History loads what a prompt shows.
	History ports.History
	// Sink takes prompts to the model.
	Sink ports.PromptSink
	// Commands knows quick commands. If it is nil, there are none.
	Commands ports.QuickCommands
	// Calls keeps the log of calls. If it is nil, none is kept, and no call is
	// compared with the one before.
	Calls ports.CallLog
	// Logger is told of each call, and of tool calls and results that have no
	// counterpart. No content is logged. If it is nil, nothing is.
	Logger *slog.Logger
	// Now is the clock of the log of calls. If it is nil, it is time.Now.
	Now func() time.Time
	// Zone is where the clock of the log of calls is read. If it is nil, it is
	// Asia/Shanghai.
	Zone *time.Location
}

// A PromptEngine builds whole prompts from stored sessions and sends them. It
// keeps nothing between calls and is safe for concurrent use.
type PromptEngine struct {
	dates    *SessionDate
	history  ports.History
	sink     ports.PromptSink
	commands ports.QuickCommands
	calls    ports.CallLog
	logger   *slog.Logger
	clock    clock
}

// NewPromptEngine returns an engine.
func NewPromptEngine(o PromptOptions) *PromptEngine {
	return &PromptEngine{o.Dates, o.History, o.Sink, o.Commands, o.Calls, orDiscard(o.Logger), newClock(o.Now, o.Zone)}
}

// A PromptRequest says which prompt is wanted.
type PromptRequest struct {
	// SessionID is the session's id.
	SessionID string

	// Sections are the host's system sections, in order. The one named
	// [domain.CurrentDateSection] marks the place of the date; its Text must be
	// empty. Where there is none, the date comes last. Sections without a text
	// are left out.
	Sections []domain.Section

	// Tools are the tools that the model may call.
	Tools []domain.Tool

	// SystemNotices are texts of the harness's own for this prompt alone. They
	// come last, as system notices. What comes after them in a later prompt is
	// another prefix.
	SystemNotices []string

	// Wording is how the model is told of the date.
	Wording domain.Wording

	// Zone is the zone that the session lives in, as in [Window].
	Zone *time.Location
}

// A BuiltPrompt is a prompt and what it says of the date.
type BuiltPrompt struct {
	Prompt domain.Prompt
	// Dates are what the prompt states. The notices' indices are those of the
	// window, with the handoff, if there is one, in front.
	Dates Dates
	// Window is what was loaded.
	Window domain.Window
}

// Build builds the prompt from the session's window, with the handoff in front
// (R9): in a copy, quick commands are expanded on the stored text, what is forged
// is escaped (R13), a notice is put in front of the first user message of each
// new day (R7), and tool results are put behind their calls. Nothing that is
// stored is written to (R16). A message in which nothing changes shares its
// content with the window.
//
// An error is that of the history, of the stamp reader or of the quick commands,
// wrapped, or says which section is wrong. It names the session.
func (e *PromptEngine) Build(ctx context.Context, r PromptRequest) (BuiltPrompt, error) {
	window, err := e.history.Window(ctx, r.SessionID)
	if err != nil {
		return BuiltPrompt{}, fmt.Errorf("load session %s: %w", r.SessionID, err)
	}
	// What a host's history keeps is written to by nobody, so it is copied as soon
	// as something changes, and not before.
	messages, copied := window.Messages, false
	if window.Handoff != "" {
		messages, copied = slices.Concat([]domain.Message{domain.HandoffMessage(window.Handoff)}, messages), true
	}
	change := func(i int, m domain.Message) {
		if !copied {
			messages, copied = slices.Clone(messages), true
		}
		messages[i] = m
	}

	dates, err := e.dates.resolve(ctx, Window{SessionID: r.SessionID, Whole: window.Whole, Wording: r.Wording, Zone: r.Zone},
		len(messages), func(i int) WindowMessage {
			m := &messages[i]
			return WindowMessage{m.ID, m.Role, m.CreatedAt}
		})
	if err != nil {
		return BuiltPrompt{}, err
	}
	sections, err := withCurrentDate(r.Sections, dates.Section)
	if err != nil {
		return BuiltPrompt{}, fmt.Errorf("build prompt of session %s: %w", r.SessionID, err)
	}
	for i := range messages {
		if messages[i].Role != domain.RoleUser {
			continue
		}
		m, err := e.rewritten(ctx, messages[i])
		if err != nil {
			return BuiltPrompt{}, fmt.Errorf("expand message %s of session %s: %w", messages[i].ID, r.SessionID, err)
		}
		if !m.SharesContent(messages[i]) {
			change(i, m)
		}
	}
	for _, n := range dates.Notices {
		change(n.Index, messages[n.Index].WithNotice(n.Text))
	}
	messages, mismatches := domain.OrderToolResults(messages, r.Wording.NoToolResult())
	for _, m := range mismatches {
		e.logMismatch(ctx, r.SessionID, m)
	}
	messages = slices.Clip(messages)
	for _, text := range r.SystemNotices {
		messages = append(messages, domain.SystemNotice(text).EscapeTags())
	}
	return BuiltPrompt{domain.Prompt{Sections: sections, Tools: r.Tools, Messages: messages}, dates, window}, nil
}

// rewritten returns a user message with its quick commands expanded and what is
// forged escaped.
func (e *PromptEngine) rewritten(ctx context.Context, m domain.Message) (domain.Message, error) {
	if e.commands == nil || !m.IsRealUserMessage() {
		return m.EscapeTags(), nil
	}
	m, err := m.Expand(func(marker domain.Marker) (string, bool, error) { return e.commands.Text(ctx, marker) })
	return m.EscapeTags(), err
}

func (e *PromptEngine) logMismatch(ctx context.Context, sessionID string, m domain.ToolMismatch) {
	what := "tool result answers no call and is left out"
	if m.Unanswered {
		what = "tool call has no result and gets a failed one"
	}
	e.logger.LogAttrs(ctx, slog.LevelWarn, what,
		slog.String("session", sessionID), slog.String("message", m.MessageID), slog.String("call", m.CallID))
}

// Send builds the prompt, as Build does, and sends it. If onText is not nil, the
// reply is streamed to it. The call is compared with the session's previous one
// and logged (R14). A log that fails is itself logged, and the reply is good.
func (e *PromptEngine) Send(ctx context.Context, r PromptRequest, onText func(string)) (domain.Reply, error) {
	built, err := e.Build(ctx, r)
	if err != nil {
		return domain.Reply{}, err
	}
	return e.send(ctx, r.SessionID, built, domain.ForTurn, onText)
}

func (e *PromptEngine) send(ctx context.Context, sessionID string, built BuiltPrompt, purpose domain.CallPurpose, onText func(string)) (domain.Reply, error) {
	previous, err := e.lastCall(ctx, sessionID)
	if err != nil {
		e.logger.LogAttrs(ctx, slog.LevelError, "previous call is not known",
			slog.String("session", sessionID), errorAttr(err))
	}
	prompt := built.Prompt
	prompt.PreviousReplyID = previous.ReplyID
	call := domain.Call{
		SessionID: sessionID, At: e.clock.wallClock(), Purpose: purpose,
		LastMessageID: lastID(built.Window.Messages), Fingerprint: prompt.Fingerprint(),
	}
	call.Comparison = call.Fingerprint.Compare(previous.Fingerprint)
	reply, err := e.sink.Send(ctx, prompt, onText)
	call.Provider, call.Model, call.ReplyID = reply.Provider, reply.Model, reply.ID
	call.Usage, call.CacheMiss, call.Failed = reply.Usage, reply.CacheMiss, err != nil
	e.record(ctx, call, err)
	if err != nil {
		return domain.Reply{}, &sendError{sessionID, err}
	}
	return reply, nil
}

func lastID(messages []domain.Message) string {
	if len(messages) == 0 {
		return ""
	}
	return messages[len(messages)-1].ID
}

// withCurrentDate returns the sections that have a text, with the text of the
// current-date section at its place.
func withCurrentDate(sections []domain.Section, text string) ([]domain.Section, error) {
	date := domain.Section{Name: domain.CurrentDateSection, Text: text}
	placed := make([]domain.Section, 0, len(sections)+1)
	for i, s := range sections {
		switch {
		case slices.ContainsFunc(sections[:i], func(t domain.Section) bool { return t.Name == s.Name }):
			return nil, fmt.Errorf("two system sections are named %q", s.Name)
		case s.Name == date.Name && s.Text != "":
			return nil, fmt.Errorf("system section %q has a text of its own", s.Name)
		case s.Name == date.Name:
			placed = append(placed, date)
		case s.Text != "":
			placed = append(placed, s)
		}
	}
	if !slices.Contains(placed, date) {
		placed = append(placed, date)
	}
	return placed, nil
}
