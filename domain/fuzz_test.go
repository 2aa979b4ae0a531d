package domain_test

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sessiondate/domain"
)

// standardDate returns the date that the standard library reads in s, and
// whether it is one of ours: the standard library has a year 0.
func standardDate(s string) (time.Time, bool) {
	t, err := time.Parse(time.DateOnly, s)
	return t, err == nil && t.Year() >= 1
}

func FuzzParseDate(f *testing.F) {
	for _, s := range []string{
		"2026-10-12", "0001-01-01", "9999-12-31", "2024-02-29", "1900-02-29", "0000-01-01", "2026-02-30",
		"2026-1-2", "", "+026-10-12", "2026-10-12 ", "２０２６-10-12",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := domain.ParseDate(s)
		standard, ok := standardDate(s)
		if ok != (err == nil) {
			t.Fatalf("ParseDate(%q) = %v, %v, but the standard library says %v", s, d, err, ok)
		}
		if err != nil {
			if !d.IsZero() {
				t.Fatalf("ParseDate(%q) = %v with error %v", s, d, err)
			}
			return
		}
		if d.String() != s {
			t.Errorf("ParseDate(%q) spells %q", s, d)
		}
		if d != domain.DateOf(standard) || d.Weekday() != standard.Weekday() {
			t.Errorf("ParseDate(%q) = %v, %v, but the standard library says %v", s, d, d.Weekday(), standard)
		}
		if again, err := domain.NewDate(d.Year(), d.Month(), d.Day()); again != d || err != nil {
			t.Errorf("NewDate of the fields of %q = %v, %v", s, again, err)
		}
	})
}

func FuzzStoredDate(f *testing.F) {
	for _, s := range []string{
		"2026-10-12 23:50:00", "2026-10-12T23:50:00Z", "2026-10-12 23:59:59.600000", "2026-10-12", "2026-10-1",
		"0000-00-00 00:00:00", "", "2026-02-30 08:00:00", "1791849000", "2026-10-12上午", " 2026-10-12",
	} {
		f.Add(s, "+08:00")
	}
	f.Fuzz(func(t *testing.T, s, more string) {
		d, err := domain.StoredDate(s)
		if d.IsZero() != (err != nil) {
			t.Fatalf("StoredDate(%q) = %v, %v", s, d, err)
		}
		var want string
		if len(s) >= 10 {
			if _, ok := standardDate(s[:10]); ok {
				want = s[:10]
			}
		}
		if d.String() != want {
			t.Errorf("StoredDate(%q) = %v, %v, want %q", s, d, err, want)
		}
		if want == "" {
			return
		}
		if longer, err := domain.StoredDate(s + more); longer != d || err != nil {
			t.Errorf("StoredDate(%q) = %v, %v, but without %q it is %v", s+more, longer, err, more, d)
		}
	})
}

// changesAsWritten is what R4, R8 and R12 say, sentence by sentence, with no
// state carried from one message to the next.
func changesAsWritten(window []domain.Entry, anchor domain.Date, before domain.Before) []domain.Change {
	takesPart := func(e domain.Entry) bool { return e.Role == domain.RoleUser && e.Date != domain.Date{} }
	var told []domain.Change
	for i, e := range window {
		if !takesPart(e) {
			continue
		}
		predecessor, inWindow := anchor, false
		if (before.Previous != domain.Date{}) {
			predecessor = before.Previous
		}
		for j := range i {
			if takesPart(window[j]) {
				predecessor, inWindow = window[j].Date, true
			}
		}
		restated := !inWindow && before.Boundary && e.Date != anchor
		if e.Date != predecessor || restated {
			told = append(told, domain.Change{Index: i, Date: e.Date})
		}
	}
	return told
}

