package test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/domain"
)

var _ = Describe("Case A16: a title made from injected text (QwenLM/qwen-code#6419, anomalyco/opencode#23114)", func() {
	It("hands out what users wrote and nothing else, to whoever reads the window", func(ctx SpecContext) {
		p := newPipeline(nil, user("1", "2026-07-06 23:59:00", "hello"), user("2", "2026-07-07 00:01:00", "hi"))
		built := build(ctx, p.engine)
		expectDates(built, "2026-07-06", "U2 2026-07-07")
		var title []string
		for _, m := range built.Window.Messages {
			title = append(title, m.Text)
		}
		Expect(title).To(Equal([]string{"hello", "hi"}))
	})
})

var _ = Describe("Case A20: a message that comes in the middle of a turn (HKUDS/nanobot#3859)", func() {
	It("tells the new day in front of that message, once, and leaves the one before alone", func(ctx SpecContext) {
		p := newPipeline(nil, user("1", "2026-06-17 23:58:00", "Run it."),
			assistant("2", "2026-06-17 23:58:10", "", domain.ToolCall{ID: "x", Name: "shell", Arguments: "{}"}))
		first := build(ctx, p.engine)
		expectDates(first, "2026-06-17")

		// The message comes before the result, which has to stand in front of it.
		p.sessions.Add(session, user("3", "2026-06-18 00:01:00", "And the other one."), toolResult("4", "2026-06-18 00:02:00", "x", "done"))
		second := build(ctx, p.engine)
		p.sessions.Add(session, assistant("5", "2026-06-18 00:02:10", "", domain.ToolCall{ID: "y", Name: "shell", Arguments: "{}"}),
			toolResult("6", "2026-06-18 00:03:00", "y", "done"))
		third := build(ctx, p.engine)
		for _, w := range caseWires() {
			one, two, three := decodeBody(w.request(first.Prompt)), decodeBody(w.request(second.Prompt)), decodeBody(w.request(third.Prompt))
			Expect(two.told()).To(Equal([]string{"U2 2026-06-18"}), w.name)
			Expect(three.told()).To(Equal(two.told()), w.name)
			Expect(two.items[0].raw).To(Equal(one.items[0].raw), w.name)
			for i, item := range two.items {
				Expect(three.items[i].raw).To(Equal(item.raw), w.name)
			}
		}
	})
})

var _ = Describe("Case A31: a prefix that hides a quick command (NousResearch/hermes-agent#81798, pingdotgg/t3code#8013)", func() {
	It("expands the stored text, puts the notice before what comes out, and keeps the image", func(ctx SpecContext) {
		image := domain.Part{Image: domain.Image{URL: "https://example.com/1.png"}}
		stored := domain.Message{
			ID: "2", Role: domain.RoleUser, CreatedAt: "2026-10-13 08:00:00",
			Parts: []domain.Part{{Text: "$skill$ a b"}, image},
		}
		p := newPipeline(memory.Commands{skill("skill"): "Do this with"}, user("1", "2026-10-12 23:50:00", "Hello."), stored)
		built := build(ctx, p.engine)
		expectDates(built, "2026-10-12", "U2 2026-10-13")
		for _, w := range caseWires() {
			u := decodeBody(w.request(built.Prompt)).users()[1]
			Expect(u.kinds()).To(Equal([]string{"text", "text", "image"}), w.name)
			Expect(u.blocks[1].text).To(Equal("Do this with a b"), w.name)
			Expect(u.blocks[2].raw).To(ContainSubstring("https://example.com/1.png"), w.name)
		}
		Expect(built.Prompt.Messages[1].ID).To(Equal("2"))
		Expect(built.Window.Messages[1]).To(Equal(stored))
	})
})
