package ports

import (
	"context"

	"sessiondate/domain"
)

// A CallLog keeps the calls of sessions to their models.
//
// A read or a write that failed is an error that wraps its cause and names the
// session. A done context ends it with the context's error. A CallLog is safe
// for concurrent use, and what it keeps is there after a restart.
type CallLog interface {
	// LastCall returns the session's newest call that was answered, and false if
	// there is none. It comes back as it was recorded.
	LastCall(ctx context.Context, sessionID string) (domain.Call, bool, error)

	// Record adds a call. A count that was not reported stays so.
	Record(ctx context.Context, call domain.Call) error
}
