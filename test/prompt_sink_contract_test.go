package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"sessiondate/adapters/anthropicmessages"
	"sessiondate/adapters/openaichat"
	"sessiondate/adapters/openairesponses"
	"sessiondate/adapters/recording"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A wireRequest is a request as the server got it.
type wireRequest struct {
	url    string
	header http.Header
	body   []byte
}

// A loopback is a provider on this machine: it records every request and gives
// every one the same answer.
type loopback struct {
	url string

	mu       sync.Mutex
	requests []wireRequest
	status   int
	answer   string
	// held is told of each request that is then left without an answer, and nil
	// while requests are answered.
	held chan struct{}
}

func newLoopback(answer string) *loopback {
	l := &loopback{status: http.StatusOK, answer: answer}
	server := httptest.NewServer(l)
	DeferCleanup(server.Close)
	l.url = server.URL
	return l
}

func (l *loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.requests = append(l.requests, wireRequest{r.URL.String(), r.Header, body})
	status, answer, held := l.status, l.answer, l.held
	l.mu.Unlock()
	if held != nil {
		held <- struct{}{}
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// bodies returns the bodies received so far.
func (l *loopback) bodies() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	bodies := make([][]byte, len(l.requests))
	for i, r := range l.requests {
		bodies[i] = r.body
	}
	return bodies
}

// A bodySink is a sink that tells the body it sends.
type bodySink interface {
	ports.PromptSink
	Body(domain.Prompt) ([]byte, error)
}

// A wireProtocol is a protocol that prompts are sent in.
type wireProtocol struct {
	open func(url string) bodySink
	// provider, model and replyID are who answers.
	provider, model, replyID string
	// spell tells what a body says, in the order in which it says it, and in words
	// that the protocols share.
	spell func(body []byte) []string
	// answer spells an answer with a text, a call and the given usage, and
	// successes without a usage if it is empty.
	answer func(usage string) string
	// full, zero and bare are usages: with 2000 tokens of which 1536 were read from
	// the cache and 64 written to it, with none of either, and without these counts.
	full, zero, bare string
	// failure is the body of an answer that is an error.
	failure string
	// status is the status in the SDK's own error, and 0 if err wraps none.
	status func(err error) int
}

// decodeJSON reads a piece of a body.
func decodeJSON(data []byte, v any) {
	GinkgoHelper()
	Expect(json.Unmarshal(data, v)).To(Succeed(), "%s", data)
}

// A wireTool is a tool in any of the protocols.
type wireTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"`
	Function    *wireTool       `json:"function"`
}

func spellTools(tools []wireTool) (said []string) {
	for _, t := range tools {
		if t.Function != nil {
			t = *t.Function
		}
		said = append(said, fmt.Sprintf("tool %s: %s %s%s", t.Name, t.Description, t.Parameters, t.InputSchema))
	}
	return said
}

