package test

import (
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

var _ = Describe("A provider's own reason for a cache miss", func() {
	prompt := func(previous string) domain.Prompt {
		p := onlyMessages(user("1", "2026-10-12 23:50:00", "Hello."))
		p.PreviousReplyID = previous
		return p
	}

	DescribeTable("is asked for by the session's previous reply, and comes with the reply",
		func(ctx SpecContext, w wireProtocol, previous, field, diagnosis, reason string) {
			l := newLoopback(w.answer(w.full + diagnosis))
			reply, err := w.open(l.url).Send(ctx, prompt(previous), nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(reply.CacheMiss).To(Equal(reason))
			Expect(string(l.bodies()[0])).To(ContainSubstring(field))
		},
		Entry("by Anthropic", messagesProtocol, "msg_0", `"diagnostics":{"previous_message_id":"msg_0"}`,
			`,"diagnostics":{"cache_miss_reason":{"type":"system_changed","cache_missed_input_tokens":1536}}`, "system_changed"),
		Entry("by Anthropic, where nothing was missed", messagesProtocol, "msg_0", `"msg_0"`, `,"diagnostics":null`, ""),
		Entry("by OpenAI responses", responsesProtocol, "resp_0", `"comparison_response_id":"resp_0"`,
			`,"prompt_cache_diagnostics":{"type":"cache_miss","reason":"instructions_changed"}`, "instructions_changed"),
		Entry("by OpenAI responses, which did not find the reply", responsesProtocol, "resp_0", `"resp_0"`,
			`,"prompt_cache_diagnostics":{"type":"comparison_response_not_found"}`, "comparison_response_not_found"),
		Entry("by OpenAI responses, where nothing was missed", responsesProtocol, "resp_0", `"resp_0"`,
			`,"prompt_cache_diagnostics":{"type":"cache_hit"}`, ""),
	)

	DescribeTable("is asked for by no other protocol's id, and by none", func(_ SpecContext, w wireProtocol, previous string) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		body, err := w.open(server.URL).Body(prompt(previous))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(body)).NotTo(Or(ContainSubstring("diagnostics"), ContainSubstring("comparison_response_id"), ContainSubstring("_0")))
	},
		Entry("Anthropic, of a response", messagesProtocol, "resp_0"),
		Entry("Anthropic, without one", messagesProtocol, ""),
		Entry("OpenAI responses, of a message", responsesProtocol, "msg_0"),
		Entry("OpenAI responses, without one", responsesProtocol, ""),
		Entry("OpenAI chat, which knows none", chatProtocol, "chatcmpl-0"),
	)
})
