package domain_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// entries reads a window, one word for each message: a user's day of October
// 2026 ("12"), a user message without a date ("?"), an assistant's or a tool's
// day ("a13", "t13").
func entries(window string) []domain.Entry {
	GinkgoHelper()
	var list []domain.Entry
	for word := range strings.FieldsSeq(window) {
		role := domain.RoleUser
		switch word[0] {
		case 'a':
			role, word = domain.RoleAssistant, word[1:]
		case 't':
			role, word = domain.RoleTool, word[1:]
		case '?':
			word = ""
		}
		list = append(list, domain.Entry{Role: role, Date: october(word)})
	}
	return list
}

// october returns a day of October 2026, and no date for no day.
func october(day string) domain.Date {
	GinkgoHelper()
	if day == "" {
		return domain.Date{}
	}
	return date("2026-10-" + day)
}

// changes spells changes as "index:day", in order.
func changes(list []domain.Change) string {
	var words []string
	for _, c := range list {
		words = append(words, fmt.Sprintf("%d:%02d", c.Index, c.Date.Day()))
	}
	return strings.Join(words, " ")
}

var _ = Describe("Changes", func() {
	DescribeTable("in a window that begins where the session does",
		func(window, anchor, want string) {
			Expect(changes(domain.Changes(entries(window), october(anchor), domain.Before{}))).To(Equal(want))
		},
		Entry("R4: none in an empty window", "", "12", ""),
		Entry("R4: none for a single message on the anchor's day", "12", "12", ""),
		Entry("R4: none on one day", "12 a12 12 t12 12", "12", ""),
		Entry("R4: the first user message of the next day alone", "12 a12 13 a13 13 13", "12", "2:13"),
		Entry("R4: one for a gap of several days", "12 15 15", "12", "1:15"),
		Entry("R4: one for each new day", "12 13 14", "12", "1:13 2:14"),
		Entry("R4: where the date goes backwards", "13 12 12", "13", "1:12"),
		Entry("R4: back and forth", "12 13 12 13", "12", "1:13 2:12 3:13"),
		Entry("R4: compares with the message before and not with the anchor", "12 13 12", "12", "1:13 2:12"),
		Entry("R4: the first message where it differs from the anchor", "13 13", "12", "0:13"),
		Entry("R8: an assistant's date is not compared", "12 a13 12", "12", ""),
		Entry("R8: a tool's date is not compared", "12 t13 12", "12", ""),
		Entry("R8: an assistant's date does not move the sequence on", "12 a13 13", "12", "2:13"),
		Entry("R8: an undated message is not compared", "12 ? 12", "12", ""),
		Entry("R8: an undated message does not move the sequence on", "12 ? 13", "12", "2:13"),
		Entry("R8: an undated first message leaves the comparison to the next", "? 12 13", "12", "2:13"),
		Entry("R8: none where nothing is dated", "? a12 ?", "12", ""),
		Entry("R8: none without a user message", "a12 t13 a14", "12", ""),
	)

	DescribeTable("in a window that begins at a boundary",
		func(window, anchor, previous, want string) {
			before := domain.Before{Boundary: true, Previous: october(previous)}
			Expect(changes(domain.Changes(entries(window), october(anchor), before))).To(Equal(want))
		},
		Entry("R4: the first message where it differs from the one before the boundary", "14 14", "12", "13", "0:14"),
		Entry("R4: also where it is back at the anchor's day", "12", "12", "13", "0:12"),
		Entry("R4: none where everything is on the anchor's day", "12 12", "12", "12", ""),
		Entry("R4: later messages as in any window", "12 13 13 15", "12", "12", "1:13 3:15"),
		Entry("R12: the first message, on the day of the one before the boundary, which is not the anchor's", "13 13", "12", "13", "0:13"),
		Entry("R12: the first dated message alone", "13 12 13", "12", "13", "0:13 1:12 2:13"),
		Entry("R12: the first dated message behind undated ones and other roles", "a13 ? 13 13", "12", "13", "2:13"),
		Entry("R12: one notice where it differs from both", "14", "12", "13", "0:14"),
		Entry("R12: compares with the anchor where nothing before the boundary is dated", "13", "12", "", "0:13"),
		Entry("R12: none on the anchor's day where nothing before the boundary is dated", "12", "12", "", ""),
	)

	It("R4: compares with the message before the window also where no boundary is told", func() {
		before := domain.Before{Previous: october("13")}
		Expect(changes(domain.Changes(entries("13 14"), october("12"), before))).To(Equal("1:14"))
	})

	It("states each message's own date", func() {
		got := domain.Changes(entries("12 13"), october("12"), domain.Before{})
		Expect(got).To(Equal([]domain.Change{{Index: 1, Date: date("2026-10-13")}}))
	})

	It("is nil if nothing changed", func() {
		Expect(domain.Changes(entries("12 12"), october("12"), domain.Before{})).To(BeNil())
	})

	It("R14: answers for a window as for its continuation", func() {
		window := entries("12 a12 13 ? 13 t13 12 15 a15 15 16")
		for _, before := range []domain.Before{{}, {Boundary: true, Previous: october("13")}} {
			whole := domain.Changes(window, october("12"), before)
			for n := range window {
				part := domain.Changes(window[:n], october("12"), before)
				var within []domain.Change
				for _, c := range whole {
					if c.Index < n {
						within = append(within, c)
					}
				}
				Expect(part).To(Equal(within))
			}
		}
	})
})

var _ = Describe("ResolveAnchor", func() {
	DescribeTable("finds the date that the system prompt states",
		func(first, window, want string, source domain.AnchorSource) {
			got := domain.ResolveAnchor(october(first), entries(window), october("31"))
			Expect(got).To(Equal(domain.Anchor{Date: october(want), Source: source}))
		},
		Entry("R1: the session's first user message", "12", "13 14", "12", domain.FromFirstUserMessage),
		Entry("R1: also in an empty window", "12", "", "12", domain.FromFirstUserMessage),
		Entry("R10: the earliest dated user message of the window", "", "a11 t11 ? 13 12", "13", domain.FromLoadedHistory),
		Entry("R2: today without a dated user message", "", "a12 ? t12", "31", domain.FromClock),
		Entry("R2: today in an empty window", "", "", "31", domain.FromClock),
	)
})
