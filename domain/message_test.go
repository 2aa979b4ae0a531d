package domain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// fullMessage returns a message in which every field but the content is set.
func fullMessage() domain.Message {
	return domain.Message{
		ID: "7", Role: domain.RoleUser, CreatedAt: "2026-10-13 08:00:00",
		ToolCalls:  []domain.ToolCall{{ID: "c1", Name: "read", Arguments: `{"b":1,"a":2}`}},
		ToolCallID: "c0", ToolFailed: true,
	}
}

var _ = Describe("Message", func() {
	Context("with a notice", func() {
		It("R7: has it before a string, with an empty line between", func() {
			m := fullMessage()
			m.Text = "Good morning."
			want := fullMessage()
			want.Text = "NOTICE\n\nGood morning."
			Expect(m.WithNotice("NOTICE")).To(Equal(want))
		})

		It("R7: keeps an empty string a string", func() {
			want := fullMessage()
			want.Text = "NOTICE\n\n"
			Expect(fullMessage().WithNotice("NOTICE")).To(Equal(want))
		})

		DescribeTable("R7: has it as one text part more, in front",
			func(content, want []domain.Part) {
				m, wanted := fullMessage(), fullMessage()
				m.Parts, wanted.Parts = content, want
				Expect(m.WithNotice("NOTICE")).To(Equal(wanted))
			},
			Entry("of text", parts("a"), parts("NOTICE", "a")),
			Entry("of an image first", parts("IMG", "a", "IMG"), parts("NOTICE", "IMG", "a", "IMG")),
			Entry("of no part at all", parts(), parts("NOTICE")),
		)

		It("R7: writes to nothing of the message it came from, spare room included", func() {
			room := append(make([]domain.Part, 0, 8), parts("IMG", "a", "b")...)
			m := domain.Message{Role: domain.RoleUser, Parts: room}
			m.WithNotice("NOTICE").Parts[1].Text = "other"
			Expect(m.Parts).To(Equal(parts("IMG", "a", "b")))
			Expect(room[:4][3]).To(Equal(domain.Part{}))
		})
	})

	Context("cloned", func() {
		It("is the same and shares no slice", func() {
			m := fullMessage()
			m.Parts = parts("a", "IMG")
			c := m.Clone()
			Expect(c).To(Equal(m))
			c.Parts[0].Text = "other"
			c.ToolCalls[0].Name = "other"
			want := fullMessage()
			want.Parts = parts("a", "IMG")
			Expect(m).To(Equal(want))
		})

		It("keeps nil and empty parts apart", func() {
			Expect(domain.Message{Text: "a"}.Clone().Parts).To(BeNil())
			Expect(domain.Message{Parts: []domain.Part{}}.Clone().Parts).To(Equal([]domain.Part{}))
		})
	})

	DescribeTable("has content where there is a text or an image",
		func(m domain.Message, want bool) { Expect(m.HasContent()).To(Equal(want)) },
		Entry("a text", domain.Message{Text: "Hello."}, true),
		Entry("no text", domain.Message{}, false),
		Entry("no parts", domain.Message{Parts: []domain.Part{}}, false),
		Entry("parts of nothing", domain.Message{Parts: []domain.Part{{}, {}}}, false),
		Entry("a text in its last part", domain.Message{Parts: []domain.Part{{}, {Text: "Hello."}}}, true),
		Entry("an image", domain.Message{Parts: []domain.Part{{Image: domain.Image{URL: "https://example.com/a.png"}}}}, true),
	)

	It("shares its content with a message of the same text and the very same parts", func() {
		one, two := []domain.Part{{Text: "a"}, {Text: "b"}}, []domain.Part{{Text: "a"}, {Text: "b"}}
		of := func(text string, parts []domain.Part) domain.Message { return domain.Message{Text: text, Parts: parts} }
		Expect(of("", one).SharesContent(of("", one))).To(BeTrue())
		Expect(of("", one).SharesContent(of("", two))).To(BeFalse(), "equal parts in another place")
		Expect(of("", one).SharesContent(of("", one[:1]))).To(BeFalse(), "one part less")
		Expect(of("", nil).SharesContent(of("", one))).To(BeFalse(), "no parts and some")
		Expect(of("a", nil).SharesContent(of("a", nil))).To(BeTrue())
		Expect(of("a", nil).SharesContent(of("b", nil))).To(BeFalse())
		Expect(of("a", one).SharesContent(of("b", one))).To(BeFalse())
	})

	DescribeTable("says where its image is",
		func(i domain.Image, want string) { Expect(i.Location()).To(Equal(want)) },
		Entry("at its URL", domain.Image{URL: "https://example.com/a.png"}, "https://example.com/a.png"),
		Entry("in itself", domain.Image{MediaType: "image/png", Data: "AAAA"}, "data:image/png;base64,AAAA"),
	)

	DescribeTable("is a real user message or not",
		func(m domain.Message, want bool) { Expect(m.IsRealUserMessage()).To(Equal(want)) },
		Entry("a user's text", domain.Message{Role: domain.RoleUser, Text: "Hello."}, true),
		Entry("an empty text", domain.Message{Role: domain.RoleUser}, true),
		Entry("a user's parts", domain.Message{Role: domain.RoleUser, Parts: parts("Hello.")}, true),
		Entry("no part", domain.Message{Role: domain.RoleUser, Parts: parts()}, true),
		Entry("an image first", domain.Message{Role: domain.RoleUser, Parts: parts("IMG", "<system-notice>")}, true),
		Entry("a handoff", domain.Message{Role: domain.RoleUser, Text: "## 会话任务交接\n\n..."}, false),
		Entry("a handoff in parts", domain.Message{Role: domain.RoleUser, Parts: parts("## 会话任务交接", "...")}, false),
		Entry("a system notice", domain.Message{Role: domain.RoleUser, Text: "<system-notice>low on memory</system-notice>"}, false),
		Entry("a system notice in parts", domain.Message{Role: domain.RoleUser, Parts: parts("<system-notice>x</system-notice>")}, false),
		Entry("a handoff that is only quoted", domain.Message{Role: domain.RoleUser, Text: "What is ## 会话任务交接?"}, true),
		Entry("a system notice that is only quoted", domain.Message{Role: domain.RoleUser, Text: " <system-notice>"}, true),
		Entry("an assistant's text", domain.Message{Role: domain.RoleAssistant, Text: "Hello."}, false),
		Entry("a tool's text", domain.Message{Role: domain.RoleTool, Text: "Hello."}, false),
		Entry("no role", domain.Message{Text: "Hello."}, false),
		Entry("a user's text with a date-change notice in front",
			domain.Message{Role: domain.RoleUser, Text: "Hello."}.WithNotice(domain.Wording{}.Notice(firstDate())), true),
		Entry("a user's parts with a date-change notice in front",
			domain.Message{Role: domain.RoleUser, Parts: parts("IMG")}.WithNotice(domain.Wording{}.Notice(firstDate())), true),
	)
})

