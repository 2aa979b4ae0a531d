package test

import (
	"context"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/recording"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A storedSession is a session as a store has it.
type storedSession struct {
	// rows are all messages in the store's order, and deleted the ids of those
	// that are soft-deleted.
	rows    []domain.Message
	deleted map[string]bool
	// boundary is how many rows a compaction cut off, and handoff what it left.
	boundary int
	handoff  string
	// commands are the quick commands of the host.
	commands memory.Commands
	request  app.PromptRequest
}

// clone returns a copy that shares nothing that is ever written to.
func (s storedSession) clone() storedSession {
	s.rows = deepCopy(s.rows)
	deleted := make(map[string]bool)
	for id := range s.deleted {
		deleted[id] = true
	}
	s.deleted = deleted
	return s
}

// window returns the rows behind the boundary that are not deleted. They are
// those of the session, not copies.
func (s storedSession) window() []domain.Message {
	var window []domain.Message
	for _, m := range s.rows[s.boundary:] {
		if !s.deleted[m.ID] {
			window = append(window, m)
		}
	}
	return window
}

// A promptMaker makes prompts of stored sessions.
type promptMaker interface {
	// prompt returns the prompt of a session.
	prompt(ctx context.Context, s storedSession) domain.Prompt
	// anchorOnly returns the prompt of a session without a stamp reader.
	anchorOnly(ctx context.Context, s storedSession) domain.Prompt
	// compaction returns the request that asks for a handoff.
	compaction(ctx context.Context, s storedSession) domain.Prompt
}

// A sharingHistory hands out the very rows of a session, as a harness does that
// keeps its context in memory: whatever is written to them stays written.
type sharingHistory struct{ session storedSession }

func (h sharingHistory) Window(context.Context, string) (domain.Window, error) {
	return domain.Window{Handoff: h.session.handoff, Messages: h.session.window(), Whole: h.session.boundary == 0}, nil
}

// An engineMaker makes prompts with the engine, anew each time, as after a
// restart.
type engineMaker struct {
	// asks is whether windows do not say that they are whole, so that the stamp
	// reader is always asked.
	asks bool
	// silent is whether there is no stamp reader.
	silent bool
}

const lifeClock = "2031-01-01 12:00:00"

func (e engineMaker) engine(s storedSession, sink ports.PromptSink) *app.PromptEngine {
	var sessions memory.Sessions
	sessions.Add(session, s.rows...)
	for id := range s.deleted {
		sessions.Delete(session, id)
	}
	options := app.Options{Stamps: &sessions, Now: clockAt(lifeClock)}
	if e.silent {
		options.Stamps = nil
	}
	var history ports.History = sharingHistory{s}
	if e.asks {
		history = loadedFrom{history}
	}
	return app.NewPromptEngine(app.PromptOptions{
		Dates: app.NewSessionDate(options), History: history, Sink: sink, Commands: s.commands,
	})
}

func (e engineMaker) prompt(ctx context.Context, s storedSession) domain.Prompt {
	built, err := e.engine(s, nil).Build(ctx, s.request)
	if err != nil {
		panic(err)
	}
	return built.Prompt
}

func (e engineMaker) anchorOnly(ctx context.Context, s storedSession) domain.Prompt {
	e.silent = true
	return e.prompt(ctx, s)
}

func (e engineMaker) compaction(ctx context.Context, s storedSession) domain.Prompt {
	sink := &recording.Sink{Reply: domain.Reply{Text: "They talked."}}
	var boundaries memory.Sessions
	boundaries.Add(session, s.rows...)
	compactor := app.NewCompactor(app.CompactorOptions{Engine: e.engine(s, sink), Boundaries: &boundaries, Count: wordCount})
	if _, err := compactor.Compact(ctx, s.request); err != nil {
		panic(err)
	}
	return sink.Prompts()[0]
}

// A life is how a session went on: its states, each of which is one in which a
// request is sent.
type life struct {
	states []storedSession
	// continued tells of each state whether it is the one before it and more
	// messages behind one boundary, so that its prompt is to continue that one's.
	continued []bool
}

// lifeDays are the days on which messages of lives are stored: neighbours, in
// other months and years, and more than one of them not the first.
var lifeDays = []string{"2026-10-12", "2026-10-13", "2026-10-14", "2026-12-31", "2027-01-01", "2025-02-28"}

// storedTimes draws stored times, in no order, and sometimes none.
func storedTimes(days []string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 5).Draw(t, "undated") == 0 {
			return rapid.SampledFrom([]string{"", "0000-00-00 00:00:00", "2026-02-30 10:00:01", "1791849001"}).Draw(t, "no date")
		}
		return fmt.Sprintf("%s%s%02d:%02d:%02d", rapid.SampledFrom(days).Draw(t, "day"),
			rapid.SampledFrom([]string{" ", "T"}).Draw(t, "separator"),
			rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 59).Draw(t, "second"))
	})
}

