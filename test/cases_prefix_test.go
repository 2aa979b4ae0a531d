package test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/app"
	"sessiondate/domain"
)

// Cases about a date in the prefix, and about a past that changes.

var _ = Describe("Case A01: the date in the cached system block at midnight (anomalyco/opencode#32622)", func() {
	It("keeps the system prompt and tells the new day in front of its first message", func(ctx SpecContext) {
		r := requestsOf(ctx, dialogue("2026-06-17 23:50:00", "2026-06-18 00:05:00")...)
		expectDates(r[0], "2026-06-17")
		expectDates(r[1], "2026-06-17", "U2 2026-06-18")
		expectPrefix(r, 1, 3)
	})
})

var _ = Describe("Case A02: the second in the system prompt (dimagi/open-chat-studio#3625)", func() {
	It("states the day alone, and the same at every time of the clock", func(ctx SpecContext) {
		now := clockAt("2026-06-12 10:00:01")()
		var sessions memory.Sessions
		e := engineAt(&sessions, func() time.Time {
			now = now.Add(time.Second)
			return now
		})
		var r []app.BuiltPrompt
		for _, m := range dialogue("2026-06-12 10:00:01", "2026-06-12 10:00:02", "2026-06-12 10:00:59") {
			sessions.Add(session, m)
			if m.Role == domain.RoleUser {
				r = append(r, build(ctx, e))
			}
		}
		again := build(ctx, e)
		Expect(now).NotTo(Equal(clockAt("2026-06-12 10:00:01")()))
		for _, built := range r {
			expectDates(built, "2026-06-12")
			Expect(built.Prompt.System()).To(Equal(r[0].Prompt.System()))
		}
		Expect(bodies(again)).To(Equal(bodies(r[2])))
		expectPrefix(r, 1, 3, 5)
	})
})

var _ = Describe("Case A03: the date deep in the first message (cnighswonger/claude-code-cache-fix#342)", func() {
	It("leaves a first message of 30 kB as it was when midnight passes forty messages later", func(ctx SpecContext) {
		var times []string
		var counts []int
		start := clockAt("2026-04-22 20:00:00")()
		for k := range 39 {
			times = append(times, start.Add(time.Duration(k)*6*time.Minute).Format(time.DateTime))
			counts = append(counts, 2*k+1)
		}
		Expect(times[38]).To(Equal("2026-04-22 23:48:00"))
		story := dialogue(append(times, "2026-04-23 00:34:00")...)
		story[0].Text = strings.Repeat("A log line of thirty bytes...\n", 1000)
		r := requestsOf(ctx, story...)
		expectDates(r[38], "2026-04-22")
		expectDates(r[39], "2026-04-22", "U40 2026-04-23")
		for _, w := range caseWires() {
			first := decodeBody(w.request(r[38].Prompt)).items[0].raw
			Expect(len(first)).To(BeNumerically(">", 30_000), w.name)
			Expect(decodeBody(w.request(r[39].Prompt)).items[0].raw).To(Equal(first), w.name)
		}
		expectPrefix(r, append(counts, 79)...)
	})
})

var _ = Describe("Case A04: a prompt recomputed on reload and resume (earendil-works/pi#2131)", func() {
	It("is the same in a fresh process on any later day", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "a04.db")
		first := resume(ctx, file, "2026-03-13 09:00:05", dialogue("2026-03-12 18:00:00", "2026-03-13 09:00:00")...)
		expectDates(first, "2026-03-12", "U2 2026-03-13")
		for _, now := range []string{"2026-03-13 09:05:00", "2026-03-15 08:00:00"} {
			Expect(bodies(resume(ctx, file, now))).To(Equal(bodies(first)), now)
		}
	})

	It("is the same in three processes whose clocks stand on different days", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "a04.db")
		resume(ctx, file, "2026-03-13 09:00:05", dialogue("2026-03-12 18:00:00", "2026-03-13 09:00:00")...)
		for _, w := range caseWires() {
			prompt := func(zone string) string {
				return harnessOutput(ctx, "prompt", "--db", file, "--session", session, "--protocol", w.name, "--zone", zone, "--raw")
			}
			first := prompt("Asia/Shanghai")
			expectBodyDates([]byte(first), w.name, "2026-03-12", "U2 2026-03-13")
			// These two are 26 hours apart, so at no time on the same day.
			Expect(prompt("Pacific/Kiritimati")).To(Equal(first), w.name)
			Expect(prompt("Etc/GMT+12")).To(Equal(first), w.name)
		}
	})
})

