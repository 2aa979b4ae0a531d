package domain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// length stands for a count of tokens: it counts bytes.
func length(text string) int { return len(text) }

var _ = Describe("Tokens", func() {
	DescribeTable("of a message count what its texts and calls have",
		func(m domain.Message, want int) { Expect(m.Tokens(length)).To(Equal(want)) },
		Entry("nothing", domain.Message{Role: domain.RoleUser}, 0),
		Entry("a string", domain.Message{Role: domain.RoleUser, Text: "Hello."}, 6),
		Entry("parts", domain.Message{Role: domain.RoleUser, Parts: parts("ab", "IMG", "cde", "")}, 5),
		Entry("no part", domain.Message{Role: domain.RoleUser, Parts: parts()}, 0),
		Entry("images alone", domain.Message{Role: domain.RoleUser, Parts: parts("IMG", "IMG")}, 0),
		Entry("calls, names and arguments", domain.Message{Role: domain.RoleAssistant, ToolCalls: []domain.ToolCall{
			{ID: "long id", Name: "read", Arguments: `{"a":1}`}, {ID: "another", Name: "ls", Arguments: "{}"},
		}}, 15),
		Entry("a text and a call", domain.Message{Role: domain.RoleAssistant, Text: "So:", ToolCalls: []domain.ToolCall{
			{ID: "1", Name: "ls", Arguments: "{}"},
		}}, 7),
		Entry("a result", domain.Message{Role: domain.RoleTool, ToolCallID: "long id", ToolFailed: true, Text: "error"}, 5),
		Entry("no id and no stored time", domain.Message{ID: "1234", Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00", Text: "a"}, 1),
	)

	It("of no text are none, whatever a count says of it", func() {
		one := func(string) int { return 1 }
		Expect(domain.Message{Role: domain.RoleUser}.Tokens(one)).To(Equal(0))
		Expect(domain.Message{Role: domain.RoleUser, Parts: parts("", "IMG", "a")}.Tokens(one)).To(Equal(1))
	})
})

var _ = Describe("Manifest", func() {
	DescribeTable("says what a prompt consists of",
		func(p domain.Prompt, want domain.Manifest, total int) {
			got := p.Manifest(length)
			Expect(got).To(Equal(want))
			Expect(got.Total()).To(Equal(total))
		},
		Entry("nothing", domain.Prompt{}, domain.Manifest{}, 0),
		Entry("sections, as they are sent: with an empty line between, without their names",
			domain.Prompt{Sections: []domain.Section{{Name: "role", Text: "abc"}, {Name: "current-date", Text: "de"}}},
			domain.Manifest{SystemPrompt: 7}, 7),
		Entry("tools, names, descriptions and schemas",
			domain.Prompt{Tools: []domain.Tool{{Name: "read", Description: "reads", Schema: "{}"}, {Name: "ls", Schema: `{"a":1}`}}},
			domain.Manifest{Tools: 20}, 20),
		Entry("messages",
			domain.Prompt{Messages: []domain.Message{
				{Role: domain.RoleUser, Text: "Hello."},
				{Role: domain.RoleAssistant, ToolCalls: []domain.ToolCall{{ID: "1", Name: "ls", Arguments: "{}"}}},
				{Role: domain.RoleTool, ToolCallID: "1", Text: "a b"},
			}},
			domain.Manifest{SessionMessages: 13}, 13),
		Entry("images, which are counted and have no tokens",
			domain.Prompt{Messages: []domain.Message{
				{Role: domain.RoleUser, Parts: parts("IMG", "ab", "IMG")},
				{Role: domain.RoleTool, Parts: parts("IMG")},
			}},
			domain.Manifest{SessionMessages: 2, Images: 3}, 2),
		Entry("all together",
			domain.Prompt{
				Sections: []domain.Section{{Text: "abc"}},
				Tools:    []domain.Tool{{Name: "ls", Schema: "{}"}},
				Messages: []domain.Message{{Role: domain.RoleUser, Parts: parts("Hello.", "IMG")}},
			},
			domain.Manifest{SystemPrompt: 3, Tools: 4, SessionMessages: 6, Images: 1}, 13),
	)

	DescribeTable("counts a date-change notice, since it is sent",
		func(m domain.Message, added int) {
			with := domain.Prompt{Messages: []domain.Message{m.WithNotice("NOTICE")}}
			without := domain.Prompt{Messages: []domain.Message{m}}
			Expect(with.Manifest(length).SessionMessages - without.Manifest(length).SessionMessages).To(Equal(added))
		},
		Entry("in front of a string, with the empty line", domain.Message{Role: domain.RoleUser, Text: "Hello."}, 8),
		Entry("in front of parts", domain.Message{Role: domain.RoleUser, Parts: parts("Hello.")}, 6),
	)
})