// spellContent spells a content that is a string or a list of parts.
func spellContent(who string, content json.RawMessage) (said []string) {
	GinkgoHelper()
	switch {
	case len(content) == 0:
		return nil
	case content[0] == '"':
		var text string
		decodeJSON(content, &text)
		return []string{who + ": " + text}
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     *string         `json:"text"`
		ImageURL json.RawMessage `json:"image_url"`
		Source   struct {
			Type      string `json:"type"`
			URL       string `json:"url"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
		} `json:"source"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
	}
	decodeJSON(content, &parts)
	for _, p := range parts {
		switch p.Type {
		case "text", "input_text":
			said = append(said, who+": "+*p.Text)
		case "image_url": // Chat.
			var image struct {
				URL string `json:"url"`
			}
			decodeJSON(p.ImageURL, &image)
			said = append(said, who+" image: "+image.URL)
		case "input_image": // Responses.
			var url string
			decodeJSON(p.ImageURL, &url)
			said = append(said, who+" image: "+url)
		case "image": // Messages.
			if p.Source.Type == "base64" {
				p.Source.URL = "data:" + p.Source.MediaType + ";base64," + p.Source.Data
			}
			said = append(said, who+" image: "+p.Source.URL)
		case "tool_use":
			said = append(said, fmt.Sprintf("call %s: %s %s", p.ID, p.Name, p.Input))
		case "tool_result":
			result := "result " + p.ToolUseID
			if p.IsError {
				result = "failed " + result
			}
			said = append(said, spellContent(result, p.Content)...)
		default:
			Fail("a part of type " + p.Type)
		}
	}
	return said
}

func spellChat(body []byte) []string {
	GinkgoHelper()
	var b struct {
		Tools    []wireTool `json:"tools"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	decodeJSON(body, &b)
	said := spellTools(b.Tools)
	for _, m := range b.Messages {
		who := m.Role
		if who == "tool" {
			who = "result " + m.ToolCallID
		}
		said = append(said, spellContent(who, m.Content)...)
		for _, c := range m.ToolCalls {
			said = append(said, fmt.Sprintf("call %s: %s %s", c.ID, c.Function.Name, c.Function.Arguments))
		}
	}
	return said
}

func spellResponses(body []byte) []string {
	GinkgoHelper()
	var b struct {
		Tools        []wireTool `json:"tools"`
		Instructions *string    `json:"instructions"`
		Input        []struct {
			Type      string          `json:"type"`
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			CallID    string          `json:"call_id"`
			Name      string          `json:"name"`
			Arguments string          `json:"arguments"`
			Output    json.RawMessage `json:"output"`
		} `json:"input"`
	}
	decodeJSON(body, &b)
	said := spellTools(b.Tools)
	if b.Instructions != nil {
		said = append(said, "system: "+*b.Instructions)
	}
	for _, item := range b.Input {
		switch item.Type {
		case "function_call":
			said = append(said, fmt.Sprintf("call %s: %s %s", item.CallID, item.Name, item.Arguments))
		case "function_call_output":
			said = append(said, spellContent("result "+item.CallID, item.Output)...)
		case "", "message":
			said = append(said, spellContent(item.Role, item.Content)...)
		default:
			Fail("an item of type " + item.Type)
		}
	}
	return said
}

func spellMessages(body []byte) []string {
	GinkgoHelper()
	var b struct {
		Tools  []wireTool `json:"tools"`
		System []struct {
			Text string `json:"text"`
		} `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	decodeJSON(body, &b)
	said := spellTools(b.Tools)
	if b.System != nil {
		texts := make([]string, len(b.System))
		for i, s := range b.System {
			texts[i] = s.Text
		}
		said = append(said, "system: "+strings.Join(texts, "\n\n"))
	}
	for _, m := range b.Messages {
		said = append(said, spellContent(m.Role, m.Content)...)
	}
	return said
}

var (
	chatProtocol = wireProtocol{
		provider: "openai", model: "gpt-5.6", replyID: "chatcmpl-1",
		open: func(url string) bodySink {
			return openaichat.New(openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("test"), openaioption.WithMaxRetries(0)), "gpt-5.6")
		},
		spell: spellChat,
		answer: func(usage string) string {
			if usage != "" {
				usage = `,"usage":` + usage
			}
			return `{"id":"chatcmpl-1","object":"chat.completion","created":1791820200,"model":"gpt-5.6","choices":[{"index":0,"finish_reason":"tool_calls","logprobs":null,"message":{"role":"assistant","content":"Let me look.","refusal":null,"tool_calls":[{"id":"call_9","type":"function","function":{"name":"read_file","arguments":"{\"z\":1,\"a\":1.50}"}},{"id":"call_10","type":"function","function":{"name":"now","arguments":"{}"}}]}}]` + usage + `}`
		},
		full:    `{"prompt_tokens":2000,"completion_tokens":30,"total_tokens":2030,"prompt_tokens_details":{"cached_tokens":1536,"cache_write_tokens":64}}`,
		zero:    `{"prompt_tokens":2000,"completion_tokens":30,"total_tokens":2030,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0}}`,
		bare:    `{"prompt_tokens":2000,"completion_tokens":30,"total_tokens":2030}`,
		failure: `{"error":{"message":"that is too long","type":"invalid_request_error","param":null,"code":null}}`,
		status: func(err error) int {
			if e, ok := errors.AsType[*openai.Error](err); ok {
				return e.StatusCode
			}
			return 0
		},
	}

	responsesProtocol = wireProtocol{
		provider: "openai", model: "gpt-5.6", replyID: "resp_1",
		open: func(url string) bodySink {
			return openairesponses.New(openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("test"), openaioption.WithMaxRetries(0)), "gpt-5.6")
		},
		spell: spellResponses,
		answer: func(usage string) string {
			if usage != "" {
				usage = `,"usage":` + usage
			}
			return `{"id":"resp_1","object":"response","created_at":1791820200,"status":"completed","model":"gpt-5.6","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","tools":[],"top_p":1,"output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Let me look.","annotations":[]}]},{"type":"function_call","id":"fc_1","call_id":"call_9","name":"read_file","arguments":"{\"z\":1,\"a\":1.50}","status":"completed"},{"type":"function_call","id":"fc_2","call_id":"call_10","name":"now","arguments":"{}","status":"completed"}]` + usage + `}`
		},
		full:    `{"input_tokens":2000,"input_tokens_details":{"cached_tokens":1536,"cache_write_tokens":64},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2030}`,
		zero:    `{"input_tokens":2000,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2030}`,
		bare:    `{"input_tokens":2000,"output_tokens":30,"total_tokens":2030}`,
		failure: chatProtocol.failure,
		status:  chatProtocol.status,
	}

	messagesProtocol = wireProtocol{
		provider: "anthropic", model: "claude-opus-5", replyID: "msg_1",
		open: func(url string) bodySink {
			return anthropicmessages.New(anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("test"), anthropicoption.WithMaxRetries(0)), "claude-opus-5", 1024)
		},
		spell: spellMessages,
		answer: func(usage string) string {
			if usage != "" {
				usage = `,"usage":` + usage
			}
			return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"call_9","name":"read_file","input":{"z":1,"a":1.50}},{"type":"tool_use","id":"call_10","name":"now","input":{}}],"stop_reason":"tool_use","stop_sequence":null` + usage + `}`
		},
		full:    `{"input_tokens":400,"cache_read_input_tokens":1536,"cache_creation_input_tokens":64,"output_tokens":30}`,
		zero:    `{"input_tokens":2000,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":30}`,
		bare:    `{"input_tokens":2000,"output_tokens":30}`,
		failure: `{"type":"error","error":{"type":"invalid_request_error","message":"that is too long"}}`,
		status: func(err error) int {
			if e, ok := errors.AsType[*anthropic.Error](err); ok {
				return e.StatusCode
			}
			return 0
		},
	}
)

// fullPrompt is a prompt with one of everything that arrives alike in all
// protocols. Names, keys and ids are in no alphabetical order.
func fullPrompt() domain.Prompt {
	return domain.Prompt{
		Sections: []domain.Section{
			{Name: "persona", Text: "You are helpful."},
			{Name: domain.CurrentDateSection, Text: "Current date: `2026-10-12`"},
			{Name: "guide", Text: "Be brief."},
		},
		Tools: []domain.Tool{
			{Name: "read_file", Description: "Reads a file.", Schema: fullSchema},
			{Name: "now", Description: "Tells the time.", Schema: `{"type":"object","properties":{}}`},
		},
		Messages: []domain.Message{
			user("stored-id-1", "2026-10-12 23:47:11", "Hello."),
			assistant("stored-id-2", "2026-10-12 23:47:12", "Let me look.",
				domain.ToolCall{ID: "call_2", Name: "read_file", Arguments: `{"z":1,"a":1.50}`},
				domain.ToolCall{ID: "call_1", Name: "now", Arguments: `{}`}),
			toolResult("stored-id-3", "2026-10-12 23:47:13", "call_2", "package main"),
			toolResult("stored-id-4", "2026-10-12 23:47:14", "call_1", "midnight"),
			assistant("stored-id-5", "2026-10-12 23:47:15", "Done."),
			{ID: "stored-id-6", Role: domain.RoleUser, CreatedAt: "2026-10-13 00:47:11", Parts: []domain.Part{
				{Text: "<date-change>2026-10-13</date-change>"},
				{Text: "One & <two>."},
				{Image: domain.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}},
				{Image: domain.Image{URL: "https://example.com/a.png?b=1&c=<2>"}},
				{Text: "Three."},
			}},
		},
	}
}

