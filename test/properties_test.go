package test

import (
	"context"
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"sessiondate"
	"sessiondate/adapters/recording"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A property is something that holds for the prompts of every life.
type property struct {
	// promise is what is promised, in the words of the guarantees.
	promise string
	holds   func(t *rapid.T, maker promptMaker)
}

var (
	anchorsFirst = property{"R1, R2: the system prompt states the date of the session's first user message, and without one the clock's", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			anchor, _ := naiveAnchor(s)
			want := s.request.Wording.CurrentDate(mustDate(anchor))
			if got := maker.prompt(t.Context(), s).Sections[1]; got.Name != domain.CurrentDateSection || got.Text != want {
				t.Fatalf("section %q says %q, not %q", got.Name, got.Text, want)
			}
		}
	}}

	agreesWithRules = property{"R3, R4, R8, R9, R12, R13, R18: the messages are those that the rules' text gives", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			got, want := maker.prompt(t.Context(), s).Messages, naiveMaker{}.prompt(t.Context(), s).Messages
			if len(got) != len(want) {
				t.Fatalf("%d messages, not %d", len(got), len(want))
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("message %d is\n%#v, not\n%#v", i, got[i], want[i])
				}
			}
		}
	}}

	shellOrNot = property{"R6: a section and a notice speak of the shell where there is one, and else neither does", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			p, want := maker.prompt(t.Context(), s), !s.request.Wording.NoShell
			if got := strings.Contains(p.Sections[1].Text, "shell"); got != want {
				t.Fatalf("that the section %q speaks of the shell is %t", p.Sections[1].Text, got)
			}
			for _, m := range p.Messages {
				if notice := genuineNotice.FindString(joined(m)); m.Role == domain.RoleUser && notice != "" && strings.Contains(notice, "shell") != want {
					t.Fatalf("that the notice %q speaks of the shell is %t", notice, !want)
				}
			}
		}
	}}

	anchorsAlone = property{"R10: without a stamp reader the window's first dated user message anchors, or the clock, and there is no notice", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			p := maker.anchorOnly(t.Context(), s)
			anchor, _ := naiveWindowAnchor(s)
			if want := s.request.Wording.CurrentDate(mustDate(anchor)); p.Sections[1].Text != want {
				t.Fatalf("the section says %q, not %q", p.Sections[1].Text, want)
			}
			for _, m := range p.Messages {
				if m.Role == domain.RoleUser && genuineNotice.MatchString(joined(m)) {
					t.Fatalf("message %s has a notice: %q", m.ID, joined(m))
				}
			}
		}
	}}

	writesNothing = property{"R7: the session's messages are never written to", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			s = s.clone()
			// Whatever is appended in place finds room to be seen.
			for i := range s.rows {
				s.rows[i].Parts = slices.Grow(s.rows[i].Parts, 2)
			}
			before := deepCopy(s.rows)
			maker.prompt(t.Context(), s)
			for i, m := range s.rows {
				if !reflect.DeepEqual(m, before[i]) || !emptyBehind(m.Parts) {
					t.Fatalf("message %d became\n%#v, from\n%#v", i, m, before[i])
				}
			}
		}
	}}

	keepsShape = property{"R7: a string stays a string, and parts stay parts", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			for _, m := range maker.prompt(t.Context(), s).Messages {
				if i := indexOf(s, m.ID); i >= 0 && (m.Parts == nil) != (s.rows[i].Parts == nil) {
					t.Fatalf("message %s changed its shape", m.ID)
				}
			}
		}
	}}

	tellsToday = property{"the newest date that a prompt states is that of its newest dated user message", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			newest := ""
			for _, m := range s.window() {
				if d := naiveDate(m); d != "" {
					newest = d
				}
			}
			if stated := newestStated(maker.prompt(t.Context(), s)); newest != "" && stated != newest {
				t.Fatalf("the prompt states %s, and it is %s", stated, newest)
			}
		}
	}}

	noForgery = property{"R13: a prompt holds no tag in a user's message but those that the system wrote, one at most and in front", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			for _, m := range maker.prompt(t.Context(), s).Messages {
				if m.Role != domain.RoleUser {
					continue
				}
				text := genuineNotice.ReplaceAllString(joined(m), "")
				for i := range text {
					if isTag(text[i:]) {
						t.Fatalf("message %s holds a tag: %q", m.ID, text[i:])
					}
				}
			}
		}
	}}

	leavesAlone = property{"R13: a text without a tag is sent as it is", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			s.commands = nil
			for _, m := range maker.prompt(t.Context(), s).Messages {
				i := indexOf(s, m.ID)
				if i < 0 || strings.Contains(strings.ToLower(joined(s.rows[i])), "date-change") {
					continue
				}
				if got, want := genuineNotice.ReplaceAllString(joined(m), ""), joined(s.rows[i]); got != want {
					t.Fatalf("message %s is %q, not %q", m.ID, got, want)
				}
			}
		}
	}}

	repeatsPrefix = property{"R14: every prefix unit of a prompt is repeated byte for byte in the next one behind the same boundary, in all protocols", func(t *rapid.T, maker promptMaker) {
		l := lives(lifeDays).Draw(t, "life")
		var earlier [][]domain.PrefixUnit
		for i, s := range l.states {
			now := wireUnits(maker.prompt(t.Context(), s))
			// The promise begins with the first date: until then the clock anchors (R2).
			if _, known := naiveAnchor(l.states[max(i-1, 0)]); i > 0 && l.continued[i] && known {
				for w := range now {
					if repeated := domain.Repeats(earlier[w], now[w]); repeated.Units != len(earlier[w]) {
						t.Fatalf("%s: state %d repeats %d of %d units", caseWires()[w].name, i, repeated.Units, len(earlier[w]))
					}
				}
			}
			earlier = now
		}
	}}

	compactsBehind = property{"R15: a compaction's request is the main request and one message more", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			if domain.CompactionBoundary(s.window()) == "" {
				continue
			}
			main, compaction := wireUnits(maker.prompt(t.Context(), s)), wireUnits(maker.compaction(t.Context(), s))
			for w := range main {
				if repeated := domain.Repeats(main[w], compaction[w]); repeated.Units != len(main[w]) || len(compaction[w]) != len(main[w])+1 {
					t.Fatalf("%s: %d units, of which %d are of the main request's %d", caseWires()[w].name, len(compaction[w]), repeated.Units, len(main[w]))
				}
			}
		}
	}}

	quietOneDay = property{"R17: on one day a request is that of a pipeline without notices, byte for byte", func(t *rapid.T, maker promptMaker) {
		day := rapid.SampledFrom(lifeDays).Draw(t, "day")
		for _, s := range lives([]string{day}).Draw(t, "life").states {
			with, without := maker.prompt(t.Context(), s), engineMaker{}.anchorOnly(t.Context(), s)
			if anchor, _ := naiveAnchor(s); anchor != day {
				continue
			}
			// Where the window alone is loaded, it alone anchors.
			without.Sections = with.Sections
			for _, w := range caseWires() {
				if string(w.request(with)) != string(w.request(without)) {
					t.Fatalf("%s:\n%s, not\n%s", w.name, w.request(with), w.request(without))
				}
			}
		}
	}}

	sameTwice = property{"R14: made a second time, a request is the same byte for byte", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			one, two := maker.prompt(t.Context(), s), maker.prompt(t.Context(), s)
			for _, w := range caseWires() {
				if body := string(w.request(one)); body != string(w.request(two)) || body != string(w.request(one)) {
					t.Fatalf("%s: %s", w.name, body)
				}
			}
		}
	}}

	leaksNothing = property{"R16: no request holds a stored time or a message's id", func(t *rapid.T, maker promptMaker) {
		for _, s := range lives(lifeDays).Draw(t, "life").states {
			prompt := maker.prompt(t.Context(), s)
			for _, w := range caseWires() {
				body := string(w.request(prompt))
				for _, m := range s.rows {
					// The date alone may be the prompt's own.
					clock := strings.TrimPrefix(m.CreatedAt, naiveDate(m))
					if strings.Contains(body, m.ID) || len(clock) > 1 && strings.Contains(body, clock[1:]) {
						t.Fatalf("%s tells of message %s, stored at %s:\n%s", w.name, m.ID, m.CreatedAt, body)
					}
				}
			}
		}
	}}

	properties = []property{
		anchorsFirst, agreesWithRules, shellOrNot, anchorsAlone, writesNothing, keepsShape, tellsToday, noForgery, leavesAlone, repeatsPrefix, compactsBehind, quietOneDay,
		sameTwice, leaksNothing,
	}
)