func FuzzChanges(f *testing.F) {
	f.Add([]byte{4, 4, 5, 5}, byte(0), byte(0), false)
	f.Add([]byte{5, 6, 5}, byte(1), byte(2), true)
	f.Add([]byte{0, 5, 9, 6, 3, 6}, byte(0), byte(1), true)
	f.Add([]byte{}, byte(0), byte(0), true)
	days := make([]domain.Date, 4)
	for i, s := range []string{"2026-10-12", "2026-10-13", "2026-10-16", "2027-01-01"} {
		d, err := domain.ParseDate(s)
		if err != nil {
			f.Fatal(err)
		}
		days[i] = d
	}
	roles := []domain.Role{domain.RoleUser, domain.RoleUser, domain.RoleAssistant, domain.RoleTool}
	// Few days and many repetitions, because it is equal dates that matter.
	day := func(b byte) domain.Date {
		if b%5 == 0 {
			return domain.Date{}
		}
		return days[b%5-1]
	}
	f.Fuzz(func(t *testing.T, messages []byte, anchor, previous byte, boundary bool) {
		// The naive answer is quadratic.
		messages = messages[:min(len(messages), 200)]
		window := make([]domain.Entry, len(messages))
		for i, b := range messages {
			window[i] = domain.Entry{Role: roles[b/5%4], Date: day(b)}
		}
		stored := slices.Clone(window)
		before := domain.Before{Boundary: boundary, Previous: day(previous)}
		got := domain.Changes(window, days[anchor%4], before)
		want := changesAsWritten(window, days[anchor%4], before)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("Changes(%v, %v, %v) = %v, want %v", window, days[anchor%4], before, got, want)
		}
		if !slices.Equal(window, stored) {
			t.Errorf("the window was written to: %v, was %v", window, stored)
		}
	})
}

// forgedTag matches a text that begins with a date-change tag, by the words of
// R13.
var forgedTag = regexp.MustCompile(`^<[ \t\n\r\f]*/?[ \t\n\r\f]*(?i:date-change)(?:[^A-Za-z0-9_-]|$)`)

// forgedTags counts the date-change tags of a text.
func forgedTags(text string) int {
	n := 0
	for i := range len(text) {
		if text[i] == '<' && forgedTag.MatchString(text[i:]) {
			n++
		}
	}
	return n
}

// fuzzedParts makes parts of a text: | stands between two, and a part that is ~
// is an image.
func fuzzedParts(text string) []domain.Part {
	list := []domain.Part{}
	for t := range strings.SplitSeq(text, "|") {
		p := domain.Part{Text: t}
		if t == "~" {
			p = domain.Part{Image: domain.Image{URL: "https://example.com/a.png"}}
		}
		list = append(list, p)
	}
	return list
}

// runs returns the texts that a model reads without an image in between.
func runs(m domain.Message) []string {
	if m.Parts == nil {
		return []string{m.Text}
	}
	list := []string{""}
	for _, p := range m.Parts {
		if p.IsImage() {
			list = append(list, "")
			continue
		}
		list[len(list)-1] += p.Text
	}
	return list
}

