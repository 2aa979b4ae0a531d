package domain

import (
	"errors"
	"fmt"
	"time"
)

// A Date is a civil date in the proleptic Gregorian calendar: a year from 1 to
// 9999, a month and a day, with no time of day and no zone.
//
// The zero Date is no date. Dates are comparable with ==, and a Date is four
// bytes, so a window of a hundred thousand messages costs little to compare.
type Date struct {
	// ymd is year<<9 | month<<5 | day, so that dates order as integers do.
	ymd int32
}

// dateLen is the length of a date's spelling, YYYY-MM-DD.
const dateLen = len("2006-01-02")

var errNotDate = errors.New("not a calendar date spelled YYYY-MM-DD")

// NewDate returns the date of the given year, month and day. The error says so
// if there is no such day in the calendar, or the year is not in 1 to 9999.
func NewDate(year int, month time.Month, day int) (Date, error) {
	if year < 1 || year > 9999 || month < time.January || month > time.December ||
		day < 1 || day > daysIn(year, month) {
		return Date{}, fmt.Errorf("%d-%d-%d: %w", year, month, day, errNotDate)
	}
	return newDate(year, month, day), nil
}

func newDate(year int, month time.Month, day int) Date {
	return Date{int32(year)<<9 | int32(month)<<5 | int32(day)}
}

// ParseDate returns the date that s spells as YYYY-MM-DD, all ten characters
// and no other. The error says so if s is spelled otherwise or names no day of
// the calendar.
func ParseDate(s string) (Date, error) {
	if d, ok := parseDate(s); ok && len(s) == dateLen {
		return d, nil
	}
	return Date{}, fmt.Errorf("%s: %w", quote(s), errNotDate)
}

// parseDate reads the date in the first ten bytes of s.
func parseDate(s string) (Date, bool) {
	if len(s) < dateLen || s[4] != '-' || s[7] != '-' {
		return Date{}, false
	}
	year, month, day := digits(s[0:4]), digits(s[5:7]), digits(s[8:10])
	if year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, time.Month(month)) {
		return Date{}, false
	}
	return newDate(year, time.Month(month), day), true
}

// digits reads s, and returns 0 if it is not ASCII digits alone: no part of a
// date is 0. It takes no sign, as strconv.Atoi would.
func digits(s string) (n int) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func daysIn(year int, month time.Month) int {
	switch month {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	default:
		return 31
	}
}

// DateOf returns the civil date of t in t's own location, and no date if that
// year is not in 1 to 9999.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	if year < 1 || year > 9999 {
		return Date{}
	}
	return newDate(year, month, day)
}

// IsZero reports whether d is no date.
func (d Date) IsZero() bool { return d.ymd == 0 }

// Year returns d's year, and 0 for no date.
func (d Date) Year() int { return int(d.ymd >> 9) }

// Month returns d's month, and 0 for no date.
func (d Date) Month() time.Month { return time.Month(d.ymd >> 5 & 0xf) }

// Day returns d's day of the month, and 0 for no date.
func (d Date) Day() int { return int(d.ymd & 0x1f) }

// Weekday returns the day of the week of d. It panics for no date, which has
// none.
func (d Date) Weekday() time.Weekday {
	if d.IsZero() {
		panic("domain: weekday of no date")
	}
	return time.Date(d.Year(), d.Month(), d.Day(), 0, 0, 0, 0, time.UTC).Weekday()
}

// Compare returns -1 if d is before e, 0 if they are the same and +1 if d is
// after e. No date is before every date.
func (d Date) Compare(e Date) int {
	switch {
	case d.ymd < e.ymd:
		return -1
	case d.ymd > e.ymd:
		return +1
	}
	return 0
}

// String spells d as YYYY-MM-DD, and no date as the empty string.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	var b [dateLen]byte
	year, month, day := d.Year(), int(d.Month()), d.Day()
	b[0], b[1], b[2], b[3] = digit(year/1000), digit(year/100), digit(year/10), digit(year)
	b[4], b[7] = '-', '-'
	b[5], b[6] = digit(month/10), digit(month)
	b[8], b[9] = digit(day/10), digit(day)
	return string(b[:])
}

func digit(n int) byte { return byte('0' + n%10) }
