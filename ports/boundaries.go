package ports

import "context"

// Boundaries keeps how far sessions are compacted.
//
// A write that failed is an error that wraps its cause and names the session,
// and leaves the boundary where it was. So is a message that the session does not
// have. A done context ends a write with the context's error.
type Boundaries interface {
	// MoveBoundary says that the session is compacted up to the message
	// throughID, itself included, and that handoff stands for what was. The next
	// window begins behind that message and has that handoff. No message is
	// written to.
	MoveBoundary(ctx context.Context, sessionID, throughID, handoff string) error
}
