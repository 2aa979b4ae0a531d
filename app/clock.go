package app

import (
	"time"

	"sessiondate/domain"
)

// shanghai is the zone of Asia/Shanghai since 1991. It is fixed so that no
// machine needs a zone database to know the default.
var shanghai = time.FixedZone("Asia/Shanghai", 8*60*60)

// A clock tells the time in a zone.
type clock struct {
	now  func() time.Time
	zone *time.Location
}

// newClock returns a clock that by default tells the real time in Asia/Shanghai.
func newClock(now func() time.Time, zone *time.Location) clock {
	if now == nil {
		now = time.Now
	}
	if zone == nil {
		zone = shanghai
	}
	return clock{now, zone}
}

// today returns the date in another zone or, if that is nil, in the clock's.
func (c clock) today(zone *time.Location) domain.Date {
	if zone == nil {
		zone = c.zone
	}
	return domain.DateOf(c.now().In(zone))
}

// wallClock spells the time as it is stored, in whole seconds.
func (c clock) wallClock() string { return c.now().In(c.zone).Format(time.DateTime) }
