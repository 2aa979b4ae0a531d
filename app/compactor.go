package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sessiondate/domain"
	"sessiondate/ports"
)

// CompactorOptions configures a [Compactor]. Engine, Boundaries and Count are
// needed.
type CompactorOptions struct {
	// Engine builds and sends the compaction request.
	Engine *PromptEngine
	// Boundaries keeps how far a session is compacted.
	Boundaries ports.Boundaries
	// Count counts the tokens of a text.
	Count func(string) int
	// Limit is how many tokens the active context may have. If it is 0, there is
	// no limit.
	Limit int
	// ForbidTags adds a sentence to the instruction that keeps date-change tags
	// out of the handoff.
	ForbidTags bool
}

// A Compactor replaces what is old in a session by a handoff. It keeps nothing
// between calls and is safe for concurrent use, but a session is to be compacted
// by one caller at a time.
type Compactor struct {
	engine     *PromptEngine
	boundaries ports.Boundaries
	count      func(string) int
	limit      int
	forbidTags bool
}

// NewCompactor returns a compactor.
func NewCompactor(o CompactorOptions) *Compactor {
	return &Compactor{o.Engine, o.Boundaries, o.Count, o.Limit, o.ForbidTags}
}

// The errors of a compaction that moved nothing, though nothing failed.
var (
	// ErrNothingToCompact says that nothing stands before the newest real user
	// message.
	ErrNothingToCompact = errors.New("nothing stands before the newest user message")
	// ErrNoHandoff says that the model's reply holds no text.
	ErrNoHandoff = errors.New("the model wrote no handoff")
)

// ActiveContext estimates the tokens of the session's next prompt: what the
// provider counted in the session's newest call, and the stored text of what is
// newer; without such a call, the stored text of the whole window. Notices and
// the system prompt are in the provider's count alone.
func (c *Compactor) ActiveContext(ctx context.Context, sessionID string) (int, error) {
	window, err := c.engine.history.Window(ctx, sessionID)
	if err != nil {
		return 0, fmt.Errorf("estimate context of session %s: %w", sessionID, err)
	}
	last, err := c.engine.lastCall(ctx, sessionID)
	if err != nil {
		return 0, fmt.Errorf("estimate context of session %s: %w", sessionID, err)
	}
	n, newer := 0, window.Messages
	// A call from before the boundary moved counted what is gone.
	i := slices.IndexFunc(window.Messages, func(m domain.Message) bool { return m.ID == last.LastMessageID })
	if i >= 0 && last.Purpose == domain.ForTurn && last.Usage.Input.Reported {
		n, newer = int(last.Usage.Input.Tokens), window.Messages[i+1:]
	} else if window.Handoff != "" {
		n = c.count(window.Handoff)
	}
	for _, m := range newer {
		n += m.Tokens(c.count)
	}
	return n, nil
}

// Due reports whether the session's active context has passed the limit.
func (c *Compactor) Due(ctx context.Context, sessionID string) (bool, error) {
	if c.limit == 0 {
		return false, nil
	}
	n, err := c.ActiveContext(ctx, sessionID)
	return n > c.limit, err
}

// Compact asks the model for a handoff and moves the session's boundary, so that
// the newest real user message stays in the window. The request is the session's
// main request and one more message (R15). It returns the handoff.
//
// Where nothing is moved there is an error: it wraps [ErrNothingToCompact] or
// [ErrNoHandoff], or is that of the request or of the write.
func (c *Compactor) Compact(ctx context.Context, r PromptRequest) (string, error) {
	built, err := c.engine.Build(ctx, r)
	if err != nil {
		return "", fmt.Errorf("compact: %w", err)
	}
	through := domain.CompactionBoundary(built.Window.Messages)
	if through == "" {
		return "", fmt.Errorf("compact session %s: %w", r.SessionID, ErrNothingToCompact)
	}
	instruction := domain.SystemNotice(r.Wording.CompactionInstruction(c.forbidTags))
	built.Prompt.Messages = append(built.Prompt.Messages, instruction)
	reply, err := c.engine.send(ctx, r.SessionID, built, domain.ForCompaction, nil)
	if err != nil {
		return "", fmt.Errorf("compact: %w", err)
	}
	handoff := strings.TrimSpace(reply.Text)
	if handoff == "" {
		return "", fmt.Errorf("compact session %s: %w", r.SessionID, ErrNoHandoff)
	}
	if err := c.boundaries.MoveBoundary(ctx, r.SessionID, through, handoff); err != nil {
		return "", fmt.Errorf("compact: %w", err)
	}
	return handoff, nil
}