func FuzzEscapeTags(f *testing.F) {
	for _, s := range []string{
		"<date-change>", "</DATE-CHANGE >", "a <|date-change>", "<|date|-change|log>", "<<date-change/>", "<|~|date-change>",
		"< / date-change", "<date-changelog>", "&lt;date-change>", "a < b", "", "<date-change系统>", "<date-change\xff>",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, inParts bool) {
		m := domain.Message{ID: "1", Role: domain.RoleUser, Text: text, CreatedAt: "2026-10-12 08:00:00"}
		if inParts {
			m.Text, m.Parts = "", fuzzedParts(text)
		}
		before := m.Clone()
		got := m.EscapeTags()
		if !reflect.DeepEqual(m, before) {
			t.Fatalf("the message was written to: %+v, was %+v", m, before)
		}
		if again := got.EscapeTags(); !reflect.DeepEqual(again, got) {
			t.Errorf("escaping twice gives %+v, once %+v", again, got)
		}
		if !inParts && got.Text != domain.EscapeTags(text) {
			t.Errorf("the message says %q and the function %q", got.Text, domain.EscapeTags(text))
		}

		was, is := runs(m), runs(got)
		if len(was) != len(is) || len(m.Parts) != len(got.Parts) {
			t.Fatalf("parts came or went: %+v, was %+v", got, m)
		}
		forged := false
		for i := range is {
			n := forgedTags(was[i])
			forged = forged || n > 0
			if forgedTags(is[i]) > 0 {
				t.Errorf("a tag is left in %q, which was %q", is[i], was[i])
			}
			// Nothing but opening brackets may have been changed.
			if plain := strings.NewReplacer("&lt;", "<"); plain.Replace(is[i]) != plain.Replace(was[i]) {
				t.Errorf("%q became %q", was[i], is[i])
			}
			if strings.Count(is[i], "<") != strings.Count(was[i], "<")-n {
				t.Errorf("%q has %d tags and became %q", was[i], n, is[i])
			}
		}
		if !forged && !reflect.DeepEqual(got, before) {
			t.Errorf("there was no tag in %q, and it became %q", was, is)
		}
	})
}

func FuzzWithNotice(f *testing.F) {
	f.Add("Good morning.", "<date-change>x</date-change>", false)
	f.Add("", "n", false)
	f.Add("~|a|b|~", "n", true)
	f.Add("", "", true)
	f.Fuzz(func(t *testing.T, text, notice string, inParts bool) {
		m := domain.Message{
			ID: "1", Role: domain.RoleUser, Text: text, CreatedAt: "2026-10-12 08:00:00",
			ToolCalls: []domain.ToolCall{{ID: "c", Name: "n", Arguments: "{}"}}, ToolCallID: "d", ToolFailed: true,
		}
		if inParts {
			// Spare room behind the parts, where a careless append would write.
			m.Text, m.Parts = "", slices.Grow(fuzzedParts(text), 4)
		}
		before := m.Clone()
		want := m.Clone()
		if inParts {
			want.Parts = slices.Insert(want.Parts, 0, domain.Part{Text: notice})
		} else {
			want.Text = notice + "\n\n" + text
		}
		got := m.WithNotice(notice)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		for i := range got.Parts {
			got.Parts[i].Text += "x"
		}
		if !reflect.DeepEqual(m, before) {
			t.Errorf("the message was written to: %+v, was %+v", m, before)
		}
		if inParts && !reflect.DeepEqual(m.Parts[:cap(m.Parts)][len(m.Parts):], make([]domain.Part, cap(m.Parts)-len(m.Parts))) {
			t.Error("the room behind the parts was written to")
		}
	})
}

// fuzzedCommands are the texts of the markers that are known to FuzzExpand.
var fuzzedCommands = map[string]string{
	"$a$": "A", "$b.c$": "", "$技能$": "$a$", "$0$": "#", "#{a}#": "#{a}#", "#{发布}#": "{a}", "#{b/c}#": "$",
}

// knownMarker matches what stands for a known marker. None of them is a part of
// another, so the leftmost matches are what is to be replaced.
var knownMarker = func() *regexp.Regexp {
	var spelled []string
	for s := range fuzzedCommands {
		spelled = append(spelled, regexp.QuoteMeta(s))
	}
	return regexp.MustCompile(strings.Join(spelled, "|"))
}()

// markerSpelling matches a whole marker, by the words of Marker.
var markerSpelling = regexp.MustCompile(`^(?:\$[\p{L}\p{Nd}\-_.:/]+\$|#\{[\p{L}\p{Nd}\-_.:/]+\}#)$`)

