// Package openairesponses sends prompts as OpenAI responses, through OpenAI's
// own SDK, to OpenAI or to any server that speaks the protocol.
package openairesponses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/responses"

	"sessiondate/domain"
	"sessiondate/ports"
)

// CacheOrder returns the fields of a body in the order in which providers cache
// them, for [domain.PrefixUnits].
func CacheOrder() []string { return []string{"tools", "instructions", "input"} }

// A Sink is a [ports.PromptSink] over the responses protocol. Each request
// carries the whole prompt, and the provider is told to store none of it.
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
		return nil, fmt.Errorf("encode response request: %w", err)
	}
	return body, nil
}

// Send implements [ports.PromptSink].
func (s *Sink) Send(ctx context.Context, prompt domain.Prompt, onText func(string)) (domain.Reply, error) {
	params, err := s.params(prompt)
	if err != nil {
		return domain.Reply{}, err
	}
	var response *responses.Response
	if onText == nil {
		response, err = s.client.Responses.New(ctx, params)
	} else {
		response, err = s.stream(ctx, params, onText)
	}
	switch {
	case err != nil:
	case response.Status == responses.ResponseStatusFailed:
		err = fmt.Errorf("%s: %s", response.Error.Code, response.Error.Message)
	case !response.JSON.Output.Valid():
		err = errNoOutput
	}
	if err != nil {
		return domain.Reply{}, fmt.Errorf("request response of %s: %w", s.model, err)
	}
	reply := domain.Reply{Provider: provider, Model: response.Model, ID: response.ID, Text: response.OutputText()}
	for _, item := range response.Output {
		if item.Type == "function_call" {
			call := item.AsFunctionCall()
			reply.ToolCalls = append(reply.ToolCalls, domain.ToolCall{ID: call.CallID, Name: call.Name, Arguments: call.Arguments})
		}
	}
	u := response.Usage
	reply.Usage = domain.Usage{
		Input:      reported(u.InputTokens, u.JSON.InputTokens),
		Output:     reported(u.OutputTokens, u.JSON.OutputTokens),
		CacheRead:  reported(u.InputTokensDetails.CachedTokens, u.InputTokensDetails.JSON.CachedTokens),
		CacheWrite: reported(u.InputTokensDetails.CacheWriteTokens, u.InputTokensDetails.JSON.CacheWriteTokens),
	}
	if d := response.PromptCacheDiagnostics; d.Type != "cache_hit" {
		reply.CacheMiss = d.Type
		if d.Reason != "" {
			reply.CacheMiss = d.Reason
		}
	}
	return reply, nil
}

// stream requests a response that comes in pieces, of which the last is the
// whole.
func (s *Sink) stream(ctx context.Context, params responses.ResponseNewParams, onText func(string)) (*responses.Response, error) {
	stream := s.client.Responses.NewStreaming(ctx, params)
	defer stream.Close()
	for stream.Next() {
		switch event := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			onText(event.Delta)
		case responses.ResponseCompletedEvent:
			return &event.Response, nil
		case responses.ResponseIncompleteEvent:
			return &event.Response, nil
		case responses.ResponseFailedEvent:
			return &event.Response, nil
		case responses.ResponseErrorEvent:
			return nil, fmt.Errorf("%s: %s", event.Code, event.Message)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return nil, errBrokenOff
}

// provider is the name of who speaks this protocol first, by OpenTelemetry's
// GenAI conventions.
const provider = "openai"

var (
	errNoOutput       = errors.New("the answer has no output")
	errBrokenOff      = errors.New("the answer broke off")
	errAssistantImage = errors.New("an assistant message cannot hold an image")
)

func reported(n int64, field respjson.Field) domain.TokenCount {
	return domain.TokenCount{Tokens: n, Reported: field.Valid()}
}

func (s *Sink) params(prompt domain.Prompt) (responses.ResponseNewParams, error) {
	params := responses.ResponseNewParams{Model: s.model, Store: openai.Bool(false)}
	// The ids of other protocols are no responses.
	if strings.HasPrefix(prompt.PreviousReplyID, "resp_") {
		params.PromptCacheOptions.ComparisonResponseID = openai.String(prompt.PreviousReplyID)
	}
	if system := prompt.System(); system != "" {
		params.Instructions = openai.String(system)
	}
	for _, t := range prompt.Tools {
		function := responses.FunctionToolParam{Name: t.Name, Description: openai.String(t.Description), Strict: openai.Bool(false)}
		// The SDK's own field is a map, which forgets the order of the keys.
		function.SetExtraFields(map[string]any{"parameters": json.RawMessage(t.Schema)})
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: &function})
	}
	input := responses.ResponseInputParam{}
	for i, m := range prompt.Messages {
		items, err := inputItems(m)
		if err != nil {
			return responses.ResponseNewParams{}, fmt.Errorf("encode message %d (id %q) as response input: %w", i, m.ID, err)
		}
		input = append(input, items...)
	}
	params.Input.OfInputItemList = input
	return params, nil
}

