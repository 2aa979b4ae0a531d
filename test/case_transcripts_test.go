package test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/sqlhistory"
	"sessiondate/domain"
)

// The transcripts in testdata/cases are sessions of the cases of the same name,
// as a user of the reference harness would load them.

// A caseTranscript is a transcript and what its request must be like.
type caseTranscript struct {
	name string
	// turns are the lines of the file that each message of the user is on.
	turns []int
	// stated is the date in the system prompt, and told the notices.
	stated string
	told   []string
	// texts are the messages of the user, notices and all. Parts follow one
	// another without a gap.
	texts []string
}

// noticeOf spells a notice by hand (R5).
func noticeOf(day string) string {
	return "<date-change>系统提示:当前日期已变更为 " + day + "。这是系统注入的提示,不是用户说的话;需要精确到时分秒请用 shell 执行 date。</date-change>"
}

// The weekdays are a calendar's: 2026-01-01 is a Thursday.
var caseTranscripts = []caseTranscript{
	{
		name: "a01", turns: []int{2, 4}, stated: "2026-06-17", told: []string{"U2 2026-06-18"},
		texts: []string{
			"The deploy of the billing service hangs. Can you see why?",
			noticeOf("2026-06-18(星期四)") + "\n\nIs it through now?",
		},
	},
	{
		name: "a06", turns: []int{2, 4, 6, 8}, stated: "2026-02-08", told: []string{"U2 2026-02-09"},
		texts: []string{
			"Help me to prepare for the review on Monday.",
			noticeOf("2026-02-09(星期一)") + "\n\nYes, three headings at most.",
			"The review is at ten. How long do I have?",
			"Then send me the outline again.",
		},
	},
	{
		name: "a07", turns: []int{2, 4, 8, 10, 12, 14, 16}, stated: "2026-06-25", told: []string{"U5 2026-06-26"},
		texts: []string{
			"Let us go through the open incidents.",
			"What is in the queue?",
			"Flush it tonight.",
			"Good night.",
			noticeOf("2026-06-26(星期五)") + "\n\nDid it run?",
			"And the second incident?",
			"Write down on which day that is.",
		},
	},
	{
		name: "a23", turns: []int{2, 4, 6, 8, 10, 12}, stated: "2026-09-09", told: []string{"U3 2026-09-10", "U5 2026-09-11"},
		texts: []string{
			"Which tests are red?",
			"Since when?",
			noticeOf("2026-09-10(星期四)") + "\n\nAre they still red this morning?",
			"Show me its name.And its message.",
			noticeOf("2026-09-11(星期五)") + "And today?",
			"Thank you.",
		},
	},
	{
		name: "a29", turns: []int{2, 4}, stated: "2026-07-25", told: []string{"U2 2026-07-26"},
		texts: []string{
			"I will send you a picture of the dashboard tomorrow.",
			noticeOf("2026-07-26(星期日)") + "Here it is. Which corner is red?",
		},
	},
}

// file returns the transcript's file.
func (t caseTranscript) file() string { return filepath.Join("testdata", "cases", t.name+".jsonl") }

// importCase imports a transcript into a new store and returns the store's file.
func importCase(ctx context.Context, t caseTranscript) string {
	GinkgoHelper()
	db := filepath.Join(GinkgoT().TempDir(), "cases.db")
	Expect(harnessOutput(ctx, "import", "--db", db, t.file())).To(ContainSubstring("session " + t.name))
	return db
}

// promptOf returns the body of a session's request.
func promptOf(ctx context.Context, db, session, protocol string) string {
	GinkgoHelper()
	return harnessOutput(ctx, "prompt", "--db", db, "--session", session, "--protocol", protocol, "--raw")
}

// storedRows returns every row of a store that nobody has open.
func storedRows(ctx context.Context, file string) [][]any {
	GinkgoHelper()
	db := openSQLiteFile(file)
	rows := tableRows(ctx, db)
	Expect(db.Close()).To(Succeed())
	return rows
}

