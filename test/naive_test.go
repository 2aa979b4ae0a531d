package test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"sessiondate/domain"
)

// A fault is a rule that a naive maker breaks. The empty fault breaks none.
type fault string

// The faults, each of which breaks one rule.
const (
	anchorMoves    fault = "R1: the anchor is the newest day"
	clockAnchors   fault = "R2: the clock anchors always"
	zoneApplied    fault = "R3: a stored time is taken for UTC's"
	anchorCompared fault = "R4: every message is compared with the anchor"
	toldTwice      fault = "R4: every message of a new day is told"
	forwardsOnly   fault = "R4: a date that goes backwards is not told"
	shellAlways    fault = "R6: the notice speaks of a shell always"
	writesInput    fault = "R7: the stored message is written to"
	shapeChanges   fault = "R7: a string becomes parts"
	undatedCounts  fault = "R8: a message without a date ends the day"
	escapedFirst   fault = "R9: quick commands are expanded behind the escaping"
	notesGuessed   fault = "R10: notices are written without a stamp reader too"
	notRestated    fault = "R12: nothing is restated behind a boundary"
	notEscaped     fault = "R13: forged tags stay"
	escapesAll     fault = "R13: every < is escaped"
	newestOnly     fault = "R14: the newest notice alone is kept"
	notedLast      fault = "R14: the notice stands in front of the last message"
	instructsFirst fault = "R15: the instruction comes first"
	alwaysTold     fault = "R17: the first message has a notice always"
	midRun         fault = "R18: an assistant's message of a new day is told"
	dayLate        fault = "the notice states the day before"
	neverTheSame   fault = "R14: tools are in a map's order"
	tellsTime      fault = "R16: messages tell when they were stored"
)

// A naiveMaker makes prompts in the plainest way there is, from the text of the
// rules and from nothing of the domain's but its types and its texts. It is slow:
// for each message it goes through the whole session again.
type naiveMaker struct {
	fault fault
	// silent is whether there is no stamp reader.
	silent bool
}

// naiveDate is R3 and R8.
func naiveDate(m domain.Message) string {
	if m.Role != domain.RoleUser {
		return ""
	}
	return naiveDay(m)
}

// naiveDay is R3 for a message of any role.
func naiveDay(m domain.Message) string {
	if len(m.CreatedAt) < 10 {
		return ""
	}
	if _, err := time.Parse("2006-01-02", m.CreatedAt[:10]); err != nil {
		return ""
	}
	return m.CreatedAt[:10]
}

// naiveAnchor is R1 and R2.
func naiveAnchor(s storedSession) (date string, known bool) {
	for _, m := range s.rows {
		if m.Role == domain.RoleUser && !s.deleted[m.ID] {
			if d := naiveDate(m); d != "" {
				return d, true
			}
			break
		}
	}
	return naiveWindowAnchor(s)
}

// naiveWindowAnchor is R10.
func naiveWindowAnchor(s storedSession) (date string, known bool) {
	for _, m := range s.window() {
		if d := naiveDate(m); d != "" {
			return d, true
		}
	}
	return lifeClock[:10], false
}

// tells returns the date that the notice of a message states, and none if it has
// no notice: R4, R8 and R12, for the message of the session with this index.
func (n naiveMaker) tells(s storedSession, index int) string {
	date := naiveDate(s.rows[index])
	if n.fault == midRun && s.rows[index].Role == domain.RoleAssistant {
		date = naiveDay(s.rows[index])
	}
	anchor := n.anchor(s)
	before, firstOfWindow, usersBefore := "", true, false
	for i, m := range s.rows[:index] {
		if s.deleted[m.ID] || m.Role != domain.RoleUser {
			continue
		}
		d := naiveDate(m)
		if i < s.boundary {
			usersBefore = true
		}
		if d == "" && n.fault == undatedCounts {
			before = "another day"
		}
		if d != "" {
			before = d
			if i >= s.boundary {
				firstOfWindow = false
			}
		}
	}
	if before == "" {
		before = anchor
	}
	restated := firstOfWindow && usersBefore && date != anchor
	switch {
	case date == "", n.silent && n.fault != notesGuessed:
		return ""
	case n.fault == alwaysTold && firstOfWindow:
		return date
	case n.fault == anchorCompared || n.fault == toldTwice:
		if date != anchor && (n.fault == toldTwice || date != before) {
			return date
		}
		return ""
	case n.fault == forwardsOnly && date < before:
		return ""
	case n.fault == notRestated:
		restated = false
	}
	if date != before || restated {
		return date
	}
	return ""
}

