package domain

import (
	"fmt"
	"slices"
	"strings"
)

// A Role is who a message is from. The zero Role is none.
type Role uint8

// The roles of a session's messages. The system prompt is no message: it is
// the sections of a [Prompt].
const (
	RoleUser Role = iota + 1
	RoleAssistant
	RoleTool
)

var roleNames = [...]string{RoleUser: "user", RoleAssistant: "assistant", RoleTool: "tool"}

// String returns "user", "assistant" or "tool".
func (r Role) String() string {
	if r == 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return roleNames[r]
}

// ParseRole returns the role that s names, in lower case or, as stores spell
// it, in upper case. The error says so if s names none.
func ParseRole(s string) (Role, error) {
	for r, name := range roleNames {
		if name != "" && (s == name || s == strings.ToUpper(name)) {
			return Role(r), nil
		}
	}
	return 0, fmt.Errorf("role %s is not user, assistant or tool", quote(s))
}

// A Message is one message of a session.
type Message struct {
	// ID is the id of the stored message, and empty for one that is not stored.
	ID string

	// Role is who the message is from.
	Role Role

	// Text is the content of a message whose content is a string.
	Text string

	// Parts is the content of a message whose content is a list of parts. A nil
	// Parts means that the content is Text. The two shapes are never exchanged,
	// because a provider's cache tells them apart (R7).
	Parts []Part

	// ToolCalls are what an assistant message asks to have run, in order.
	ToolCalls []ToolCall

	// ToolCallID is the id of the call that a tool message answers.
	ToolCallID string

	// ToolFailed says that a tool message reports a failure.
	ToolFailed bool

	// CreatedAt is the stored creation time, as in a [Stamp]. It decides the
	// message's date and is sent to no provider (R16).
	CreatedAt string
}

// A Part is one part of a message's content: an image if Image is set, else
// text.
type Part struct {
	Text  string
	Image Image
}

// IsImage reports whether p is an image.
func (p Part) IsImage() bool { return p.Image != Image{} }

// An Image is a picture, either at a URL or carried along. User and tool
// messages may hold images; no protocol takes one from an assistant.
type Image struct {
	// URL is where the image is. If it is set, the other fields are empty.
	URL string
	// MediaType is the type of Data, such as "image/png".
	MediaType string
	// Data is the image in standard base64.
	Data string
}

// Location returns where the image is: its URL or, for one that is carried
// along, a data URL (RFC 2397).
func (i Image) Location() string {
	if i.URL != "" {
		return i.URL
	}
	return "data:" + i.MediaType + ";base64," + i.Data
}

// A ToolCall is an assistant's request to run a tool.
type ToolCall struct {
	// ID is the call's id, unique in its session.
	ID string
	// Name is the tool's name.
	Name string
	// Arguments is a JSON object as the model wrote it. It is text because a
	// decoded object forgets the order of its keys.
	Arguments string
}

// HasContent reports whether m holds a text that is not empty, or an image.
func (m Message) HasContent() bool {
	return m.Text != "" || slices.ContainsFunc(m.Parts, func(p Part) bool { return p != Part{} })
}

// Clone returns a copy of m that shares no slice with it.
func (m Message) Clone() Message {
	m.Parts = slices.Clone(m.Parts)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	return m
}

// SharesContent reports whether the content of m and that of n are one and the
// same, so that neither was changed. It looks at no part.
func (m Message) SharesContent(n Message) bool {
	return m.Text == n.Text && len(m.Parts) == len(n.Parts) && (len(m.Parts) == 0 || &m.Parts[0] == &n.Parts[0])
}

// IsRealUserMessage reports whether m is a user's own: a user message that is
// neither a handoff nor a system notice. With a date-change notice in front it
// still is one. A handoff and a system notice have no date, and so no notice.
func (m Message) IsRealUserMessage() bool {
	if m.Role != RoleUser {
		return false
	}
	text := m.Text
	if m.Parts != nil {
		text = ""
		if len(m.Parts) > 0 {
			text = m.Parts[0].Text
		}
	}
	return !strings.HasPrefix(text, handoffPrefix) && !strings.HasPrefix(text, systemNoticePrefix)
}

// withTexts returns m with each of its texts changed, of a part together with
// the parts that follow it. Neither m nor anything that it refers to is written
// to. The error is that of change.
func (m Message) withTexts(change func(text string, rest []Part) (string, error)) (Message, error) {
	if m.Parts == nil {
		text, err := change(m.Text, nil)
		m.Text = text
		return m, err
	}
	var parts []Part
	for i, p := range m.Parts {
		text, err := change(p.Text, m.Parts[i+1:])
		if err != nil {
			return Message{}, err
		}
		if text == p.Text {
			continue
		}
		if parts == nil {
			parts = slices.Clone(m.Parts)
		}
		parts[i].Text = text
	}
	if parts != nil {
		m.Parts = parts
	}
	return m, nil
}

// WithNotice returns m with a notice in front of its content (R7): a string
// becomes the notice, an empty line and the string; parts get one text part
// more, in front. Every other field is kept. Neither m nor anything that it
// refers to is written to.
func (m Message) WithNotice(notice string) Message {
	if m.Parts == nil {
		m.Text = notice + "\n\n" + m.Text
		return m
	}
	parts := make([]Part, 0, 1+len(m.Parts))
	m.Parts = append(append(parts, Part{Text: notice}), m.Parts...)
	return m
}
