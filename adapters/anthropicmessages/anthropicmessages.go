// Package anthropicmessages sends prompts as Anthropic messages, through
// Anthropic's own SDK, to Anthropic or to any server that speaks the protocol.
package anthropicmessages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/respjson"

	"sessiondate/domain"
	"sessiondate/ports"
)

// CacheOrder returns the fields of a body in the order in which the provider
// caches them, for [domain.PrefixUnits].
func CacheOrder() []string { return []string{"tools", "system", "messages"} }

// A Sink is a [ports.PromptSink] over the messages protocol. Each request asks
// for its prompt to be cached up to its last block.
type Sink struct {
	client    anthropic.Client
	model     string
	maxTokens int64
}

var _ ports.PromptSink = (*Sink)(nil)

// New returns a sink that sends prompts to a model through client, which knows
// the base URL, the key and how often to retry. A reply has at most maxTokens
// tokens; the protocol wants to be told.
func New(client anthropic.Client, model string, maxTokens int64) *Sink {
	return &Sink{client, model, maxTokens}
}

// Body returns the request body that Send sends, byte for byte, for a reply that
// is not streamed, and sends nothing. The error says which message cannot be sent.
func (s *Sink) Body(prompt domain.Prompt) ([]byte, error) {
	params, err := s.params(prompt)
	if err != nil {
		return nil, err
	}
	body, err := params.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode message request: %w", err)
	}
	return body, nil
}

// Send implements [ports.PromptSink].
func (s *Sink) Send(ctx context.Context, prompt domain.Prompt, onText func(string)) (domain.Reply, error) {
	params, err := s.params(prompt)
	if err != nil {
		return domain.Reply{}, err
	}
	var message *anthropic.Message
	var usage domain.Usage
	if onText == nil {
		if message, err = s.client.Messages.New(ctx, params); err == nil {
			usage = usageOf(message.Usage)
			if !message.JSON.Content.Valid() {
				err = errNoContent
			}
		}
	} else {
		message, usage, err = s.stream(ctx, params, onText)
	}
	if err != nil {
		return domain.Reply{}, fmt.Errorf("request message of %s: %w", s.model, err)
	}
	// This protocol counts cached tokens beside the input, not in it.
	usage.Input.Tokens += usage.CacheRead.Tokens + usage.CacheWrite.Tokens
	reply := domain.Reply{
		Provider: provider, Model: message.Model, ID: message.ID,
		Usage: usage, CacheMiss: message.Diagnostics.CacheMissReason.Type,
	}
	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			reply.Text += block.Text
		case anthropic.ToolUseBlock:
			reply.ToolCalls = append(reply.ToolCalls, domain.ToolCall{ID: block.ID, Name: block.Name, Arguments: string(block.Input)})
		}
	}
	return reply, nil
}

// stream requests a message that comes in pieces, and puts it together.
func (s *Sink) stream(ctx context.Context, params anthropic.MessageNewParams, onText func(string)) (*anthropic.Message, domain.Usage, error) {
	stream := s.client.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var whole anthropic.Message
	var usage domain.Usage
	for stream.Next() {
		event := stream.Current()
		if err := whole.Accumulate(event); err != nil {
			return nil, domain.Usage{}, err
		}
		switch event := event.AsAny().(type) {
		case anthropic.MessageStartEvent:
			usage = usageOf(event.Message.Usage)
		case anthropic.ContentBlockDeltaEvent:
			if event.Delta.Type == "text_delta" {
				onText(event.Delta.Text)
			}
		case anthropic.MessageDeltaEvent:
			// Counts at the end are of the whole message, and those that do not
			// apply are left out.
			u := event.Usage
			update(&usage.Input, reported(u.InputTokens, u.JSON.InputTokens))
			update(&usage.Output, reported(u.OutputTokens, u.JSON.OutputTokens))
			update(&usage.CacheRead, reported(u.CacheReadInputTokens, u.JSON.CacheReadInputTokens))
			update(&usage.CacheWrite, reported(u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens))
		case anthropic.MessageStopEvent:
			return &whole, usage, nil
		}
	}
	if err := stream.Err(); err != nil {
		return nil, domain.Usage{}, err
	}
	return nil, domain.Usage{}, errBrokenOff
}

func usageOf(u anthropic.Usage) domain.Usage {
	return domain.Usage{
		Input:      reported(u.InputTokens, u.JSON.InputTokens),
		Output:     reported(u.OutputTokens, u.JSON.OutputTokens),
		CacheRead:  reported(u.CacheReadInputTokens, u.JSON.CacheReadInputTokens),
		CacheWrite: reported(u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens),
	}
}

func update(count *domain.TokenCount, newer domain.TokenCount) {
	if newer.Reported {
		*count = newer
	}
}

// provider is the name of who speaks this protocol first, by OpenTelemetry's
// GenAI conventions.
const provider = "anthropic"

var (
	errNoContent      = errors.New("the answer has no content")
	errBrokenOff      = errors.New("the answer broke off")
	errAssistantImage = errors.New("an assistant message cannot hold an image")
)

func reported(n int64, field respjson.Field) domain.TokenCount {
	return domain.TokenCount{Tokens: n, Reported: field.Valid()}
}