const fullSchema = `{"type":"object","required":["z"],"properties":{"z":{"type":"number","description":"last"},"a":{"minimum":0.50,"default":1}},"additionalProperties":false,"$defs":{"y":{},"b":{}}}`

// fullPromptSaid is what the full prompt says.
var fullPromptSaid = []string{
	"tool read_file: Reads a file. " + fullSchema,
	`tool now: Tells the time. {"type":"object","properties":{}}`,
	"system: You are helpful.\n\nCurrent date: `2026-10-12`\n\nBe brief.",
	"user: Hello.",
	"assistant: Let me look.",
	`call call_2: read_file {"z":1,"a":1.50}`,
	"call call_1: now {}",
	"result call_2: package main",
	"result call_1: midnight",
	"assistant: Done.",
	"user: <date-change>2026-10-13</date-change>",
	"user: One & <two>.",
	"user image: data:image/png;base64,iVBORw0KGgo=",
	"user image: https://example.com/a.png?b=1&c=<2>",
	"user: Three.",
}

// onlyMessages is a prompt of messages alone.
func onlyMessages(messages ...domain.Message) domain.Prompt { return domain.Prompt{Messages: messages} }

// ofParts makes a message whose content is parts.
func ofParts(role domain.Role, parts ...domain.Part) domain.Message {
	return domain.Message{Role: role, Parts: parts}
}

// withSpareRoom returns a copy of the prompt each of whose slices has room behind
// its end, and a function that tells whether that room is still empty.
func withSpareRoom(p domain.Prompt) (roomy domain.Prompt, untouched func() bool) {
	var rooms []func() bool
	p.Sections = grown(p.Sections, &rooms)
	p.Tools = grown(p.Tools, &rooms)
	p.Messages = grown(p.Messages, &rooms)
	for i, m := range p.Messages {
		if m.Parts != nil {
			p.Messages[i].Parts = grown(m.Parts, &rooms)
		}
		if m.ToolCalls != nil {
			p.Messages[i].ToolCalls = grown(m.ToolCalls, &rooms)
		}
	}
	return p, func() bool {
		return !slices.ContainsFunc(rooms, func(empty func() bool) bool { return !empty() })
	}
}

func grown[T any](s []T, rooms *[]func() bool) []T {
	room := make([]T, len(s), len(s)+2)
	copy(room, s)
	*rooms = append(*rooms, func() bool {
		for _, v := range room[len(s):cap(room)] {
			if fmt.Sprintf("%#v", v) != fmt.Sprintf("%#v", *new(T)) {
				return false
			}
		}
		return true
	})
	return room
}