func FuzzExpand(f *testing.F) {
	for _, s := range []string{
		"use $a$ now", "$5$a$", "$a$a$", "$a$$b.c$", "$$", "$a", "#{a}#", "#{a}#{a}#", "#{x}#{发布}#", "#{$技能$}#", "$#{a}#$",
		"$a|$~|$a$|~|", "$技\xff能$技能$", "$0$0$a$", "", "$ a $", "#{b/c}#a$", "$HOME/bin:$PATH",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, inParts bool) {
		m := domain.Message{ID: "1", Role: domain.RoleUser, Text: text, CreatedAt: "2026-10-12 08:00:00"}
		if inParts {
			m.Text, m.Parts = "", fuzzedParts(text)
		}
		before := m.Clone()
		expand := func(s string) string {
			return knownMarker.ReplaceAllStringFunc(s, func(s string) string { return fuzzedCommands[s] })
		}
		want := m.Clone()
		want.Text = expand(want.Text)
		for i, p := range want.Parts {
			want.Parts[i].Text = expand(p.Text)
		}

		got, err := m.Expand(func(marker domain.Marker) (string, bool, error) {
			s := marker.String()
			if !strings.Contains(text, s) || !markerSpelling.MatchString(s) {
				t.Errorf("was asked for %q in %q", s, text)
			}
			expansion, known := fuzzedCommands[s]
			return expansion, known, nil
		})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %+v, %v, want %+v", text, got, err, want)
		}
		if !reflect.DeepEqual(m, before) {
			t.Fatalf("the message was written to: %+v, was %+v", m, before)
		}

		none, err := m.Expand(func(domain.Marker) (string, bool, error) { return "", false, nil })
		if err != nil || !reflect.DeepEqual(none, before) {
			t.Errorf("with no known marker %q became %+v, %v", text, none, err)
		}
	})
}

// orderAsWritten is what OrderToolResults says, sentence by sentence: it looks
// through the whole window for each call.
func orderAsWritten(messages []domain.Message, noResult string) ([]domain.Message, []domain.ToolMismatch) {
	calls := func(m domain.Message) []domain.ToolCall {
		if m.Role != domain.RoleAssistant {
			return nil
		}
		return m.ToolCalls
	}
	calledIn := func(m domain.Message, id string) int {
		n := 0
		for _, c := range calls(m) {
			if c.ID == id {
				n++
			}
		}
		return n
	}
	// answers returns the indices of the first results of id behind message i,
	// up to the next message that calls by that id.
	answers := func(i int, id string) []int {
		var list []int
		for k := i + 1; k < len(messages) && calledIn(messages[k], id) == 0; k++ {
			if messages[k].Role == domain.RoleTool && messages[k].ToolCallID == id {
				list = append(list, k)
			}
		}
		return list[:min(len(list), calledIn(messages[i], id))]
	}

	var ordered []domain.Message
	var unanswered []domain.ToolMismatch
	used := make(map[int]bool)
	for i, m := range messages {
		if m.Role != domain.RoleTool {
			ordered = append(ordered, m)
		}
		for j, c := range calls(m) {
			nth := 0
			for _, earlier := range m.ToolCalls[:j] {
				if earlier.ID == c.ID {
					nth++
				}
			}
			if list := answers(i, c.ID); nth < len(list) {
				ordered = append(ordered, messages[list[nth]])
				used[list[nth]] = true
				continue
			}
			ordered = append(ordered, domain.Message{Role: domain.RoleTool, ToolCallID: c.ID, ToolFailed: true, Text: noResult})
			unanswered = append(unanswered, domain.ToolMismatch{MessageID: m.ID, CallID: c.ID, Unanswered: true})
		}
	}
	var mismatches []domain.ToolMismatch
	for i, m := range messages {
		if m.Role == domain.RoleTool && !used[i] {
			mismatches = append(mismatches, domain.ToolMismatch{MessageID: m.ID, CallID: m.ToolCallID})
		}
	}
	return ordered, append(mismatches, unanswered...)
}

