package test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/openai/openai-go/v3"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/openaichat"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// The benchmarks measure two ways in turns, in one run, and report how many times
// as long the first takes as the second, which is its bound. A run of benchmarks
// ends with tables of them, in Markdown; no test depends on them.

// TestMain prints the tables of what was compared, if anything was.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, c := range comparisons {
		fmt.Print(c)
	}
	os.Exit(code)
}

// A comparison is a table of two ways, with a row for each case.
type comparison struct {
	title       string
	ours, bound string
	rows        []comparisonRow
}

type comparisonRow struct {
	// name has the parameters of the case: messages=100/crossings=9.
	name                string
	ours, bound, allocs float64
}

// comparisons are those of this run, in order.
var comparisons []*comparison

// newComparison begins a table.
func newComparison(title, ours, bound string) *comparison {
	c := &comparison{title: title, ours: ours, bound: bound}
	comparisons = append(comparisons, c)
	return c
}

func (c *comparison) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n**%s.**\n\n", c.title)
	for i, r := range c.rows {
		var names, values []string
		for parameter := range strings.SplitSeq(r.name, "/") {
			name, value, _ := strings.Cut(parameter, "=")
			names, values = append(names, name), append(values, value)
		}
		if i == 0 {
			fmt.Fprintf(&out, "| %s | %s | %s | ratio | allocations |\n", strings.Join(names, " | "), c.ours, c.bound)
			fmt.Fprintf(&out, "|%s---:|---:|---:|---:|\n", strings.Repeat("---:|", len(names)))
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %.0f |\n", strings.Join(values, " | "),
			spellTime(r.ours), spellTime(r.bound), spellRatio(r.ours/r.bound), r.allocs)
	}
	return out.String()
}

// spellTime spells nanoseconds in three digits.
func spellTime(ns float64) string {
	d, unit := time.Duration(ns), time.Duration(1)
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

// spellRatio spells a ratio in three digits, or all of those before the point.
func spellRatio(r float64) string {
	if r >= 100 {
		return fmt.Sprintf("%.0f", r)
	}
	return fmt.Sprintf("%.3g", r)
}

// run measures ours and bound, each of which does its work once, as a case of the
// table.
func (c *comparison) run(b *testing.B, ours, bound func()) {
	const least = 200 * time.Microsecond
	times := func(do func()) int {
		for n := 1; ; n *= 2 {
			start := time.Now()
			for range n {
				do()
			}
			if time.Since(start) > least {
				return n
			}
		}
	}
	oursN, boundN := times(ours), times(bound)
	var oursTimes, boundTimes []time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range oursN {
		ours()
	}
	runtime.ReadMemStats(&after)
	allocs := float64(after.Mallocs-before.Mallocs) / float64(oursN)
	for b.Loop() {
		start := time.Now()
		for range oursN {
			ours()
		}
		middle := time.Now()
		for range boundN {
			bound()
		}
		oursTimes = append(oursTimes, middle.Sub(start))
		boundTimes = append(boundTimes, time.Since(middle))
	}
	perOurs, perBound := median(oursTimes)/float64(oursN), median(boundTimes)/float64(boundN)
	_, name, _ := strings.Cut(b.Name(), "/")
	c.rows = append(c.rows, comparisonRow{name, perOurs, perBound, allocs})
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(perOurs, "ours-ns")
	b.ReportMetric(perBound, "bound-ns")
	b.ReportMetric(perOurs/perBound, "ratio")
	b.ReportMetric(allocs, "ours-allocs")
}

// median returns the median in nanoseconds, which a run that was disturbed now
// and then does not move.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds())
}

// sizes are how many messages windows have.
var sizes = []int{100, 1_000, 10_000, 100_000}

