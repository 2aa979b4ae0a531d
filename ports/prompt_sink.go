package ports

import (
	"context"

	"sessiondate/domain"
)

// A PromptSink takes a finished prompt to where it is answered.
//
// The same prompt is sent as the same bytes, every time and in every process.
// Text, images, tool calls, tool results and tools all arrive, in order. The
// keys of a tool's schema and of a call's arguments keep their order. No stored
// time and no message id is sent. There is one system prompt, and it comes
// first. Text arrives as it is in the prompt, notices included. An empty text
// part is not sent, and a user message whose parts are all empty is not either.
// The prompt is not written to. An answer that is no success is an error that
// wraps its cause, and so is a reply that breaks off. A done context ends the
// call with the context's error. A sink is safe for concurrent use, and no
// goroutine of its outlives a call.
type PromptSink interface {
	// Send sends the prompt and returns the whole reply: its text, its tool
	// calls, who gave it, the usage, and the provider's own reason for a cache
	// miss where it gives one. A count that the provider left out is not
	// reported. If onText is not nil, the reply is streamed: each piece of its
	// text is given to onText, in order, as it comes in.
	Send(ctx context.Context, prompt domain.Prompt, onText func(string)) (domain.Reply, error)
}