// sendsPrompts is the contract of every [ports.PromptSink] that speaks a
// protocol.
func sendsPrompts(p wireProtocol) {
	var (
		provider *loopback
		sink     bodySink
	)
	BeforeEach(func(SpecContext) {
		provider = newLoopback(p.answer(p.full))
		sink = p.open(provider.url)
	})

	// sent sends a prompt and returns the body that arrived.
	sent := func(ctx context.Context, prompt domain.Prompt) []byte {
		GinkgoHelper()
		_, err := sink.Send(ctx, prompt, nil)
		Expect(err).NotTo(HaveOccurred())
		bodies := provider.bodies()
		return bodies[len(bodies)-1]
	}

	It("sends the body that it tells, byte for byte", func(ctx SpecContext) {
		body, err := sink.Body(fullPrompt())
		Expect(err).NotTo(HaveOccurred())
		Expect(provider.bodies()).To(BeEmpty())
		Expect(string(sent(ctx, fullPrompt()))).To(Equal(string(body)))
	})

	It("sends the same prompt as the same bytes, every time", func(ctx SpecContext) {
		for range 200 {
			_, err := p.open(provider.url).Send(ctx, fullPrompt(), nil)
			Expect(err).NotTo(HaveOccurred())
		}
		bodies := provider.bodies()
		Expect(bodies).To(HaveLen(200))
		Expect(slices.CompactFunc(bodies, bytes.Equal)).To(HaveLen(1))
	})

	It("sends text, images, tool calls, tool results and tools, in order", func(ctx SpecContext) {
		Expect(p.spell(sent(ctx, fullPrompt()))).To(Equal(fullPromptSaid))
	})

	It("keeps the order of the keys in a schema and in arguments", func(ctx SpecContext) {
		body := string(sent(ctx, fullPrompt()))
		Expect(body).To(ContainSubstring(fullSchema))
		// Two protocols carry the arguments as a string.
		Expect(body).To(Or(ContainSubstring(`{"z":1,"a":1.50}`), ContainSubstring(`"{\"z\":1,\"a\":1.50}"`)))
	})

	It("sends no stored time and no message id", func(ctx SpecContext) {
		sent(ctx, fullPrompt())
		r := provider.requests[0]
		request := r.url + fmt.Sprint(r.header) + string(r.body)
		Expect(request).To(ContainSubstring("Hello."))
		for _, secret := range []string{"stored-id", "47:11", "47:12", "47:13", "47:14", "47:15", "createdAt", "created_at", "CreatedAt"} {
			Expect(request).NotTo(ContainSubstring(secret))
		}
	})

	It("sends one system prompt, in front of all messages", func(ctx SpecContext) {
		said := p.spell(sent(ctx, fullPrompt()))
		isSystem := func(s string) bool { return strings.HasPrefix(s, "system") || strings.HasPrefix(s, "developer") }
		first := slices.IndexFunc(said, isSystem)
		Expect(first).To(Equal(2), "it stands behind the two tools")
		Expect(slices.ContainsFunc(said[first+1:], isSystem)).To(BeFalse())
	})

	It("sends no system prompt where there is none", func(ctx SpecContext) {
		Expect(p.spell(sent(ctx, onlyMessages(user("", "", "Hello."))))).To(Equal([]string{"user: Hello."}))
	})

	DescribeTable("sends text as it is", func(ctx SpecContext, text string) {
		Expect(p.spell(sent(ctx, onlyMessages(
			user("", "", text),
			assistant("", "", text, domain.ToolCall{ID: "call_1", Name: "now", Arguments: "{}"}),
			toolResult("", "", "call_1", text),
			ofParts(domain.RoleUser, domain.Part{Text: text}, domain.Part{Text: text}),
		)))).To(Equal([]string{
			"user: " + text, "assistant: " + text, "call call_1: now {}", "result call_1: " + text, "user: " + text, "user: " + text,
		}))
	},
		Entry("with a notice in front", "<date-change>系统提示:当前日期已变更为 2026-10-13(星期二)。</date-change>\n\n早上好"),
		Entry("with markup and what JSON escapes", `&lt; <b> & "quoted" \ \u003c`),
		Entry("with white space at its ends", " \r\n\tindented\n\n "),
		Entry("with separators and emoji", "a\u2028b\u2029c 😀 e\u0301"),
	)

	It("sends no empty text part", func(ctx SpecContext) {
		Expect(p.spell(sent(ctx, onlyMessages(
			ofParts(domain.RoleUser, domain.Part{}, domain.Part{Text: "One."}, domain.Part{Text: ""}, domain.Part{Image: domain.Image{URL: "https://example.com/a.png"}}),
			domain.Message{Role: domain.RoleAssistant, Parts: []domain.Part{{Text: ""}, {Text: "Two."}}, ToolCalls: oneCall},
			resultOfParts(domain.Part{}, domain.Part{Text: "Three."}, domain.Part{Text: ""}),
		)))).To(Equal([]string{
			"user: One.", "user image: https://example.com/a.png",
			"assistant: Two.", "call call_1: now {}", "result call_1: Three.",
		}))
	})

	DescribeTable("sends no user message whose parts are all empty", func(_ SpecContext, parts []domain.Part) {
		before, behind := user("", "", "One."), assistant("", "", "Two.")
		body, err := sink.Body(onlyMessages(before, domain.Message{Role: domain.RoleUser, Parts: parts}, behind))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(body)).To(Equal(string(bodyOf(p, before, behind))))
	},
		Entry("where there is one", []domain.Part{{}}),
		Entry("where there are two", []domain.Part{{}, {Text: ""}}),
		Entry("where there is none", []domain.Part{}),
	)

	// A result is found by its call's id, and the id is in the prefix.
	It("sends the ids of calls as they are", func(ctx SpecContext) {
		const id = " Call/1\t"
		Expect(p.spell(sent(ctx, onlyMessages(
			user("", "", "Look."),
			assistant("", "", "", domain.ToolCall{ID: id, Name: "now", Arguments: "{}"}),
			toolResult("", "", id, "midnight"),
		)))).To(Equal([]string{"user: Look.", "call " + id + ": now {}", "result " + id + ": midnight"}))
	})

	It("sends each image as what it is", func(ctx SpecContext) {
		Expect(p.spell(sent(ctx, onlyMessages(ofParts(domain.RoleUser,
			domain.Part{Image: domain.Image{MediaType: "image/jpeg", Data: "/9j/4AA="}},
			domain.Part{Image: domain.Image{MediaType: "image/webp", Data: "UklGRg=="}},
		))))).To(Equal([]string{
			"user image: data:image/jpeg;base64,/9j/4AA=",
			"user image: data:image/webp;base64,UklGRg==",
		}))
	})

	It("leaves the prompt as it is", func(ctx SpecContext) {
		prompt, untouched := withSpareRoom(fullPrompt())
		sent(ctx, prompt)
		_, err := sink.Body(prompt)
		Expect(err).NotTo(HaveOccurred())
		Expect(prompt).To(Equal(fullPrompt()))
		Expect(untouched()).To(BeTrue(), "something was appended to a slice of the prompt")
	})

	It("answers with the text, the tool calls and the usage", func(ctx SpecContext) {
		Expect(sink.Send(ctx, fullPrompt(), nil)).To(Equal(domain.Reply{
			Provider: p.provider, Model: p.model, ID: p.replyID,
			Text: "Let me look.",
			ToolCalls: []domain.ToolCall{
				{ID: "call_9", Name: "read_file", Arguments: `{"z":1,"a":1.50}`},
				{ID: "call_10", Name: "now", Arguments: "{}"},
			},
			Usage: domain.Usage{
				Input: domain.Reported(2000), Output: domain.Reported(30), CacheRead: domain.Reported(1536), CacheWrite: domain.Reported(64),
			},
		}))
	})

	DescribeTable("tells a count of 0 from one that was left out", func(ctx SpecContext, usage func() string, want domain.Usage) {
		provider.answer = p.answer(usage())
		reply, err := sink.Send(ctx, fullPrompt(), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Usage).To(Equal(want))
	},
		Entry("where nothing was cached", func() string { return p.zero },
			domain.Usage{Input: domain.Reported(2000), Output: domain.Reported(30), CacheRead: domain.Reported(0), CacheWrite: domain.Reported(0)}),
		Entry("where the provider says nothing of its cache", func() string { return p.bare },
			domain.Usage{Input: domain.Reported(2000), Output: domain.Reported(30)}),
		Entry("where the provider says nothing of the usage", func() string { return "" }, domain.Usage{}),
	)

	DescribeTable("fails with the SDK's error", func(ctx SpecContext, status int) {
		provider.status, provider.answer = status, p.failure
		reply, err := sink.Send(ctx, fullPrompt(), nil)
		Expect(p.status(err)).To(Equal(status))
		Expect(reply).To(Equal(domain.Reply{}))
		Expect(provider.bodies()).To(HaveLen(1))
	},
		Entry("for a refused request", http.StatusBadRequest),
		Entry("for a provider that is overloaded", http.StatusTooManyRequests),
		Entry("for a provider that is broken", http.StatusInternalServerError),
	)

	It("fails for an answer that is not JSON", func(ctx SpecContext) {
		provider.answer = "<html>Bad gateway</html>"
		_, err := sink.Send(ctx, fullPrompt(), nil)
		Expect(err).To(HaveOccurred())
	})

	It("fails for an answer that is none of the protocol's", func(ctx SpecContext) {
		provider.answer = p.failure
		_, err := sink.Send(ctx, fullPrompt(), nil)
		Expect(err).To(HaveOccurred())
	})

	It("fails with the cause where there is no provider", func(ctx SpecContext) {
		_, err := p.open("http://127.0.0.1:1").Send(ctx, fullPrompt(), nil)
		Expect(isError[*net.OpError](err)).To(BeTrue(), "%v", err)
	})

	It("fails with the context's error, having been cancelled, and sends nothing", func(ctx SpecContext) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		_, err := sink.Send(done, fullPrompt(), nil)
		Expect(err).To(MatchError(context.Canceled))
		Expect(provider.bodies()).To(BeEmpty())
	})

	It("ends a call that is cancelled under way, with the context's error", func(ctx SpecContext) {
		provider.held = make(chan struct{}, 1)
		done, cancel := context.WithCancel(ctx)
		go func() {
			<-provider.held
			cancel()
		}()
		_, err := sink.Send(done, fullPrompt(), nil)
		Expect(err).To(MatchError(context.Canceled))
	}, NodeTimeout(20*time.Second))

	It("fails with the context's error, being past its deadline", func(ctx SpecContext) {
		done, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
		defer cancel()
		_, err := sink.Send(done, fullPrompt(), nil)
		Expect(err).To(MatchError(context.DeadlineExceeded))
	})

	It("sends many at once, each as it is", func(ctx SpecContext) {
		const senders = 16
		Expect(together(senders, func(i int) error {
			_, err := sink.Send(ctx, onlyMessages(user("", "", fmt.Sprintf("Text %02d.", i))), nil)
			return err
		})).To(BeEmpty())
		var said, want []string
		for i, body := range provider.bodies() {
			said = append(said, p.spell(body)...)
			want = append(want, fmt.Sprintf("user: Text %02d.", i))
		}
		Expect(said).To(ConsistOf(want))
		Expect(said).To(HaveLen(senders))
	})

	It("fails for an image in an assistant's message, names the message, and sends nothing", func(ctx SpecContext) {
		prompt := onlyMessages(user("", "", "Hello."), domain.Message{ID: "stored-id-7", Role: domain.RoleAssistant, Parts: []domain.Part{
			{Text: "Look:"}, {Image: domain.Image{URL: "https://example.com/a.png"}},
		}})
		_, err := sink.Send(ctx, prompt, nil)
		Expect(err).To(MatchError(And(ContainSubstring("stored-id-7"), ContainSubstring("image"))))
		_, err = sink.Body(prompt)
		Expect(err).To(MatchError(ContainSubstring("stored-id-7")))
		Expect(provider.bodies()).To(BeEmpty())
	})

	It("fails for a message of no role, names the message, and sends nothing", func(ctx SpecContext) {
		_, err := sink.Send(ctx, onlyMessages(domain.Message{ID: "stored-id-7", Text: "Hello."}), nil)
		Expect(err).To(MatchError(ContainSubstring("stored-id-7")))
		Expect(provider.bodies()).To(BeEmpty())
	})
}

