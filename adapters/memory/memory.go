// Package memory keeps sessions in the process: for specs, for examples, and
// for a harness that has no database.
package memory

import (
	"context"
	"fmt"
	"sync"

	"sessiondate/domain"
	"sessiondate/ports"
)

// Sessions holds messages of sessions, in the order in which they were added,
// which is the order of its store. The zero value holds none and is ready to
// use. It is safe for concurrent use.
type Sessions struct {
	mu       sync.RWMutex
	messages map[string][]message
}

// A message is deleted softly: it keeps its place in the order.
type message struct {
	domain.Message
	deleted bool
}

var (
	_ ports.SessionStampReader = (*Sessions)(nil)
	_ ports.History            = (*Sessions)(nil)
)

// Add adds messages at the end of a session. Their parts and tool calls are
// copied.
func (s *Sessions) Add(sessionID string, messages ...domain.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.messages == nil {
		s.messages = make(map[string][]message)
	}
	for _, m := range messages {
		s.messages[sessionID] = append(s.messages[sessionID], message{Message: m.Clone()})
	}
}

// Delete soft-deletes a message: no reading finds it again.
func (s *Sessions) Delete(sessionID, messageID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.messages[sessionID] {
		if m.ID == messageID {
			s.messages[sessionID][i].deleted = true
		}
	}
}

// FirstUserStamp implements [ports.SessionStampReader].
func (s *Sessions) FirstUserStamp(ctx context.Context, sessionID string) (domain.Stamp, error) {
	if err := ctx.Err(); err != nil {
		return domain.Stamp{}, fmt.Errorf("read first user stamp of session %s: %w", sessionID, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, m := range s.messages[sessionID] {
		if m.Role == domain.RoleUser && !m.deleted {
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
	for _, m := range s.messages[sessionID] {
		if m.ID == beforeID {
			return previous, nil
		}
		if m.Role == domain.RoleUser && !m.deleted {
			previous = domain.Stamp{MessageID: m.ID, CreatedAt: m.CreatedAt}
		}
	}
	return domain.Stamp{}, nil
}

// Messages implements [ports.History].
func (s *Sessions) Messages(ctx context.Context, sessionID string) ([]domain.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read messages of session %s: %w", sessionID, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var messages []domain.Message
	for _, m := range s.messages[sessionID] {
		if !m.deleted {
			messages = append(messages, m.Clone())
		}
	}
	return messages, nil
}