// busyWindow returns a window of n messages, of which every crossing-th is the
// first of a new day, or none if crossing is 0.
func busyWindow(n, crossing int) []domain.Message {
	day := time.Date(2026, 10, 12, 9, 0, 0, 0, time.UTC)
	window := make([]domain.Message, n)
	for i := range window {
		if crossing > 0 && i > 0 && i%crossing == 0 {
			day = day.AddDate(0, 0, 1)
		}
		m := &window[i]
		m.ID, m.CreatedAt = strconv.Itoa(i+1), day.Format(time.DateTime)
		m.Role, m.Text = domain.RoleUser, "Is the nightly export through, and did the disk on export-1 fill up again? Show me the last lines of the log."
		if i%2 == 1 {
			m.Role, m.Text = domain.RoleAssistant, "It went through at 02:14. The disk is at 61 %. The log ends with: export done, 48 211 rows, 0 errors."
		}
	}
	return window
}

// sink keeps results, so that no work is left out.
var sink any

func BenchmarkSequence(b *testing.B) {
	table := newComparison("The sequence of dates (R4), against one plain pass over them", "sequence", "plain pass")
	for _, n := range sizes {
		for _, crossing := range []int{0, n / 10} {
			b.Run(fmt.Sprintf("messages=%d/crossings=%d", n, crossings(n, crossing)), func(b *testing.B) {
				window := make([]domain.Entry, n)
				for i, m := range busyWindow(n, crossing) {
					d, _ := domain.StoredDate(m.CreatedAt)
					window[i] = domain.Entry{Role: m.Role, Date: d}
				}
				anchor := window[0].Date
				table.run(b, func() {
					sink = domain.Changes(window, anchor, domain.Before{})
				}, func() {
					// One plain pass over the dates.
					changes, known := 0, anchor
					for _, e := range window {
						if e.Date != known {
							changes++
							known = e.Date
						}
					}
					sink = changes
				})
			})
		}
	}
}

func crossings(n, crossing int) int {
	if crossing == 0 {
		return 0
	}
	return (n - 1) / crossing
}

// A benchHistory is a window that is loaded in no time.
type benchHistory domain.Window

func (h benchHistory) Window(context.Context, string) (domain.Window, error) {
	return domain.Window(h), nil
}

// benchEngine returns an engine over a window that is a whole session.
func benchEngine(window []domain.Message, stamps ports.SessionStampReader) *app.PromptEngine {
	return app.NewPromptEngine(app.PromptOptions{
		Dates:   app.NewSessionDate(app.Options{Stamps: stamps}),
		History: benchHistory{Messages: window, Whole: true},
	})
}

func BenchmarkPrompt(b *testing.B) {
	table := newComparison("A prompt with notices, against one without", "with", "without")
	for _, n := range sizes {
		for _, crossing := range []int{0, n / 10} {
			b.Run(fmt.Sprintf("messages=%d/crossings=%d", n, crossings(n, crossing)), func(b *testing.B) {
				window := busyWindow(n, crossing)
				with, without := benchEngine(window, &memory.Sessions{}), benchEngine(window, nil)
				build := func(e *app.PromptEngine) func() {
					return func() {
						built, err := e.Build(context.Background(), buildRequest())
						if err != nil {
							b.Fatal(err)
						}
						sink = built
					}
				}
				table.run(b, build(with), build(without))
			})
		}
	}
}

func BenchmarkDatesOfRequest(b *testing.B) {
	table := newComparison("The dates of a request, against building all of it", "dates", "request")
	encoder := openaichat.New(openai.NewClient(), "gpt-5.6")
	for _, n := range sizes {
		for _, crossing := range []int{0, n / 10} {
			b.Run(fmt.Sprintf("messages=%d/crossings=%d", n, crossings(n, crossing)), func(b *testing.B) {
				messages := busyWindow(n, crossing)
				engine, dates := benchEngine(messages, &memory.Sessions{}), app.NewSessionDate(app.Options{Stamps: &memory.Sessions{}})
				window := windowOf(messages...)
				window.Whole = true
				table.run(b, func() {
					d, err := dates.Resolve(context.Background(), window)
					if err != nil {
						b.Fatal(err)
					}
					sink = d
				}, func() {
					// The whole request, of which that is a part.
					built, err := engine.Build(context.Background(), buildRequest())
					if err != nil {
						b.Fatal(err)
					}
					body, err := encoder.Body(built.Prompt)
					if err != nil {
						b.Fatal(err)
					}
					sink = body
				})
			})
		}
	}
}

