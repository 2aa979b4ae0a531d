package ports

import (
	"context"

	"sessiondate/domain"
)

// A History loads the messages of sessions.
//
// A session's id matches byte for byte. Reading writes nothing, and reading
// twice answers the same. A read that failed is an error that wraps its cause
// and names the session. A done context ends a read with the context's error.
// A History is safe for concurrent use.
type History interface {
	// Window returns the session's messages behind its compaction boundary, in
	// the store's order, oldest first, without the soft-deleted ones, and the
	// handoff that the newest compaction left. A window is whole if the session was
	// never compacted. It returns an empty window, and no error, for a session that
	// it does not know. Each message comes back as it
	// was stored: the shape of its content, its ids, the text of its tool calls'
	// arguments and the spelling of its stored time.
	Window(ctx context.Context, sessionID string) (domain.Window, error)
}
