package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// A chatStage is a moment in which a provider is about to send something.
type chatStage string

// The stages of an answer.
const (
	beforeAnswer chatStage = "before the call is answered"
	midStream    chatStage = "behind the first piece of text"
	beforeEnd    chatStage = "before the stream's last event"
)

// A chatAnswer is what a provider does with one request.
type chatAnswer struct {
	// text is the answer's text, in pieces.
	text []string
	// call is the id of a call of the shell, and empty for an answer without.
	call string
	// status is that of an error that comes instead of an answer, and 0 for none.
	status int
	// hang is where the provider waits until it is released or the client is
	// gone, and drop is where it breaks the connection off.
	hang, drop chatStage
	// bare leaves out what came from the cache.
	bare bool
}

func says(text ...string) chatAnswer { return chatAnswer{text: text} }

// outOfOrder is a provider that fails for as often as the SDKs try.
func outOfOrder() []chatAnswer {
	return []chatAnswer{{status: 500}, {status: 500}, {status: 500}}
}

// A chatExchange is a request and what is answered.
type chatExchange struct {
	chatAnswer
	// n is the request's number, from 1.
	n     int
	model string
	// prompt is how many tokens the request has, and cached how many of them the
	// request before had.
	prompt, cached int
	// wantsUsage is whether a streamed chat completion is to end with its usage.
	wantsUsage bool
}

// A chatEvent is an event of a stream.
type chatEvent struct {
	name, data string
	// text is whether it is a piece of the answer's text.
	text bool
}

// send sends the event to the client of a stream.
func (e chatEvent) send(w http.ResponseWriter) {
	if e.name != "" {
		_, _ = io.WriteString(w, "event: "+e.name+"\n")
	}
	_, _ = io.WriteString(w, "data: "+e.data+"\n\n")
	w.(http.Flusher).Flush()
}

// A providerProtocol is how a provider speaks.
type providerProtocol struct {
	// provider is the harness's name for it, and wire that of the protocol.
	provider, wire string
	// base is the path of the base URL, and path that of requests.
	base, path string
	// spell tells what a body says.
	spell  func(body []byte) []string
	fields []string
	stream func(chatExchange) []chatEvent
	whole  func(chatExchange) string
}

// quoted spells a text as JSON.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

var chatProtocols = []providerProtocol{
	{
		provider: "openai-chat", wire: "chat", base: "/v1", path: "/v1/chat/completions",
		spell: spellChat, fields: []string{"tools", "messages"},
		stream: streamChat, whole: wholeChat,
	},
	{
		provider: "openai-responses", wire: "responses", base: "/v1", path: "/v1/responses",
		spell: spellResponses, fields: []string{"tools", "instructions", "input"},
		stream: streamResponses, whole: wholeResponses,
	},
	{
		provider: "anthropic", wire: "messages", path: "/v1/messages",
		spell: spellMessages, fields: []string{"tools", "system", "messages"},
		stream: streamMessages, whole: wholeMessages,
	},
}

func usageChat(e chatExchange) string {
	details := fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, e.cached)
	if e.bare {
		details = ""
	}
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":7,"total_tokens":%d%s}`, e.prompt, e.prompt+7, details)
}

func streamChat(e chatExchange) []chatEvent {
	chunk := func(choices, usage string) chatEvent {
		return chatEvent{data: fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1791820200,"model":%s,"choices":[%s],"usage":%s}`,
			e.n, quoted(e.model), choices, usage)}
	}
	delta := func(delta, finish string) chatEvent {
		return chunk(`{"index":0,"delta":`+delta+`,"logprobs":null,"finish_reason":`+finish+`}`, "null")
	}
	events := []chatEvent{delta(`{"role":"assistant","content":""}`, "null")}
	for _, piece := range e.text {
		event := delta(`{"content":`+quoted(piece)+`}`, "null")
		event.text = true
		events = append(events, event)
	}
	finish := `"stop"`
	if e.call != "" {
		finish = `"tool_calls"`
		events = append(events,
			delta(`{"tool_calls":[{"index":0,"id":`+quoted(e.call)+`,"type":"function","function":{"name":"shell","arguments":""}}]}`, "null"),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\":"}}]}`, "null"),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"\"date\"}"}}]}`, "null"))
	}
	events = append(events, delta(`{}`, finish))
	if e.wantsUsage {
		events = append(events, chunk("", usageChat(e)))
	}
	return append(events, chatEvent{data: "[DONE]"})
}

func wholeChat(e chatExchange) string {
	return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1791820200,"model":%s,"choices":[{"index":0,"finish_reason":"stop","logprobs":null,"message":{"role":"assistant","content":%s,"refusal":null}}],"usage":%s}`,
		e.n, quoted(e.model), quoted(strings.Join(e.text, "")), usageChat(e))
}

