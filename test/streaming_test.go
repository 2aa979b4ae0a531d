package test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"sessiondate/domain"
)

// newStream starts a provider whose answer is a stream of the given events. One
// that is open sends nothing more and does not end either; gone is told when its
// client has left.
func newStream(open bool, events ...chatEvent) (url string, gone chan struct{}) {
	gone = make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server sees that its client has left when it has read the request.
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			e.send(w)
		}
		if open {
			<-r.Context().Done()
			gone <- struct{}{}
		}
	}))
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, gone
}

// streamErrors are errors in the middle of a stream, and misfits other events
// with which an answer cannot go on: a piece that belongs to another answer, an
// answer that failed, and a piece of a block that was never begun.
var (
	streamErrors = map[string]chatEvent{
		"chat": {data: `{"error":{"message":"overloaded","type":"server_error","param":null,"code":null}}`},
		"responses": {name: "error", data: `{"type":"error","sequence_number":9,` +
			`"code":"server_error","message":"overloaded","param":null}`},
		"messages": {name: "error", data: `{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}`},
	}
	misfits = map[string]chatEvent{
		"chat": {data: `{"id":"chatcmpl-of-another","object":"chat.completion.chunk","created":1791820200,` +
			`"model":"gpt-5.6","choices":[{"index":0,"delta":{"content":"?"},"finish_reason":null}]}`},
		"responses": {name: "response.failed", data: `{"type":"response.failed","sequence_number":9,"response":{` +
			`"id":"resp_1","object":"response","status":"failed","model":"gpt-5.6",` +
			`"error":{"code":"server_error","message":"overloaded"},"output":[]}}`},
		"messages": {name: "content_block_delta", data: `{"type":"content_block_delta","index":7,` +
			`"delta":{"type":"text_delta","text":"?"}}`},
	}
)

