package domain

// An Entry is what the sequence of dates needs to know of one message.
type Entry struct {
	// Role is who the message is from. Only user messages take part.
	Role Role
	// Date is the date of the message's stored time, and zero if it has none.
	Date Date
}

// dated reports whether e takes part in the sequence (R8).
func (e Entry) dated() bool { return e.Role == RoleUser && !e.Date.IsZero() }

// A Change is a message of a window whose date is news to the model.
type Change struct {
	// Index is the message's index in the window.
	Index int
	// Date is the message's own date.
	Date Date
}

// Before is what stands before a window. Its zero value is a window that
// begins where the session does.
type Before struct {
	// Boundary says that the window does not begin where the session does: it
	// is what follows a compaction.
	Boundary bool
	// Previous is the date of the last dated user message before the window's
	// first dated user message, and zero if there is none.
	Previous Date
}

// Changes returns the messages of the window that get a date-change notice, in
// order. It is a pure function of stored facts, so it answers the same for the
// same messages in every later prompt.
//
// A user message whose date differs from that of the dated user message before
// it is a change, also where the date goes backwards, and a gap of several days
// is one change (R4). The window's first dated user message is compared with
// before.Previous or, without one, with the anchor. In a window that begins at
// a boundary it is a change also if it differs from the anchor, because the
// messages that told the model of the later day are gone (R12).
//
// Entries that are no user message or have no date are not compared and do not
// move the sequence on (R8). Changes returns nil if nothing changed.
func Changes(window []Entry, anchor Date, before Before) []Change {
	var changes []Change
	first := 0
	for first < len(window) && !window[first].dated() {
		first++
	}
	if first == len(window) {
		return nil
	}
	known := anchor
	if !before.Previous.IsZero() {
		known = before.Previous
	}
	date := window[first].Date
	if date != known || before.Boundary && date != anchor {
		changes = append(changes, Change{first, date})
	}
	known = date
	for i := first + 1; i < len(window); i++ {
		// The comparison alone decides of nearly all messages.
		if e := window[i]; e.Date != known && e.dated() {
			changes = append(changes, Change{i, e.Date})
			known = e.Date
		}
	}
	return changes
}
