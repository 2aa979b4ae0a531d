package domain

import "strings"

// The tag that encloses a date-change notice.
const (
	tagName  = "date-change"
	tagOpen  = "<" + tagName + ">"
	tagClose = "</" + tagName + ">"
)

const escaped = "&lt;"

// EscapeTags returns the user message m with every date-change tag in its text
// made harmless: the tag's opening < becomes &lt; (R13). So a user, or a page
// pasted by one, cannot state a date in the system's name. A tag is escaped
// opening or closing, in upper or lower case, with attributes or white space,
// and also where it is split over text parts that follow one another.
//
// It is to be called on content that holds no notice of ours yet. A message of
// another role, and one without such a tag, is returned as it is. Neither m nor
// anything that it refers to is written to.
func (m Message) EscapeTags() Message {
	if m.Role != RoleUser {
		return m
	}
	// escapeTags does not fail.
	m, _ = m.withTexts(func(text string, rest []Part) (string, error) { return escapeTags(text, rest), nil })
	return m
}

// EscapeTags returns text with every date-change tag in it made harmless, as
// [Message.EscapeTags] does. It is for a host with message types of its own, to
// be called on the text of user messages.
func EscapeTags(text string) string { return escapeTags(text, nil) }

// escapeTags escapes the tags that begin in s, the text of the part that rest
// follows.
func escapeTags(s string, rest []Part) string {
	var b strings.Builder
	done := 0
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			break
		}
		i += n
		if startsTag(reader{s[i+1:], rest}) {
			b.WriteString(s[done:i])
			b.WriteString(escaped)
			done = i + 1
		}
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// startsTag reports whether r goes on, behind a <, as a date-change tag does.
func startsTag(r reader) bool {
	r.skipSpace()
	if r.peek() == '/' {
		r.next()
		r.skipSpace()
	}
	for i := range len(tagName) {
		if lower(r.next()) != tagName[i] {
			return false
		}
	}
	return !isNameByte(r.peek())
}

// A reader reads the bytes of s and then those of the text parts in rest, up to
// an image. At the end it reads zeros.
type reader struct {
	s    string
	rest []Part
}

func (r *reader) peek() byte {
	for r.s == "" && len(r.rest) > 0 && !r.rest[0].IsImage() {
		r.s, r.rest = r.rest[0].Text, r.rest[1:]
	}
	if r.s == "" {
		return 0
	}
	return r.s[0]
}

func (r *reader) next() byte {
	c := r.peek()
	if r.s != "" {
		r.s = r.s[1:]
	}
	return c
}

func (r *reader) skipSpace() {
	for {
		switch r.peek() {
		case ' ', '\t', '\n', '\r', '\f':
			r.next()
		default:
			return
		}
	}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// isNameByte reports whether c goes on with a tag's name: <date-changelog> is
// another tag.
func isNameByte(c byte) bool {
	c = lower(c)
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