var _ = Describe("Case A05: a time and not a date in the prompt (HKUDS/nanobot#226, Dicklesworthstone/pi_agent_rust#103)", func() {
	// A session without a user message is the one that takes its date from the
	// clock.
	It("has no digit in the system prompt that changes within a day", func(ctx SpecContext) {
		var sessions memory.Sessions
		system := func(now time.Time) string {
			return build(ctx, engineAt(&sessions, func() time.Time { return now })).Prompt.System()
		}
		midnight := clockAt("2026-06-09 00:00:00")()
		stated := system(midnight)
		Expect(dateSpelled.FindAllString(stated, -1)).To(Equal([]string{"2026-06-09"}))
		digits := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, stated)
		Expect(digits).To(Equal("20260609"))
		for second := 0; second < 24*60*60; second += 59 {
			now := midnight.Add(time.Duration(second) * time.Second)
			Expect(system(now)).To(Equal(stated), "%v", now)
		}
		Expect(system(midnight.Add(24*time.Hour - time.Nanosecond))).To(Equal(stated))
		Expect(system(midnight.Add(24 * time.Hour))).To(ContainSubstring("2026-06-10"))
		Expect(system(midnight.Add(-time.Nanosecond))).To(ContainSubstring("2026-06-08"))
	})
})

var _ = Describe("Case A21: a decoration that is lost when its turn becomes history (openclaw/openclaw#90810)", func() {
	It("sends the bytes of the tagged message again in every later request", func(ctx SpecContext) {
		r := requestsOf(ctx, dialogue(
			"2026-06-05 09:00:00", "2026-06-06 09:00:00", "2026-06-06 09:10:00",
			"2026-06-06 09:20:00", "2026-06-06 09:30:00", "2026-06-06 09:40:00",
			"2026-06-06 09:50:00", "2026-06-06 10:00:00", "2026-06-06 10:10:00")...)
		for _, k := range []int{1, 2, 8} {
			expectDates(r[k], "2026-06-05", "U2 2026-06-06")
		}
		for _, w := range caseWires() {
			second := func(k int) string { return decodeBody(w.request(r[k].Prompt)).users()[1].raw }
			Expect(second(1)).To(ContainSubstring("Question 2."), w.name)
			Expect(second(2)).To(Equal(second(1)), w.name)
			Expect(second(8)).To(Equal(second(1)), w.name)
		}
		expectPrefix(r, 1, 3, 5, 7, 9, 11, 13, 15, 17)
	})
})

var _ = Describe("Case A22: a block that is rewritten on each call of one turn (aaif-goose/goose#10706)", func() {
	It("tells nothing of the midnight that the tool calls of a turn pass", func(ctx SpecContext) {
		var sessions memory.Sessions
		now := clockAt("2026-06-17 23:59:30")()
		e := engineAt(&sessions, func() time.Time { return now })
		sessions.Add(session, user("1", "2026-06-17 23:59:30", "Run the five checks."))
		r := []app.BuiltPrompt{build(ctx, e)}
		for round := 1; round <= 5; round++ {
			now = now.Add(54 * time.Second)
			at, call := now.Format(time.DateTime), fmt.Sprint("call_", round)
			sessions.Add(session,
				assistant(fmt.Sprint(2*round), at, "", domain.ToolCall{ID: call, Name: "shell", Arguments: `{"command":"true"}`}),
				toolResult(fmt.Sprint(2*round+1), at, call, "ok"))
			r = append(r, build(ctx, e))
		}
		Expect(now.Format(time.DateTime)).To(Equal("2026-06-18 00:04:00"))
		for _, built := range r {
			expectDates(built, "2026-06-17")
		}
		for _, w := range caseWires() {
			first := decodeBody(w.request(r[0].Prompt))
			for _, built := range r {
				body := decodeBody(w.request(built.Prompt))
				Expect(body.system).To(Equal(first.system), w.name)
				Expect(body.items[0]).To(Equal(first.items[0]), w.name)
			}
		}
		expectPrefix(r, 1, 3, 5, 7, 9, 11)
	})

	It("tells of it in front of the message that ends the turn's silence", func(ctx SpecContext) {
		r := requestsOf(ctx,
			user("1", "2026-06-17 23:59:30", "Run the check."),
			assistant("2", "2026-06-18 00:01:00", "", domain.ToolCall{ID: "x", Name: "shell", Arguments: "{}"}),
			toolResult("3", "2026-06-18 00:04:00", "x", "ok"),
			assistant("4", "2026-06-18 00:04:10", "Done."),
			user("5", "2026-06-18 00:05:00", "Thanks."))
		expectDates(r[1], "2026-06-17", "U2 2026-06-18")
	})
})

