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

// Body returns the request body that Send sends, byte for byte, and sends
// nothing. The error says which message cannot be sent.
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
func (s *Sink) Send(ctx context.Context, prompt domain.Prompt) (domain.Reply, error) {
	params, err := s.params(prompt)
	if err != nil {
		return domain.Reply{}, err
	}
	message, err := s.client.Messages.New(ctx, params)
	if err != nil {
		return domain.Reply{}, fmt.Errorf("request message of %s: %w", s.model, err)
	}
	if !message.JSON.Content.Valid() {
		return domain.Reply{}, fmt.Errorf("request message of %s: %w", s.model, errNoContent)
	}
	var reply domain.Reply
	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			reply.Text += block.Text
		case anthropic.ToolUseBlock:
			reply.ToolCalls = append(reply.ToolCalls, domain.ToolCall{ID: block.ID, Name: block.Name, Arguments: string(block.Input)})
		}
	}
	u := message.Usage
	reply.Usage = domain.Usage{
		Input:      reported(u.InputTokens, u.JSON.InputTokens),
		Output:     reported(u.OutputTokens, u.JSON.OutputTokens),
		CacheRead:  reported(u.CacheReadInputTokens, u.JSON.CacheReadInputTokens),
		CacheWrite: reported(u.CacheCreationInputTokens, u.JSON.CacheCreationInputTokens),
	}
	// This protocol counts cached tokens beside the input, not in it.
	reply.Usage.Input.Tokens += reply.Usage.CacheRead.Tokens + reply.Usage.CacheWrite.Tokens
	return reply, nil
}

var (
	errNoContent      = errors.New("the answer has no content")
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
		case p.IsImage():
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: image(p.Image)})
		case !blank(p.Text):
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: p.Text}})
		}
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: &result}
}
