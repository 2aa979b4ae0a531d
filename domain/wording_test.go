package domain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

var _ = Describe("Language", func() {
	DescribeTable("is spelled by its tag, and read from it",
		func(l domain.Language, tag string) {
			Expect(l.String()).To(Equal(tag))
			got, err := domain.ParseLanguage(tag)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(l))
		},
		Entry("Chinese", domain.Chinese, "zh-CN"),
		Entry("English", domain.English, "en"),
	)

	It("is refused where there is no such tag, which the error names", func() {
		_, err := domain.ParseLanguage("de")
		Expect(err).To(MatchError(And(ContainSubstring("de"), ContainSubstring("zh-CN or en"))))
		Expect(domain.Language(2).String()).To(Equal("Language(2)"))
	})
})

var _ = Describe("Wording", func() {
	DescribeTable("asks for a handoff in its language, and forbids tags in it where it is told to",
		func(l domain.Language, asks, forbids string) {
			w := domain.Wording{Language: l}
			Expect(w.CompactionInstruction(false)).To(And(ContainSubstring(asks), Not(ContainSubstring("<date-change>"))))
			Expect(w.CompactionInstruction(true)).To(Equal(w.CompactionInstruction(false) + forbids))
		},
		Entry("Chinese", domain.Chinese, "请写出这份说明", "<date-change> 标签由系统写入,不属于交接说明。"),
		Entry("English", domain.English, "Write that handoff", " <date-change> tags are written by the system and do not belong in the handoff."),
	)
})
