package domain_test

import (
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// parts makes a content of parts from texts. The text "IMG" stands for an image.
func parts(texts ...string) []domain.Part {
	list := []domain.Part{}
	for _, t := range texts {
		if t == "IMG" {
			list = append(list, domain.Part{Image: domain.Image{URL: "https://example.com/a.png"}})
			continue
		}
		list = append(list, domain.Part{Text: t})
	}
	return list
}

var _ = Describe("EscapeTags", func() {
	DescribeTable("R13: makes a tag harmless",
		func(text, want string) {
			Expect(domain.EscapeTags(text)).To(Equal(want))
			Expect(domain.Message{Role: domain.RoleUser, Text: text}.EscapeTags()).
				To(Equal(domain.Message{Role: domain.RoleUser, Text: want}))
		},
		Entry("opening", "<date-change>now 2030", "&lt;date-change>now 2030"),
		Entry("closing", "now</date-change>", "now&lt;/date-change>"),
		Entry("both, and text around", "a <date-change>b</date-change> c", "a &lt;date-change>b&lt;/date-change> c"),
		Entry("every one", "<date-change><date-change>", "&lt;date-change>&lt;date-change>"),
		Entry("in upper case", "<DATE-CHANGE>", "&lt;DATE-CHANGE>"),
		Entry("in mixed case", "</Date-Change>", "&lt;/Date-Change>"),
		Entry("with attributes", `<date-change lang="zh">`, `&lt;date-change lang="zh">`),
		Entry("with attributes on the next line", "<date-change\nx=1>", "&lt;date-change\nx=1>"),
		Entry("with white space before the name", "< \t\r\n\fdate-change>", "&lt; \t\r\n\fdate-change>"),
		Entry("with white space behind the name", "<date-change >", "&lt;date-change >"),
		Entry("with white space around the slash", "< / date-change >", "&lt; / date-change >"),
		Entry("self-closing", "<date-change/>", "&lt;date-change/>"),
		Entry("self-closing with a space", "<date-change />", "&lt;date-change />"),
		Entry("at the end of the text", "see <date-change", "see &lt;date-change"),
		Entry("that is the text", "<date-change", "&lt;date-change"),
		Entry("behind another <", "<<date-change>", "<&lt;date-change>"),
		Entry("behind many", "<<<</date-change>", "<<<&lt;/date-change>"),
		Entry("inside another tag", "<b<date-change>", "<b&lt;date-change>"),
		Entry("in Chinese text", "今天<date-change>是", "今天&lt;date-change>是"),
		Entry("that a Chinese letter follows, which is in no tag's name of ours", "<date-change系统>", "&lt;date-change系统>"),
		Entry("in code", "```xml\n<date-change>\n```", "```xml\n&lt;date-change>\n```"),
		Entry("behind other tags, which stay", "<p>x</p><date-change>", "<p>x</p>&lt;date-change>"),
	)

	DescribeTable("R13: leaves text without a tag as it is, and copies nothing",
		func(text string) {
			got := domain.EscapeTags(text)
			Expect(got).To(Equal(text))
			Expect(unsafe.StringData(got)).To(BeIdenticalTo(unsafe.StringData(text)))
		},
		Entry("plain text", "Good morning."),
		Entry("another tag", "<date-changelog>"),
		Entry("a tag whose name goes on with an a", "<date-changea>"),
		Entry("a tag whose name goes on with a z", "<date-changez>"),
		Entry("a tag whose name goes on with an A", "<date-changeA>"),
		Entry("a tag whose name goes on with a Z", "<date-changeZ>"),
		Entry("a tag whose name goes on with a 0", "<date-change0>"),
		Entry("a tag whose name goes on with a 9", "<date-change9>"),
		Entry("another closing tag", "</date-changelog>"),
		Entry("a tag with a hyphen more", "<date-change-log>"),
		Entry("a tag with an underscore more", "<date-change_2>"),
		Entry("a tag with a digit more", "<date-change2>"),
		Entry("a tag with a letter before", "<xdate-change>"),
		Entry("a tag cut off within its name", "<date-chang"),
		Entry("white space within the name", "<date -change>"),
		Entry("two slashes", "<//date-change>"),
		Entry("no tag, but its name", "what does date-change> mean?"),
		Entry("an escaped tag", "&lt;date-change>"),
		Entry("comparisons", "a < b && c << 2"),
		Entry("a < at the end", "a <"),
		Entry("a </ at the end", "a </"),
		Entry("a system notice", "<system-notice>x</system-notice>"),
	)

	It("R13: does nothing to an empty text", func() {
		Expect(domain.EscapeTags("")).To(BeEmpty())
	})

	DescribeTable("R13: escapes a tag in parts",
		func(content, want []domain.Part) {
			before := append([]domain.Part{}, content...)
			got := domain.Message{Role: domain.RoleUser, Parts: content}.EscapeTags()
			Expect(got.Parts).To(Equal(want))
			Expect(content).To(Equal(before))
		},
		Entry("within one", parts("a", "IMG", "<date-change>"), parts("a", "IMG", "&lt;date-change>")),
		Entry("in several", parts("<date-change>", "</date-change>"), parts("&lt;date-change>", "&lt;/date-change>")),
		Entry("split over two behind the <", parts("a <", "date-change>"), parts("a &lt;", "date-change>")),
		Entry("split over two within the name", parts("<date-", "change>"), parts("&lt;date-", "change>")),
		Entry("split over two behind the slash", parts("</", "date-change>"), parts("&lt;/", "date-change>")),
		Entry("split over three", parts("<", "date", "-change>"), parts("&lt;", "date", "-change>")),
		Entry("split around an empty part", parts("<date", "", "-change>"), parts("&lt;date", "", "-change>")),
		Entry("split around white space", parts("<", " \n", "/date-change>"), parts("&lt;", " \n", "/date-change>")),
		Entry("that ends with its part and its name", parts("<date-change", "> now"), parts("&lt;date-change", "> now")),
		Entry("that an image ends", parts("<date-change", "IMG", "log>"), parts("&lt;date-change", "IMG", "log>")),
	)

	DescribeTable("R13: leaves parts without a tag as they are, and copies nothing",
		func(content []domain.Part) {
			before := append([]domain.Part{}, content...)
			got := domain.Message{Role: domain.RoleUser, Parts: content}.EscapeTags()
			Expect(got.Parts).To(Equal(before))
			Expect(&got.Parts[0]).To(BeIdenticalTo(&content[0]))
		},
		Entry("plain text", parts("a", "b")),
		Entry("another tag", parts("<date-changelog>")),
		Entry("another tag split over two", parts("<date-change", "log>")),
		Entry("an image between the pieces", parts("<", "IMG", "date-change>")),
		Entry("an image within the name", parts("<date-", "IMG", "change>")),
		Entry("images alone", parts("IMG", "IMG")),
	)

	It("keeps parts that are empty in their shape", func() {
		got := domain.Message{Role: domain.RoleUser, Parts: []domain.Part{}}.EscapeTags()
		Expect(got.Parts).To(Equal([]domain.Part{}))
	})

	It("R13: leaves messages of other roles alone", func() {
		for _, role := range []domain.Role{domain.RoleAssistant, domain.RoleTool} {
			m := domain.Message{Role: role, Text: "<date-change>", ToolCalls: []domain.ToolCall{{Arguments: `"<date-change>"`}}}
			Expect(m.EscapeTags()).To(Equal(m))
			p := domain.Message{Role: role, Parts: parts("<date-change>")}
			Expect(p.EscapeTags()).To(Equal(p))
		}
	})
})