// wholeResponse spells a response with a status and its output.
func wholeResponse(e chatExchange, status, output string) string {
	details := fmt.Sprintf(`"input_tokens_details":{"cached_tokens":%d},`, e.cached)
	if e.bare {
		details = ""
	}
	return fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":1791820200,"status":%q,"model":%s,"output":[%s],"usage":{"input_tokens":%d,%s"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}}`,
		e.n, status, quoted(e.model), output, e.prompt, details, e.prompt+7)
}

func responseMessage(e chatExchange, status, content string) string {
	return fmt.Sprintf(`{"type":"message","id":"msg_%d","status":%q,"role":"assistant","content":[%s]}`, e.n, status, content)
}

func responseCall(e chatExchange, status, arguments string) string {
	return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","status":%q,"call_id":%s,"name":"shell","arguments":%s}`,
		e.n, status, quoted(e.call), quoted(arguments))
}

func responseText(text string) string {
	return `{"type":"output_text","text":` + quoted(text) + `,"annotations":[],"logprobs":[]}`
}

func wholeResponses(e chatExchange) string {
	return wholeResponse(e, "completed", responseMessage(e, "completed", responseText(strings.Join(e.text, ""))))
}

func streamResponses(e chatExchange) []chatEvent {
	var events []chatEvent
	add := func(name, fields string) {
		events = append(events, chatEvent{
			name, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, name, len(events), fields),
			name == "response.output_text.delta",
		})
	}
	add("response.created", `"response":`+wholeResponse(e, "in_progress", ""))
	add("response.in_progress", `"response":`+wholeResponse(e, "in_progress", ""))
	var output []string
	if e.text != nil {
		text := strings.Join(e.text, "")
		place := fmt.Sprintf(`"item_id":"msg_%d","output_index":0,"content_index":0,`, e.n)
		add("response.output_item.added", `"output_index":0,"item":`+responseMessage(e, "in_progress", ""))
		add("response.content_part.added", place+`"part":`+responseText(""))
		for _, piece := range e.text {
			add("response.output_text.delta", place+`"delta":`+quoted(piece)+`,"logprobs":[]`)
		}
		add("response.output_text.done", place+`"text":`+quoted(text)+`,"logprobs":[]`)
		add("response.content_part.done", place+`"part":`+responseText(text))
		output = append(output, responseMessage(e, "completed", responseText(text)))
		add("response.output_item.done", `"output_index":0,"item":`+output[0])
	}
	if e.call != "" {
		index := fmt.Sprintf(`"output_index":%d,`, len(output))
		place := fmt.Sprintf(`"item_id":"fc_%d",`, e.n) + index
		add("response.output_item.added", index+`"item":`+responseCall(e, "in_progress", ""))
		add("response.function_call_arguments.delta", place+`"delta":"{\"command\":\"date\"}"`)
		add("response.function_call_arguments.done", place+`"name":"shell","arguments":"{\"command\":\"date\"}"`)
		output = append(output, responseCall(e, "completed", `{"command":"date"}`))
		add("response.output_item.done", index+`"item":`+output[len(output)-1])
	}
	add("response.completed", `"response":`+wholeResponse(e, "completed", strings.Join(output, ",")))
	return events
}

func usageMessages(e chatExchange, output int) string {
	if e.bare {
		return fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d}`, e.prompt, output)
	}
	// This protocol counts what was read and what was written beside the input.
	return fmt.Sprintf(`{"input_tokens":0,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":%d}`,
		e.cached, e.prompt-e.cached, output)
}

func wholeMessages(e chatExchange) string {
	return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":%s}`,
		e.n, quoted(e.model), quoted(strings.Join(e.text, "")), usageMessages(e, 7))
}