var _ = Describe("Case A23: the same text as a string and as blocks (anthropics/claude-code#93490)", func() {
	It("keeps the type of a message's content, tagged or not, last or not", func(ctx SpecContext) {
		story := dialogue(
			"2026-09-09 10:00:00", "2026-09-09 10:10:00", "2026-09-10 10:00:00",
			"2026-09-10 10:10:00", "2026-09-11 10:00:00", "2026-09-11 10:10:00")
		// Strings are U1, U3 (tagged) and U6, parts are U2, U4 and U5 (tagged).
		for _, i := range []int{2, 6, 8} {
			story[i].Parts, story[i].Text = []domain.Part{{Text: story[i].Text}}, ""
		}
		r := requestsOf(ctx, story...)
		expectDates(r[5], "2026-09-09", "U3 2026-09-10", "U5 2026-09-11")
		shapes := map[string][]string{
			"chat":      {"string", "list", "string", "list", "list", "string"},
			"responses": {"string", "list", "string", "list", "list", "string"},
			"messages":  {"list", "list", "list", "list", "list", "list"},
		}
		for _, w := range caseWires() {
			for k, built := range r {
				var got []string
				for _, u := range decodeBody(w.request(built.Prompt)).users() {
					got = append(got, u.shape)
				}
				Expect(got).To(Equal(shapes[w.name][:k+1]), w.name)
			}
		}
		expectPrefix(r, 1, 3, 5, 7, 9, 11)
	})
})

var _ = Describe("Case A24: old frames that the next request removes (kachofugetsu09/akashic-agent#14)", func() {
	It("keeps the tag of every day that was told", func(ctx SpecContext) {
		r := requestsOf(ctx, dialogue("2026-04-26 22:00:00", "2026-04-27 22:00:00", "2026-04-28 22:00:00")...)
		expectDates(r[0], "2026-04-26")
		expectDates(r[1], "2026-04-26", "U2 2026-04-27")
		expectDates(r[2], "2026-04-26", "U2 2026-04-27", "U3 2026-04-28")
		expectPrefix(r, 1, 3, 5)
	})
})

var _ = Describe("Case A25: the random order of Go's maps (maximhq/bifrost#2347, docker/docker-agent#3233)", Label("harness"), func() {
	// Go seeds its maps anew in each process, so only processes show it.
	const processes = 200

	DescribeTable("sends one and the same body from two hundred processes",
		func(ctx SpecContext, protocol string) {
			db, store := newStore(ctx)
			story := dialogue("2026-06-24 22:00:00", "2026-06-25 08:00:00", "2026-06-26 08:00:00")
			story[1].ToolCalls = []domain.ToolCall{
				{ID: "c1", Name: "shell", Arguments: `{"zeta":1,"alpha":{"y":1,"x":2,"w":3},"mid":[{"b":1,"a":2}],"beta":4,"gamma":5}`},
				{ID: "c2", Name: "read_file", Arguments: `{"path":"/a","offset":3,"limit":4}`},
			}
			story[2].Parts = []domain.Part{{Text: "Look."}, {Image: domain.Image{URL: "https://example.com/a.png"}}}
			story = append(story[:2:2], append([]domain.Message{
				toolResult("", "2026-06-24 22:00:01", "c1", "one"), toolResult("", "2026-06-24 22:00:02", "c2", "two"),
			}, story[2:]...)...)
			Expect(store.Append(ctx, session, story...)).To(Succeed())
			rows := tableRows(ctx, db)
			var file string
			Expect(db.GetContext(ctx, &file, "SELECT file FROM pragma_database_list WHERE name = 'main'")).To(Succeed())
			Expect(db.Close()).To(Succeed())

			binary := harnessBinary()
			runs, failures := make([]harnessRun, processes), make([]error, processes)
			var workers sync.WaitGroup
			for half := range 2 {
				workers.Go(func() {
					for i := half; i < processes; i += 2 {
						runs[i], failures[i] = startHarness(ctx, binary, "prompt", "--db", file, "--session", session, "--protocol", protocol, "--raw")
					}
				})
			}
			workers.Wait()

			sums := make(map[string]int)
			for i, run := range runs {
				Expect(failures[i]).NotTo(HaveOccurred())
				Expect(run.code).To(BeZero(), run.stderr)
				sum := sha256.Sum256([]byte(run.stdout))
				sums[hex.EncodeToString(sum[:])]++
			}
			Expect(sums).To(HaveLen(1))
			expectBodyDates([]byte(runs[0].stdout), protocol, "2026-06-24", "U2 2026-06-25", "U3 2026-06-26")

			reopened := openSQLiteFile(file)
			Expect(tableRows(ctx, reopened)).To(Equal(rows))
			expectUntagged(ctx, rows, sqlhistory.New(reopened))
		},
		Entry("of chat completions", "chat"),
		Entry("of responses", "responses"),
		Entry("of messages", "messages"),
	)
})
