package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"sessiondate/domain"
	"sessiondate/ports"
)

// Options configures a [SessionDate]. Its zero value is anchor-only.
type Options struct {
	// Stamps reads the stored times of user messages. If it is nil, prompts are
	// anchored on the window that they show and carry no notice (R10). Beware of
	// a nil pointer in this interface: it is not nil.
	Stamps ports.SessionStampReader

	// Now is the clock, for sessions without a user message (R2). If it is nil,
	// it is time.Now.
	Now func() time.Time

	// Zone is where the clock's date is taken. If it is nil, it is
	// Asia/Shanghai. No stored time is ever converted to it.
	Zone *time.Location

	// StoredZone is the zone whose wall clock the store keeps, such as time.UTC.
	// Together with [Window.Zone] it makes a date the civil date, in the
	// session's zone, of the stored instant (R19). If it is nil, as it is by
	// default, a date is what the stored wall clock says (R3).
	StoredZone *time.Location

	// Logger is told once, at start-up, that there is no stamp reader, and of
	// messages whose stored time is no date, by their id. No content is logged.
	// If it is nil, nothing is.
	Logger *slog.Logger
}

// A SessionDate finds out what a prompt must say of the date. It keeps nothing
// between calls and is safe for concurrent use.
type SessionDate struct {
	stamps     ports.SessionStampReader
	clock      clock
	storedZone *time.Location
	logger     *slog.Logger
}

// NewSessionDate returns a SessionDate. If there is no stamp reader, it says so
// in one line of the log.
func NewSessionDate(o Options) *SessionDate {
	s := &SessionDate{o.Stamps, newClock(o.Now, o.Zone), o.StoredZone, orDiscard(o.Logger)}
	if s.stamps == nil {
		s.logger.Warn("no session stamp reader: prompts are anchored and carry no date-change notice")
	}
	return s
}

// A WindowMessage is what [SessionDate.Resolve] needs to know of one message of
// a window.
type WindowMessage struct {
	// ID is the stored message's id, as the store spells it.
	ID string
	// Role is who the message is from.
	Role domain.Role
	// CreatedAt is the stored creation time, as it was stored, and empty for a
	// message that is not stored, such as a handoff or a system notice.
	CreatedAt string
}

// A Window is the part of a session's history that a prompt shows.
type Window struct {
	// SessionID is the session's id.
	SessionID string
	// Messages are the window's messages, oldest first.
	Messages []WindowMessage
	// Whole says that Messages are all messages of the session that are not
	// soft-deleted. Then they answer what the stamp reader would be asked, and it
	// is asked nothing.
	Whole bool
	// Wording is how the model is told.
	Wording domain.Wording
	// Zone is the zone that the session lives in. The host pins it with the
	// session: another zone later would rewrite the days of the whole history.
	// It counts only together with [Options.StoredZone], and then also for the
	// clock. If it is nil, the stored wall clock is the session's.
	Zone *time.Location
}

// A Notice is a date-change notice and where it goes.
type Notice struct {
	// Index is the index of the window's message that the notice precedes.
	Index int
	// MessageID is that message's id.
	MessageID string
	// Date is the date that the notice states.
	Date domain.Date
	// Text is the notice, tag included: what goes in front of the message's
	// content, with an empty line between, as [domain.Message.WithNotice] does.
	Text string
}

// Dates is what a prompt must say of the date.
type Dates struct {
	// Anchor is the date that the system prompt states.
	Anchor domain.Anchor
	// Section is the text of the current-date section.
	Section string
	// Notices are the notices, in the order of the window.
	Notices []Notice
}

// Resolve returns what a prompt with the given window must say of the date: the
// anchor (R1, R2, R10), the section's text (R11) and the notices (R4, R12). It
// reads the stamps anew each time, so it heals when messages are deleted.
//
// An error is the stamp reader's, wrapped; it names the session. There is no
// prompt to be sent then: one with other dates would be cached as if it were
// right.
func (s *SessionDate) Resolve(ctx context.Context, w Window) (Dates, error) {
	return s.resolve(ctx, w, len(w.Messages), func(i int) WindowMessage { return w.Messages[i] })
}