// oneCall is one call of a tool.
var oneCall = []domain.ToolCall{{ID: "call_1", Name: "now", Arguments: "{}"}}

// resultOfParts is the result of this call, whose content is parts, if only none.
func resultOfParts(parts ...domain.Part) domain.Message {
	return domain.Message{Role: domain.RoleTool, ToolCallID: "call_1", Parts: append([]domain.Part{}, parts...)}
}

// bodyOf returns the body that a protocol's sink tells for messages.
func bodyOf(p wireProtocol, messages ...domain.Message) []byte {
	GinkgoHelper()
	body, err := p.open("http://127.0.0.1:1").Body(onlyMessages(messages...))
	Expect(err).NotTo(HaveOccurred())
	return body
}

// bodyElements returns the elements of a body's array.
func bodyElements(body []byte, field string) []string {
	GinkgoHelper()
	var b map[string]json.RawMessage
	decodeJSON(body, &b)
	var raw []json.RawMessage
	decodeJSON(b[field], &raw)
	spelled := make([]string, len(raw))
	for i, r := range raw {
		spelled[i] = string(r)
	}
	return spelled
}

// twoResults is a run of two tool results with images, and what stands around it.
func twoResults() []domain.Message {
	return []domain.Message{
		user("", "", "Look."),
		assistant("", "", "", domain.ToolCall{ID: "call_1", Name: "shot", Arguments: "{}"}, domain.ToolCall{ID: "call_2", Name: "shot", Arguments: "{}"}),
		{Role: domain.RoleTool, ToolCallID: "call_1", Parts: []domain.Part{{Text: "One:"}, {Image: domain.Image{URL: "https://example.com/1.png"}}}},
		{Role: domain.RoleTool, ToolCallID: "call_2", Parts: []domain.Part{{Image: domain.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}}, {Text: "Two."}}},
		user("", "", "And?"),
	}
}

