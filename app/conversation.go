package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"sessiondate/domain"
	"sessiondate/ports"
)

// ConversationOptions configures a [Conversation]. Engine, History and Archive
// are needed.
type ConversationOptions struct {
	// Engine builds and sends prompts.
	Engine *PromptEngine
	// History loads sessions, and Archive stores what is said in them.
	History ports.History
	Archive ports.Archive
	// Tools runs the tools that the model calls. If it is nil, every call fails.
	Tools ports.ToolRunner
	// Compactor compacts a session whose context has grown too long, before the
	// next message. If it is nil, none is.
	Compactor *Compactor
	// Now is the clock of stored times. If it is nil, it is time.Now.
	Now func() time.Time
	// Zone is where that clock is read. If it is nil, it is Asia/Shanghai.
	Zone *time.Location
}

// A Conversation carries on sessions: it stores what the user says, asks the
// model, runs the tools that it calls, and stores what it answers. What is
// stored is complete at every step, so a conversation that was cut off, even
// with its process, goes on where it was. It is safe for concurrent use, but a
// session is to be carried on by one caller at a time.
type Conversation struct {
	engine    *PromptEngine
	history   ports.History
	archive   ports.Archive
	tools     ports.ToolRunner
	compactor *Compactor
	clock     clock
}

// NewConversation returns a conversation.
func NewConversation(o ConversationOptions) *Conversation {
	return &Conversation{o.Engine, o.History, o.Archive, o.Tools, o.Compactor, newClock(o.Now, o.Zone)}
}

// A Listener is told what happens in a turn, as it happens. A nil function is not
// called.
type Listener struct {
	// Text is given each piece of the model's text.
	Text func(string)
	// ToolCall is given each call that is about to run.
	ToolCall func(domain.ToolCall)
	// ToolResult is given each result, and whether the call failed.
	ToolResult func(text string, failed bool)
	// Compacted is called when the session was compacted.
	Compacted func()
	// NotCompacted is given the error of a compaction that was due and did not
	// come about. Its text may quote what was said, as providers' errors do.
	NotCompacted func(err error)
}

// maxRounds bounds how often the model is asked in one turn.
const maxRounds = 50

// ErrTooManyRounds says that a model called tools without end.
var ErrTooManyRounds = errors.New("the model calls tools without end")

// Say stores the user's message and then does what Continue does. A message that
// was stored stays, whatever happens then.
func (c *Conversation) Say(ctx context.Context, r PromptRequest, text string, l Listener) error {
	if err := c.store(ctx, r.SessionID, domain.Message{Role: domain.RoleUser, Text: text}); err != nil {
		return err
	}
	return c.Continue(ctx, r, l)
}

// compactIfDue compacts the session if it has grown too long. A compaction that
// does not come about is logged, and is no reason not to answer.
func (c *Conversation) compactIfDue(ctx context.Context, r PromptRequest, l Listener) {
	if c.compactor == nil {
		return
	}
	due, err := c.compactor.Due(ctx, r.SessionID)
	if err == nil && due {
		if _, err = c.compactor.Compact(ctx, r); err == nil && l.Compacted != nil {
			l.Compacted()
		}
	}
	if err == nil || errors.Is(err, ErrNothingToCompact) {
		return
	}
	c.engine.logger.LogAttrs(ctx, slog.LevelWarn, "session is not compacted", slog.String("session", r.SessionID), errorAttr(err))
	if l.NotCompacted != nil {
		l.NotCompacted(err)
	}
}

// Waiting reports whether the session waits for the model: its newest message is
// the user's, a tool's, or a call of the model's that has no result.
func (c *Conversation) Waiting(ctx context.Context, sessionID string) (bool, error) {
	window, err := c.history.Window(ctx, sessionID)
	if err != nil {
		return false, fmt.Errorf("load session %s: %w", sessionID, err)
	}
	n := len(window.Messages)
	return n > 0 && (window.Messages[n-1].Role != domain.RoleAssistant || len(window.Messages[n-1].ToolCalls) > 0), nil
}

// Continue compacts the session if it has grown too long. Then it runs the tools
// that the model has called, asks it, and stores its reply, until it calls none.
// If the session does not wait for the model, it does nothing. The error names
// the session; all that came before it is stored. It wraps [ErrTooManyRounds] if
// the model's fiftieth reply still calls tools: those run when the session is
// next continued.
func (c *Conversation) Continue(ctx context.Context, r PromptRequest, l Listener) error {
	waiting, err := c.Waiting(ctx, r.SessionID)
	if err != nil || !waiting {
		return err
	}
	c.compactIfDue(ctx, r, l)
	for range maxRounds {
		window, err := c.history.Window(ctx, r.SessionID)
		if err != nil {
			return fmt.Errorf("load session %s: %w", r.SessionID, err)
		}
		if err := c.runTools(ctx, r.SessionID, unanswered(window.Messages), l); err != nil {
			return err
		}
		answered, err := c.ask(ctx, r, l)
		if err != nil || answered {
			return err
		}
	}
	return fmt.Errorf("carry on session %s: %w", r.SessionID, ErrTooManyRounds)
}

// unanswered returns the calls of the newest assistant message that have no
// result, if nothing but results stands behind it. Of calls that share an id, the
// first results are the first calls'.
func unanswered(messages []domain.Message) (open []domain.ToolCall) {
	results := make(map[string]int)
	for _, m := range slices.Backward(messages) {
		switch m.Role {
		case domain.RoleTool:
			results[m.ToolCallID]++
		case domain.RoleAssistant:
			for _, c := range m.ToolCalls {
				if results[c.ID] == 0 {
					open = append(open, c)
				} else {
					results[c.ID]--
				}
			}
			return open
		default:
			return nil
		}
	}
	return nil
}

// ask sends the session's prompt, stores the reply, and reports whether that is
// an answer, which calls no tool.
func (c *Conversation) ask(ctx context.Context, r PromptRequest, l Listener) (answered bool, err error) {
	reply, err := c.engine.Send(ctx, r, l.Text)
	if err != nil {
		return false, err
	}
	m := domain.Message{Role: domain.RoleAssistant, Text: reply.Text, ToolCalls: reply.ToolCalls}
	return len(reply.ToolCalls) == 0, c.store(ctx, r.SessionID, m)
}

// runTools runs calls and stores each result as it comes.
func (c *Conversation) runTools(ctx context.Context, sessionID string, calls []domain.ToolCall, l Listener) error {
	for _, tc := range calls {
		if l.ToolCall != nil {
			l.ToolCall(tc)
		}
		text, failed := "error: there are no tools", true
		if c.tools != nil {
			text, failed = c.tools.RunTool(ctx, tc)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("run tool %s of session %s: %w", tc.Name, sessionID, err)
		}
		if err := c.store(ctx, sessionID, domain.Message{Role: domain.RoleTool, ToolCallID: tc.ID, ToolFailed: failed, Text: text}); err != nil {
			return err
		}
		if l.ToolResult != nil {
			l.ToolResult(text, failed)
		}
	}
	return nil
}

// store stores a message with the time of now.
func (c *Conversation) store(ctx context.Context, sessionID string, m domain.Message) error {
	m.CreatedAt = c.clock.wallClock()
	if err := c.archive.Append(ctx, sessionID, m); err != nil {
		return fmt.Errorf("store %v message: %w", m.Role, err)
	}
	return nil
}
