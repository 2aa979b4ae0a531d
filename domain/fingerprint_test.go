package domain_test

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// tracedPrompt returns a prompt of two tools, two sections and four messages,
// in which every field is set: its units are numbered from 0 to 7.
func tracedPrompt() domain.Prompt {
	return domain.Prompt{
		Tools: []domain.Tool{
			{Name: "read", Description: "reads", Schema: `{"type":"object"}`},
			{Name: "ls", Description: "lists", Schema: `{}`},
		},
		Sections: []domain.Section{{Name: "role", Text: "You help."}, {Name: "current-date", Text: "2026-10-12"}},
		Messages: []domain.Message{
			{ID: "1", Role: domain.RoleUser, Text: "Hello.", CreatedAt: "2026-10-12 23:50:00"},
			{ID: "2", Role: domain.RoleAssistant, Text: "So:", ToolCalls: []domain.ToolCall{
				{ID: "c1", Name: "read", Arguments: `{"b":1,"a":2}`}, {ID: "c2", Name: "ls", Arguments: `{}`},
			}},
			{ID: "3", Role: domain.RoleTool, ToolCallID: "c1", ToolFailed: true, Text: "error"},
			{ID: "4", Role: domain.RoleUser, Parts: []domain.Part{
				{Text: "a"},
				{Image: domain.Image{URL: "https://example.com/a.png"}},
				{Image: domain.Image{MediaType: "image/png", Data: "AAAA"}},
			}},
		},
		PreviousReplyID: "r1",
	}
}

// lettered makes a prompt of tools, sections and messages, one word for each:
// its name and, if it is more than one letter, its version ("a", "a2").
func lettered(tools, sections, messages string) domain.Prompt {
	var p domain.Prompt
	for word := range strings.FieldsSeq(tools) {
		p.Tools = append(p.Tools, domain.Tool{Name: word[:1], Description: word})
	}
	for word := range strings.FieldsSeq(sections) {
		p.Sections = append(p.Sections, domain.Section{Name: word[:1], Text: word})
	}
	for word := range strings.FieldsSeq(messages) {
		p.Messages = append(p.Messages, domain.Message{ID: word[:1], Role: domain.RoleUser, Text: word})
	}
	return p
}

