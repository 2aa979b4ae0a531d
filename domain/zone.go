package domain

import (
	"fmt"
	"strings"
	"time"
)

// ZonedDate returns the civil date, in the zone session, of a creation time that
// is stored as the wall clock of the zone stored (R19). A stored time that names
// its own offset, or ends in Z, is the instant that it names.
//
// It is for stores that keep UTC or another zone's clock, and only where the
// host says so; everywhere else [StoredDate] is the rule. The error is as there,
// or says that the stored time has no time of day.
func ZonedDate(createdAt string, stored, session *time.Location) (Date, error) {
	date, err := StoredDate(createdAt)
	if err != nil {
		return Date{}, err
	}
	// Parse takes a fraction of a second behind the seconds by itself.
	clock := strings.Replace(createdAt, "T", " ", 1)
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-07", "2006-01-02 15:04"} {
		t, err := time.ParseInLocation(layout, clock, stored)
		if err != nil {
			continue
		}
		if d := DateOf(t.In(session)); !d.IsZero() {
			return d, nil
		}
		return Date{}, fmt.Errorf("%s in zone %v: %w", quote(createdAt), session, errNotDate)
	}
	return Date{}, fmt.Errorf("%s: no time of day behind the date %v", quote(createdAt), date)
}
