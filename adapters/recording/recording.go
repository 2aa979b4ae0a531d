// Package recording is a prompt sink that sends nothing and remembers every
// prompt: for specs, and to see what a harness would have sent.
package recording

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"sessiondate/domain"
	"sessiondate/ports"
)

// A Sink records prompts. The zero value answers every prompt with an empty
// reply and is ready to use. It is safe for concurrent use.
type Sink struct {
	// Reply is the answer to every prompt. It is not to be changed while the
	// sink is in use.
	Reply domain.Reply

	mu      sync.Mutex
	prompts []domain.Prompt
}

var _ ports.PromptSink = (*Sink)(nil)

// Send implements [ports.PromptSink].
func (s *Sink) Send(ctx context.Context, prompt domain.Prompt, onText func(string)) (domain.Reply, error) {
	if err := ctx.Err(); err != nil {
		return domain.Reply{}, fmt.Errorf("record prompt: %w", err)
	}
	prompt.Sections = slices.Clone(prompt.Sections)
	prompt.Tools = slices.Clone(prompt.Tools)
	prompt.Messages = slices.Clone(prompt.Messages)
	for i, m := range prompt.Messages {
		prompt.Messages[i] = m.Clone()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = append(s.prompts, prompt)
	if onText != nil && s.Reply.Text != "" {
		onText(s.Reply.Text)
	}
	return s.Reply, nil
}

// Prompts returns the prompts sent so far, oldest first.
func (s *Sink) Prompts() []domain.Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.prompts)
}
