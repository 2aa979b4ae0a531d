package domain

// A Call is one request to a model, as the log of calls keeps it. It holds no
// content.
type Call struct {
	SessionID string
	// At is when the request was sent, as the wall clock of the configured zone
	// spelled it: "2026-10-12 23:50:00".
	At string
	// Purpose is why it was sent.
	Purpose CallPurpose
	// LastMessageID is the id of the newest stored message that was sent.
	LastMessageID string

	// Provider, Model and ReplyID are as in [Reply].
	Provider, Model, ReplyID string

	// Fingerprint is the prompt's. Comparison compares it with that of the
	// session's previous call.
	Fingerprint Fingerprint
	Comparison  Comparison

	// Usage and CacheMiss are as in [Reply].
	Usage     Usage
	CacheMiss string

	// Failed says that no reply came.
	Failed bool
}

// A CallPurpose is why a request was sent.
type CallPurpose string

// The purposes of calls.
const (
	// ForTurn is a request of a conversation's turn.
	ForTurn CallPurpose = "turn"
	// ForCompaction asks for a handoff.
	ForCompaction CallPurpose = "compaction"
)
