package domain

// An AnchorSource says where an anchor's date came from.
type AnchorSource string

// The sources of an anchor, in the order in which they are tried.
const (
	// FromFirstUserMessage: the session's first user message, as stored (R1).
	FromFirstUserMessage AnchorSource = "first user message"
	// FromLoadedHistory: the earliest dated user message of the window, for
	// want of a dated first user message (R10).
	FromLoadedHistory AnchorSource = "loaded history"
	// FromClock: today, for want of any dated user message (R2).
	FromClock AnchorSource = "clock"
)

// An Anchor is the date that a session's system prompt states.
type Anchor struct {
	// Date is the date stated. It is never the zero Date once resolved.
	Date Date
	// Source says where Date came from.
	Source AnchorSource
}

// ResolveAnchor returns the anchor of a session: the date of its first user
// message (R1); where that is no date, the date of the window's earliest dated
// user message (R10); where there is none, today (R2).
//
// Earliest is by the order of the window, which is the store's, and not by
// date: clocks step back.
func ResolveAnchor(firstUserMessage Date, window []Entry, today Date) Anchor {
	if !firstUserMessage.IsZero() {
		return Anchor{firstUserMessage, FromFirstUserMessage}
	}
	for _, e := range window {
		if e.dated() {
			return Anchor{e.Date, FromLoadedHistory}
		}
	}
	return Anchor{today, FromClock}
}