var _ = Describe("Fingerprint", func() {
	It("R14: has each tool, each section and each message, in the order of caching", func() {
		var names []string
		for _, u := range tracedPrompt().Fingerprint() {
			names = append(names, string(u.Kind)+" "+u.Name)
		}
		Expect(names).To(Equal([]string{
			"tool read", "tool ls", "section role", "section current-date", "message 1", "message 2", "message 3", "message 4",
		}))
	})

	It("is empty for a prompt of nothing", func() {
		Expect(domain.Prompt{}.Fingerprint()).To(BeEmpty())
	})

	It("is the same for the same prompt", func() {
		Expect(tracedPrompt().Fingerprint()).To(Equal(tracedPrompt().Fingerprint()))
	})

	DescribeTable("R14: changes with any change of content, in the unit's own hash and in every chained one from there on",
		func(unit int, change func(*domain.Prompt)) {
			p := tracedPrompt()
			change(&p)
			before, after := tracedPrompt().Fingerprint(), p.Fingerprint()
			Expect(after).To(HaveLen(len(before)))
			Expect(after[:unit]).To(Equal(before[:unit]))
			Expect(after[unit].Own).NotTo(Equal(before[unit].Own))
			Expect(after[unit].Chained).NotTo(Equal(before[unit].Chained))
			for i := unit + 1; i < len(before); i++ {
				Expect(after[i].Own).To(Equal(before[i].Own), "unit %d", i)
				Expect(after[i].Chained).NotTo(Equal(before[i].Chained), "unit %d", i)
			}
		},
		Entry("a tool's name", 0, func(p *domain.Prompt) { p.Tools[0].Name = "write" }),
		Entry("a tool's description", 0, func(p *domain.Prompt) { p.Tools[0].Description = "" }),
		Entry("a tool's schema", 1, func(p *domain.Prompt) { p.Tools[1].Schema = `{ }` }),
		Entry("a section's text", 2, func(p *domain.Prompt) { p.Sections[0].Text = "You help. " }),
		Entry("the stated date", 3, func(p *domain.Prompt) { p.Sections[1].Text = "2026-10-13" }),
		Entry("a message's role", 4, func(p *domain.Prompt) { p.Messages[0].Role = domain.RoleAssistant }),
		Entry("a message's text", 4, func(p *domain.Prompt) { p.Messages[0].Text = "hello." }),
		Entry("a notice in front of a string", 4, func(p *domain.Prompt) { p.Messages[0] = p.Messages[0].WithNotice("n") }),
		Entry("a string that becomes one part", 4, func(p *domain.Prompt) { p.Messages[0].Text, p.Messages[0].Parts = "", parts("Hello.") }),
		Entry("a string that becomes no part", 4, func(p *domain.Prompt) { p.Messages[0].Text, p.Messages[0].Parts = "", parts() }),
		Entry("an assistant's text", 5, func(p *domain.Prompt) { p.Messages[1].Text = "" }),
		Entry("a call's id", 5, func(p *domain.Prompt) { p.Messages[1].ToolCalls[0].ID = "c3" }),
		Entry("a call's name", 5, func(p *domain.Prompt) { p.Messages[1].ToolCalls[0].Name = "ls" }),
		Entry("a call's arguments, in the order of their keys", 5, func(p *domain.Prompt) { p.Messages[1].ToolCalls[0].Arguments = `{"a":2,"b":1}` }),
		Entry("the order of calls", 5, func(p *domain.Prompt) {
			c := p.Messages[1].ToolCalls
			c[0], c[1] = c[1], c[0]
		}),
		Entry("a call less", 5, func(p *domain.Prompt) { p.Messages[1].ToolCalls = p.Messages[1].ToolCalls[:1] }),
		Entry("the id of the call that is answered", 6, func(p *domain.Prompt) { p.Messages[2].ToolCallID = "c2" }),
		Entry("a failure", 6, func(p *domain.Prompt) { p.Messages[2].ToolFailed = false }),
		Entry("a part's text", 7, func(p *domain.Prompt) { p.Messages[3].Parts[0].Text = "b" }),
		Entry("a notice in front of parts", 7, func(p *domain.Prompt) { p.Messages[3] = p.Messages[3].WithNotice("n") }),
		Entry("an image's URL", 7, func(p *domain.Prompt) { p.Messages[3].Parts[1].Image.URL = "https://example.com/b.png" }),
		Entry("an image's media type", 7, func(p *domain.Prompt) { p.Messages[3].Parts[2].Image.MediaType = "image/gif" }),
		Entry("an image's data", 7, func(p *domain.Prompt) { p.Messages[3].Parts[2].Image.Data = "AAAB" }),
		Entry("the order of parts", 7, func(p *domain.Prompt) {
			c := p.Messages[3].Parts
			c[0], c[1] = c[1], c[0]
		}),
		Entry("a part less", 7, func(p *domain.Prompt) { p.Messages[3].Parts = p.Messages[3].Parts[:2] }),
		Entry("parts that become a string", 7, func(p *domain.Prompt) { p.Messages[3].Parts, p.Messages[3].Text = nil, "a" }),
	)

	DescribeTable("does not change with what is not sent",
		func(change func(*domain.Prompt)) {
			p := tracedPrompt()
			change(&p)
			before, after := tracedPrompt().Fingerprint(), p.Fingerprint()
			Expect(after).To(HaveLen(len(before)))
			for i := range before {
				Expect(after[i].Own).To(Equal(before[i].Own))
				Expect(after[i].Chained).To(Equal(before[i].Chained))
			}
		},
		Entry("the ids of messages", func(p *domain.Prompt) {
			for i := range p.Messages {
				p.Messages[i].ID += "0"
			}
		}),
		Entry("R16: the stored times of messages", func(p *domain.Prompt) {
			for i := range p.Messages {
				p.Messages[i].CreatedAt = "2027-01-01 00:00:00"
			}
		}),
		Entry("the name of a section", func(p *domain.Prompt) { p.Sections[0].Name = "other" }),
		Entry("the id of the previous reply", func(p *domain.Prompt) { p.PreviousReplyID = "" }),
		Entry("no calls that become none", func(p *domain.Prompt) { p.Messages[0].ToolCalls = []domain.ToolCall{} }),
	)

	It("R14: begins, for a continuation, with the fingerprint of what it continues", func() {
		p := tracedPrompt()
		before := p.Fingerprint()
		p.Messages = append(p.Messages, domain.Message{ID: "5", Role: domain.RoleUser, Text: "And now?"})
		after := p.Fingerprint()
		Expect(after[:len(before)]).To(Equal(before))
		Expect(after).To(HaveLen(len(before) + 1))
	})

	It("gives no two different prompts the same last hash", func() {
		user := func(texts ...string) domain.Prompt {
			var p domain.Prompt
			for _, t := range texts {
				p.Messages = append(p.Messages, domain.Message{Role: domain.RoleUser, Text: t})
			}
			return p
		}
		message := func(m domain.Message) domain.Prompt { return domain.Prompt{Messages: []domain.Message{m}} }
		userParts := func(p ...domain.Part) domain.Prompt {
			return message(domain.Message{Role: domain.RoleUser, Parts: append([]domain.Part{}, p...)})
		}
		calls := func(c ...domain.ToolCall) domain.Prompt {
			return message(domain.Message{Role: domain.RoleAssistant, ToolCalls: c})
		}
		image := func(i domain.Image) domain.Part { return domain.Part{Image: i} }
		all := []domain.Prompt{
			// One text, cut into messages elsewhere or in another order.
			user(""), user("", ""), user("abc"), user("a", "bc"), user("ab", "c"), user("bc", "a"), user("", "abc"), user("abc", ""), user("a", "b", "c"),
			user("a\x00b"), user("a", "\x00b"),
			// One text, as another kind of unit or another field of one.
			{Tools: []domain.Tool{{Name: "abc"}}},
			{Tools: []domain.Tool{{Description: "abc"}}},
			{Tools: []domain.Tool{{Schema: "abc"}}},
			{Tools: []domain.Tool{{Name: "ab", Description: "c"}}},
			{Tools: []domain.Tool{{Name: "a", Description: "bc"}}},
			{Tools: []domain.Tool{{Name: "a", Description: "b", Schema: "c"}}},
			{Tools: []domain.Tool{{Name: "ab"}, {Name: "c"}}},
			{Sections: []domain.Section{{Text: "abc"}}},
			{Sections: []domain.Section{{Text: "ab"}, {Text: "c"}}},
			message(domain.Message{Text: "abc"}), message(domain.Message{Role: domain.RoleAssistant, Text: "abc"}),
			message(domain.Message{Role: domain.RoleTool, Text: "abc"}), message(domain.Message{Role: domain.RoleTool, ToolCallID: "abc"}),
			message(domain.Message{Role: domain.RoleTool, ToolCallID: "ab", Text: "c"}), message(domain.Message{Role: domain.RoleTool, ToolFailed: true, Text: "abc"}),
			message(domain.Message{Role: domain.RoleTool, Text: "true"}), message(domain.Message{Role: domain.RoleTool, ToolFailed: true}),
			// Parts.
			userParts(), userParts(domain.Part{}), userParts(parts("abc")...), userParts(parts("a", "bc")...), userParts(parts("ab", "c")...),
			userParts(parts("abc", "")...), userParts(parts("", "abc")...), userParts(parts("part", "a")...), userParts(parts("a", "part")...),
			userParts(image(domain.Image{URL: "abc"})), userParts(image(domain.Image{MediaType: "abc"})), userParts(image(domain.Image{Data: "abc"})),
			userParts(image(domain.Image{MediaType: "a", Data: "bc"})), userParts(image(domain.Image{MediaType: "ab", Data: "c"})),
			userParts(image(domain.Image{URL: "a"}), image(domain.Image{URL: "bc"})),
			// Calls.
			calls(domain.ToolCall{}), calls(domain.ToolCall{ID: "abc"}), calls(domain.ToolCall{Name: "abc"}), calls(domain.ToolCall{Arguments: "abc"}),
			calls(domain.ToolCall{ID: "a", Name: "bc"}), calls(domain.ToolCall{ID: "ab", Name: "c"}), calls(domain.ToolCall{ID: "a", Name: "b", Arguments: "c"}),
			calls(domain.ToolCall{}, domain.ToolCall{ID: "abc"}), calls(domain.ToolCall{ID: "abc"}, domain.ToolCall{}),
			calls(domain.ToolCall{ID: "part"}), calls(domain.ToolCall{ID: "call"}),
			message(domain.Message{Role: domain.RoleAssistant, Parts: []domain.Part{{Text: "call"}, {Text: "a"}}}),
			message(domain.Message{Role: domain.RoleAssistant, Parts: []domain.Part{{Text: "call"}}, ToolCalls: []domain.ToolCall{{ID: "a"}}}),
			// Parts that have the texts of calls, in the same places.
			message(domain.Message{Role: domain.RoleAssistant, Parts: parts(), ToolCalls: []domain.ToolCall{{ID: "a", Name: "b", Arguments: "c"}}}),
			message(domain.Message{Role: domain.RoleAssistant, Parts: []domain.Part{{Text: "call", Image: domain.Image{URL: "a", MediaType: "b", Data: "c"}}}}),
			message(domain.Message{Role: domain.RoleAssistant, Parts: parts("", "", "")}),
			message(domain.Message{Role: domain.RoleAssistant, Parts: parts(), ToolCalls: []domain.ToolCall{
				{ID: "part"}, {Arguments: "part"}, {}, {Name: "part"}, {},
			}}),
		}
		seen := make(map[domain.Hash]int)
		for i, p := range all {
			f := p.Fingerprint()
			last := f[len(f)-1].Chained
			other, ok := seen[last]
			Expect(ok).To(BeFalse(), "prompts %d and %d hash alike: %+v, %+v", other, i, all[other], p)
			seen[last] = i
		}
	})

	DescribeTable("compared with the previous one, says how much of that is repeated",
		func(previous, now domain.Prompt, want domain.Comparison) {
			Expect(now.Fingerprint().Compare(previous.Fingerprint())).To(Equal(want))
		},
		Entry("all of the same", lettered("t", "a b", "1 2"), lettered("t", "a b", "1 2"), domain.Comparison{PreviousUnits: 5, RepeatedUnits: 5}),
		Entry("all of what is continued", lettered("t", "a", "1 2"), lettered("t", "a", "1 2 3 4"), domain.Comparison{PreviousUnits: 4, RepeatedUnits: 4}),
		Entry("what comes before a changed message", lettered("t", "a", "1 2 3"), lettered("t", "a", "1 2x 3"), domain.Comparison{PreviousUnits: 5, RepeatedUnits: 3}),
		Entry("what comes before a message that is gone", lettered("", "a", "1 2 3"), lettered("", "a", "2 3"), domain.Comparison{PreviousUnits: 4, RepeatedUnits: 1}),
		Entry("all that is left where messages at the end are gone", lettered("", "a", "1 2 3"), lettered("", "a", "1 2"), domain.Comparison{PreviousUnits: 4, RepeatedUnits: 3}),
		Entry("nothing of nothing", domain.Prompt{}, domain.Prompt{}, domain.Comparison{}),

		Entry("a changed section", lettered("t", "a b", "1"), lettered("t", "a2 b", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 1, ChangedSections: []string{"a"}}),
		Entry("a new section", lettered("", "a", "1"), lettered("", "a b", "1"),
			domain.Comparison{PreviousUnits: 2, RepeatedUnits: 1, ChangedSections: []string{"b"}}),
		Entry("a new section in front, which is all that is new", lettered("", "b c", "1"), lettered("", "a b c", "1"),
			domain.Comparison{PreviousUnits: 3, RepeatedUnits: 0, ChangedSections: []string{"a"}}),
		Entry("a section that is gone", lettered("", "a b", "1"), lettered("", "a", "1"),
			domain.Comparison{PreviousUnits: 3, RepeatedUnits: 1, ChangedSections: []string{"b"}}),
		Entry("a section that has another name and the same text",
			domain.Prompt{Sections: []domain.Section{{Name: "a", Text: "x"}}}, domain.Prompt{Sections: []domain.Section{{Name: "b", Text: "x"}}},
			domain.Comparison{PreviousUnits: 1, RepeatedUnits: 1, ChangedSections: []string{"a", "b"}}),
		Entry("sections that are elsewhere", lettered("", "a b c", "1"), lettered("", "a c b", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 1, ChangedSections: []string{"b", "c"}}),
		Entry("sections that are elsewhere, beside a changed one", lettered("", "a b c", "1"), lettered("", "c b2 a", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 0, ChangedSections: []string{"a", "b", "c"}}),
		Entry("sections that are elsewhere, beside a new one", lettered("", "b c", "1"), lettered("", "a c b", "1"),
			domain.Comparison{PreviousUnits: 3, RepeatedUnits: 0, ChangedSections: []string{"a", "b", "c"}}),
		Entry("sections that are elsewhere, beside one that is gone", lettered("", "a b c", "1"), lettered("", "c b", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 0, ChangedSections: []string{"a", "b", "c"}}),
		Entry("several, sorted", lettered("", "d c b", "1"), lettered("", "d2 a b2", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 0, ChangedSections: []string{"a", "b", "c", "d"}}),
		Entry("sections of one name, once", lettered("", "a", "1"), lettered("", "a2 a3", "1"),
			domain.Comparison{PreviousUnits: 2, RepeatedUnits: 0, ChangedSections: []string{"a"}}),

		Entry("a changed tool", lettered("t u", "a", "1"), lettered("t u2", "a", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 1, ChangedTools: []string{"u"}}),
		Entry("a new tool", lettered("t", "a", "1"), lettered("t u", "a", "1"),
			domain.Comparison{PreviousUnits: 3, RepeatedUnits: 1, ChangedTools: []string{"u"}}),
		Entry("a tool that is gone", lettered("t u", "a", "1"), lettered("u", "a", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 0, ChangedTools: []string{"t"}}),
		Entry("tools that are elsewhere", lettered("t u", "a", "1"), lettered("u t", "a", "1"),
			domain.Comparison{PreviousUnits: 4, RepeatedUnits: 0, ChangedTools: []string{"t", "u"}}),
		Entry("tools and sections apart, also of one name", lettered("a b", "a b", "1"), lettered("a2 b", "a b2", "1"),
			domain.Comparison{PreviousUnits: 5, RepeatedUnits: 0, ChangedTools: []string{"a"}, ChangedSections: []string{"b"}}),
		Entry("nothing but messages", lettered("t", "a", "1"), lettered("t", "a", "2"), domain.Comparison{PreviousUnits: 3, RepeatedUnits: 2}),
		Entry("everything of a prompt that follows an empty one", domain.Prompt{}, lettered("t", "b a", "1"),
			domain.Comparison{ChangedTools: []string{"t"}, ChangedSections: []string{"a", "b"}}),
		Entry("everything where nothing is left", lettered("t", "a", "1"), domain.Prompt{},
			domain.Comparison{PreviousUnits: 3, ChangedTools: []string{"t"}, ChangedSections: []string{"a"}}),
	)

	It("compared with none, names no change: there was nothing to change", func() {
		Expect(lettered("t", "a", "1").Fingerprint().Compare(nil)).To(Equal(domain.Comparison{}))
	})

	It("compared with one that is not its own, writes to neither", func() {
		f, previous := lettered("t u", "c b a", "1").Fingerprint(), lettered("u t", "a b", "1").Fingerprint()
		f.Compare(previous)
		Expect(f).To(Equal(lettered("t u", "c b a", "1").Fingerprint()))
		Expect(previous).To(Equal(lettered("u t", "a b", "1").Fingerprint()))
	})
})