func BenchmarkSessions(b *testing.B) {
	table := newComparison("Many sessions at once, against one after the other", "together", "one by one")
	const sessionCount, goroutines = 10_000, 16
	var sessions memory.Sessions
	for i := range sessionCount {
		sessions.Add(strconv.Itoa(i), busyWindow(20, 5)...)
	}
	e := app.NewPromptEngine(app.PromptOptions{Dates: app.NewSessionDate(app.Options{Stamps: &sessions}), History: &sessions})
	build := func(from, step int) {
		for i := from; i < sessionCount; i += step {
			if _, err := e.Build(context.Background(), app.PromptRequest{SessionID: strconv.Itoa(i)}); err != nil {
				b.Error(err)
			}
		}
	}
	b.Run(fmt.Sprintf("sessions=%d/goroutines=%d", sessionCount, goroutines), func(b *testing.B) {
		table.run(b, func() {
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() { build(g, goroutines) })
			}
			all.Wait()
		}, func() { build(0, 1) })
	})
}

// A delay is a way to a server that takes a while in each direction.
type delay struct {
	listener net.Listener
	socket   string
	oneWay   time.Duration
}

// serve passes on what comes, until the listener is closed.
func (d delay) serve() {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", d.socket)
		if err != nil {
			_ = client.Close()
			return
		}
		go d.pass(server, client)
		go d.pass(client, server)
	}
}

func (d delay) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		// A sleep this short takes a whole millisecond, and more.
		for began := time.Now(); time.Since(began) < d.oneWay; {
			runtime.Gosched()
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// BenchmarkRoundTrips measures what a prompt's dates cost in a session behind a
// compaction boundary, on a real server: asked for in one statement, against two,
// which is what they were asked for in before.
func BenchmarkRoundTrips(b *testing.B) {
	table := newComparison("The dates behind a boundary, asked for in one statement, against two", "one", "two")
	// Where the run is interrupted, the server is stopped and its folder removed.
	ctx, stopped := signal.NotifyContext(b.Context(), os.Interrupt, syscall.SIGTERM)
	defer stopped()
	if err := findMariaDB(ctx); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	server := &mariaDBServer{socket: filepath.Join(dir, "s"), data: filepath.Join(dir, "data")}
	if err := errors.Join(server.install(ctx), server.run(ctx)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := stop(server.process); err != nil {
			b.Error(err)
		}
	})
	open := func(dsn string) *sqlx.DB {
		db, err := sqlx.Open("mysql", dsn)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = db.Close() })
		return db
	}
	root := open("root@unix(" + server.socket + ")/?multiStatements=true")
	if _, err := root.ExecContext(ctx, "CREATE DATABASE bench; USE bench; "+sqlhistory.SchemaMySQL); err != nil {
		b.Fatal(err)
	}
	store := sqlhistory.New(open("root@unix(" + server.socket + ")/bench"))
	if err := store.Append(ctx, session, busyWindow(200, 50)...); err != nil {
		b.Fatal(err)
	}
	window, err := store.Window(ctx, session)
	if err != nil {
		b.Fatal(err)
	}
	behind := windowOf(window.Messages[100:]...)
	for _, oneWay := range []time.Duration{0, 500 * time.Microsecond} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = listener.Close() })
		go delay{listener, server.socket, oneWay}.serve()
		for _, prepared := range []bool{true, false} {
			dsn := fmt.Sprintf("root@tcp(%s)/bench?interpolateParams=%v", listener.Addr(), !prepared)
			reader := sqlstamp.New(open(dsn))
			b.Run(fmt.Sprintf("delay=%v/prepared=%v", 2*oneWay, prepared), func(b *testing.B) {
				ask := func(stamps ports.SessionStampReader) func() {
					dates := app.NewSessionDate(app.Options{Stamps: stamps})
					return func() {
						d, err := dates.Resolve(ctx, behind)
						if err != nil || len(d.Notices) != 2 {
							b.Fatal(len(d.Notices), err)
						}
						sink = d
					}
				}
				table.run(b, ask(reader), ask(struct{ ports.SessionStampReader }{reader}))
			})
		}
	}
}
