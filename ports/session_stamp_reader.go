package ports

import (
	"context"

	"sessiondate/domain"
)

// A SessionStampReader reads the stored creation times of a session's user
// messages.
//
// Only messages of role USER that are not soft-deleted count. A session's id
// matches byte for byte, whatever the collation of the store. Reading writes
// nothing. A read that failed is an error that wraps its cause and names the
// session, never an absent stamp. A done context ends a read with the context's
// error. A reader is safe for concurrent use.
type SessionStampReader interface {
	// FirstUserStamp returns the stamp of the session's first user message, the
	// one with the smallest id in the store's order. It returns the zero Stamp
	// if the session has no user message. The stored time comes back as it is
	// stored, no zone applied, and empty where the store has none.
	FirstUserStamp(ctx context.Context, sessionID string) (domain.Stamp, error)

	// PreviousUserStamp returns the stamp of the session's last user message
	// before the message with the id beforeID in the store's order. It returns
	// the zero Stamp if there is none. The stored time comes back as in
	// FirstUserStamp.
	PreviousUserStamp(ctx context.Context, sessionID, beforeID string) (domain.Stamp, error)
}

// A StampPairReader is a SessionStampReader that answers both questions in one
// round trip to its store. It is optional: without it they are asked one by one.
type StampPairReader interface {
	SessionStampReader

	// UserStamps returns what FirstUserStamp and PreviousUserStamp return.
	UserStamps(ctx context.Context, sessionID, beforeID string) (first, previous domain.Stamp, err error)
}
