package domain_test

import (
	"time"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// date returns the date that s spells, and no date for the empty string.
func date(s string) domain.Date {
	GinkgoHelper()
	if s == "" {
		return domain.Date{}
	}
	d, err := domain.ParseDate(s)
	Expect(err).NotTo(HaveOccurred())
	return d
}

var _ = Describe("Date", func() {
	DescribeTable("is spelled as it was parsed",
		func(s string, year int, month time.Month, day int) {
			d, err := domain.ParseDate(s)
			Expect(err).NotTo(HaveOccurred())
			Expect(d.IsZero()).To(BeFalse())
			Expect([]int{d.Year(), int(d.Month()), d.Day()}).To(Equal([]int{year, int(month), day}))
			Expect(d.String()).To(Equal(s))
			Expect(domain.NewDate(year, month, day)).To(Equal(d))
		},
		Entry("an ordinary day", "2026-10-12", 2026, time.October, 12),
		Entry("the first day there is", "0001-01-01", 1, time.January, 1),
		Entry("the last day there is", "9999-12-31", 9999, time.December, 31),
		Entry("a year with leading zeros", "0099-03-04", 99, time.March, 4),
		Entry("a leap day", "2024-02-29", 2024, time.February, 29),
		Entry("a leap day of a fourth century", "2000-02-29", 2000, time.February, 29),
		Entry("the last day of a month of 30", "2026-04-30", 2026, time.April, 30),
		Entry("the last day of a month of 31", "2026-07-31", 2026, time.July, 31),
	)

	DescribeTable("is not parsed from anything else",
		func(s string) {
			d, err := domain.ParseDate(s)
			Expect(err).To(MatchError(ContainSubstring("not a calendar date")))
			Expect(d).To(Equal(domain.Date{}))
		},
		Entry("nothing", ""),
		Entry("a time behind it", "2026-10-12 23:50:00"),
		Entry("a space behind it", "2026-10-12 "),
		Entry("a space before it", " 2026-10-12"),
		Entry("a month of one digit", "2026-1-012"),
		Entry("slashes", "2026/10/12"),
		Entry("no separators", "2026101200"),
		Entry("day first", "12-10-2026"),
		Entry("year 0", "0000-10-12"),
		Entry("month 0", "2026-00-12"),
		Entry("month 13", "2026-13-12"),
		Entry("day 0", "2026-10-00"),
		Entry("day 32", "2026-10-32"),
		Entry("day 31 of a month of 30", "2026-09-31"),
		Entry("30 February", "2026-02-30"),
		Entry("29 February of a common year", "2026-02-29"),
		Entry("29 February of a common century", "1900-02-29"),
		Entry("a sign", "+026-10-12"),
		Entry("a sign in the day", "2026-10-+2"),
		Entry("a negative year", "-001-10-12"),
	)

	DescribeTable("cannot be made of numbers that name no day",
		func(year, month, day int) {
			d, err := domain.NewDate(year, time.Month(month), day)
			Expect(err).To(HaveOccurred())
			Expect(d.IsZero()).To(BeTrue())
		},
		Entry("year 0", 0, 1, 1),
		Entry("year 10000", 10000, 1, 1),
		Entry("month 0", 2026, 0, 1),
		Entry("month 13", 2026, 13, 1),
		Entry("day 0", 2026, 1, 0),
		Entry("day -1", 2026, 1, -1),
		Entry("day 32", 2026, 1, 32),
		Entry("29 February of a common year", 2026, 2, 29),
		Entry("a day that would fit no field", 2026, 1, 1<<20),
	)

	DescribeTable("knows its weekday",
		func(s string, want time.Weekday) { Expect(date(s).Weekday()).To(Equal(want)) },
		Entry("the requirement's Monday", "2026-10-12", time.Monday),
		Entry("the requirement's Tuesday", "2026-10-13", time.Tuesday),
		Entry("a Wednesday", "2026-10-14", time.Wednesday),
		Entry("a Thursday", "2026-10-15", time.Thursday),
		Entry("a Friday", "2026-10-16", time.Friday),
		Entry("a Saturday", "2026-10-17", time.Saturday),
		Entry("a Sunday", "2026-10-18", time.Sunday),
		Entry("a leap day", "2024-02-29", time.Thursday),
		Entry("the first day there is", "0001-01-01", time.Monday),
		Entry("the last day there is", "9999-12-31", time.Friday),
	)

	DescribeTable("orders as the calendar does",
		func(earlier, later string) {
			Expect(date(earlier).Compare(date(later))).To(Equal(-1))
			Expect(date(later).Compare(date(earlier))).To(Equal(+1))
			Expect(date(earlier).Compare(date(earlier))).To(Equal(0))
		},
		Entry("day", "2026-10-12", "2026-10-13"),
		Entry("month before day", "2026-09-30", "2026-10-01"),
		Entry("year before month", "2025-12-31", "2026-01-01"),
		Entry("across all years", "0001-01-01", "9999-12-31"),
		Entry("no date before every date", "", "0001-01-01"),
	)

	It("takes four bytes", func() {
		Expect(unsafe.Sizeof(domain.Date{})).To(BeEquivalentTo(4))
	})

	Context("that is zero", func() {
		It("is no date", func() {
			var d domain.Date
			Expect(d.IsZero()).To(BeTrue())
			Expect(d.String()).To(BeEmpty())
			Expect([]int{d.Year(), int(d.Month()), d.Day()}).To(Equal([]int{0, 0, 0}))
		})

		It("has no weekday", func() {
			Expect(func() { domain.Date{}.Weekday() }).To(Panic())
		})
	})

	DescribeTable("of a time is the civil date in the time's own location",
		func(at, zone string, want string) {
			offset, err := time.ParseDuration(zone)
			Expect(err).NotTo(HaveOccurred())
			instant, err := time.Parse(time.RFC3339Nano, at)
			Expect(err).NotTo(HaveOccurred())
			Expect(domain.DateOf(instant.In(time.FixedZone("", int(offset.Seconds())))).String()).To(Equal(want))
		},
		Entry("the last moment before midnight in Shanghai", "2026-10-12T15:59:59.999999999Z", "8h", "2026-10-12"),
		Entry("midnight in Shanghai", "2026-10-12T16:00:00Z", "8h", "2026-10-13"),
		Entry("the same moment in UTC", "2026-10-12T16:00:00Z", "0h", "2026-10-12"),
		Entry("the last moment before midnight west of Greenwich", "2026-10-13T03:29:59.999999999Z", "-3h30m", "2026-10-12"),
		Entry("midnight west of Greenwich", "2026-10-13T03:30:00Z", "-3h30m", "2026-10-13"),
		Entry("the first year", "0001-01-01T00:00:00Z", "0h", "0001-01-01"),
		Entry("a year before the first, which is no date", "0001-01-01T00:00:00Z", "-1h", ""),
		Entry("the last year", "9999-12-31T23:59:59Z", "0h", "9999-12-31"),
		Entry("a year after the last, which is no date", "9999-12-31T23:59:59Z", "1h", ""),
	)
})
