package app

import (
	"context"
	"fmt"
	"slices"

	"sessiondate/domain"
	"sessiondate/ports"
)

// A PromptEngine builds whole prompts from stored sessions and sends them. It
// keeps nothing between calls and is safe for concurrent use.
type PromptEngine struct {
	dates   *SessionDate
	history ports.History
	sink    ports.PromptSink
}

// NewPromptEngine returns an engine that reads messages from history and sends
// prompts to sink. All three are needed.
func NewPromptEngine(dates *SessionDate, history ports.History, sink ports.PromptSink) *PromptEngine {
	return &PromptEngine{dates, history, sink}
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

	// Wording is how the model is told of the date.
	Wording domain.Wording
}

// A BuiltPrompt is a prompt and what it says of the date.
type BuiltPrompt struct {
	Prompt domain.Prompt
	// Dates are what the prompt states. The indices of the notices are those of
	// Prompt.Messages.
	Dates Dates
}

// Build builds the prompt from the session's stored messages (R9): each message
// is copied, what a user forged is escaped (R13), and a notice is put in front
// of the first user message of each new day (R7). Nothing that is stored is
// written to (R16).
//
// An error is that of the history or of the stamp reader, wrapped, or says
// which section is wrong. It names the session.
func (e *PromptEngine) Build(ctx context.Context, r PromptRequest) (BuiltPrompt, error) {
	stored, err := e.history.Messages(ctx, r.SessionID)
	if err != nil {
		return BuiltPrompt{}, fmt.Errorf("load session %s: %w", r.SessionID, err)
	}
	window := Window{SessionID: r.SessionID, Messages: make([]WindowMessage, len(stored)), Wording: r.Wording}
	for i, m := range stored {
		window.Messages[i] = WindowMessage{m.ID, m.Role, m.CreatedAt}
	}
	dates, err := e.dates.Resolve(ctx, window)
	if err != nil {
		return BuiltPrompt{}, err
	}
	sections, err := withCurrentDate(r.Sections, dates.Section)
	if err != nil {
		return BuiltPrompt{}, fmt.Errorf("build prompt of session %s: %w", r.SessionID, err)
	}

	messages := make([]domain.Message, len(stored))
	for i, m := range stored {
		messages[i] = m.EscapeTags()
	}
	for _, n := range dates.Notices {
		messages[n.Index] = messages[n.Index].WithNotice(n.Text)
	}
	return BuiltPrompt{domain.Prompt{Sections: sections, Tools: r.Tools, Messages: messages}, dates}, nil
}

// Send builds the prompt, as Build does, and sends it.
func (e *PromptEngine) Send(ctx context.Context, r PromptRequest) (domain.Reply, error) {
	built, err := e.Build(ctx, r)
	if err != nil {
		return domain.Reply{}, err
	}
	reply, err := e.sink.Send(ctx, built.Prompt)
	if err != nil {
		return domain.Reply{}, fmt.Errorf("send prompt of session %s: %w", r.SessionID, err)
	}
	return reply, nil
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