// A refutation is a property that a broken twin does not have.
type refutation struct {
	twin    fault
	promise string
}

var refutations = []refutation{
	{anchorMoves, anchorsFirst.promise},
	{anchorMoves, repeatsPrefix.promise},
	{clockAnchors, anchorsFirst.promise},
	{clockAnchors, anchorsAlone.promise},
	{zoneApplied, anchorsFirst.promise},
	{zoneApplied, agreesWithRules.promise},
	{zoneApplied, tellsToday.promise},
	{anchorCompared, agreesWithRules.promise},
	{anchorCompared, tellsToday.promise},
	{toldTwice, agreesWithRules.promise},
	{forwardsOnly, agreesWithRules.promise},
	{forwardsOnly, tellsToday.promise},
	{shellAlways, agreesWithRules.promise},
	{shellAlways, shellOrNot.promise},
	{escapedFirst, agreesWithRules.promise},
	{escapedFirst, noForgery.promise},
	{notesGuessed, anchorsAlone.promise},
	{writesInput, writesNothing.promise},
	{shapeChanges, keepsShape.promise},
	{shapeChanges, agreesWithRules.promise},
	{undatedCounts, agreesWithRules.promise},
	{notRestated, agreesWithRules.promise},
	{notRestated, tellsToday.promise},
	{notEscaped, agreesWithRules.promise},
	{notEscaped, noForgery.promise},
	{escapesAll, agreesWithRules.promise},
	{escapesAll, leavesAlone.promise},
	{newestOnly, agreesWithRules.promise},
	{newestOnly, repeatsPrefix.promise},
	{notedLast, agreesWithRules.promise},
	{notedLast, repeatsPrefix.promise},
	{instructsFirst, compactsBehind.promise},
	{alwaysTold, agreesWithRules.promise},
	{alwaysTold, quietOneDay.promise},
	{midRun, agreesWithRules.promise},
	{dayLate, agreesWithRules.promise},
	{dayLate, tellsToday.promise},
	{neverTheSame, sameTwice.promise},
	{neverTheSame, repeatsPrefix.promise},
	{tellsTime, leaksNothing.promise},
}

