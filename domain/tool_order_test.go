package domain_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// toolWindow reads messages, one word for each: a user's id ("u1"), an
// assistant's with the ids of its calls ("a2:x,y"), a tool's with the id of the
// call that it answers ("t3:x").
func toolWindow(window string) []domain.Message {
	var list []domain.Message
	for word := range strings.FieldsSeq(window) {
		id, calls, called := strings.Cut(word[1:], ":")
		m := domain.Message{ID: id, Text: "text " + id, CreatedAt: "2026-10-12 23:50:00"}
		switch word[0] {
		case 'u':
			m.Role = domain.RoleUser
		case 'a':
			m.Role = domain.RoleAssistant
			if called {
				for call := range strings.SplitSeq(calls, ",") {
					m.ToolCalls = append(m.ToolCalls, domain.ToolCall{ID: call, Name: "read", Arguments: `{"b":1,"a":2}`})
				}
			}
		case 't':
			m.Role, m.ToolCallID = domain.RoleTool, calls
		}
		list = append(list, m)
	}
	return list
}

// spellTools spells messages as toolWindow reads them, and the result of a call
// that has none as "!x".
func spellTools(messages []domain.Message) string {
	var words []string
	for _, m := range messages {
		word := m.Role.String()[:1] + m.ID
		switch {
		case m.Role == domain.RoleTool && m.ID == "":
			word = "!" + m.ToolCallID
		case m.Role == domain.RoleTool:
			word += ":" + m.ToolCallID
		case len(m.ToolCalls) > 0:
			var ids []string
			for _, c := range m.ToolCalls {
				ids = append(ids, c.ID)
			}
			word += ":" + strings.Join(ids, ",")
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// spellMismatches spells what does not match, sorted: "a2:x" for a call without
// a result, "t3:x" for a result without a call.
func spellMismatches(list []domain.ToolMismatch) string {
	var words []string
	for _, m := range list {
		role := "t"
		if m.Unanswered {
			role = "a"
		}
		words = append(words, role+m.MessageID+":"+m.CallID)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

var _ = Describe("OrderToolResults", func() {
	DescribeTable("puts the results right behind the calls, in the order of the calls",
		func(window, want, mismatches string) {
			messages := toolWindow(window)
			before := cloneAll(messages)
			got, unmatched := domain.OrderToolResults(messages, "none")
			Expect(spellTools(got)).To(Equal(want))
			Expect(spellMismatches(unmatched)).To(Equal(mismatches))
			Expect(messages).To(Equal(before))

			// Every message is the one that went in, or stands for a missing result.
			for _, m := range got {
				if m.ID == "" {
					Expect(m).To(Equal(domain.Message{Role: domain.RoleTool, ToolCallID: m.ToolCallID, ToolFailed: true, Text: "none"}))
					continue
				}
				Expect(before).To(ContainElement(m))
			}

			again, unmatched := domain.OrderToolResults(got, "none")
			Expect(again).To(Equal(got))
			Expect(unmatched).To(BeEmpty())
		},
		Entry("no message", "", "", ""),
		Entry("no call", "u1 a2 u3", "u1 a2 u3", ""),
		Entry("one call", "u1 a2:x t3:x a4", "u1 a2:x t3:x a4", ""),
		Entry("several calls in order", "u1 a2:x,y t3:x t4:y a5", "u1 a2:x,y t3:x t4:y a5", ""),
		Entry("several calls that ended in another order", "u1 a2:x,y,z t3:z t4:x t5:y a6", "u1 a2:x,y,z t4:x t5:y t3:z a6", ""),
		Entry("calls of two messages that ended crosswise", "a1:x a2:y t3:y t4:x", "a1:x t4:x a2:y t3:y", ""),
		Entry("calls at the end of the window", "u1 a2:x t3:x", "u1 a2:x t3:x", ""),

		Entry("a user message between call and result", "u1 a2:x u3 t4:x a5", "u1 a2:x t4:x u3 a5", ""),
		Entry("user messages between several results", "a1:x,y u2 t3:y u4 t5:x u6", "a1:x,y t5:x t3:y u2 u4 u6", ""),
		Entry("an assistant message between call and result", "a1:x a2 t3:x", "a1:x t3:x a2", ""),
		Entry("other messages keep their order", "u1 a2:x u3 a4 u5 t6:x a7 u8", "u1 a2:x t6:x u3 a4 u5 a7 u8", ""),

		Entry("a call without a result", "u1 a2:x u3", "u1 a2:x !x u3", "a2:x"),
		Entry("a call without a result at the end", "u1 a2:x", "u1 a2:x !x", "a2:x"),
		Entry("the first of several calls without one", "a1:x,y t2:y", "a1:x,y !x t2:y", "a1:x"),
		Entry("the last of several calls without one", "a1:x,y t2:x", "a1:x,y t2:x !y", "a1:y"),
		Entry("no result at all", "a1:x,y u2", "a1:x,y !x !y u2", "a1:x a1:y"),

		Entry("a result without a call", "u1 t2:x a3", "u1 a3", "t2:x"),
		Entry("a result of another call", "u1 a2:x t3:y a4", "u1 a2:x !x a4", "a2:x t3:y"),
		Entry("results whose call was compacted away", "t1:x t2:y u3 a4:z t5:z", "u3 a4:z t5:z", "t1:x t2:y"),
		Entry("a result before its call", "t1:x a2:x", "a2:x !x", "a2:x t1:x"),
		Entry("a result before its call, and one behind it", "t1:x a2:x t3:x", "a2:x t3:x", "t1:x"),
		Entry("nothing but results", "t1:x t2:x", "", "t1:x t2:x"),

		Entry("a second result of one call", "a1:x t2:x t3:x u4", "a1:x t2:x u4", "t3:x"),
		Entry("a second result a turn later", "a1:x t2:x u3 t4:x", "a1:x t2:x u3", "t4:x"),

		Entry("an id that is used again a turn later", "u1 a2:x t3:x u4 a5:x t6:x", "u1 a2:x t3:x u4 a5:x t6:x", ""),
		Entry("ids that are used again in another order", "a1:x,y t2:y t3:x a4:y,x t5:x t6:y", "a1:x,y t3:x t2:y a4:y,x t6:y t5:x", ""),
		Entry("an id that is used again before it was answered belongs to the newest call", "a1:x u2 a3:x t4:x", "a1:x !x u2 a3:x t4:x", "a1:x"),
		Entry("also where a second result comes", "a1:x a2:x t3:x t4:x", "a1:x !x a2:x t3:x", "a1:x t4:x"),
		Entry("an id that is used again without a second result", "a1:x t2:x a3:x", "a1:x t2:x a3:x !x", "a3:x"),
		Entry("an id that is used twice in one message, results in the order of the calls", "a1:x,x t2:x t3:x u4", "a1:x,x t2:x t3:x u4", ""),
		Entry("an id that is used twice in one message, with one result", "a1:x,x t2:x", "a1:x,x t2:x !x", "a1:x"),
		Entry("an id that is used twice in one message, with three results", "a1:x,x t2:x t3:x t4:x", "a1:x,x t2:x t3:x", "t4:x"),
		Entry("calls without any id", "a1:, t2: t3: u4", "a1:, t2: t3: u4", ""),
	)

	It("keeps every field of a result that it moves", func() {
		result := domain.Message{
			ID: "4", Role: domain.RoleTool, ToolCallID: "x", ToolFailed: true, CreatedAt: "2026-10-12 23:50:00",
			Parts: parts("a", "IMG"),
		}
		window := append(toolWindow("u1 a2:x u3"), result)
		got, unmatched := domain.OrderToolResults(window, "none")
		Expect(got).To(Equal([]domain.Message{window[0], window[1], result, window[2]}))
		Expect(unmatched).To(BeNil())
	})

	It("takes calls from assistant messages alone", func() {
		user := domain.Message{ID: "1", Role: domain.RoleUser, ToolCalls: []domain.ToolCall{{ID: "x"}}}
		tool := domain.Message{ID: "3", Role: domain.RoleTool, ToolCallID: "y", ToolCalls: []domain.ToolCall{{ID: "x"}}}
		window := append([]domain.Message{user}, toolWindow("a2:y t3:y t4:x")...)
		window[2] = tool
		got, unmatched := domain.OrderToolResults(window, "none")
		Expect(got).To(Equal(window[:3]))
		Expect(spellMismatches(unmatched)).To(Equal("t4:x"))
	})

	It("takes results from tool messages alone", func() {
		user := domain.Message{ID: "2", Role: domain.RoleUser, ToolCallID: "x", Text: "Is it done?"}
		got, unmatched := domain.OrderToolResults(append(toolWindow("a1:x"), user), "none")
		Expect(got).To(HaveLen(3))
		Expect(got[1]).To(Equal(domain.Message{Role: domain.RoleTool, ToolCallID: "x", ToolFailed: true, Text: "none"}))
		Expect(spellMismatches(unmatched)).To(Equal("a1:x"))
	})

	It("writes to nothing of the window, spare room included", func() {
		room := append(make([]domain.Message, 0, 8), toolWindow("a1:x,y u2 t3:y")...)
		before := cloneAll(room)
		got, _ := domain.OrderToolResults(room, "none")
		got[0].Text, got[1].Text = "other", "other"
		Expect(room).To(Equal(before))
		Expect(room[:8][3:]).To(Equal(make([]domain.Message, 5)))
	})
})

// cloneAll returns a copy of messages that shares no slice with them.
func cloneAll(messages []domain.Message) []domain.Message {
	var list []domain.Message
	for _, m := range messages {
		list = append(list, m.Clone())
	}
	return list
}
