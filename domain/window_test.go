package domain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// mixedWindow reads messages, one letter for each: a user's (u), a user's in
// parts (p), a user's with a date-change notice in front (d), a handoff (h), a
// system notice (n), an assistant's (a), a tool's (t). Ids count from 1.
func mixedWindow(letters string) []domain.Message {
	var list []domain.Message
	for i, letter := range letters {
		m := domain.Message{Role: domain.RoleUser, Text: "Hello."}
		switch letter {
		case 'p':
			m = domain.Message{Role: domain.RoleUser, Parts: parts("IMG")}
		case 'd':
			m = m.WithNotice(domain.Wording{}.Notice(firstDate()))
		case 'h':
			m = domain.HandoffMessage("So far.")
		case 'n':
			m = domain.SystemNotice("Low on memory.")
		case 'a':
			m.Role = domain.RoleAssistant
		case 't':
			m.Role = domain.RoleTool
		}
		m.ID = string(rune('1' + i))
		list = append(list, m)
	}
	return list
}

var _ = Describe("HandoffMessage", func() {
	DescribeTable("is a user-role message that starts as a handoff does",
		func(handoff, want string) {
			got := domain.HandoffMessage(handoff)
			Expect(got).To(Equal(domain.Message{Role: domain.RoleUser, Text: want}))
			Expect(got.IsRealUserMessage()).To(BeFalse())
		},
		Entry("a summary without the heading", "So far.", "## 会话任务交接\n\nSo far."),
		Entry("a summary with the heading", "## 会话任务交接\n\nSo far.", "## 会话任务交接\n\nSo far."),
		Entry("the heading alone", "## 会话任务交接", "## 会话任务交接"),
		Entry("the heading and more on its line", "## 会话任务交接 2\nSo far.", "## 会话任务交接 2\nSo far."),
		Entry("the heading not in front", "So far.\n## 会话任务交接", "## 会话任务交接\n\nSo far.\n## 会话任务交接"),
		Entry("another heading", "# 会话任务交接", "## 会话任务交接\n\n# 会话任务交接"),
		Entry("no summary", "", "## 会话任务交接\n\n"),
	)
})

var _ = Describe("SystemNotice", func() {
	DescribeTable("is a user-role message of the harness's own",
		func(text, want string) {
			got := domain.SystemNotice(text)
			Expect(got).To(Equal(domain.Message{Role: domain.RoleUser, Text: want}))
			Expect(got.IsRealUserMessage()).To(BeFalse())
		},
		Entry("a text", "Low on memory.", "<system-notice>Low on memory.</system-notice>"),
		Entry("several lines", "a\nb", "<system-notice>a\nb</system-notice>"),
		Entry("no text", "", "<system-notice></system-notice>"),
	)
})

var _ = Describe("A window", func() {
	DescribeTable("has a newest real user message",
		func(window string, want int) {
			Expect(domain.NewestRealUserMessage(mixedWindow(window))).To(Equal(want))
		},
		Entry("none in no window", "", -1),
		Entry("the only message", "u", 0),
		Entry("the last of several", "uaua", 2),
		Entry("one in parts", "uapa", 2),
		Entry("one with a date-change notice in front", "uada", 2),
		Entry("before assistant's and tool's", "uatat", 0),
		Entry("before system notices", "uaunn", 2),
		Entry("before a system notice and its answer", "uauana", 2),
		Entry("behind a handoff", "hu", 1),
		Entry("not the handoff", "ha", -1),
		Entry("not a system notice", "na", -1),
		Entry("not a handoff behind it", "uh", 0),
		Entry("not an assistant's or a tool's", "at", -1),
	)

	DescribeTable("is compacted up to the message before the newest real user message",
		func(window, want string) {
			Expect(domain.CompactionBoundary(mixedWindow(window))).To(Equal(want))
		},
		Entry("nothing of no window", "", ""),
		Entry("nothing of one user message", "u", ""),
		Entry("nothing where the newest is the first", "uatat", ""),
		Entry("nothing where the newest is the first, notices behind it", "unana", ""),
		Entry("up to the message before", "uau", "2"),
		Entry("whatever stands behind", "uauata", "2"),
		Entry("whatever notices stand behind", "uaunana", "2"),
		Entry("up to a tool's message", "uatu", "3"),
		Entry("up to a user message", "uu", "1"),
		Entry("up to a system notice", "uanu", "3"),
		Entry("where the newest has parts", "uapa", "2"),
		Entry("where the newest has a date-change notice in front", "uada", "2"),
		Entry("up to the last without a real user message", "nata", "4"),
		Entry("up to the last of assistant's messages", "a", "1"),
	)
})