func (s *Sink) params(prompt domain.Prompt) (anthropic.MessageNewParams, error) {
	params := anthropic.MessageNewParams{
		Model:     s.model,
		MaxTokens: s.maxTokens,
		// At the top level this is no part of the prefix: the provider moves it to
		// the last block.
		CacheControl: anthropic.NewCacheControlEphemeralParam(),
		Messages:     []anthropic.MessageParam{},
	}
	// The ids of other protocols are no messages.
	if strings.HasPrefix(prompt.PreviousReplyID, "msg_") {
		params.Diagnostics.PreviousMessageID = anthropic.String(prompt.PreviousReplyID)
	}
	for _, section := range prompt.Sections {
		params.System = append(params.System, anthropic.TextBlockParam{Text: section.Text})
	}
	for _, t := range prompt.Tools {
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name:        t.Name,
			Description: anthropic.String(t.Description),
			// As raw JSON: the SDK writes a schema's further fields in the random
			// order of a map, at the head of the prefix.
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](json.RawMessage(t.Schema)),
		}})
	}
	for i, m := range prompt.Messages {
		blocks, err := contentBlocks(m)
		if err != nil {
			return anthropic.MessageNewParams{}, fmt.Errorf("encode message %d (id %q) as Anthropic message: %w", i, m.ID, err)
		}
		switch {
		case len(blocks) == 0:
			// The protocol takes no message without content.
		case m.Role == domain.RoleAssistant:
			params.Messages = append(params.Messages, anthropic.NewAssistantMessage(blocks...))
		case m.Role == domain.RoleTool && i > 0 && prompt.Messages[i-1].Role == domain.RoleTool:
			// The results of one turn's calls stand in one message, right behind it.
			last := params.Messages[len(params.Messages)-1].OfUser
			last.Content = append(last.Content, blocks...)
		default:
			params.Messages = append(params.Messages, anthropic.NewUserMessage(blocks...))
		}
		if m.Role == domain.RoleTool && (i+1 == len(prompt.Messages) || prompt.Messages[i+1].Role != domain.RoleTool) {
			last := params.Messages[len(params.Messages)-1].OfUser
			last.Content = append(last.Content, failureImages(prompt.Messages[:i+1])...)
		}
	}
	return params, nil
}

func contentBlocks(m domain.Message) ([]anthropic.ContentBlockParamUnion, error) {
	parts := m.Parts
	if parts == nil {
		parts = []domain.Part{{Text: m.Text}}
	}
	if m.Role == domain.RoleTool {
		return []anthropic.ContentBlockParamUnion{toolResult(m, parts)}, nil
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, p := range parts {
		switch {
		case p.IsImage() && m.Role == domain.RoleAssistant:
			return nil, errAssistantImage
		case p.IsImage():
			blocks = append(blocks, anthropic.ContentBlockParamUnion{OfImage: image(p.Image)})
		case !blank(p.Text):
			blocks = append(blocks, anthropic.NewTextBlock(p.Text))
		}
	}
	for _, c := range m.ToolCalls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, toolInput(c.Arguments), c.Name))
	}
	switch m.Role {
	case domain.RoleUser, domain.RoleAssistant:
		return blocks, nil
	}
	return nil, fmt.Errorf("no such role: %v", m.Role)
}

// blank reports whether text is nothing but white space, which the protocol
// takes for no text block.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

func image(i domain.Image) *anthropic.ImageBlockParam {
	if i.URL != "" {
		return anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: i.URL}).OfImage
	}
	return anthropic.NewImageBlockBase64(i.MediaType, i.Data).OfImage
}

// toolInput returns a call's arguments as the JSON object that the protocol
// wants. A model may have written none, or broken off; then what there is of
// them is a field of the object, so that the request can still be sent.
func toolInput(arguments string) any {
	var object map[string]json.RawMessage
	switch {
	case arguments == "":
		return json.RawMessage("{}")
	case json.Unmarshal([]byte(arguments), &object) != nil, object == nil: // null is no object.
		return struct {
			Arguments string `json:"arguments"`
		}{arguments}
	}
	return json.RawMessage(arguments)
}

func toolResult(m domain.Message, parts []domain.Part) anthropic.ContentBlockParamUnion {
	result := anthropic.ToolResultBlockParam{ToolUseID: m.ToolCallID}
	if m.ToolFailed {
		result.IsError = anthropic.Bool(true)
	}
	for _, p := range parts {
		switch {
		case p.IsImage() && m.ToolFailed:
			// It stands behind the results.
		case p.IsImage():
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: image(p.Image)})
		case !blank(p.Text):
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: p.Text}})
		}
	}
	if m.ToolFailed && result.Content == nil {
		// The protocol takes no failure without a content.
		result.Content = []anthropic.ToolResultBlockParamContentUnion{
			{OfText: &anthropic.TextBlockParam{Text: "error: the tool gave no text"}},
		}
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: &result}
}

// failureImages returns the images of the failures among the tool messages at the
// end of messages. A failure of this protocol takes text alone, and nothing may
// stand in front of a turn's results.
func failureImages(messages []domain.Message) (blocks []anthropic.ContentBlockParamUnion) {
	first := len(messages)
	for first > 0 && messages[first-1].Role == domain.RoleTool {
		first--
	}
	for _, m := range messages[first:] {
		for _, p := range m.Parts {
			if p.IsImage() && m.ToolFailed {
				blocks = append(blocks, anthropic.ContentBlockParamUnion{OfImage: image(p.Image)})
			}
		}
	}
	return blocks
}