// texts draws texts that are full of what tags and markers are made of.
var texts = rapid.Custom(func(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
		"<", "date-change", "DATE-change", "date-", "change", ">", "/", " ", "\n", "a", "1", "-", "&lt;", "Hello.", "早上好。",
		"<date-change>", "</date-change>", "$s$", "#{c}#", "$", "#{", "}#", "$unknown$", "<system-notice>", "## 会话任务交接", "\u2028", "\x00",
	}), 0, 6).Draw(t, "pieces")
	text := ""
	for _, p := range pieces {
		text += p
	}
	return text
})

// withContent draws the content of a message.
func withContent(t *rapid.T, m domain.Message) domain.Message {
	if rapid.IntRange(0, 2).Draw(t, "shape") > 0 {
		m.Text = texts.Draw(t, "text")
		return m
	}
	m.Parts = []domain.Part{}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		p := domain.Part{}
		if m.Role != domain.RoleAssistant && rapid.IntRange(0, 3).Draw(t, "image") == 0 {
			p.Image = domain.Image{URL: "https://example.com/a?b=1&c=2"}
		} else {
			p.Text = texts.Draw(t, "part")
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// drawSession draws a session that has no messages yet.
func drawSession(t *rapid.T) storedSession {
	return storedSession{
		commands: memory.Commands{skill("s"): texts.Draw(t, "skill"), command("c"): texts.Draw(t, "command")},
		request: app.PromptRequest{
			SessionID: session,
			Sections:  []domain.Section{{Name: "persona", Text: "You are helpful."}, {Name: domain.CurrentDateSection}, {Name: "guide", Text: "Be brief."}},
			Tools:     []domain.Tool{{Name: "read", Description: "Reads <files>.", Schema: `{"type":"object","properties":{"z":{},"a":{}}}`}},
			Wording: domain.Wording{
				Language: rapid.SampledFrom([]domain.Language{domain.Chinese, domain.English}).Draw(t, "language"),
				NoShell:  rapid.Bool().Draw(t, "no shell"),
			},
		},
	}
}

// lives draws lives on the given days, with soft deletions, compactions, forks
// and, before every prompt, a restart.
func lives(days []string) *rapid.Generator[life] {
	return rapid.Custom(func(t *rapid.T) life {
		s := drawSession(t)
		times := storedTimes(days)
		n := 0
		add := func(m domain.Message) {
			n++
			m.ID, m.CreatedAt = fmt.Sprintf("message-%d", 1000+n), times.Draw(t, "stored time")
			s.rows = append(s.rows, withContent(t, m))
		}
		var l life
		for range rapid.IntRange(1, 14).Draw(t, "steps") {
			continued := true
			switch rapid.SampledFrom([]string{"user", "user", "user", "assistant", "tools", "delete", "compact", "fork"}).Draw(t, "step") {
			case "user":
				add(domain.Message{Role: domain.RoleUser})
			case "assistant":
				add(domain.Message{Role: domain.RoleAssistant})
			case "tools":
				m := domain.Message{Role: domain.RoleAssistant}
				for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
					m.ToolCalls = append(m.ToolCalls, domain.ToolCall{
						ID: fmt.Sprintf("call-%d-%d", n, i), Name: "read",
						Arguments: rapid.SampledFrom([]string{`{}`, `{"z":1,"a":"<"}`, ``, `{"broken`}).Draw(t, "arguments"),
					})
				}
				add(m)
				for _, c := range rapid.Permutation(m.ToolCalls).Draw(t, "order") {
					add(domain.Message{Role: domain.RoleTool, ToolCallID: c.ID, ToolFailed: rapid.Bool().Draw(t, "failed")})
				}
			case "delete":
				if len(s.rows) == 0 {
					continue
				}
				s = s.clone()
				s.deleted[rapid.SampledFrom(s.rows).Draw(t, "deleted").ID] = true
				continued = false
			case "compact":
				through := domain.CompactionBoundary(s.window())
				if through == "" {
					continue
				}
				s.boundary = 1 + slices.IndexFunc(s.rows, func(m domain.Message) bool { return m.ID == through })
				s.handoff = rapid.SampledFrom([]string{"", "They talked.", "<date-change>"}).Draw(t, "handoff")
				continued = false
			case "fork":
				// The copy has the same rows, and what becomes of the source is nothing
				// to it.
			}
			s = s.clone()
			l.states, l.continued = append(l.states, s), append(l.continued, continued && len(l.states) > 0)
		}
		return l
	})
}

// wireUnits returns the prefix units of a prompt in each protocol.
func wireUnits(p domain.Prompt) [][]domain.PrefixUnit {
	var all [][]domain.PrefixUnit
	for _, w := range caseWires() {
		all = append(all, w.units(w.request(p)))
	}
	return all
}
