package domain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Stamp is a stored user message's id and its creation time. The zero Stamp
// is none: there is no such message.
type Stamp struct {
	// MessageID is the message's id as the store spells it. Ids are opaque: the
	// store alone knows their order. It is empty in the zero Stamp only.
	MessageID string

	// CreatedAt is the stored creation time as the writer's wall clock spelled
	// it: "2026-10-12 23:50:00". It is empty where the store has NULL.
	CreatedAt string
}

// IsZero reports whether s is none.
func (s Stamp) IsZero() bool { return s == Stamp{} }

var (
	errNoTime   = errors.New("no stored time")
	errZeroTime = errors.New("the zero time")
	errShort    = errors.New("too short for a date")
)

// StoredDate returns the civil date of a stored creation time: its first ten
// characters, whatever follows. No zone is ever applied, so nothing that is
// configured later can move a message to another day. This is R3.
//
// A stored time that is empty (NULL), too short, zero ("0000-00-00 00:00:00")
// or no calendar date has no date. The error says which, for the log.
func StoredDate(createdAt string) (Date, error) {
	if d, ok := parseDate(createdAt); ok {
		return d, nil
	}
	switch {
	case createdAt == "":
		return Date{}, errNoTime
	case len(createdAt) < dateLen:
		return Date{}, fmt.Errorf("%s: %w", quote(createdAt), errShort)
	case strings.HasPrefix(createdAt, "0000-00-00"):
		return Date{}, fmt.Errorf("%s: %w", quote(createdAt), errZeroTime)
	}
	return Date{}, fmt.Errorf("%s: %w", quote(createdAt), errNotDate)
}

// quote quotes s for an error, and cuts what is longer than any stored time.
func quote(s string) string {
	const longest = 40
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "…"
	}
	return strconv.Quote(s)
}
