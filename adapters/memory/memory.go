// Package memory keeps sessions in the process: for specs, for examples, and
// for a harness that has no database.
package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"sessiondate/domain"
	"sessiondate/ports"
)

// Sessions holds sessions: their messages, in the order in which they were added,
// which is the order of its store; how far they are compacted; and the calls to
// their models. The zero value holds none and is ready to use. It is safe for
// concurrent use.
type Sessions struct {
	mu       sync.RWMutex
	sessions map[string]*session
	// ids counts the ids that Append gave, and those that it passed over.
	ids int
	// taken are the ids of the messages that came with one.
	taken map[string]bool
}

type session struct {
	messages  []domain.Message
	deleted   map[string]bool
	throughID string
	handoff   string
	calls     []domain.Call
}

var (
	_ ports.SessionStampReader = (*Sessions)(nil)
	_ ports.History            = (*Sessions)(nil)
	_ ports.Archive            = (*Sessions)(nil)
	_ ports.Boundaries         = (*Sessions)(nil)
	_ ports.CallLog            = (*Sessions)(nil)
)

// isUsers reports whether m is a user message that is not deleted.
func (s session) isUsers(m domain.Message) bool {
	return m.Role == domain.RoleUser && !s.deleted[m.ID]
}

// Add adds messages that have ids already at the end of a session. Their parts
// and tool calls are copied.
func (s *Sessions) Add(sessionID string, messages ...domain.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := s.created(sessionID)
	added.messages = append(added.messages, copied(messages)...)
	if s.taken == nil {
		s.taken = make(map[string]bool)
	}
	for _, m := range messages {
		s.taken[m.ID] = true
	}
}

// Append implements [ports.Archive].
func (s *Sessions) Append(ctx context.Context, sessionID string, messages ...domain.Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store messages of session %s: %w", sessionID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	added := s.created(sessionID)
	for _, m := range copied(messages) {
		m.ID = s.newID()
		added.messages = append(added.messages, m)
	}
	return nil
}

// newID returns an id that no message has, whatever its session.
func (s *Sessions) newID() string {
	for {
		s.ids++
		if id := strconv.Itoa(s.ids); !s.taken[id] {
			return id
		}
	}
}

// created returns a session, which it creates if need be.
func (s *Sessions) created(sessionID string) *session {
	if s.sessions == nil {
		s.sessions = make(map[string]*session)
	}
	if s.sessions[sessionID] == nil {
		s.sessions[sessionID] = new(session)
	}
	return s.sessions[sessionID]
}

// known returns a session, which is empty if it was never created.
func (s *Sessions) known(sessionID string) session {
	if known := s.sessions[sessionID]; known != nil {
		return *known
	}
	return session{}
}

// Delete soft-deletes a message: no reading finds it again.
func (s *Sessions) Delete(sessionID, messageID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.created(sessionID)
	if changed.deleted == nil {
		changed.deleted = make(map[string]bool)
	}
	changed.deleted[messageID] = true
}

// FirstUserStamp implements [ports.SessionStampReader].
func (s *Sessions) FirstUserStamp(ctx context.Context, sessionID string) (domain.Stamp, error) {
	if err := ctx.Err(); err != nil {
		return domain.Stamp{}, fmt.Errorf("read first user stamp of session %s: %w", sessionID, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := s.known(sessionID)
	for _, m := range known.messages {
		if known.isUsers(m) {
			return domain.Stamp{MessageID: m.ID, CreatedAt: m.CreatedAt}, nil
		}
	}
	return domain.Stamp{}, nil
}

// PreviousUserStamp implements [ports.SessionStampReader].
func (s *Sessions) PreviousUserStamp(ctx context.Context, sessionID, beforeID string) (domain.Stamp, error) {
	if err := ctx.Err(); err != nil {
		return domain.Stamp{}, fmt.Errorf("read user stamp of session %s before message %s: %w", sessionID, beforeID, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var previous domain.Stamp
	known := s.known(sessionID)
	for _, m := range known.messages {
		if m.ID == beforeID {
			return previous, nil
		}
		if known.isUsers(m) {
			previous = domain.Stamp{MessageID: m.ID, CreatedAt: m.CreatedAt}
		}
	}
	return domain.Stamp{}, nil
}

// Window implements [ports.History].
func (s *Sessions) Window(ctx context.Context, sessionID string) (domain.Window, error) {
	if err := ctx.Err(); err != nil {
		return domain.Window{}, fmt.Errorf("read messages of session %s: %w", sessionID, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := s.known(sessionID)
	whole, behind := known.throughID == "", 0
	if !whole {
		behind = 1 + slices.IndexFunc(known.messages, func(m domain.Message) bool { return m.ID == known.throughID })
	}
	messages := slices.DeleteFunc(copied(known.messages[behind:]), func(m domain.Message) bool { return known.deleted[m.ID] })
	return domain.Window{Handoff: known.handoff, Messages: messages, Whole: whole}, nil
}

// MoveBoundary implements [ports.Boundaries].
func (s *Sessions) MoveBoundary(ctx context.Context, sessionID, throughID, handoff string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("move boundary of session %s: %w", sessionID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.known(sessionID).messages, func(m domain.Message) bool { return m.ID == throughID }) {
		return fmt.Errorf("move boundary of session %s: message %s: the session has no such message", sessionID, throughID)
	}
	moved := s.sessions[sessionID]
	moved.throughID, moved.handoff = throughID, handoff
	return nil
}

// Record implements [ports.CallLog].
func (s *Sessions) Record(ctx context.Context, call domain.Call) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("record call of session %s: %w", call.SessionID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	recorded := s.created(call.SessionID)
	recorded.calls = append(recorded.calls, call)
	return nil
}

// LastCall implements [ports.CallLog].
func (s *Sessions) LastCall(ctx context.Context, sessionID string) (domain.Call, bool, error) {
	if err := ctx.Err(); err != nil {
		return domain.Call{}, false, fmt.Errorf("read last call of session %s: %w", sessionID, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, call := range slices.Backward(s.known(sessionID).calls) {
		if !call.Failed {
			return call, true, nil
		}
	}
	return domain.Call{}, false, nil
}

// copied returns a copy of messages that shares no slice with them.
func copied(messages []domain.Message) []domain.Message {
	messages = slices.Clone(messages)
	for i, m := range messages {
		messages[i] = m.Clone()
	}
	return messages
}

// Commands are quick commands that do not change.
type Commands map[domain.Marker]string

var _ ports.QuickCommands = Commands(nil)

// Text implements [ports.QuickCommands].
func (c Commands) Text(ctx context.Context, marker domain.Marker) (string, bool, error) {
	if err := ctx.Err(); err != nil {
		return "", false, fmt.Errorf("look up %v: %w", marker, err)
	}
	text, known := c[marker]
	return text, known, nil
}
