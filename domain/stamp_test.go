package domain_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

var _ = Describe("StoredDate", func() {
	DescribeTable("R3: takes the first ten characters, whatever follows",
		func(createdAt string, want string) {
			d, err := domain.StoredDate(createdAt)
			Expect(err).NotTo(HaveOccurred())
			Expect(d.String()).To(Equal(want))
		},
		Entry("DATETIME", "2026-10-12 23:50:00", "2026-10-12"),
		Entry("DATETIME(6)", "2026-10-12 23:59:59.600000", "2026-10-12"),
		Entry("DATE", "2026-10-12", "2026-10-12"),
		Entry("T between date and time", "2026-10-12T23:50:00", "2026-10-12"),
		Entry("Z behind it, which is not applied", "2026-10-12T23:50:00Z", "2026-10-12"),
		Entry("an offset that would make it the next day", "2026-10-12T23:50:00-08:00", "2026-10-12"),
		Entry("an offset that would make it the day before", "2026-10-12 00:10:00+08:00", "2026-10-12"),
		Entry("a zone's name", "2026-10-12 23:50:00 UTC", "2026-10-12"),
		Entry("midnight", "2026-10-13 00:00:00", "2026-10-13"),
		Entry("an hour that daylight saving skips in New York", "2026-03-08 02:30:00", "2026-03-08"),
		Entry("an hour that is none", "2026-10-12 99:99:99", "2026-10-12"),
		Entry("a leap day", "2024-02-29 12:00:00", "2024-02-29"),
		Entry("the first year", "0001-01-01 00:00:00", "0001-01-01"),
		Entry("the last year", "9999-12-31 23:59:59", "9999-12-31"),
		Entry("Chinese behind it", "2026-10-12 上午", "2026-10-12"),
	)

	DescribeTable("R3: finds no date where there is none, and says why",
		func(createdAt, why string) {
			d, err := domain.StoredDate(createdAt)
			Expect(d.IsZero()).To(BeTrue())
			Expect(err).To(MatchError(ContainSubstring(why)))
		},
		Entry("NULL or empty", "", "no stored time"),
		Entry("a year alone", "2026", "too short"),
		Entry("nine characters", "2026-10-1", "too short"),
		Entry("a day of one digit", "2026-10-1 08:00:00", "not a calendar date"),
		Entry("the zero DATETIME", "0000-00-00 00:00:00", "zero"),
		Entry("the zero DATE", "0000-00-00", "zero"),
		Entry("the zero DATETIME(6)", "0000-00-00 00:00:00.000000", "zero"),
		Entry("year 0", "0000-10-12 08:00:00", "not a calendar date"),
		Entry("a zero month, which MySQL may keep", "2026-00-12 08:00:00", "not a calendar date"),
		Entry("a zero day, which MySQL may keep", "2026-10-00 08:00:00", "not a calendar date"),
		Entry("30 February", "2026-02-30 08:00:00", "not a calendar date"),
		Entry("29 February of a common year", "2026-02-29 08:00:00", "not a calendar date"),
		Entry("seconds since the epoch", "1791849000", "not a calendar date"),
		Entry("milliseconds since the epoch", "1791849000000", "not a calendar date"),
		Entry("a sign", "+2026-10-12 08:00:00", "not a calendar date"),
		Entry("a sign in the month", "2026-+1-12 08:00:00", "not a calendar date"),
		Entry("a negative month", "2026--1-12 08:00:00", "not a calendar date"),
		Entry("a space before it", " 2026-10-12 08:00:00", "not a calendar date"),
		Entry("a space for a digit", "2026-10- 2 08:00:00", "not a calendar date"),
		Entry("a line break before it", "\n2026-10-12 08:00:00", "not a calendar date"),
		Entry("fullwidth digits", "２０２６-１０-１２", "not a calendar date"),
		Entry("one fullwidth digit", "2026-10-1２ 08:00:00", "not a calendar date"),
		Entry("fullwidth hyphens", "2026－10－12 08:00:00", "not a calendar date"),
		Entry("slashes", "2026/10/12 08:00:00", "not a calendar date"),
		Entry("the compact spelling", "20261012 080000", "not a calendar date"),
		Entry("letters", "yesterday evening", "not a calendar date"),
		Entry("a letter for a digit", "2O26-10-12 08:00:00", "not a calendar date"),
		Entry("hexadecimal digits", "0x7e-10-12 08:00:00", "not a calendar date"),
		Entry("a NUL byte", "2026-10-1\x00 08:00", "not a calendar date"),
	)

	It("quotes no more of a wrong value than any time is long", func() {
		_, err := domain.StoredDate("someone's secret " + strings.Repeat("x", 1000))
		Expect(len(err.Error())).To(BeNumerically("<", 120))
	})
})

var _ = Describe("Stamp", func() {
	It("is none only where it has neither id nor time", func() {
		Expect(domain.Stamp{}.IsZero()).To(BeTrue())
		Expect(domain.Stamp{MessageID: "1"}.IsZero()).To(BeFalse())
		Expect(domain.Stamp{CreatedAt: "2026-10-12 08:00:00"}.IsZero()).To(BeFalse())
	})
})

var _ = Describe("An error about a stored time", func() {
	It("quotes forty bytes of it whole, and cuts what is longer", func() {
		_, err := domain.StoredDate(strings.Repeat("x", 40))
		Expect(err).To(MatchError(HavePrefix(`"` + strings.Repeat("x", 40) + `":`)))
		_, err = domain.StoredDate(strings.Repeat("x", 41))
		Expect(err).To(MatchError(HavePrefix(`"` + strings.Repeat("x", 40) + `"…:`)))
	})
})