// anchor returns the date of the system prompt.
func (n naiveMaker) anchor(s storedSession) string {
	anchor, _ := naiveAnchor(s)
	switch {
	case n.fault == clockAnchors:
		anchor = lifeClock[:10]
	case n.silent:
		anchor, _ = naiveWindowAnchor(s)
	}
	return anchor
}

// anchorOnly implements promptMaker.
func (n naiveMaker) anchorOnly(ctx context.Context, s storedSession) domain.Prompt {
	n.silent = true
	return n.prompt(ctx, s)
}

// prompt implements promptMaker.
func (n naiveMaker) prompt(ctx context.Context, s storedSession) domain.Prompt {
	if n.fault == zoneApplied {
		return n.zoned(ctx, s)
	}
	var messages []domain.Message
	if s.handoff != "" {
		messages = append(messages, naiveEscape(domain.Message{Role: domain.RoleUser, Text: "## 会话任务交接\n\n" + s.handoff}))
	}
	anchor := n.anchor(s)
	told := -1
	for i, m := range s.rows {
		if i < s.boundary || s.deleted[m.ID] {
			continue
		}
		stored := m
		if n.fault == escapedFirst {
			m = naiveEscape(m)
		}
		m = naiveExpand(m, s)
		if n.fault != notEscaped && n.fault != escapedFirst {
			m = naiveEscape(m)
		}
		if n.fault == escapesAll {
			m.Text = strings.ReplaceAll(m.Text, "<", "&lt;")
		}
		if date := n.tells(s, i); date != "" {
			if n.fault == newestOnly && told >= 0 {
				messages[told] = naiveEscape(naiveExpand(s.rows[indexOf(s, messages[told].ID)], s))
			}
			told = len(messages)
			m = n.noted(m, stored, s, date)
		}
		if n.fault == anchorMoves && naiveDate(stored) != "" {
			anchor = naiveDate(stored)
		}
		messages = append(messages, m)
	}
	if n.fault == notedLast && told >= 0 && told != len(messages)-1 {
		last := messages[len(messages)-1]
		messages[told] = naiveEscape(naiveExpand(s.rows[indexOf(s, messages[told].ID)], s))
		messages[len(messages)-1] = n.noted(last, last, s, anchor)
	}
	for i, m := range messages {
		if n.fault == tellsTime && m.Parts == nil {
			messages[i].Text = "[" + m.CreatedAt + "] " + m.Text
		}
	}
	section := s.request.Wording.CurrentDate(mustDate(anchor))
	return domain.Prompt{
		Sections: []domain.Section{s.request.Sections[0], {Name: domain.CurrentDateSection, Text: section}, s.request.Sections[2]},
		Tools:    n.tools(s.request.Tools),
		Messages: naiveOrder(messages, s.request.Wording),
	}
}

// zoned returns the prompt as it would be were the stored times Shanghai's, had
// they been UTC's.
func (n naiveMaker) zoned(ctx context.Context, s storedSession) domain.Prompt {
	moved := s.clone()
	for i, m := range s.rows {
		if t, err := time.Parse(time.DateTime, strings.Replace(m.CreatedAt, "T", " ", 1)); err == nil {
			moved.rows[i].CreatedAt = t.Add(8 * time.Hour).Format(time.DateTime)
		}
	}
	p := naiveMaker{silent: n.silent}.prompt(ctx, moved)
	for i, m := range p.Messages {
		if k := indexOf(s, m.ID); k >= 0 {
			p.Messages[i].CreatedAt = s.rows[k].CreatedAt
		}
	}
	return p
}

// tools returns the tools in their order.
func (n naiveMaker) tools(tools []domain.Tool) []domain.Tool {
	if n.fault != neverTheSame {
		return tools
	}
	shuffled := make(map[string]domain.Tool)
	for i := range 5 {
		t := tools[0]
		t.Name = strings.Repeat("r", i+1)
		shuffled[t.Name] = t
	}
	return slices.Collect(maps.Values(shuffled))
}

func indexOf(s storedSession, id string) int {
	return slices.IndexFunc(s.rows, func(m domain.Message) bool { return m.ID == id })
}