var _ = Describe("Chat completions", func() {
	sendsPrompts(chatProtocol)

	It("keep a string a string and parts parts", func(SpecContext) {
		messages := bodyElements(bodyOf(chatProtocol, user("", "", "Hello."), ofParts(domain.RoleUser, domain.Part{Text: "Hello."})), "messages")
		Expect(messages[0]).To(MatchJSON(`{"role":"user","content":"Hello."}`))
		Expect(messages[1]).To(MatchJSON(`{"role":"user","content":[{"type":"text","text":"Hello."}]}`))
	})

	// A tool's message of this protocol takes text alone, and nothing may stand
	// between the results of one turn.
	It("show the images of tool results to the model right behind the last of them", func(SpecContext) {
		Expect(spellChat(bodyOf(chatProtocol, twoResults()...))).To(Equal([]string{
			"user: Look.",
			"call call_1: shot {}",
			"call call_2: shot {}",
			"result call_1: One:",
			"result call_2: Two.",
			"user image: https://example.com/1.png",
			"user image: data:image/png;base64,iVBORw0KGgo=",
			"user: And?",
		}))
	})

	// A message that vanishes changes the prefix, and the protocol wants a content
	// where no call is.
	DescribeTable("keep an empty message, as an empty string", func(_ SpecContext, m domain.Message, want string) {
		Expect(bodyElements(bodyOf(chatProtocol, m), "messages")).To(HaveExactElements(MatchJSON(want)))
	},
		Entry("of a user", user("", "", ""), `{"role":"user","content":""}`),
		Entry("of an assistant", assistant("", "", ""), `{"role":"assistant","content":""}`),
		Entry("of an assistant whose parts are all empty", ofParts(domain.RoleAssistant, domain.Part{}, domain.Part{}),
			`{"role":"assistant","content":""}`),
		Entry("of a tool", toolResult("", "", "call_1", ""), `{"role":"tool","tool_call_id":"call_1","content":""}`),
		Entry("of a tool whose parts are all empty", resultOfParts(domain.Part{}, domain.Part{}),
			`{"role":"tool","tool_call_id":"call_1","content":""}`),
		Entry("of a tool without a part", resultOfParts(),
			`{"role":"tool","tool_call_id":"call_1","content":""}`),
	)

	It("carry no content but an assistant's calls where it says nothing", func(SpecContext) {
		for _, m := range []domain.Message{
			assistant("", "", "", oneCall...),
			{Role: domain.RoleAssistant, Parts: []domain.Part{{}}, ToolCalls: oneCall},
		} {
			Expect(bodyElements(bodyOf(chatProtocol, m), "messages")).To(HaveExactElements(MatchJSON(`{
				"role":"assistant",
				"tool_calls":[{"type":"function","id":"call_1","function":{"name":"now","arguments":"{}"}}]}`)))
		}
	})

	It("show the image of a tool's result that has no text behind an empty one", func(SpecContext) {
		result := resultOfParts(domain.Part{Image: domain.Image{URL: "https://example.com/1.png"}})
		body := bodyOf(chatProtocol, assistant("", "", "", oneCall...), result)
		Expect(bodyElements(body, "messages")[1:]).To(HaveExactElements(
			MatchJSON(`{"role":"tool","tool_call_id":"call_1","content":""}`),
			MatchJSON(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/1.png"}}]}`),
		))
	})

	It("fail for an answer without a choice", func(ctx SpecContext) {
		provider := newLoopback(`{"id":"chatcmpl-1","object":"chat.completion","created":1791820200,"model":"gpt-5.6","choices":[]}`)
		_, err := chatProtocol.open(provider.url).Send(ctx, fullPrompt(), nil)
		Expect(err).To(MatchError(ContainSubstring("no choice")))
	})
})

var _ = Describe("Responses", func() {
	sendsPrompts(responsesProtocol)

	It("keep a string a string and parts parts", func(SpecContext) {
		input := bodyElements(bodyOf(responsesProtocol, user("", "", "Hello."), ofParts(domain.RoleUser, domain.Part{Text: "Hello."})), "input")
		Expect(input[0]).To(MatchJSON(`{"role":"user","content":"Hello."}`))
		Expect(input[1]).To(MatchJSON(`{"role":"user","content":[{"type":"input_text","text":"Hello."}]}`))
	})

	// A message that vanishes changes the prefix.
	DescribeTable("keep an empty message, as an empty string", func(_ SpecContext, m domain.Message, want string) {
		Expect(bodyElements(bodyOf(responsesProtocol, m), "input")).To(HaveExactElements(MatchJSON(want)))
	},
		Entry("of a user", user("", "", ""), `{"role":"user","content":""}`),
		Entry("of an assistant", assistant("", "", ""), `{"role":"assistant","content":""}`),
		Entry("of an assistant whose parts are all empty", ofParts(domain.RoleAssistant, domain.Part{}, domain.Part{}),
			`{"role":"assistant","content":""}`),
		Entry("of a tool", toolResult("", "", "call_1", ""),
			`{"type":"function_call_output","call_id":"call_1","output":""}`),
		Entry("of a tool whose parts are all empty", resultOfParts(domain.Part{}, domain.Part{}),
			`{"type":"function_call_output","call_id":"call_1","output":""}`),
		Entry("of a tool without a part", resultOfParts(),
			`{"type":"function_call_output","call_id":"call_1","output":""}`),
	)

	It("carry an assistant's calls alone where it says nothing", func(SpecContext) {
		for _, m := range []domain.Message{
			assistant("", "", "", oneCall...),
			{Role: domain.RoleAssistant, Parts: []domain.Part{{}}, ToolCalls: oneCall},
		} {
			Expect(bodyElements(bodyOf(responsesProtocol, m), "input")).To(HaveExactElements(
				MatchJSON(`{"type":"function_call","call_id":"call_1","name":"now","arguments":"{}"}`),
			))
		}
	})

	// Its parts would want ids that only the provider gives.
	It("carry an assistant's parts as one string, with nothing in between", func(SpecContext) {
		m := ofParts(domain.RoleAssistant,
			domain.Part{Text: "One. "}, domain.Part{Text: ""}, domain.Part{Text: "Two."}, domain.Part{Text: "Three."})
		Expect(bodyElements(bodyOf(responsesProtocol, m), "input")).To(HaveExactElements(
			MatchJSON(`{"role":"assistant","content":"One. Two.Three."}`),
		))
	})

	It("carry the images of a tool's result in it, in order", func(SpecContext) {
		Expect(spellResponses(bodyOf(responsesProtocol, twoResults()...))).To(Equal([]string{
			"user: Look.",
			"call call_1: shot {}",
			"call call_2: shot {}",
			"result call_1: One:",
			"result call_1 image: https://example.com/1.png",
			"result call_2 image: data:image/png;base64,iVBORw0KGgo=",
			"result call_2: Two.",
			"user: And?",
		}))
	})

	It("have the provider store nothing", func(SpecContext) {
		var body struct{ Store *bool }
		decodeJSON(bodyOf(responsesProtocol, user("", "", "Hello.")), &body)
		Expect(body.Store).To(HaveValue(BeFalse()))
	})

	It("fail for an answer whose status is a failure, with what the provider says", func(ctx SpecContext) {
		provider := newLoopback(`{"id":"resp_1","object":"response","created_at":1791820200,"status":"failed","model":"gpt-5.6","error":{"code":"server_error","message":"it broke"},"output":[]}`)
		_, err := responsesProtocol.open(provider.url).Send(ctx, fullPrompt(), nil)
		Expect(err).To(MatchError(ContainSubstring("server_error: it broke")))
	})
})

var _ = Describe("Anthropic messages", func() {
	sendsPrompts(messagesProtocol)

	It("hold the results of one turn together, first in the user turn behind the calls", func(SpecContext) {
		messages := bodyElements(bodyOf(messagesProtocol, twoResults()...), "messages")
		Expect(messages).To(HaveLen(4))
		Expect(messages[1]).To(ContainSubstring(`"role":"assistant"`))
		Expect(messages[2]).To(MatchJSON(`{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"call_1","content":[
				{"type":"text","text":"One:"},
				{"type":"image","source":{"type":"url","url":"https://example.com/1.png"}}]},
			{"type":"tool_result","tool_use_id":"call_2","content":[
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},
				{"type":"text","text":"Two."}]}]}`))
		Expect(messages[3]).To(MatchJSON(`{"role":"user","content":[{"type":"text","text":"And?"}]}`))
	})

	It("hold the results of two turns apart", func(SpecContext) {
		messages := bodyElements(bodyOf(messagesProtocol,
			user("", "", "Look."),
			assistant("", "", "", domain.ToolCall{ID: "call_1", Name: "now", Arguments: "{}"}),
			toolResult("", "", "call_1", "one"),
			assistant("", "", "", domain.ToolCall{ID: "call_2", Name: "now", Arguments: "{}"}),
			toolResult("", "", "call_2", "two"),
		), "messages")
		Expect(messages).To(HaveLen(5))
		Expect(messages[2]).To(And(ContainSubstring("call_1"), Not(ContainSubstring("call_2"))))
		Expect(messages[4]).To(And(ContainSubstring("call_2"), Not(ContainSubstring("call_1"))))
	})

	It("say that a tool failed", func(SpecContext) {
		failed := toolResult("", "", "call_1", "no such file")
		failed.ToolFailed = true
		Expect(spellMessages(bodyOf(messagesProtocol,
			user("", "", "Look."),
			assistant("", "", "", domain.ToolCall{ID: "call_1", Name: "now", Arguments: "{}"}, domain.ToolCall{ID: "call_2", Name: "now", Arguments: "{}"}),
			failed,
			toolResult("", "", "call_2", "midnight"),
		))).To(HaveExactElements("user: Look.", "call call_1: now {}", "call call_2: now {}", "failed result call_1: no such file", "result call_2: midnight"))
	})

	// The protocol refuses a failure without a content, and so each later request
	// of the session.
	DescribeTable("say that a tool failed where it gave no text", func(_ SpecContext, m domain.Message) {
		m.Role, m.ToolCallID, m.ToolFailed = domain.RoleTool, "call_1", true
		Expect(bodyElements(bodyOf(messagesProtocol, m), "messages")).To(HaveExactElements(MatchJSON(
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","is_error":true,"content":[
				{"type":"text","text":"error: the tool gave no text"}]}]}`,
		)))
	},
		Entry("in a string", domain.Message{}),
		Entry("in white space", domain.Message{Text: " \n\t"}),
		Entry("in parts", domain.Message{Parts: []domain.Part{{}, {Text: "\n"}}}),
		Entry("in no part", domain.Message{Parts: []domain.Part{}}),
	)

	// The protocol takes text alone in a failure, and results come first in a turn.
	It("show the images of failures behind the last result of the turn", func(SpecContext) {
		messages := twoResults()
		messages[2].ToolFailed, messages[3].ToolFailed = true, true
		messages[3].Parts = messages[3].Parts[:1]
		result := bodyElements(bodyOf(messagesProtocol, messages...), "messages")
		Expect(result).To(HaveLen(4))
		Expect(result[2]).To(MatchJSON(`{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"call_1","is_error":true,"content":[{"type":"text","text":"One:"}]},
			{"type":"tool_result","tool_use_id":"call_2","is_error":true,"content":[
				{"type":"text","text":"error: the tool gave no text"}]},
			{"type":"image","source":{"type":"url","url":"https://example.com/1.png"}},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}`))
		Expect(result[3]).To(MatchJSON(`{"role":"user","content":[{"type":"text","text":"And?"}]}`))
	})

	It("show the images of a failure alone behind the results of a turn", func(SpecContext) {
		messages := twoResults()[:4]
		messages[2].ToolFailed = true
		Expect(spellMessages(bodyOf(messagesProtocol, messages...))[3:]).To(HaveExactElements(
			"failed result call_1: One:",
			"result call_2 image: data:image/png;base64,iVBORw0KGgo=",
			"result call_2: Two.",
			"user image: https://example.com/1.png",
		))
	})

	It("show the image of a failure in its own turn", func(SpecContext) {
		failed := resultOfParts(domain.Part{Image: domain.Image{URL: "https://example.com/1.png"}}, domain.Part{Text: "One."})
		failed.ToolFailed = true
		Expect(spellMessages(bodyOf(messagesProtocol,
			assistant("", "", "", oneCall...),
			failed,
			assistant("", "", "", domain.ToolCall{ID: "call_2", Name: "now", Arguments: "{}"}),
			toolResult("", "", "call_2", "Two."),
		))).To(HaveExactElements(
			"call call_1: now {}", "failed result call_1: One.", "user image: https://example.com/1.png",
			"call call_2: now {}", "result call_2: Two.",
		))
	})

	DescribeTable("carry arguments that are no JSON object in one", func(_ SpecContext, arguments, input string) {
		body := bodyOf(messagesProtocol, user("", "", "Look."), assistant("", "", "", domain.ToolCall{ID: "call_1", Name: "now", Arguments: arguments}))
		Expect(spellMessages(body)[1]).To(Equal("call call_1: now " + input))
	},
		Entry("where there are none", ``, `{}`),
		Entry("where they broke off", `{"a":`, `{"arguments":"{\"a\":"}`),
		Entry("where they are text", `now`, `{"arguments":"now"}`),
		Entry("where they are a list", `[1]`, `{"arguments":"[1]"}`),
		Entry("where they are a JSON string", `"now"`, `{"arguments":"\"now\""}`),
		Entry("where they are null", `null`, `{"arguments":"null"}`),
	)

	DescribeTable("leave out a text that the protocol refuses", func(_ SpecContext, text string) {
		image := domain.Part{Image: domain.Image{URL: "https://example.com/a.png"}}
		Expect(bodyElements(bodyOf(messagesProtocol,
			user("", "", "One."),
			assistant("", "", text),
			user("", "", text),
			ofParts(domain.RoleUser, domain.Part{Text: text}, image),
			assistant("", "", text, oneCall...),
			toolResult("", "", "call_1", text),
			domain.Message{Role: domain.RoleTool, ToolCallID: "call_2", Parts: []domain.Part{{Text: text}, image}},
		), "messages")).To(HaveExactElements(
			MatchJSON(`{"role":"user","content":[{"type":"text","text":"One."}]}`),
			MatchJSON(`{"role":"user","content":[
				{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}`),
			MatchJSON(`{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"now","input":{}}]}`),
			MatchJSON(`{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"call_1"},
				{"type":"tool_result","tool_use_id":"call_2","content":[
					{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}]}`),
		))
	},
		Entry("because it is empty", ""),
		Entry("because it is white space", " \n\t"),
	)

	It("ask for a reply of at most the tokens that the sink was given", func(SpecContext) {
		var body struct {
			MaxTokens int `json:"max_tokens"`
		}
		decodeJSON(bodyOf(messagesProtocol, user("", "", "Hello.")), &body)
		Expect(body.MaxTokens).To(Equal(1024))
	})

	// The model may say something between its calls.
	It("answer with the whole text of a reply in several blocks", func(ctx SpecContext) {
		provider := newLoopback(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5","content":[` +
			`{"type":"text","text":"One. "},{"type":"tool_use","id":"call_1","name":"now","input":{}},{"type":"text","text":"Two."}],` +
			`"stop_reason":"tool_use","stop_sequence":null}`)
		reply, err := messagesProtocol.open(provider.url).Send(ctx, fullPrompt(), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Text).To(Equal("One. Two."))
		Expect(reply.ToolCalls).To(Equal(oneCall))
	})

	It("ask for the cache once, and not inside the prefix", func(SpecContext) {
		body := bodyOf(messagesProtocol, twoResults()...)
		Expect(strings.Count(string(body), "cache_control")).To(Equal(1))
		var b map[string]json.RawMessage
		decodeJSON(body, &b)
		Expect(b["cache_control"]).To(MatchJSON(`{"type":"ephemeral"}`))
	})
})

