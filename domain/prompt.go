package domain

import "strings"

// CurrentDateSection is the name of the system section that states the anchor
// (R11).
const CurrentDateSection = "current-date"

// A Section is a named piece of the system prompt.
type Section struct {
	// Name tells sections apart in logs. It is not sent.
	Name string
	// Text is what the model reads.
	Text string
}

// A Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of the tool's arguments, a JSON object. It is
	// text so that its keys are sent in the order in which they were written.
	Schema string
}

// A Prompt is everything that goes to the model in one request.
type Prompt struct {
	// Sections make up the system prompt, in order.
	Sections []Section
	// Tools are the tools that the model may call, in order.
	Tools []Tool
	// Messages are the messages of the window, oldest first.
	Messages []Message
	// PreviousReplyID is the id of the session's previous reply, if it is known.
	// A provider that explains cache misses compares with it. It is no part of
	// the prefix.
	PreviousReplyID string
}

// System returns the system prompt as one text: the sections in order, with an
// empty line between.
func (p Prompt) System() string {
	texts := make([]string, len(p.Sections))
	for i, s := range p.Sections {
		texts[i] = s.Text
	}
	return strings.Join(texts, "\n\n")
}

// A Reply is what the model answered to a prompt.
type Reply struct {
	// Provider and Model are who answered, as OpenTelemetry's GenAI conventions
	// name providers and as the answer names the model.
	Provider, Model string
	// ID is the reply's id at the provider.
	ID string
	// Text is the reply's text, and empty if it only calls tools.
	Text string
	// ToolCalls are the calls that the model asks for, in order.
	ToolCalls []ToolCall
	// Usage is what the request cost.
	Usage Usage
	// CacheMiss is the provider's own reason why it did not find more of the
	// prompt in its cache, and empty if it gives none.
	CacheMiss string
}

// Usage is what a provider reports of one request, in tokens.
type Usage struct {
	// Input counts all tokens of the prompt, cached ones included.
	Input TokenCount
	// Output counts the tokens of the reply.
	Output TokenCount
	// CacheRead counts the tokens of the prompt that came from the cache.
	CacheRead TokenCount
	// CacheWrite counts the tokens of the prompt that were written to it.
	CacheWrite TokenCount
}

// A TokenCount is a count that a provider may leave out. A count of 0 that was
// reported and one that was not are two facts.
type TokenCount struct {
	Tokens   int64
	Reported bool
}

// Reported returns a count of n tokens that the provider reported.
func Reported(n int64) TokenCount { return TokenCount{n, true} }