func streamMessages(e chatExchange) []chatEvent {
	var events []chatEvent
	add := func(name, fields string) {
		events = append(events, chatEvent{name, fmt.Sprintf(`{"type":%q%s}`, name, fields), strings.Contains(fields, "text_delta")})
	}
	add("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":%s}`,
		e.n, quoted(e.model), usageMessages(e, 1)))
	add("ping", "")
	index := 0
	if e.text != nil {
		add("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		for _, piece := range e.text {
			add("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":`+quoted(piece)+`}`)
		}
		add("content_block_stop", `,"index":0`)
		index++
	}
	reason := "end_turn"
	if e.call != "" {
		reason = "tool_use"
		at := fmt.Sprintf(`,"index":%d`, index)
		add("content_block_start", at+`,"content_block":{"type":"tool_use","id":`+quoted(e.call)+`,"name":"shell","input":{}}`)
		add("content_block_delta", at+`,"delta":{"type":"input_json_delta","partial_json":""}`)
		add("content_block_delta", at+`,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}`)
		add("content_block_delta", at+`,"delta":{"type":"input_json_delta","partial_json":"\"date\"}"}`)
		add("content_block_stop", at)
	}
	add("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":7}`, reason))
	add("message_stop", "")
	return events
}

// A chatProvider is a provider on this machine. It answers its requests one after
// the other as a script says, and records them. What it reports as cached is what
// the request before had in front, in whole prefix units.
type chatProvider struct {
	providerProtocol
	url string

	// hung is told when the provider waits, gone when its client left it waiting,
	// and one that waits goes on when it is sent something by release.
	hung, gone, release chan struct{}

	mu     sync.Mutex
	script []chatAnswer
	sent   [][]byte
}

func newChatProvider(protocol providerProtocol, script ...chatAnswer) *chatProvider {
	GinkgoHelper()
	p := &chatProvider{
		providerProtocol: protocol, script: script,
		hung: make(chan struct{}, 1), gone: make(chan struct{}, 1), release: make(chan struct{}),
	}
	server := httptest.NewServer(p)
	DeferCleanup(server.Close)
	p.url = server.URL + protocol.base
	return p
}

// bodies returns the bodies received so far.
func (p *chatProvider) bodies() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]byte(nil), p.sent...)
}

// said tells what the request with the given number, from 0, says behind its
// tools and its system prompt.
func (p *chatProvider) said(n int) []string {
	GinkgoHelper()
	bodies := p.bodies()
	Expect(len(bodies)).To(BeNumerically(">", n), "requests")
	said := p.spell(bodies[n])
	Expect(len(said)).To(BeNumerically(">", 2))
	Expect(said[0]).To(HavePrefix("tool shell: "))
	Expect(said[1]).To(HavePrefix("system: "))
	return said[2:]
}

func (p *chatProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var request struct {
		Model         string
		Stream        bool
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &request); err != nil || r.URL.Path != p.path || r.Header.Get("Authorization") != "Bearer test" {
		refuse(w, http.StatusBadRequest)
		return
	}
	e, ok := p.next(body)
	if !ok {
		refuse(w, http.StatusTeapot)
		return
	}
	e.model, e.wantsUsage = request.Model, request.StreamOptions.IncludeUsage
	if e.status != 0 {
		refuse(w, e.status)
		return
	}
	p.reach(r, e, beforeAnswer)
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, p.whole(e))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	passed := false
	events := p.stream(e)
	for i, event := range events {
		if i == len(events)-1 {
			p.reach(r, e, beforeEnd)
		}
		event.send(w)
		if event.text && !passed {
			passed = true
			p.reach(r, e, midStream)
		}
	}
}

// refuse answers with an error, as both providers spell it.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	// Else the SDKs would wait for some time before they try again.
	w.Header().Set("Retry-After-Ms", "1")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"type":"error","error":{"type":"api_error","message":"out of order","param":null,"code":null}}`)
}

// next records a request and takes the script's next answer to it.
func (p *chatProvider) next(body []byte) (chatExchange, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	units := p.prefix(body)
	var before []domain.PrefixUnit
	if len(p.sent) > 0 {
		before = p.prefix(p.sent[len(p.sent)-1])
	}
	p.sent = append(p.sent, body)
	e := chatExchange{n: len(p.sent)}
	same := true
	for i, u := range units {
		same = same && i < len(before) && string(u.Bytes) == string(before[i].Bytes)
		tokens := (len(u.Bytes) + 3) / 4
		e.prompt += tokens
		if same {
			e.cached += tokens
		}
	}
	if len(p.script) == 0 {
		return e, false
	}
	e.chatAnswer, p.script = p.script[0], p.script[1:]
	return e, true
}

// prefix returns the prefix units of a body that is a JSON object.
func (p *chatProvider) prefix(body []byte) []domain.PrefixUnit {
	units, err := domain.PrefixUnits(body, p.fields...)
	if err != nil {
		panic(err)
	}
	return units
}

// reach comes to a stage of an answer.
func (p *chatProvider) reach(r *http.Request, e chatExchange, stage chatStage) {
	switch stage {
	case e.drop:
		panic(http.ErrAbortHandler)
	case e.hang:
		p.hung <- struct{}{}
		select {
		case <-p.release:
		case <-r.Context().Done():
			p.gone <- struct{}{}
		}
	}
}

// expectContinued expects each request to begin with the whole of the one before.
func (p *chatProvider) expectContinued(bodies ...[]byte) {
	GinkgoHelper()
	Expect(len(bodies)).To(BeNumerically(">", 1))
	for i, body := range bodies[1:] {
		earlier, later := p.prefix(bodies[i]), p.prefix(body)
		Expect(len(later)).To(BeNumerically(">", len(earlier)), "request %d", i+2)
		for j, u := range earlier {
			Expect(string(later[j].Bytes)).To(Equal(string(u.Bytes)), "%s of request %d", u.Name, i+2)
		}
	}
}