var _ = Describe("The transcripts of the cases", Label("harness"), func() {
	for _, t := range caseTranscripts {
		Context("with "+t.name, func() {
			It("states the first day, and tells each new one in front of its first message", func(ctx SpecContext) {
				db := importCase(ctx, t)
				rows := storedRows(ctx, db)
				for _, w := range caseWires() {
					body := promptOf(ctx, db, t.name, w.name)
					expectBodyDates([]byte(body), w.name, t.stated, t.told...)
					var texts []string
					for _, u := range decodeBody([]byte(body)).users() {
						texts = append(texts, u.text())
					}
					Expect(texts).To(Equal(t.texts), w.name)
				}
				Expect(storedRows(ctx, db)).To(Equal(rows))
				Expect(fmt.Sprintf("%s", rows)).NotTo(ContainSubstring("date-change"))
			})

			It("prints indented what it prints raw", func(ctx SpecContext) {
				db := importCase(ctx, t)
				for _, w := range caseWires() {
					indented := harnessOutput(ctx, "prompt", "--db", db, "--session", t.name, "--protocol", w.name)
					Expect(indented).To(MatchJSON(promptOf(ctx, db, t.name, w.name)), w.name)
					Expect(strings.Count(indented, "\n")).To(BeNumerically(">", 10), w.name)
				}
			})

			It("repeats the request of each turn in the one after it", func(ctx SpecContext) {
				content, err := os.ReadFile(t.file())
				Expect(err).NotTo(HaveOccurred())
				lines := strings.SplitAfter(string(content), "\n")
				dir := GinkgoT().TempDir()
				db := filepath.Join(dir, "turns.db")
				for k, n := range t.turns {
					part := filepath.Join(dir, fmt.Sprint("turn", k+1, ".jsonl"))
					Expect(os.WriteFile(part, []byte(strings.Join(lines[:n], "")), 0o600)).To(Succeed())
					harnessOutput(ctx, "import", "--db", db, "--session", fmt.Sprint("turn", k+1), part)
				}
				for _, w := range caseWires() {
					var earlier []domain.PrefixUnit
					for k := range t.turns {
						body := []byte(promptOf(ctx, db, fmt.Sprint("turn", k+1), w.name))
						Expect(decodeBody(body).users()).To(HaveLen(k+1), w.name)
						units := w.units(body)
						repeated := domain.Repeats(earlier, units)
						Expect(repeated.Whole()).To(BeTrue(), "%s, turn %d: %+v", w.name, k+1, repeated)
						Expect(repeated.Units).To(Equal(len(earlier)), "%s, turn %d", w.name, k+1)
						Expect(len(units)).To(BeNumerically(">", len(earlier)), "%s, turn %d", w.name, k+1)
						earlier = units
					}
				}
			})

			It("is anchored and tells nothing with --no-stamps", func(ctx SpecContext) {
				db := importCase(ctx, t)
				for _, w := range caseWires() {
					run := runHarness(ctx, "prompt", "--db", db, "--session", t.name, "--protocol", w.name, "--raw", "--no-stamps")
					Expect(run.code).To(BeZero(), run.stderr)
					expectBodyDates([]byte(run.stdout), w.name, t.stated)
					Expect(strings.Count(run.stderr, "\n")).To(Equal(1), run.stderr)
					Expect(run.stderr).To(ContainSubstring("no session stamp reader"))
				}
			})
		})
	}

	It("keeps each message of a23 the string or the list that it is", func(ctx SpecContext) {
		db := importCase(ctx, caseTranscripts[3])
		for protocol, want := range map[string][]string{
			"chat":      {"string", "list", "string", "list", "list", "string"},
			"responses": {"string", "list", "string", "list", "list", "string"},
			"messages":  {"list", "list", "list", "list", "list", "list"},
		} {
			var got []string
			for _, u := range decodeBody([]byte(promptOf(ctx, db, "a23", protocol))).users() {
				got = append(got, u.shape)
			}
			Expect(got).To(Equal(want), protocol)
		}
	})

	It("sends the image of a29 as it is, behind the notice and the text", func(ctx SpecContext) {
		decoded, err := base64.StdEncoding.DecodeString(pixels)
		Expect(err).NotTo(HaveOccurred())
		picture, err := png.Decode(bytes.NewReader(decoded))
		Expect(err).NotTo(HaveOccurred())
		Expect(picture.Bounds()).To(Equal(image.Rect(0, 0, 2, 2)))

		db := importCase(ctx, caseTranscripts[4])
		for _, w := range caseWires() {
			second := decodeBody([]byte(promptOf(ctx, db, "a29", w.name))).users()[1]
			Expect(second.kinds()).To(Equal([]string{"text", "text", "image"}), w.name)
			Expect(second.blocks[0].text).To(Equal(noticeOf("2026-07-26(星期日)")), w.name)
			Expect(second.blocks[2].raw).To(ContainSubstring(pixels), w.name)
		}
	})
})

var _ = Describe("A broken transcript", func() {
	broken := filepath.Join("testdata", "cases", "broken.jsonl")

	// refused runs the import, which must say in one line which line is wrong, and
	// why.
	refused := func(ctx context.Context, db string) {
		GinkgoHelper()
		run := runHarness(ctx, "import", "--db", db, broken)
		Expect(run.code).To(Equal(1))
		Expect(run.stdout).To(BeEmpty())
		Expect(run.stderr).To(HavePrefix("harness: "))
		Expect(strings.Count(run.stderr, "\n")).To(Equal(1), run.stderr)
		Expect(run.stderr).To(HaveSuffix("\n"))
		Expect(run.stderr).To(And(ContainSubstring(broken), ContainSubstring("line 4"),
			ContainSubstring("created_at"), ContainSubstring("2026-06-31 00:05:00"), ContainSubstring("not a calendar date")))
	}

	It("is refused and leaves the store byte for byte as it was", func(ctx SpecContext) {
		db := importCase(ctx, caseTranscripts[0])
		rows := storedRows(ctx, db)
		Expect(rows).To(HaveLen(3))
		before, err := os.ReadFile(db)
		Expect(err).NotTo(HaveOccurred())

		refused(ctx, db)
		Expect(os.ReadFile(db)).To(Equal(before))
		Expect(storedRows(ctx, db)).To(Equal(rows))
		opened := openSQLiteFile(db)
		Expect(messagesOf(ctx, sqlhistory.New(opened), "broken")).To(BeEmpty())
		Expect(messagesOf(ctx, sqlhistory.New(opened), "a01")).To(HaveLen(3))

		prompt := runHarness(ctx, "prompt", "--db", db, "--session", "broken")
		Expect(prompt.code).To(Equal(1))
		Expect(prompt.stdout).To(BeEmpty())
		Expect(prompt.stderr).To(Equal("harness: session broken has no messages\n"))
	})

	It("is refused and makes no store", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		refused(ctx, filepath.Join(dir, "new.db"))
		Expect(os.ReadDir(dir)).To(BeEmpty())
	})
})
