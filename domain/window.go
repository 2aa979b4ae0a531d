package domain

import (
	"slices"
	"strings"
)

// What begins a user-role message that no user wrote.
const (
	handoffPrefix      = "## 会话任务交接"
	systemNoticePrefix = "<system-notice>"
	systemNoticeSuffix = "</system-notice>"
)

// A Window is the part of a session's history that is loaded: everything, or
// what follows the compaction boundary.
type Window struct {
	// Handoff is the summary of what was compacted, and empty if nothing was, or
	// if it left no summary.
	Handoff string
	// Messages are the messages behind the boundary, oldest first.
	Messages []Message
	// Whole says that Messages are all messages of the session, so that nobody
	// needs to ask what stands before them. It may be false for such a window.
	Whole bool
}

// HandoffMessage returns the user-role message that stands before a window in
// place of what was compacted. It has no id and no date.
func HandoffMessage(handoff string) Message {
	if !strings.HasPrefix(handoff, handoffPrefix) {
		handoff = handoffPrefix + "\n\n" + handoff
	}
	return Message{Role: RoleUser, Text: handoff}
}

// SystemNotice returns a user-role message of the harness's own. It has no id
// and no date, and is never a real user message.
func SystemNotice(text string) Message {
	return Message{Role: RoleUser, Text: systemNoticePrefix + text + systemNoticeSuffix}
}

// NewestRealUserMessage returns the index of the newest real user message, in a
// window or in a prompt, notices or not, and -1 if there is none.
func NewestRealUserMessage(messages []Message) int {
	for i, m := range slices.Backward(messages) {
		if m.IsRealUserMessage() {
			return i
		}
	}
	return -1
}

// CompactionBoundary returns the id of the message up to which a window is to be
// compacted: the last one before the newest real user message, which stays.
// Without a real user message it is the window's last. It returns the empty
// string if nothing would be compacted.
func CompactionBoundary(window []Message) string {
	last := len(window) - 1
	if i := NewestRealUserMessage(window); i >= 0 {
		last = i - 1
	}
	if last < 0 {
		return ""
	}
	return window[last].ID
}
