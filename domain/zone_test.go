package domain_test

import (
	"time"
	_ "time/tzdata"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

const (
	utc        = "UTC"
	shanghai   = "Asia/Shanghai"
	losAngeles = "America/Los_Angeles"
	kathmandu  = "Asia/Kathmandu"
)

func zone(name string) *time.Location {
	GinkgoHelper()
	l, err := time.LoadLocation(name)
	Expect(err).NotTo(HaveOccurred())
	return l
}

var _ = Describe("ZonedDate", func() {
	DescribeTable("R19: is the instant's civil date in the session's zone",
		func(createdAt, stored, session, want string) {
			d, err := domain.ZonedDate(createdAt, zone(stored), zone(session))
			Expect(err).NotTo(HaveOccurred())
			Expect(d.String()).To(Equal(want))
		},
		Entry("UTC to Shanghai, the last second of a day", "2026-10-12 15:59:59", utc, shanghai, "2026-10-12"),
		Entry("UTC to Shanghai, midnight", "2026-10-12 16:00:00", utc, shanghai, "2026-10-13"),
		Entry("UTC to Shanghai, midnight of a year", "2026-12-31 16:00:00", utc, shanghai, "2027-01-01"),
		Entry("UTC to Shanghai, midnight of a leap day", "2024-02-28 16:00:00", utc, shanghai, "2024-02-29"),
		Entry("UTC to Kathmandu, the last second of a day", "2026-10-12 18:14:59", utc, kathmandu, "2026-10-12"),
		Entry("UTC to Kathmandu, midnight", "2026-10-12 18:15:00", utc, kathmandu, "2026-10-13"),
		Entry("Shanghai to UTC, the last second of a day", "2026-10-13 07:59:59", shanghai, utc, "2026-10-12"),
		Entry("Shanghai to UTC, midnight", "2026-10-13 08:00:00", shanghai, utc, "2026-10-13"),

		Entry("Los Angeles, the day of spring's change begins at -8: a second before", "2026-03-08 07:59:59", utc, losAngeles, "2026-03-07"),
		Entry("Los Angeles, the day of spring's change begins at -8", "2026-03-08 08:00:00", utc, losAngeles, "2026-03-08"),
		Entry("Los Angeles, the day of spring's change ends at -7: a second before", "2026-03-09 06:59:59", utc, losAngeles, "2026-03-08"),
		Entry("Los Angeles, the day of spring's change ends at -7", "2026-03-09 07:00:00", utc, losAngeles, "2026-03-09"),
		Entry("Los Angeles, the day of autumn's change begins at -7: a second before", "2026-11-01 06:59:59", utc, losAngeles, "2026-10-31"),
		Entry("Los Angeles, the day of autumn's change begins at -7", "2026-11-01 07:00:00", utc, losAngeles, "2026-11-01"),
		Entry("Los Angeles, the day of autumn's change ends at -8: a second before", "2026-11-02 07:59:59", utc, losAngeles, "2026-11-01"),
		Entry("Los Angeles, the day of autumn's change ends at -8", "2026-11-02 08:00:00", utc, losAngeles, "2026-11-02"),
		Entry("Los Angeles in summer to Shanghai, the last second of a day", "2026-10-12 08:59:59", losAngeles, shanghai, "2026-10-12"),
		Entry("Los Angeles in summer to Shanghai, midnight", "2026-10-12 09:00:00", losAngeles, shanghai, "2026-10-13"),
		Entry("Los Angeles in winter to Shanghai, the last second of a day", "2026-12-01 07:59:59", losAngeles, shanghai, "2026-12-01"),
		Entry("Los Angeles in winter to Shanghai, midnight", "2026-12-01 08:00:00", losAngeles, shanghai, "2026-12-02"),
		Entry("Los Angeles, the hour that comes twice", "2026-11-01 01:30:00", losAngeles, losAngeles, "2026-11-01"),

		Entry("the same zone, the first second of a day", "2026-10-12 00:00:00", shanghai, shanghai, "2026-10-12"),
		Entry("the same zone, the last second of a day", "2026-10-12 23:59:59", shanghai, shanghai, "2026-10-12"),

		Entry("Z, whatever zone is configured", "2026-10-12 16:00:00Z", losAngeles, shanghai, "2026-10-13"),
		Entry("Z, a second before", "2026-10-12 15:59:59Z", losAngeles, shanghai, "2026-10-12"),
		Entry("an offset, whatever zone is configured", "2026-10-13 07:59:59+08:00", losAngeles, utc, "2026-10-12"),
		Entry("an offset, a second later", "2026-10-13 08:00:00+08:00", losAngeles, utc, "2026-10-13"),
		Entry("an offset of hours", "2026-10-12 16:59:59-07", shanghai, utc, "2026-10-12"),
		Entry("an offset of hours, a second later", "2026-10-12 17:00:00-07", shanghai, utc, "2026-10-13"),
		Entry("an offset of hours, east", "2026-10-13 07:59:59+08", losAngeles, utc, "2026-10-12"),
		Entry("an offset that is not whole hours", "2026-10-13 05:44:59+05:45", losAngeles, utc, "2026-10-12"),
		Entry("an offset that is not whole hours, a second later", "2026-10-13 05:45:00+05:45", losAngeles, utc, "2026-10-13"),
		Entry("the session's own offset", "2026-10-12 23:59:59+08:00", utc, shanghai, "2026-10-12"),

		Entry("T between date and time", "2026-10-12T16:00:00", utc, shanghai, "2026-10-13"),
		Entry("T and Z", "2026-10-12T16:00:00Z", losAngeles, shanghai, "2026-10-13"),
		Entry("T and an offset", "2026-10-13T07:59:59+08:00", losAngeles, utc, "2026-10-12"),
		Entry("T and an offset of hours", "2026-10-12T17:00:00-07", shanghai, utc, "2026-10-13"),
		Entry("a fraction that does not round up", "2026-10-12 15:59:59.999999", utc, shanghai, "2026-10-12"),
		Entry("a fraction of zeros", "2026-10-12 16:00:00.000000", utc, shanghai, "2026-10-13"),
		Entry("a fraction of one digit", "2026-10-12 15:59:59.6", utc, shanghai, "2026-10-12"),
		Entry("a fraction and Z", "2026-10-12T15:59:59.999Z", losAngeles, shanghai, "2026-10-12"),
		Entry("a fraction and an offset", "2026-10-13 07:59:59.999999+08:00", losAngeles, utc, "2026-10-12"),
		Entry("a fraction and an offset of hours", "2026-10-12 16:59:59.999999-07", shanghai, utc, "2026-10-12"),
		Entry("no seconds", "2026-10-12 16:00", utc, shanghai, "2026-10-13"),
		Entry("no seconds, a minute before", "2026-10-12 15:59", utc, shanghai, "2026-10-12"),

		Entry("the last day there is", "9999-12-31 15:59:59", utc, shanghai, "9999-12-31"),
		Entry("the first day there is", "0001-01-01 16:00:00", utc, losAngeles, "0001-01-01"),
	)

	DescribeTable("R19: finds no date where there is none, and says why",
		func(createdAt, session, why string) {
			d, err := domain.ZonedDate(createdAt, time.UTC, zone(session))
			Expect(d.IsZero()).To(BeTrue())
			Expect(err).To(MatchError(ContainSubstring(why)))
		},
		Entry("a date alone", "2026-10-12", shanghai, "no time of day"),
		Entry("a date alone, in the zone of the store too", "2026-10-12", utc, "no time of day"),
		Entry("a date and a space", "2026-10-12 ", shanghai, "no time of day"),
		Entry("a date and Z", "2026-10-12Z", shanghai, "no time of day"),
		Entry("an hour alone", "2026-10-12 16", shanghai, "no time of day"),
		Entry("an hour that is none", "2026-10-12 24:00:00", shanghai, "no time of day"),
		Entry("a minute that is none", "2026-10-12 23:60:00", shanghai, "no time of day"),
		Entry("words", "2026-10-12 上午", shanghai, "no time of day"),
		Entry("more behind the time", "2026-10-12 16:00:00 UTC", shanghai, "no time of day"),
		Entry("NULL or empty", "", shanghai, "no stored time"),
		Entry("too short", "2026-10-1", shanghai, "too short"),
		Entry("the zero DATETIME", "0000-00-00 00:00:00", shanghai, "zero"),
		Entry("the zero DATE", "0000-00-00", shanghai, "zero"),
		Entry("the zero DATETIME(6)", "0000-00-00 00:00:00.000000", shanghai, "zero"),
		Entry("30 February", "2026-02-30 08:00:00", shanghai, "not a calendar date"),
		Entry("year 0", "0000-10-12 08:00:00", shanghai, "not a calendar date"),
		Entry("an instant after the last day there is", "9999-12-31 16:00:00", shanghai, "not a calendar date"),
		Entry("an instant before the first day there is", "0001-01-01 00:00:00", losAngeles, "not a calendar date"),
	)
})