// resolve is Resolve of n messages that are not in w.
func (s *SessionDate) resolve(ctx context.Context, w Window, n int, message func(i int) WindowMessage) (Dates, error) {
	if err := ctx.Err(); err != nil {
		return Dates{}, fmt.Errorf("resolve dates of session %s: %w", w.SessionID, err)
	}
	var zone *time.Location
	dateOf := domain.StoredDate
	if s.storedZone != nil && w.Zone != nil {
		zone = w.Zone
		dateOf = func(createdAt string) (domain.Date, error) { return domain.ZonedDate(createdAt, s.storedZone, w.Zone) }
	}
	log := undatedLog{dateOf: dateOf, logger: s.logger, sessionID: w.SessionID}
	window := make([]domain.Entry, n)
	var firstStored domain.Stamp
	dated := false
	for i := range window {
		m := message(i)
		window[i].Role = m.Role
		if m.Role != domain.RoleUser || m == (WindowMessage{Role: domain.RoleUser}) {
			continue
		}
		stamp := domain.Stamp{MessageID: m.ID, CreatedAt: m.CreatedAt}
		if firstStored.IsZero() {
			firstStored = stamp
		}
		window[i].Date = log.storedDate(ctx, stamp)
		dated = dated || !window[i].Date.IsZero()
	}

	first, previous, err := s.around(ctx, w, firstStored, dated)
	if err != nil {
		return Dates{}, err
	}
	d := Dates{Anchor: domain.ResolveAnchor(log.storedDate(ctx, first), window, s.clock.today(zone))}
	d.Section = w.Wording.CurrentDate(d.Anchor.Date)
	if s.stamps == nil || !dated {
		return d, nil
	}
	before, err := s.before(ctx, w.SessionID, previous, &log)
	if err != nil {
		return Dates{}, err
	}
	for _, c := range domain.Changes(window, d.Anchor.Date, before) {
		d.Notices = append(d.Notices, Notice{c.Index, message(c.Index).ID, c.Date, w.Wording.Notice(c.Date)})
	}
	return d, nil
}

// around finds out what the window alone does not tell: the session's first user
// stamp and, for a window with a date, the one before the window's first stored
// user message. It asks in as few round trips as it can.
func (s *SessionDate) around(ctx context.Context, w Window, firstStored domain.Stamp, dated bool) (first, previous domain.Stamp, err error) {
	pairs, both := s.stamps.(ports.StampPairReader)
	switch {
	case s.stamps == nil:
		return domain.Stamp{}, domain.Stamp{}, nil
	case w.Whole:
		return firstStored, domain.Stamp{}, nil
	case both && dated:
		if first, previous, err = pairs.UserStamps(ctx, w.SessionID, firstStored.MessageID); err != nil {
			return domain.Stamp{}, domain.Stamp{}, fmt.Errorf("anchor session %s and look before its window: %w", w.SessionID, err)
		}
		return first, previous, nil
	}
	if first, err = s.stamps.FirstUserStamp(ctx, w.SessionID); err != nil {
		return domain.Stamp{}, domain.Stamp{}, fmt.Errorf("anchor session %s: %w", w.SessionID, err)
	}
	if dated {
		previous, err = s.previous(ctx, w.SessionID, firstStored.MessageID)
	}
	return first, previous, err
}

func (s *SessionDate) previous(ctx context.Context, sessionID, beforeID string) (domain.Stamp, error) {
	stamp, err := s.stamps.PreviousUserStamp(ctx, sessionID, beforeID)
	if err != nil {
		return domain.Stamp{}, fmt.Errorf("look before the window of session %s: %w", sessionID, err)
	}
	return stamp, nil
}

// before returns what stands before a window, of which previous is the last user
// stamp. Stamps that have no date are passed over (R8).
func (s *SessionDate) before(ctx context.Context, sessionID string, previous domain.Stamp, log *undatedLog) (domain.Before, error) {
	var before domain.Before
	for !previous.IsZero() {
		before.Boundary = true
		before.Previous = log.storedDate(ctx, previous)
		if !before.Previous.IsZero() {
			break
		}
		var err error
		if previous, err = s.previous(ctx, sessionID, previous.MessageID); err != nil {
			return domain.Before{}, err
		}
	}
	return before, nil
}

// An undatedLog logs each message of one prompt that has no date once (R3).
type undatedLog struct {
	dateOf    func(createdAt string) (domain.Date, error)
	logger    *slog.Logger
	sessionID string
	logged    map[string]bool
}

// storedDate returns the stamp's date, and no date with a line in the log if it
// has none. The zero stamp has no date, and no line.
func (l *undatedLog) storedDate(ctx context.Context, stamp domain.Stamp) domain.Date {
	if stamp.IsZero() {
		return domain.Date{}
	}
	date, err := l.dateOf(stamp.CreatedAt)
	if err != nil && !l.logged[stamp.MessageID] {
		if l.logged == nil {
			l.logged = make(map[string]bool)
		}
		l.logged[stamp.MessageID] = true
		l.logger.LogAttrs(ctx, slog.LevelWarn, "stored time of user message is no date",
			slog.String("session", l.sessionID), slog.String("message", stamp.MessageID), slog.String("reason", err.Error()))
	}
	return date
}
