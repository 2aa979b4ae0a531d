// Package openaichat sends prompts as OpenAI chat completions, through OpenAI's
// own SDK, to OpenAI or to any server that speaks the protocol.
package openaichat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/shared"

	"sessiondate/domain"
	"sessiondate/ports"
)

// CacheOrder returns the fields of a body in the order in which providers cache
// them, for [domain.PrefixUnits].
func CacheOrder() []string { return []string{"tools", "messages"} }

// A Sink is a [ports.PromptSink] over the chat completions protocol.
type Sink struct {
	client openai.Client
	model  string
}

var _ ports.PromptSink = (*Sink)(nil)

// New returns a sink that sends prompts to a model through client, which knows
// the base URL, the key and how often to retry.
func New(client openai.Client, model string) *Sink { return &Sink{client, model} }

// Body returns the request body that Send sends, byte for byte, for a reply that
// is not streamed, and sends nothing. The error says which message cannot be sent.
func (s *Sink) Body(prompt domain.Prompt) ([]byte, error) {
	params, err := s.params(prompt)
	if err != nil {
		return nil, err
	}
	body, err := params.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode chat completion: %w", err)
	}
	return body, nil
}

// Send implements [ports.PromptSink].
func (s *Sink) Send(ctx context.Context, prompt domain.Prompt, onText func(string)) (domain.Reply, error) {
	params, err := s.params(prompt)
	if err != nil {
		return domain.Reply{}, err
	}
	var completion *openai.ChatCompletion
	if onText == nil {
		completion, err = s.client.Chat.Completions.New(ctx, params)
	} else {
		completion, err = s.stream(ctx, params, onText)
	}
	if err == nil && len(completion.Choices) == 0 {
		err = errNoChoice
	}
	if err != nil {
		return domain.Reply{}, fmt.Errorf("request chat completion of %s: %w", s.model, err)
	}
	message := completion.Choices[0].Message
	reply := domain.Reply{Provider: provider, Model: completion.Model, ID: completion.ID, Text: message.Content}
	for _, c := range message.ToolCalls {
		reply.ToolCalls = append(reply.ToolCalls, domain.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	u := completion.Usage
	reply.Usage = domain.Usage{
		Input:      reported(u.PromptTokens, u.JSON.PromptTokens),
		Output:     reported(u.CompletionTokens, u.JSON.CompletionTokens),
		CacheRead:  reported(u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.JSON.CachedTokens),
		CacheWrite: reported(u.PromptTokensDetails.CacheWriteTokens, u.PromptTokensDetails.JSON.CacheWriteTokens),
	}
	return reply, nil
}

// stream requests a completion that comes in pieces, and puts it together.
func (s *Sink) stream(ctx context.Context, params openai.ChatCompletionNewParams, onText func(string)) (*openai.ChatCompletion, error) {
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := s.client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var whole openai.ChatCompletionAccumulator
	var usage openai.CompletionUsage
	for stream.Next() {
		chunk := stream.Current()
		if !whole.AddChunk(chunk) {
			return nil, errChunk
		}
		if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			onText(chunk.Choices[0].Delta.Content)
		}
		if chunk.JSON.Usage.Valid() {
			usage = chunk.Usage
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if len(whole.Choices) > 0 && whole.Choices[0].FinishReason == "" {
		return nil, errBrokenOff
	}
	// The accumulator adds usages up, and forgets which counts were reported.
	whole.Usage = usage
	return &whole.ChatCompletion, nil
}

// provider is the name of who speaks this protocol first, by OpenTelemetry's
// GenAI conventions.
const provider = "openai"

var (
	errNoChoice       = errors.New("the answer has no choice")
	errChunk          = errors.New("the answer has a piece that does not fit")
	errBrokenOff      = errors.New("the answer broke off")
	errAssistantImage = errors.New("an assistant message cannot hold an image")
)

func reported(n int64, field respjson.Field) domain.TokenCount {
	return domain.TokenCount{Tokens: n, Reported: field.Valid()}
}

func (s *Sink) params(prompt domain.Prompt) (openai.ChatCompletionNewParams, error) {
	params := openai.ChatCompletionNewParams{Model: s.model}
	for _, t := range prompt.Tools {
		function := shared.FunctionDefinitionParam{Name: t.Name, Description: openai.String(t.Description)}
		// The SDK's own field is a map, which forgets the order of the keys.
		function.SetExtraFields(map[string]any{"parameters": json.RawMessage(t.Schema)})
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(function))
	}
	if system := prompt.System(); system != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(system))
	}
	for i, m := range prompt.Messages {
		switch m.Role {
		case domain.RoleUser:
			// The protocol takes no list of no parts.
			if m.Parts == nil || m.HasContent() {
				params.Messages = append(params.Messages, userMessage(m))
			}
		case domain.RoleAssistant:
			assistant, err := assistantMessage(m)
			if err != nil {
				return openai.ChatCompletionNewParams{}, fmt.Errorf("encode message %d (id %q) as chat completion: %w", i, m.ID, err)
			}
			params.Messages = append(params.Messages, assistant)
		case domain.RoleTool:
			params.Messages = append(params.Messages, toolMessage(m))
			if i+1 == len(prompt.Messages) || prompt.Messages[i+1].Role != domain.RoleTool {
				params.Messages = append(params.Messages, toolImages(prompt.Messages[:i+1])...)
			}
		default:
			return openai.ChatCompletionNewParams{}, fmt.Errorf("encode message %d (id %q) as chat completion: no such role: %v", i, m.ID, m.Role)
		}
	}
	return params, nil
}

