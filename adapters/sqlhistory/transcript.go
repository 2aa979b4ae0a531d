package sqlhistory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"sessiondate/domain"
)

// TranscriptVersion is the version of the transcript format that this package
// reads.
const TranscriptVersion = 1

// A Transcript is a session as a file tells it.
type Transcript struct {
	// Session is the session's id, and empty if the file does not say.
	Session string
	// Messages are the session's messages, oldest first. They have no ids.
	Messages []domain.Message
}

// header is an optional first line.
type header struct {
	Transcript int    `json:"transcript"`
	Session    string `json:"session"`
}

// line is a message, one to a line.
type line struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	CreatedAt  *string         `json:"created_at"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	ToolFailed bool            `json:"tool_failed"`
}

// ReadTranscript reads a transcript of version 1: UTF-8 text with one JSON
// object a line. Empty lines are passed over. The first line may be a header,
//
//	{"transcript": 1, "session": "ID"}
//
// and every other is a message:
//
//	role          "user", "assistant" or "tool"
//	content       a string, or a list of parts: {"type": "text", "text": …},
//	              {"type": "image", "url": …} or
//	              {"type": "image", "media_type": …, "data": BASE64}.
//	              An assistant that only calls tools may have none.
//	created_at    the stored time, YYYY-MM-DD and what follows; null or absent
//	              if there is none
//	tool_calls    an assistant's calls: [{"id": …, "name": …, "arguments": …}],
//	              with arguments that are an object or a string that holds one
//	tool_call_id  the call that a tool's message answers
//	tool_failed   true if a tool's message reports a failure
//
// The error names the first line that is none of this, and says why.
func ReadTranscript(r io.Reader) (Transcript, error) {
	var t Transcript
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return Transcript{}, fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if err := t.read(text, n); err != nil {
				return Transcript{}, fmt.Errorf("line %d: %w", n, err)
			}
		}
		if err != nil {
			break
		}
	}
	if len(t.Messages) == 0 {
		return Transcript{}, errors.New("the transcript has no message")
	}
	return t, nil
}

func (t *Transcript) read(text []byte, n int) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	if n == 1 {
		var h struct{ Transcript *int }
		if json.Unmarshal(text, &h) == nil && h.Transcript != nil {
			return t.readHeader(text)
		}
	}
	m, err := decodeMessage(text)
	if err != nil {
		return err
	}
	t.Messages = append(t.Messages, m)
	return nil
}

func (t *Transcript) readHeader(text []byte) error {
	var h header
	if err := decodeStrictly(text, &h); err != nil {
		return err
	}
	if h.Transcript != TranscriptVersion {
		return fmt.Errorf("transcript version %d is not %d", h.Transcript, TranscriptVersion)
	}
	t.Session = h.Session
	return nil
}

func decodeMessage(text []byte) (domain.Message, error) {
	var l line
	if err := decodeStrictly(text, &l); err != nil {
		return domain.Message{}, err
	}
	role, err := domain.ParseRole(l.Role)
	if err != nil {
		return domain.Message{}, err
	}
	m := domain.Message{Role: role, ToolCallID: l.ToolCallID, ToolFailed: l.ToolFailed}
	if l.CreatedAt != nil {
		m.CreatedAt = *l.CreatedAt
		if _, err := domain.StoredDate(m.CreatedAt); err != nil {
			return domain.Message{}, fmt.Errorf("created_at: %w", err)
		}
	}
	if present(l.ToolCalls) {
		if m.ToolCalls, err = decodeToolCalls(l.ToolCalls); err != nil {
			return domain.Message{}, err
		}
	}
	switch {
	case !present(l.Content):
		if len(m.ToolCalls) == 0 {
			return domain.Message{}, errors.New("no content")
		}
	case l.Content[0] == '"':
		if err := json.Unmarshal(l.Content, &m.Text); err != nil {
			return domain.Message{}, fmt.Errorf("content: %w", err)
		}
	case l.Content[0] == '[':
		if m.Parts, err = decodeParts(l.Content); err != nil {
			return domain.Message{}, fmt.Errorf("content: %w", err)
		}
		if len(m.Parts) == 0 {
			return domain.Message{}, errors.New("content has no parts")
		}
	default:
		return domain.Message{}, errors.New("content is neither a string nor a list of parts")
	}
	return m, fits(m)
}

// fits says what does not go with a message's role.
func fits(m domain.Message) error {
	if m.Role != domain.RoleAssistant && len(m.ToolCalls) > 0 {
		return fmt.Errorf("a message of role %v calls no tools", m.Role)
	}
	switch m.Role {
	case domain.RoleTool:
		if m.ToolCallID == "" {
			return errors.New("a message of role tool needs a tool_call_id")
		}
		return nil
	case domain.RoleAssistant:
		for _, p := range m.Parts {
			if p.IsImage() {
				return errors.New("a message of role assistant holds no image")
			}
		}
	}
	if m.ToolCallID != "" || m.ToolFailed {
		return fmt.Errorf("a message of role %v has no tool_call_id and no tool_failed", m.Role)
	}
	return nil
}

func present(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }
