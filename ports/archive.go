package ports

import (
	"context"

	"sessiondate/domain"
)

// An Archive keeps the messages of sessions for good.
//
// A write that failed is an error that wraps its cause and names the session,
// and stores nothing. A done context ends a write with the context's error. An
// Archive is safe for concurrent use.
type Archive interface {
	// Append adds messages at the end of a session, all of them or none. Their
	// ids are the archive's to give, and those that they come with are ignored.
	// They are stored as they are, with their stored times.
	Append(ctx context.Context, sessionID string, messages ...domain.Message) error
}