// These are the sentences of [ports.PromptSink] about replies that are streamed,
// and specs of every sink that has a provider.
var _ = Describe("A streamed reply", func() {
	wires := map[string]wireProtocol{"chat": chatProtocol, "responses": responsesProtocol, "messages": messagesProtocol}
	prompt := onlyMessages(user("1", "2026-10-12 23:50:00", "Hello."))
	shell := []domain.ToolCall{{ID: "call_1", Name: "shell", Arguments: `{"command":"date"}`}}

	for _, protocol := range chatProtocols {
		Context("over "+protocol.provider, func() {
			w := wires[protocol.wire]
			open := func(script ...chatAnswer) (*chatProvider, bodySink) {
				GinkgoHelper()
				p := newChatProvider(protocol, script...)
				return p, w.open(strings.TrimSuffix(p.url, "/v1"))
			}

			It("comes in pieces, in order, and is the reply that comes whole", func(ctx SpecContext) {
				answer := says("Hel", "lo", "", "! 你", "好 <b>\n")
				_, sink := open(answer, answer)
				var pieces []string
				streamed, err := sink.Send(ctx, prompt, func(s string) { pieces = append(pieces, s) })
				Expect(err).NotTo(HaveOccurred())
				whole, err := sink.Send(ctx, prompt, nil)
				Expect(err).NotTo(HaveOccurred())
				Expect(strings.Join(pieces, "")).To(Equal("Hello! 你好 <b>\n"))
				Expect(len(pieces)).To(BeNumerically(">=", 4))
				Expect(streamed.Text).To(Equal("Hello! 你好 <b>\n"))
				Expect(streamed.Provider).To(Equal(w.provider))
				Expect(streamed.ID).NotTo(BeEmpty())
				// The provider numbers its replies, and finds the second prompt cached.
				Expect(whole.ID).NotTo(Equal(streamed.ID))
				Expect(whole.Usage.CacheRead).To(Equal(streamed.Usage.Input))
				whole.ID, whole.Usage.CacheRead, whole.Usage.CacheWrite = streamed.ID, streamed.Usage.CacheRead, streamed.Usage.CacheWrite
				Expect(streamed).To(Equal(whole))
			})

			It("has its tool calls whole, with their arguments as the model wrote them", func(ctx SpecContext) {
				_, sink := open(looks(), chatAnswer{call: "call_1"})
				reply, err := sink.Send(ctx, prompt, func(string) {})
				Expect(err).NotTo(HaveOccurred())
				Expect(reply.Text).To(Equal("Let me look."))
				Expect(reply.ToolCalls).To(Equal(shell))
				reply, err = sink.Send(ctx, prompt, func(string) {})
				Expect(err).NotTo(HaveOccurred())
				Expect(reply.Text).To(BeEmpty())
				Expect(reply.ToolCalls).To(Equal(shell))
			})

			It("reports the cached tokens that the provider did, 0 of them too, and none where it left them out", func(ctx SpecContext) {
				_, sink := open(says("1"), says("2"), chatAnswer{text: []string{"3"}, bare: true})
				var usages []domain.Usage
				for range 3 {
					reply, err := sink.Send(ctx, prompt, func(string) {})
					Expect(err).NotTo(HaveOccurred())
					Expect(reply.Usage.Input.Reported).To(BeTrue())
					Expect(reply.Usage.Output).To(Equal(domain.Reported(7)))
					usages = append(usages, reply.Usage)
				}
				Expect(usages[0].CacheRead).To(Equal(domain.Reported(0)))
				Expect(usages[1].CacheRead).To(Equal(usages[1].Input))
				Expect(usages[2].CacheRead).To(Equal(domain.TokenCount{}))
				Expect(usages[2].CacheWrite).To(Equal(domain.TokenCount{}))
			})

			DescribeTable("that breaks off is an error, and what came before it was given on",
				func(ctx SpecContext, stage chatStage, came string) {
					_, sink := open(chatAnswer{text: []string{"Hel", "lo!"}, drop: stage})
					got := ""
					reply, err := sink.Send(ctx, prompt, func(s string) { got += s })
					Expect(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)).To(BeTrue(), "%v", err)
					Expect(reply).To(Equal(domain.Reply{}))
					Expect(got).To(Equal(came))
				},
				Entry("in the middle", midStream, "Hel"),
				Entry("before its last event", beforeEnd, "Hello!"),
			)

			// events are those of an answer, and first those up to its first piece of text.
			events := protocol.stream(chatExchange{chatAnswer: says("Hel", "lo!"), n: 1, model: w.model, wantsUsage: true})
			first := events[:1+slices.IndexFunc(events, func(e chatEvent) bool { return e.text })]

			// A proxy that gives up may end a stream as if it were whole.
			It("that ends without its last event is an error, and what came before was given on", func(ctx SpecContext) {
				url, _ := newStream(false, first...)
				got := ""
				reply, err := w.open(url).Send(ctx, prompt, func(s string) { got += s })
				Expect(err).To(MatchError(And(ContainSubstring(w.model), ContainSubstring("broke off"))))
				Expect(reply).To(Equal(domain.Reply{}))
				Expect(got).To(Equal("Hel"))
			})

			It("leaves no connection and no goroutine, though the stream goes on behind the last event", func(ctx SpecContext) {
				url, gone := newStream(true, events...)
				before := gleak.Goroutines()
				reply, err := w.open(url).Send(ctx, prompt, func(string) {})
				Expect(err).NotTo(HaveOccurred())
				Expect(reply.Text).To(Equal("Hello!"))
				Eventually(ctx, gone).WithTimeout(5 * time.Second).Should(Receive())
				Eventually(ctx, gleak.Goroutines).WithTimeout(5 * time.Second).ShouldNot(gleak.HaveLeaked(before))
			}, NodeTimeout(20*time.Second))

			DescribeTable("fails and leaves its connection, though the stream goes on",
				func(ctx SpecContext, last chatEvent, cause string) {
					url, gone := newStream(true, append(slices.Clone(first), last)...)
					got := ""
					reply, err := w.open(url).Send(ctx, prompt, func(s string) { got += s })
					Expect(err).To(MatchError(And(ContainSubstring(w.model), ContainSubstring(cause))))
					Expect(reply).To(Equal(domain.Reply{}))
					Expect(got).To(Equal("Hel"))
					Eventually(ctx, gone).WithTimeout(5 * time.Second).Should(Receive())
				},
				Entry("when an error comes", streamErrors[protocol.wire], "overloaded", NodeTimeout(20*time.Second)),
				Entry("when an event comes with which it cannot", misfits[protocol.wire], "", NodeTimeout(20*time.Second)),
			)

			It("that is an error instead is one with its status", func(ctx SpecContext) {
				_, sink := open(chatAnswer{status: http.StatusBadRequest})
				_, err := sink.Send(ctx, prompt, func(string) { Fail("there is no text") })
				Expect(err).To(HaveOccurred())
				Expect(w.status(err)).To(Equal(http.StatusBadRequest))
			})

			It("ends with the context's error when it is cancelled in the middle, and leaves no goroutine", func(ctx SpecContext) {
				p, sink := open(chatAnswer{text: []string{"Hel", "lo!"}, hang: midStream})
				before := gleak.Goroutines()
				cut, cancel := context.WithCancel(ctx)
				defer cancel()
				got := ""
				_, err := sink.Send(cut, prompt, func(s string) { got += s; cancel() })
				Expect(err).To(MatchError(context.Canceled))
				Expect(got).To(Equal("Hel"))
				Eventually(ctx, p.gone).Should(Receive())
				http.DefaultClient.CloseIdleConnections()
				Eventually(ctx, gleak.Goroutines).WithTimeout(5 * time.Second).ShouldNot(gleak.HaveLeaked(before))
			}, NodeTimeout(20*time.Second))

			It("sends the bytes that a whole one is asked for with, but for what asks for a stream", func(ctx SpecContext) {
				p, sink := open(says("1"), says("2"))
				_, err := sink.Send(ctx, prompt, func(string) {})
				Expect(err).NotTo(HaveOccurred())
				_, err = sink.Send(ctx, prompt, nil)
				Expect(err).NotTo(HaveOccurred())
				sent := p.bodies()
				Expect(p.prefix(sent[0])).To(Equal(p.prefix(sent[1])))
				Expect(string(sent[0])).To(ContainSubstring(`"stream":true`))
				Expect(string(sent[1])).NotTo(ContainSubstring(`"stream":true`))
			})
		})
	}

	// Servers of this protocol differ: some count with every piece, and not all of
	// them last.
	It("over openai-chat counts what was last counted, wherever in the stream it stands", func(ctx SpecContext) {
		chunk := func(choice, usage string) chatEvent {
			return chatEvent{data: `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1791820200,"model":"gpt-5.6",` +
				`"choices":[` + choice + `],"usage":` + usage + `}`}
		}
		url, _ := newStream(false,
			chunk(`{"index":0,"delta":{"role":"assistant","content":"Hello!"},"finish_reason":null}`,
				`{"prompt_tokens":2000,"completion_tokens":2,"total_tokens":2002}`),
			chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`, chatProtocol.full),
			chunk("", "null"),
			chatEvent{data: "[DONE]"})
		reply, err := chatProtocol.open(url).Send(ctx, prompt, func(string) {})
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Usage).To(Equal(domain.Usage{
			Input: domain.Reported(2000), Output: domain.Reported(30),
			CacheRead: domain.Reported(1536), CacheWrite: domain.Reported(64),
		}))
	})

	It("over openai-chat without a choice is an error", func(ctx SpecContext) {
		url, _ := newStream(false, chatEvent{data: "[DONE]"})
		reply, err := chatProtocol.open(url).Send(ctx, prompt, func(string) { Fail("there is no text") })
		Expect(err).To(MatchError(ContainSubstring("no choice")))
		Expect(reply).To(Equal(domain.Reply{}))
	})

	// A limit on its length makes a reply short, but breaks nothing off.
	It("over openai-responses that is incomplete is the reply that there is", func(ctx SpecContext) {
		url, _ := newStream(false, chatEvent{name: "response.incomplete", data: `{"type":"response.incomplete","sequence_number":1,` +
			`"response":{"id":"resp_1","object":"response","status":"incomplete","model":"gpt-5.6",` +
			`"incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","id":"msg_1","role":"assistant",` +
			`"status":"incomplete","content":[{"type":"output_text","text":"Hel","annotations":[]}]}],` +
			`"usage":` + responsesProtocol.full + `}}`})
		reply, err := responsesProtocol.open(url).Send(ctx, prompt, func(string) {})
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Text).To(Equal("Hel"))
		Expect(reply.Usage.CacheRead).To(Equal(domain.Reported(1536)))
	})

	DescribeTable("over anthropic counts what the end says of the whole, and else what the start says",
		func(ctx SpecContext, start, end string) {
			url, _ := newStream(false,
				chatEvent{name: "message_start", data: `{"type":"message_start","message":{"id":"msg_1","type":"message",` +
					`"role":"assistant","model":"claude-opus-5","content":[],"stop_reason":null,"stop_sequence":null,` +
					`"usage":` + start + `}}`},
				chatEvent{name: "message_delta", data: `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},` +
					`"usage":` + end + `}`},
				chatEvent{name: "message_stop", data: `{"type":"message_stop"}`})
			reply, err := messagesProtocol.open(url).Send(ctx, prompt, func(string) {})
			Expect(err).NotTo(HaveOccurred())
			// 400 tokens of the input stand beside the cached ones.
			Expect(reply.Usage).To(Equal(domain.Usage{
				Input: domain.Reported(2000), Output: domain.Reported(30),
				CacheRead: domain.Reported(1536), CacheWrite: domain.Reported(64),
			}))
		},
		Entry("where the end says all",
			`{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":4}`, messagesProtocol.full),
		Entry("where the end says the output alone",
			`{"input_tokens":400,"cache_read_input_tokens":1536,"cache_creation_input_tokens":64,"output_tokens":1}`,
			`{"output_tokens":30}`),
		Entry("where the end says what is not known at the start",
			`{"input_tokens":400,"output_tokens":1}`,
			`{"cache_read_input_tokens":1536,"cache_creation_input_tokens":64,"output_tokens":30}`),
	)
})