// genuineNotice is a notice at the beginning of a message, in any wording.
var genuineNotice = regexp.MustCompile(`^<date-change>(?:系统提示:当前日期已变更为 |System notice: the current date is now )(\d{4}-\d{2}-\d{2})[^<]*</date-change>(?:\n\n)?`)

// isTag reports whether a text begins with a tag that R13 speaks of.
func isTag(text string) bool {
	tag := naiveTag.FindString(text)
	return tag != "" && !regexp.MustCompile(`^[a-zA-Z0-9_-]`).MatchString(text[len(tag):])
}

// joined returns all text of a message, with something that is in no tag in an
// image's place.
func joined(m domain.Message) string {
	text := m.Text
	for _, p := range m.Parts {
		if p.IsImage() {
			text += "\n[image]\n"
		}
		text += p.Text
	}
	return text
}

// newestStated returns the date that a prompt states last.
func newestStated(p domain.Prompt) string {
	stated := dateSpelled.FindString(p.Sections[1].Text)
	for _, m := range p.Messages {
		if found := genuineNotice.FindStringSubmatch(joined(m)); m.Role == domain.RoleUser && found != nil {
			stated = found[1]
		}
	}
	return stated
}

// emptyBehind reports whether the room behind parts holds nothing.
func emptyBehind(parts []domain.Part) bool {
	return !slices.ContainsFunc(parts[len(parts):cap(parts)], func(p domain.Part) bool { return p != domain.Part{} })
}

// A storeMaker makes prompts with the engine over a store in a database. A state
// is put there as a session of its own, and forked, so that it is the fork's
// prompt that is made.
type storeMaker struct {
	db *sqlx.DB
	n  *int
}

// put stores a session and forks it. It returns the fork's id, and which of the
// session's messages each of the fork's is a copy of.
func (m storeMaker) put(ctx context.Context, s storedSession) (id string, copied map[string]string) {
	store := sqlhistory.New(m.db)
	*m.n++
	source, fork := fmt.Sprint("source-", *m.n), fmt.Sprint("fork-", *m.n)
	must(store.Append(ctx, source, s.rows...))
	window, err := store.Window(ctx, source)
	must(err)
	copied = make(map[string]string)
	var kept []string
	for i, row := range window.Messages {
		if s.deleted[s.rows[i].ID] {
			_, err := m.db.ExecContext(ctx, "UPDATE message SET deleted = 1 WHERE id = ?", row.ID)
			must(err)
		} else {
			kept = append(kept, s.rows[i].ID)
		}
	}
	if s.boundary > 0 {
		must(store.MoveBoundary(ctx, source, window.Messages[s.boundary-1].ID, s.handoff))
	}
	if len(kept) == 0 {
		// There is nothing to be forked.
		return source, copied
	}
	must(store.Fork(ctx, source, fork, ""))
	var ids []string
	must(m.db.SelectContext(ctx, &ids, "SELECT id FROM message WHERE session_id = ? ORDER BY id", fork))
	for i, id := range ids {
		copied[id] = kept[i]
	}
	return fork, copied
}

// over returns the engine over the database, and the request of the session that
// was put there.
func (m storeMaker) over(db *sqlx.DB, s storedSession, id string, sink ports.PromptSink) (*app.PromptEngine, app.PromptRequest) {
	s.request.SessionID = id
	return sessiondate.New(sessiondate.Host{DB: db, History: sqlhistory.New(m.db), Sink: sink, Commands: s.commands, Now: clockAt(lifeClock)}), s.request
}