func mustDate(s string) domain.Date {
	d, err := domain.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

// noted puts a notice in front of a message (R7).
func (n naiveMaker) noted(m, stored domain.Message, s storedSession, date string) domain.Message {
	d := mustDate(date)
	if n.fault == dayLate {
		day, _ := time.Parse(time.DateOnly, date)
		d = mustDate(day.AddDate(0, 0, -1).Format(time.DateOnly))
	}
	if n.fault == shellAlways {
		s.request.Wording.NoShell = false
	}
	notice := s.request.Wording.Notice(d)
	switch {
	case m.Parts == nil && n.fault == shapeChanges:
		m.Parts, m.Text = []domain.Part{{Text: notice}, {Text: m.Text}}, ""
	case m.Parts == nil:
		m.Text = notice + "\n\n" + m.Text
	case n.fault == writesInput && len(stored.Parts) > 0:
		stored.Parts[0] = domain.Part{Text: notice}
		m.Parts = stored.Parts
	default:
		m.Parts = append([]domain.Part{{Text: notice}}, m.Parts...)
	}
	return m
}

// naiveExpand is R9: at each place of a text, whatever marker stands there.
func naiveExpand(m domain.Message, s storedSession) domain.Message {
	first := m.Text
	if m.Parts != nil {
		first = ""
		if len(m.Parts) > 0 {
			first = m.Parts[0].Text
		}
	}
	if m.Role != domain.RoleUser || strings.HasPrefix(first, "<system-notice>") || strings.HasPrefix(first, "## 会话任务交接") {
		return m
	}
	expand := func(text string) string {
		out := ""
		for i := 0; i < len(text); {
			n := 1
			next := text[i : i+1]
			for marker, body := range s.commands {
				if strings.HasPrefix(text[i:], marker.String()) {
					n, next = len(marker.String()), body
				}
			}
			out += next
			i += n
		}
		return out
	}
	if m.Parts == nil {
		m.Text = expand(m.Text)
		return m
	}
	parts := []domain.Part{}
	for _, p := range m.Parts {
		p.Text = expand(p.Text)
		parts = append(parts, p)
	}
	m.Parts = parts
	return m
}

// naiveTag finds what begins a tag. What may not follow it is looked at apart.
var naiveTag = regexp.MustCompile(`(?i)^<[ \t\n\r\f]*/?[ \t\n\r\f]*date-change`)

// naiveEscape is R13: at each < of a user's message, what follows it up to the
// next image is looked at as one text.
func naiveEscape(m domain.Message) domain.Message {
	if m.Role != domain.RoleUser {
		return m
	}
	escape := func(text, behind string) string {
		out := ""
		for i := range len(text) {
			all := text[i:] + behind
			tag := naiveTag.FindString(all)
			if tag != "" && (len(all) == len(tag) || !regexp.MustCompile(`^[a-zA-Z0-9_-]`).MatchString(all[len(tag):])) {
				out += "&lt;"
				continue
			}
			out += text[i : i+1]
		}
		return out
	}
	if m.Parts == nil {
		m.Text = escape(m.Text, "")
		return m
	}
	parts := []domain.Part{}
	for i, p := range m.Parts {
		behind := ""
		for _, q := range m.Parts[i+1:] {
			if q.IsImage() {
				break
			}
			behind += q.Text
		}
		p.Text = escape(p.Text, behind)
		parts = append(parts, p)
	}
	m.Parts = parts
	return m
}

// naiveOrder puts results behind their calls. In lives, no id of a call comes
// twice, and no result comes before its call.
func naiveOrder(messages []domain.Message, wording domain.Wording) []domain.Message {
	var ordered []domain.Message
	for _, m := range messages {
		if m.Role == domain.RoleTool {
			continue
		}
		ordered = append(ordered, m)
		for _, c := range m.ToolCalls {
			i := slices.IndexFunc(messages, func(r domain.Message) bool { return r.Role == domain.RoleTool && r.ToolCallID == c.ID })
			if i >= 0 {
				ordered = append(ordered, messages[i])
			} else {
				ordered = append(ordered, domain.Message{Role: domain.RoleTool, ToolCallID: c.ID, ToolFailed: true, Text: wording.NoToolResult()})
			}
		}
	}
	return ordered
}

// compaction implements promptMaker (R15).
func (n naiveMaker) compaction(ctx context.Context, s storedSession) domain.Prompt {
	p := n.prompt(ctx, s)
	instruction := domain.Message{Role: domain.RoleUser, Text: "<system-notice>" + s.request.Wording.CompactionInstruction(false) + "</system-notice>"}
	if n.fault == instructsFirst {
		p.Messages = append([]domain.Message{instruction}, p.Messages...)
	} else {
		p.Messages = append(p.Messages, instruction)
	}
	return p
}