var _ = Describe("Hash", func() {
	hash := domain.Hash{0, 1, 0x2a, 0xff}
	const spelled = "00012aff000000000000000000000000"

	It("is spelled in hexadecimal digits", func() {
		Expect(hash.String()).To(Equal(spelled))
		Expect(domain.Hash{}.String()).To(Equal(strings.Repeat("0", 32)))
	})

	DescribeTable("is read from its spelling",
		func(text string) {
			got := domain.Hash{1, 2, 3}
			Expect(got.UnmarshalText([]byte(text))).To(Succeed())
			Expect(got).To(Equal(hash))
		},
		Entry("as spelled", spelled),
		Entry("in upper case", strings.ToUpper(spelled)),
	)

	DescribeTable("is not read from anything else, and the error says why",
		func(text, why string) {
			var got domain.Hash
			Expect(got.UnmarshalText([]byte(text))).To(MatchError(ContainSubstring(why)))
		},
		Entry("nothing", "", "has 32 hexadecimal digits, not 0"),
		Entry("a digit less", spelled[1:], "not 31"),
		Entry("two digits less", spelled[2:], "not 30"),
		Entry("a digit more", spelled+"0", "not 33"),
		Entry("two digits more", spelled+"00", "not 34"),
		Entry("another letter", "g"+spelled[1:], "invalid byte"),
		Entry("a sign", "-"+spelled[1:], "invalid byte"),
	)

	// Fingerprints are stored with calls, and compared with those of later releases.
	It("is, of a message, always that of its kind and of all that is sent, each with its length in front", func() {
		m := domain.Message{ID: "1", Role: domain.RoleUser, Text: "Hi.", CreatedAt: "2026-10-12 23:50:00"}
		content := ""
		for _, s := range []string{"message", "user", "", "false", "false", "Hi."} {
			content += "\x00\x00\x00\x00\x00\x00\x00" + string(rune(len(s))) + s
		}
		sum := sha256.Sum256([]byte(content))
		Expect(domain.Prompt{Messages: []domain.Message{m}}.Fingerprint()[0].Own[:]).To(Equal(sum[:16]))
	})

	It("comes back from JSON as it went, in a fingerprint", func() {
		f := tracedPrompt().Fingerprint()
		text, err := json.Marshal(f)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring(f[7].Chained.String()))
		var got domain.Fingerprint
		Expect(json.Unmarshal(text, &got)).To(Succeed())
		Expect(got).To(Equal(f))
	})
})