// fuzzedToolWindow makes a message of each byte: few ids and many repetitions,
// because it is equal ids that matter.
func fuzzedToolWindow(bytes []byte) []domain.Message {
	ids := []string{"", "x", "y"}
	list := make([]domain.Message, len(bytes))
	for i, b := range bytes {
		m := domain.Message{ID: strconv.Itoa(i + 1), Text: "text " + strconv.Itoa(i+1), CreatedAt: "2026-10-12 08:00:00"}
		n := int(b / 3)
		// Calls that an assistant alone may have.
		for range n % 4 {
			n /= 3
			m.ToolCalls = append(m.ToolCalls, domain.ToolCall{ID: ids[n%3], Name: "read", Arguments: "{}"})
		}
		switch b % 3 {
		case 0:
			m.Role = domain.RoleUser
		case 1:
			m.Role = domain.RoleAssistant
		case 2:
			m.Role, m.ToolCallID = domain.RoleTool, ids[int(b/3)%3]
		}
		list[i] = m
	}
	return list
}

func FuzzOrderToolResults(f *testing.F) {
	f.Add([]byte{0, 1 + 3*13, 2 + 3*1, 0})
	f.Add([]byte{1 + 3*22, 2 + 3*2, 0, 2 + 3*1, 2 + 3*1})
	f.Add([]byte{2 + 3*1, 1 + 3*13, 1 + 3*13, 0, 2 + 3*1})
	f.Add([]byte{1 + 3*42, 2, 2, 2, 1 + 3*67, 2 + 3*1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		// The naive answer is more than quadratic.
		messages := fuzzedToolWindow(bytes[:min(len(bytes), 60)])
		before := cloneAll(messages)
		got, mismatches := domain.OrderToolResults(messages, "none")
		if !reflect.DeepEqual(messages, before) && len(messages) > 0 {
			t.Fatalf("the window was written to: %s, was %s", spellTools(messages), spellTools(before))
		}
		want, wantMismatches := orderAsWritten(messages, "none")
		if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %s, want %s", spellTools(messages), spellTools(got), spellTools(want))
		}
		if spellMismatches(mismatches) != spellMismatches(wantMismatches) {
			t.Errorf("%s has mismatches %s, want %s", spellTools(messages), spellMismatches(mismatches), spellMismatches(wantMismatches))
		}

		// No message of a user or an assistant is lost or moved.
		isTool := func(m domain.Message) bool { return m.Role == domain.RoleTool }
		if !reflect.DeepEqual(slices.DeleteFunc(slices.Clone(got), isTool), slices.DeleteFunc(cloneAll(messages), isTool)) &&
			slices.ContainsFunc(messages, func(m domain.Message) bool { return !isTool(m) }) {
			t.Errorf("%s became %s", spellTools(messages), spellTools(got))
		}

		// Every call has one result, right behind it, and there is no other.
		rest := got
		for len(rest) > 0 {
			m := rest[0]
			rest = rest[1:]
			if isTool(m) {
				t.Fatalf("a result that no call asks for in %s", spellTools(got))
			}
			if m.Role != domain.RoleAssistant {
				continue
			}
			for _, c := range m.ToolCalls {
				if len(rest) == 0 || !isTool(rest[0]) || rest[0].ToolCallID != c.ID {
					t.Fatalf("no result of %s of message %s in %s", c.ID, m.ID, spellTools(got))
				}
				rest = rest[1:]
			}
		}

		// Every stored result is in the prompt or told to be left out.
		kept, left := 0, 0
		for _, m := range got {
			if isTool(m) && m.ID != "" {
				kept++
			}
		}
		for _, m := range mismatches {
			if !m.Unanswered {
				left++
			}
		}
		if stored := len(messages) - len(slices.DeleteFunc(slices.Clone(messages), isTool)); kept+left != stored {
			t.Errorf("of %d results %d were kept and %d told: %s became %s", stored, kept, left, spellTools(messages), spellTools(got))
		}

		if again, left := domain.OrderToolResults(got, "none"); !reflect.DeepEqual(again, got) || len(left) > 0 {
			t.Errorf("ordered twice it is %s, %v, once %s", spellTools(again), left, spellTools(got))
		}
	})
}
