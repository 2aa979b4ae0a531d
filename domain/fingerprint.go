package domain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

// A Hash is the first half of a SHA-256.
type Hash [16]byte

// String spells h in 32 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText spells h as String does.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText spelled.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("a hash has %d hexadecimal digits, not %d", 2*len(h), len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// A UnitKind is a kind of prefix unit of a prompt.
type UnitKind string

// The kinds of prefix units, in the order of caching.
const (
	ToolUnit    UnitKind = "tool"
	SectionUnit UnitKind = "section"
	MessageUnit UnitKind = "message"
)

// A UnitHash is the trace of one prefix unit of a prompt.
type UnitHash struct {
	Kind UnitKind
	// Name is the tool's or the section's name, or the message's id.
	Name string
	// Own is the hash of the unit's content.
	Own Hash
	// Chained is the hash of the unit and of all before it.
	Chained Hash
}

// A Fingerprint is the trace of a whole prompt, in the order of caching. It
// holds no content.
type Fingerprint []UnitHash

// Fingerprint returns the prompt's fingerprint (R14): each tool, each system
// section, each message. Message ids and stored times are no content and change
// no hash.
func (p Prompt) Fingerprint() Fingerprint {
	f := make(Fingerprint, 0, len(p.Tools)+len(p.Sections)+len(p.Messages))
	add := func(kind UnitKind, name string, content ...string) {
		own := hashOf(append([]string{string(kind)}, content...)...)
		chained := own
		if len(f) > 0 {
			chained = hashOf(string(f[len(f)-1].Chained[:]), string(own[:]))
		}
		f = append(f, UnitHash{kind, name, own, chained})
	}
	for _, t := range p.Tools {
		add(ToolUnit, t.Name, t.Name, t.Description, t.Schema)
	}
	for _, s := range p.Sections {
		add(SectionUnit, s.Name, s.Text)
	}
	for _, m := range p.Messages {
		add(MessageUnit, m.ID, m.content()...)
	}
	return f
}

// content returns all of the message that is sent.
func (m Message) content() []string {
	content := []string{m.Role.String(), m.ToolCallID, fmt.Sprint(m.ToolFailed), fmt.Sprint(m.Parts != nil), m.Text}
	for _, p := range m.Parts {
		content = append(content, "part", p.Text, p.Image.URL, p.Image.MediaType, p.Image.Data)
	}
	for _, c := range m.ToolCalls {
		content = append(content, "call", c.ID, c.Name, c.Arguments)
	}
	return content
}

// hashOf hashes strings so that no two lists of them hash alike: each with its
// length in front.
func hashOf(content ...string) Hash {
	h := sha256.New()
	var length [8]byte
	for _, s := range content {
		binary.BigEndian.PutUint64(length[:], uint64(len(s)))
		h.Write(length[:])
		h.Write([]byte(s))
	}
	return Hash(h.Sum(nil)[:len(Hash{})])
}

// A Comparison says how much of a session's previous prompt a prompt repeats.
type Comparison struct {
	// PreviousUnits is how many prefix units the previous prompt had.
	PreviousUnits int
	// RepeatedUnits is how many of them are repeated before the first that is
	// not.
	RepeatedUnits int
	// ChangedSections names the system sections that are new, gone, changed or
	// elsewhere, sorted.
	ChangedSections []string
	// ChangedTools names the tools that are, sorted.
	ChangedTools []string
}

// Compare compares f with the fingerprint of the session's previous prompt,
// which is nil if there was none.
func (f Fingerprint) Compare(previous Fingerprint) Comparison {
	c := Comparison{PreviousUnits: len(previous)}
	for i := range min(len(f), len(previous)) {
		if f[i].Chained != previous[i].Chained {
			break
		}
		c.RepeatedUnits++
	}
	if previous != nil {
		c.ChangedSections = changed(f, previous, SectionUnit)
		c.ChangedTools = changed(f, previous, ToolUnit)
	}
	return c
}

// changed names the units of a kind that are new, gone, changed or in another
// order.
func changed(f, previous Fingerprint, kind UnitKind) []string {
	now, before := ofKind(f, kind), ofKind(previous, kind)
	var names []string
	for _, u := range now {
		if !slices.ContainsFunc(before, u.same) {
			names = append(names, u.Name)
		}
	}
	for _, u := range before {
		if !slices.ContainsFunc(now, u.same) {
			names = append(names, u.Name)
		}
	}
	named := func(u UnitHash) bool { return slices.Contains(names, u.Name) }
	now, before = slices.DeleteFunc(now, named), slices.DeleteFunc(before, named)
	for i := range min(len(now), len(before)) {
		if !now[i].same(before[i]) {
			names = append(names, now[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (u UnitHash) same(v UnitHash) bool { return u.Name == v.Name && u.Own == v.Own }

func ofKind(f Fingerprint, kind UnitKind) Fingerprint {
	var units Fingerprint
	for _, u := range f {
		if u.Kind == kind {
			units = append(units, u)
		}
	}
	return units
}