func inputItems(m domain.Message) ([]responses.ResponseInputItemUnionParam, error) {
	switch m.Role {
	case domain.RoleUser:
		// The protocol takes no list of no parts.
		if m.Parts != nil && !m.HasContent() {
			return nil, nil
		}
		return []responses.ResponseInputItemUnionParam{userMessage(m)}, nil
	case domain.RoleAssistant:
		return assistantItems(m)
	case domain.RoleTool:
		return []responses.ResponseInputItemUnionParam{toolOutput(m)}, nil
	}
	return nil, fmt.Errorf("no such role: %v", m.Role)
}

func userMessage(m domain.Message) responses.ResponseInputItemUnionParam {
	if m.Parts == nil {
		return responses.ResponseInputItemParamOfMessage(m.Text, responses.EasyInputMessageRoleUser)
	}
	content := responses.ResponseInputMessageContentListParam{}
	for _, p := range m.Parts {
		switch {
		case p.IsImage():
			content = append(content, responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
				ImageURL: openai.String(p.Image.Location()), Detail: responses.ResponseInputImageDetailAuto,
			}})
		case p.Text != "":
			content = append(content, responses.ResponseInputContentParamOfInputText(p.Text))
		}
	}
	return responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser)
}

// assistantItems returns the items of an assistant message. Its text is one
// string, since the protocol's parts of an assistant's message want ids that
// only the provider gives.
func assistantItems(m domain.Message) ([]responses.ResponseInputItemUnionParam, error) {
	var b strings.Builder
	b.WriteString(m.Text)
	for _, p := range m.Parts {
		if p.IsImage() {
			return nil, errAssistantImage
		}
		b.WriteString(p.Text)
	}
	text := b.String()
	var items []responses.ResponseInputItemUnionParam
	if text != "" || len(m.ToolCalls) == 0 {
		items = append(items, responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleAssistant))
	}
	for _, c := range m.ToolCalls {
		items = append(items, responses.ResponseInputItemParamOfFunctionCall(c.Arguments, c.ID, c.Name))
	}
	return items, nil
}

func toolOutput(m domain.Message) responses.ResponseInputItemUnionParam {
	var list responses.ResponseFunctionCallOutputItemListParam
	for _, p := range m.Parts {
		switch {
		case p.IsImage():
			list = append(list, responses.ResponseFunctionCallOutputItemUnionParam{
				OfInputImage: &responses.ResponseInputImageContentParam{ImageURL: openai.String(p.Image.Location())},
			})
		case p.Text != "":
			list = append(list, responses.ResponseFunctionCallOutputItemParamOfInputText(p.Text))
		}
	}
	output := responses.ResponseInputItemParamOfFunctionCallOutput(m.Text)
	// A list of nothing is not sent.
	if list != nil {
		output = responses.ResponseInputItemParamOfFunctionCallOutput(list)
	}
	output.OfFunctionCallOutput.CallID = openai.String(m.ToolCallID)
	return output
}