var _ = Describe("The recording sink", func() {
	It("records every prompt as it is, in order", func(ctx SpecContext) {
		var sink recording.Sink
		Expect(sink.Prompts()).To(BeEmpty())
		Expect(sink.Send(ctx, fullPrompt(), nil)).To(Equal(domain.Reply{}))
		second := onlyMessages(user("1", "2026-10-12 23:50:00", "Hello."))
		Expect(sink.Send(ctx, second, nil)).To(Equal(domain.Reply{}))
		Expect(sink.Prompts()).To(Equal([]domain.Prompt{fullPrompt(), {Sections: nil, Tools: nil, Messages: second.Messages}}))
	})

	It("answers with its reply", func(ctx SpecContext) {
		reply := domain.Reply{Text: "Hello.", Usage: domain.Usage{CacheRead: domain.Reported(0)}}
		sink := recording.Sink{Reply: reply}
		Expect(sink.Send(ctx, fullPrompt(), nil)).To(Equal(reply))
	})

	It("leaves the prompt as it is, and remembers it as it was", func(ctx SpecContext) {
		var sink recording.Sink
		prompt, untouched := withSpareRoom(fullPrompt())
		Expect(sink.Send(ctx, prompt, nil)).To(Equal(domain.Reply{}))
		Expect(prompt).To(Equal(fullPrompt()))
		Expect(untouched()).To(BeTrue(), "something was appended to a slice of the prompt")

		prompt.Sections[0].Text, prompt.Tools[0].Name, prompt.Messages[0].Text = "Forged.", "forged", "Forged."
		prompt.Messages[1].ToolCalls[0].Name, prompt.Messages[5].Parts[0].Text = "forged", "Forged."
		Expect(sink.Prompts()).To(Equal([]domain.Prompt{fullPrompt()}))
	})

	It("fails with the context's error, having been cancelled, and records nothing", func(ctx SpecContext) {
		var sink recording.Sink
		done, cancel := context.WithCancel(ctx)
		cancel()
		_, err := sink.Send(done, fullPrompt(), nil)
		Expect(err).To(MatchError(context.Canceled))
		Expect(sink.Prompts()).To(BeEmpty())
	})

	It("records many at once", func(ctx SpecContext) {
		const senders = 16
		var sink recording.Sink
		Expect(together(senders, func(i int) error {
			_, err := sink.Send(ctx, onlyMessages(user("", "", fmt.Sprint(i))), nil)
			return err
		})).To(BeEmpty())
		var recorded, want []string
		for i, p := range sink.Prompts() {
			recorded, want = append(recorded, p.Messages[0].Text), append(want, fmt.Sprint(i))
		}
		Expect(recorded).To(ConsistOf(want))
		Expect(recorded).To(HaveLen(senders))
	})
})
