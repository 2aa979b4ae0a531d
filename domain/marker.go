package domain

import (
	"strings"
	"unicode"
)

// A MarkerKind is a kind of quick command.
type MarkerKind uint8

// The kinds of quick commands.
const (
	// SkillMarker is spelled $name$.
	SkillMarker MarkerKind = iota + 1
	// CommandMarker is spelled #{name}#.
	CommandMarker
)

// A Marker is a place in a user message where a quick command's text belongs.
type Marker struct {
	Kind MarkerKind
	// Name is the skill's or the command's name: letters, digits and any of
	// - _ . : and /.
	Name string
}

// String spells m as it stands in a message.
func (m Marker) String() string {
	if m.Kind == SkillMarker {
		return "$" + m.Name + "$"
	}
	return "#{" + m.Name + "}#"
}

// Expand returns the user message m with every marker that lookup knows replaced
// by its text (R9). A marker that it does not know stays as it is. What was
// expanded is not expanded again. Every other field is kept, and neither m nor
// anything that it refers to is written to. A message of another role is
// returned as it is.
//
// The error is lookup's.
func (m Message) Expand(lookup func(Marker) (text string, known bool, err error)) (Message, error) {
	if m.Role != RoleUser {
		return m, nil
	}
	return m.withTexts(func(text string, _ []Part) (string, error) { return expand(text, lookup) })
}

func expand(s string, lookup func(Marker) (string, bool, error)) (string, error) {
	var b strings.Builder
	done := 0
	for i := 0; ; {
		n := strings.IndexAny(s[i:], "$#")
		if n < 0 {
			break
		}
		i += n
		marker, ok := markerAt(s[i:])
		if !ok {
			i++
			continue
		}
		text, known, err := lookup(marker)
		if err != nil {
			return "", err
		}
		if !known {
			// What ends this marker may begin another: $5$skill$.
			i++
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(text)
		i += len(marker.String())
		done = i
	}
	if done == 0 {
		return s, nil
	}
	b.WriteString(s[done:])
	return b.String(), nil
}

// markerAt returns the marker at the beginning of s.
func markerAt(s string) (Marker, bool) {
	kind, opening, closing := SkillMarker, "$", "$"
	if strings.HasPrefix(s, "#{") {
		kind, opening, closing = CommandMarker, "#{", "}#"
	}
	rest, ok := strings.CutPrefix(s, opening)
	if !ok {
		return Marker{}, false
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return !isMarkerRune(r) })
	if n <= 0 || !strings.HasPrefix(rest[n:], closing) {
		return Marker{}, false
	}
	return Marker{kind, rest[:n]}, true
}

func isMarkerRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.:/", r)
}