// renamed gives the messages of a prompt the ids that they are copies of.
func renamed(p domain.Prompt, copied map[string]string) domain.Prompt {
	p.Messages = slices.Clone(p.Messages)
	for i := range p.Messages {
		if id := p.Messages[i].ID; id != "" {
			p.Messages[i].ID = copied[id]
		}
	}
	return p
}

func (m storeMaker) prompt(ctx context.Context, s storedSession) domain.Prompt {
	id, copied := m.put(ctx, s)
	engine, request := m.over(m.db, s, id, nil)
	built, err := engine.Build(ctx, request)
	must(err)
	return renamed(built.Prompt, copied)
}

func (m storeMaker) anchorOnly(ctx context.Context, s storedSession) domain.Prompt {
	id, copied := m.put(ctx, s)
	engine, request := m.over(nil, s, id, nil)
	built, err := engine.Build(ctx, request)
	must(err)
	return renamed(built.Prompt, copied)
}

func (m storeMaker) compaction(ctx context.Context, s storedSession) domain.Prompt {
	id, copied := m.put(ctx, s)
	sink := &recording.Sink{Reply: domain.Reply{Text: "They talked."}}
	engine, request := m.over(m.db, s, id, sink)
	_, err := app.NewCompactor(app.CompactorOptions{Engine: engine, Boundaries: sqlhistory.New(m.db), Count: wordCount}).Compact(ctx, request)
	must(err)
	return renamed(sink.Prompts()[0], copied)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A judge is told by rapid whether a property holds.
type judge struct {
	rapid.TB
	failed bool
}

func (j *judge) Helper()               {}
func (j *judge) Name() string          { return "property" }
func (j *judge) Log(...any)            {}
func (j *judge) Logf(string, ...any)   {}
func (j *judge) Error(...any)          { j.failed = true }
func (j *judge) Errorf(string, ...any) { j.failed = true }
func (j *judge) Fail()                 { j.failed = true }
func (j *judge) Failed() bool          { return j.failed }
func (j *judge) Fatal(...any)          { j.FailNow() }
func (j *judge) Fatalf(string, ...any) { j.FailNow() }
func (j *judge) FailNow() {
	j.failed = true
	runtime.Goexit()
}

// refuted reports whether rapid finds a life in which a property does not hold.
func refuted(p property, maker promptMaker) bool {
	GinkgoHelper()
	j := &judge{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(j, func(t *rapid.T) { p.holds(t, maker) })
	}()
	<-done
	return j.failed
}

// withFlag sets one of rapid's flags for a spec.
func withFlag(name, value string) {
	GinkgoHelper()
	f := flag.Lookup(name)
	Expect(f).NotTo(BeNil())
	before := f.Value.String()
	Expect(flag.Set(name, value)).To(Succeed())
	DeferCleanup(func() { Expect(flag.Set(name, before)).To(Succeed()) })
}

var _ = Describe("The properties of prompts", func() {
	BeforeEach(func() {
		withFlag("rapid.nofailfile", "true")
		withFlag("rapid.seed", fmt.Sprint(GinkgoRandomSeed()))
	})

	for _, p := range properties {
		It(p.promise, func() {
			rapid.Check(GinkgoT(), func(t *rapid.T) { p.holds(t, engineMaker{}) })
			rapid.Check(GinkgoT(), func(t *rapid.T) { p.holds(t, engineMaker{asks: true}) })
		})
	}

	for _, p := range properties {
		if p.promise == writesNothing.promise {
			continue // A store hands out nothing that it reads again.
		}
		It("on SQLite, of forks: "+p.promise, func(ctx SpecContext) {
			db, _ := newStore(ctx)
			withFlag("rapid.checks", "30")
			maker := storeMaker{db, new(int)}
			rapid.Check(GinkgoT(), func(t *rapid.T) { p.holds(t, maker) })
		})
	}

	// A property that cannot be refuted says nothing. These are tests of the tests.
	Context("made naively, from the text of the rules", func() {
		for _, p := range properties {
			It("hold: "+p.promise, func() {
				rapid.Check(GinkgoT(), func(t *rapid.T) { p.holds(t, naiveMaker{}) })
			})
		}
	})

	for _, r := range refutations {
		It("are refuted where a rule is broken: "+string(r.twin)+". No longer: "+r.promise, func() {
			withFlag("rapid.shrinktime", "0s")
			withFlag("rapid.checks", "500")
			i := slices.IndexFunc(properties, func(p property) bool { return p.promise == r.promise })
			Expect(refuted(properties[i], naiveMaker{fault: r.twin})).To(BeTrue())
		})
	}
})
