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
// The prompt is not written to. An answer that is no success is an error that wraps its
// cause. A done context ends the call with the context's error. A sink is safe
// for concurrent use.
type PromptSink interface {
	// Send sends the prompt and returns the reply: its text, its tool calls and
	// the usage. A count that the provider left out is not reported.
	Send(ctx context.Context, prompt domain.Prompt) (domain.Reply, error)
}