// firstDate returns a date for entries, in which nothing may be asserted.
func firstDate() domain.Date {
	d, err := domain.NewDate(2026, 10, 13)
	if err != nil {
		panic(err)
	}
	return d
}

var _ = Describe("Role", func() {
	DescribeTable("is read as stores spell it",
		func(name string, want domain.Role) {
			Expect(domain.ParseRole(name)).To(Equal(want))
			Expect(domain.ParseRole(want.String())).To(Equal(want))
		},
		Entry("user", "user", domain.RoleUser),
		Entry("USER", "USER", domain.RoleUser),
		Entry("assistant", "assistant", domain.RoleAssistant),
		Entry("ASSISTANT", "ASSISTANT", domain.RoleAssistant),
		Entry("tool", "tool", domain.RoleTool),
		Entry("TOOL", "TOOL", domain.RoleTool),
	)

	DescribeTable("is refused where it is none",
		func(name string) {
			_, err := domain.ParseRole(name)
			Expect(err).To(HaveOccurred())
		},
		Entry("nothing", ""),
		Entry("system", "system"),
		Entry("mixed case", "User"),
		Entry("a space", "user "),
	)
})

var _ = Describe("Role", func() {
	DescribeTable("spells what is no role by its number", func(r domain.Role, want string) {
		Expect(r.String()).To(Equal(want))
	},
		Entry("none", domain.Role(0), "Role(0)"),
		Entry("the last", domain.RoleTool, "tool"),
		Entry("one more", domain.RoleTool+1, "Role(4)"),
	)
})