func userMessage(m domain.Message) openai.ChatCompletionMessageParamUnion {
	if m.Parts == nil {
		return openai.UserMessage(m.Text)
	}
	parts := []openai.ChatCompletionContentPartUnionParam{}
	for _, p := range m.Parts {
		switch {
		case p.IsImage():
			parts = append(parts, imagePart(p.Image))
		case p.Text != "":
			parts = append(parts, openai.TextContentPart(p.Text))
		}
	}
	return openai.UserMessage(parts)
}

func imagePart(i domain.Image) openai.ChatCompletionContentPartUnionParam {
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: i.Location()})
}

func assistantMessage(m domain.Message) (openai.ChatCompletionMessageParamUnion, error) {
	var assistant openai.ChatCompletionAssistantMessageParam
	for _, p := range m.Parts {
		if p.IsImage() {
			return openai.ChatCompletionMessageParamUnion{}, errAssistantImage
		}
		if p.Text != "" {
			assistant.Content.OfArrayOfContentParts = append(assistant.Content.OfArrayOfContentParts,
				openai.ChatCompletionAssistantMessageParamContentArrayOfContentPartUnion{
					OfText: &openai.ChatCompletionContentPartTextParam{Text: p.Text},
				})
		}
	}
	// The protocol wants a content, if only an empty string, where no call is.
	if assistant.Content.OfArrayOfContentParts == nil && (m.Text != "" || len(m.ToolCalls) == 0) {
		assistant.Content.OfString = openai.String(m.Text)
	}
	for _, c := range m.ToolCalls {
		assistant.ToolCalls = append(assistant.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
			},
		})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &assistant}, nil
}

func toolMessage(m domain.Message) openai.ChatCompletionMessageParamUnion {
	var parts []openai.ChatCompletionContentPartTextParam
	for _, p := range m.Parts {
		if !p.IsImage() && p.Text != "" {
			parts = append(parts, openai.ChatCompletionContentPartTextParam{Text: p.Text})
		}
	}
	// The protocol takes no list of no parts.
	if parts == nil {
		return openai.ToolMessage(m.Text, m.ToolCallID)
	}
	return openai.ToolMessage(parts, m.ToolCallID)
}

// toolImages returns a user message with the images of the tool messages at the
// end of messages, and none if they hold none. A tool message of this protocol
// takes text alone.
func toolImages(messages []domain.Message) []openai.ChatCompletionMessageParamUnion {
	first := len(messages)
	for first > 0 && messages[first-1].Role == domain.RoleTool {
		first--
	}
	var images []openai.ChatCompletionContentPartUnionParam
	for _, m := range messages[first:] {
		for _, p := range m.Parts {
			if p.IsImage() {
				images = append(images, imagePart(p.Image))
			}
		}
	}
	if images == nil {
		return nil
	}
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(images)}
}
