package test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/sqlhistory"
)

// demoRows are the cells of the demo's table, a row for each turn of the user.
func demoRows(output string) [][]string {
	var rows [][]string
	for line := range strings.Lines(output) {
		cells := strings.Split(line, "│")
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
		}
		if len(cells) == 13 {
			if _, err := strconv.Atoi(cells[1]); err == nil {
				rows = append(rows, cells[1:12])
			}
		}
	}
	return rows
}

// The columns of the demo's table.
const (
	storedColumn = 1 + iota
	saysColumn
	noticeColumn
	_
	repeatedColumn
	percentColumn
	otherSaysColumn
	_
	otherRepeatedColumn
	otherPercentColumn
)

// demoDir plays the demo into a directory and returns its store and what it
// printed.
func demoDir(ctx context.Context, args ...string) (file, output string) {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "kept")
	output = harnessOutput(ctx, append([]string{"demo", "--dir", dir}, args...)...)
	return filepath.Join(dir, "demo.db"), output
}

// wireProtocols are the protocols and, for each, the fields of its body in the
// order of caching.
var wireProtocols = []struct {
	name   string
	fields []string
}{
	{"chat", []string{"tools", "messages"}},
	{"responses", []string{"tools", "instructions", "input"}},
	{"messages", []string{"tools", "system", "messages"}},
}

// expectRefusal expects a run that ended with code and one line on stderr, which
// says what is wrong.
func expectRefusal(run harnessRun, code int, saying string) {
	GinkgoHelper()
	Expect(run.code).To(Equal(code), run.stderr)
	Expect(run.stdout).To(BeEmpty())
	Expect(run.stderr).To(MatchRegexp(`^harness: [^\n]+\n$`))
	Expect(run.stderr).To(ContainSubstring(saying))
}

var _ = Describe("harness demo", Label("harness"), func() {
	It("repeats the whole request before on every turn, and tells each new day once", func(ctx SpecContext) {
		rows := demoRows(harnessOutput(ctx, "demo"))
		Expect(rows).To(HaveLen(9))
		known, changes := "2026-10-12", 0
		for i, row := range rows {
			day := row[storedColumn][:10]
			Expect(row[saysColumn]).To(Equal("2026-10-12"))
			Expect(row[otherSaysColumn]).To(Equal(day))
			if day == known {
				Expect(row[noticeColumn]).To(BeEmpty())
			} else {
				Expect(row[noticeColumn]).To(Equal(day))
				changes++
				known = day
			}
			if i > 0 {
				Expect(row[percentColumn]).To(Equal("100 %"))
			}
		}
		Expect(changes).To(Equal(3))
	})

	for _, wire := range wireProtocols {
		It("counts what the bodies of protocol "+wire.name+" hold", func(ctx SpecContext) {
			file, output := demoDir(ctx, "--protocol", wire.name)
			rows := demoRows(output)
			body := harnessOutput(ctx, "prompt", "--db", file, "--session", "demo", "--protocol", wire.name, "--raw")

			// The newest request holds all earlier ones, since each repeats the one
			// before whole. What stands before each message of the user is counted
			// here from its text, and by no code of the module.
			var values map[string]json.RawMessage
			Expect(json.Unmarshal([]byte(body), &values)).To(Succeed())
			var totals []int
			beforeDate, total := 0, 0
			for _, field := range wire.fields {
				var units []json.RawMessage
				if json.Unmarshal(values[field], &units) != nil {
					units = []json.RawMessage{values[field]}
				}
				for _, unit := range units {
					if n := bytes.Index(unit, []byte("`2026-10-12`")); n >= 0 && beforeDate == 0 {
						beforeDate = total + n + len("`2026-10-1")
					}
					total += len(unit)
					var item struct {
						Role    string
						Content json.RawMessage
					}
					if json.Unmarshal(unit, &item) == nil && item.Role == "user" && !bytes.Contains(item.Content, []byte("tool_result")) {
						totals = append(totals, total)
					}
				}
			}
			Expect(totals).To(HaveLen(len(rows)))
			for i, row := range rows[1:] {
				Expect(row[repeatedColumn]).To(Equal(strconv.Itoa(totals[i])), "turn %d", i+2)
				if row[noticeColumn] == "" {
					Expect(row[otherPercentColumn]).To(Equal("100 %"))
				} else {
					Expect(row[otherRepeatedColumn]).To(Equal(strconv.Itoa(beforeDate)), "turn %d", i+2)
				}
			}
		})
	}

	It("prints the same every time", func(ctx SpecContext) {
		Expect(harnessOutput(ctx, "demo", "--lang", "en")).To(Equal(harnessOutput(ctx, "demo", "--lang", "en")))
	})

	It("leaves nothing behind unless it is told to", func(ctx SpecContext) {
		GinkgoT().Setenv("TMPDIR", GinkgoT().TempDir())
		harnessOutput(ctx, "demo")
		Expect(os.ReadDir(os.Getenv("TMPDIR"))).To(BeEmpty())
	})

	It("keeps its store in --dir and names a command that works on it", func(ctx SpecContext) {
		file, output := demoDir(ctx)
		lines := strings.Split(strings.TrimSpace(output), "\n")
		Expect(lines[len(lines)-2]).To(ContainSubstring(file))
		command := strings.Fields(lines[len(lines)-1])
		Expect(command[0]).To(Equal("harness"))
		Expect(harnessOutput(ctx, command[1:]...)).To(ContainSubstring(noticeOf("2026-10-18(星期日)")))
	})

	It("refuses to play into a store that is there already, and leaves it as it is", func(ctx SpecContext) {
		file, _ := demoDir(ctx)
		before := storedRows(ctx, file)
		expectRefusal(runHarness(ctx, "demo", "--dir", filepath.Dir(file)), 1, "there already")
		Expect(storedRows(ctx, file)).To(Equal(before))
	})
})

var _ = Describe("harness prompt", Label("harness"), func() {
	for _, wire := range wireProtocols {
		protocol := wire.name
		It("prints the same bytes twice, on SQLite and on MariaDB, over "+protocol, func(ctx SpecContext) {
			file, _ := demoDir(ctx)
			args := []string{"prompt", "--session", "demo", "--protocol", protocol, "--raw"}
			body := harnessOutput(ctx, append(args, "--db", file)...)
			Expect(harnessOutput(ctx, append(args, "--db", file)...)).To(Equal(body))

			name := newMariaDB(ctx)
			createStore(ctx, name, sqlhistory.SchemaMySQL)
			server := openMariaDB(name, "")
			text, err := os.Open("../cmd/harness/demo.jsonl")
			Expect(err).NotTo(HaveOccurred())
			defer text.Close()
			transcript, err := sqlhistory.ReadTranscript(text)
			Expect(err).NotTo(HaveOccurred())
			Expect(sqlhistory.New(server).Append(ctx, "demo", transcript.Messages...)).To(Succeed())
			dsn := "root@unix(" + mariaDBSocket + ")/" + name
			for _, parameters := range []string{"", "?parseTime=true&loc=Africa%2FCairo", "?interpolateParams=true"} {
				Expect(harnessOutput(ctx, append(args, "--dsn", dsn+parameters)...)).To(Equal(body), parameters)
			}
		})

		It("is anchored and carries no notice with --no-stamps, over "+protocol, func(ctx SpecContext) {
			file, _ := demoDir(ctx)
			run := runHarness(ctx, "prompt", "--db", file, "--session", "demo", "--protocol", protocol, "--no-stamps")
			Expect(run.code).To(BeZero())
			Expect(run.stdout).To(ContainSubstring("当前日期:`2026-10-12`(星期一)"))
			Expect(run.stdout).NotTo(ContainSubstring("当前日期已变更为"))
			Expect(strings.Count(run.stderr, "\n")).To(Equal(1))
			Expect(run.stderr).To(ContainSubstring("no session stamp reader"))
		})

		It("mentions no shell with --no-shell, over "+protocol, func(ctx SpecContext) {
			db := filepath.Join(GinkgoT().TempDir(), "my.db")
			harnessOutput(ctx, "import", "--db", db, "testdata/cases/a01.jsonl")
			for _, language := range []string{"zh-CN", "en"} {
				body := harnessOutput(ctx, "prompt", "--db", db, "--session", "a01", "--protocol", protocol, "--lang", language, "--no-shell")
				Expect(strings.ToLower(body)).NotTo(ContainSubstring("shell"))
				Expect(body).To(ContainSubstring("2026-06-18"))
			}
		})
	}

	It("prints with --raw what it prints otherwise, without white space", func(ctx SpecContext) {
		file, _ := demoDir(ctx)
		var compacted bytes.Buffer
		Expect(json.Compact(&compacted, []byte(harnessOutput(ctx, "prompt", "--db", file, "--session", "demo")))).To(Succeed())
		Expect(harnessOutput(ctx, "prompt", "--db", file, "--session", "demo", "--raw")).To(Equal(compacted.String()))
	})

	It("speaks English with --lang en, and names another --model", func(ctx SpecContext) {
		file, _ := demoDir(ctx)
		body := harnessOutput(ctx, "prompt", "--db", file, "--session", "demo", "--lang", "en", "--model", "other")
		Expect(body).To(ContainSubstring("Current date: `2026-10-12` (Monday)"))
		Expect(body).To(ContainSubstring("the current date is now 2026-10-18 (Sunday)"))
		Expect(body).To(ContainSubstring(`"model": "other"`))
	})

	It("takes the clock's date in --zone where no message has one", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		file := filepath.Join(dir, "undated.jsonl")
		Expect(os.WriteFile(file, []byte(`{"role":"user","content":"Hello."}`), 0o600)).To(Succeed())
		db := filepath.Join(dir, "my.db")
		harnessOutput(ctx, "import", "--db", db, file)
		// These two zones never share a day.
		east := runHarness(ctx, "prompt", "--db", db, "--session", "undated", "--raw", "--zone", "Pacific/Kiritimati")
		west := runHarness(ctx, "prompt", "--db", db, "--session", "undated", "--raw", "--zone", "Etc/GMT+12")
		Expect(east.code + west.code).To(BeZero())
		Expect(east.stdout).NotTo(Equal(west.stdout))
		Expect(east.stderr).To(ContainSubstring("message=1"))
	})
})

var _ = Describe("harness import", Label("harness"), func() {
	It("takes a session's id from --session, from the header, or from the file's name", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		db, file := filepath.Join(dir, "my.db"), filepath.Join(dir, "friday.jsonl")
		message := `{"role":"user","content":"Hello.","created_at":"2026-10-16 09:00:00"}` + "\n"
		Expect(os.WriteFile(file, []byte(message), 0o600)).To(Succeed())
		Expect(harnessOutput(ctx, "import", "--db", db, file)).To(ContainSubstring("as session friday"))
		Expect(harnessOutput(ctx, "import", "--db", db, "--session", "mine", file)).To(ContainSubstring("as session mine"))
		Expect(os.WriteFile(file, []byte(`{"transcript":1,"session":"told"}`+"\n"+message), 0o600)).To(Succeed())
		Expect(harnessOutput(ctx, "import", "--db", db, file)).To(ContainSubstring("as session told"))
	})

	It("refuses a session that is there already, and leaves the store as it is", func(ctx SpecContext) {
		db := filepath.Join(GinkgoT().TempDir(), "my.db")
		harnessOutput(ctx, "import", "--db", db, "testdata/cases/a01.jsonl")
		before := storedRows(ctx, db)
		expectRefusal(runHarness(ctx, "import", "--db", db, "testdata/cases/a01.jsonl"), 1, "the session exists")
		Expect(storedRows(ctx, db)).To(Equal(before))
	})

	DescribeTable("refuses a bad line with its number and the reason, and stores nothing",
		func(ctx SpecContext, line, reason string) {
			dir := GinkgoT().TempDir()
			file, db := filepath.Join(dir, "bad.jsonl"), filepath.Join(dir, "my.db")
			text := `{"role":"user","content":"Hello."}` + "\n\n" + line + "\n"
			Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			run := runHarness(ctx, "import", "--db", db, file)
			expectRefusal(run, 1, "line 3: ")
			Expect(run.stderr).To(ContainSubstring(reason))
			Expect(db).NotTo(BeAnExistingFile())
		},
		Entry("no JSON", `hello`, "invalid character"),
		Entry("a line that is cut off", `{"role":"user","content":"Hel`, "unexpected EOF"),
		Entry("two values", `{"role":"user","content":"a"} {"role":"user","content":"b"}`, "more than one JSON value"),
		Entry("an unknown field", `{"role":"user","content":"a","createdAt":"2026-10-16"}`, `unknown field "createdAt"`),
		Entry("an unknown role", `{"role":"system","content":"a"}`, `"system" is not user, assistant or tool`),
		Entry("no role", `{"content":"a"}`, "is not user, assistant or tool"),
		Entry("no content", `{"role":"user"}`, "no content"),
		Entry("content of another kind", `{"role":"user","content":7}`, "neither a string nor a list of parts"),
		Entry("no parts", `{"role":"user","content":[]}`, "no parts"),
		Entry("a part of another type", `{"role":"user","content":[{"type":"video"}]}`, `"video" is not text or image`),
		Entry("an image of nothing", `{"role":"user","content":[{"type":"image"}]}`, "either a url, or a media_type and data"),
		Entry("an image that is not base64", `{"role":"user","content":[{"type":"image","media_type":"image/png","data":"?"}]}`, "illegal base64"),
		Entry("a day that is none", `{"role":"user","content":"a","created_at":"2026-02-30 10:00:00"}`, "not a calendar date"),
		Entry("the zero time", `{"role":"user","content":"a","created_at":"0000-00-00 00:00:00"}`, "zero time"),
		Entry("a time that is a number", `{"role":"user","content":"a","created_at":1781712345}`, "created_at"),
		Entry("a user who calls a tool", `{"role":"user","content":"a","tool_calls":[{"id":"1","name":"x"}]}`, "calls no tools"),
		Entry("a call without a name", `{"role":"assistant","tool_calls":[{"id":"1"}]}`, "an id and a name"),
		Entry("arguments of another kind", `{"role":"assistant","tool_calls":[{"id":"1","name":"x","arguments":[1]}]}`, "neither an object nor a string"),
		Entry("a result of no call", `{"role":"tool","content":"a"}`, "needs a tool_call_id"),
		Entry("an image of the assistant's", `{"role":"assistant","content":[{"type":"image","url":"https://example.com/a.png"}]}`, "holds no image"),
		Entry("bytes that are no text", "{\"role\":\"user\",\"content\":\"\xff\"}", "not UTF-8"),
		Entry("a header that is not first", `{"transcript":1}`, "unknown field"),
		Entry("a stored time that is a number", `{"role":"user","content":"a","created_at":20261012}`, "created_at is a JSON number"),
		Entry("a list", `[1]`, "the line is a JSON array"),
	)

	It("refuses a transcript of another version, and one without a message", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		file, db := filepath.Join(dir, "bad.jsonl"), filepath.Join(dir, "my.db")
		for text, reason := range map[string]string{`{"transcript":2}`: "version 2 is not 1", `{"transcript":1}`: "no message", "\n\n": "no message"} {
			Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			expectRefusal(runHarness(ctx, "import", "--db", db, file), 1, reason)
			Expect(db).NotTo(BeAnExistingFile())
		}
	})
})

var _ = Describe("The command line", Label("harness"), func() {
	DescribeTable("answers a wrong call with exit code 2 and one line",
		func(ctx SpecContext, saying string, args ...string) {
			expectRefusal(runHarness(ctx, args...), 2, saying)
		},
		Entry("an unknown flag", "unknown flag: --what", "demo", "--what"),
		Entry("an unknown command", `unknown command "what"`, "what"),
		Entry("too many arguments", "unknown command", "demo", "again"),
		Entry("no store", "which store?", "prompt", "--session", "a"),
		Entry("two stores", "name one", "prompt", "--session", "a", "--db", "a.db", "--dsn", "root@/a"),
		Entry("a bad data source name", "--dsn", "prompt", "--session", "a", "--dsn", "nowhere"),
		Entry("no session", "--session", "prompt", "--db", "a.db"),
		Entry("an unknown protocol", "chat, responses, messages", "prompt", "--db", "a.db", "--session", "a", "--protocol", "soap"),
		Entry("an unknown language", "zh-CN or en", "prompt", "--db", "a.db", "--session", "a", "--lang", "fr"),
		Entry("an unknown zone", "--zone", "prompt", "--db", "a.db", "--session", "a", "--zone", "Mars/Olympus"),
		Entry("a chat with nobody", "openai-chat, openai-responses, anthropic", "chat", "--db", "a.db"),
		Entry("a chat that is kept nowhere", "which store?", "chat", "--provider", "anthropic"),
		Entry("a chat in an unknown zone", "--zone", "chat", "--db", "a.db", "--provider", "anthropic", "--zone", "Mars/Olympus"),
		Entry("no transcript", "accepts 1 arg", "import", "--db", "a.db"),
		Entry("a transcript and no store", "Name a --db", "import", "a.jsonl"),
	)

	It("answers what fails with exit code 1 and one line", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		expectRefusal(runHarness(ctx, "prompt", "--db", filepath.Join(dir, "none.db"), "--session", "a"), 1, "there is no store")
		Expect(os.ReadDir(dir)).To(BeEmpty())

		text := filepath.Join(dir, "text.db")
		Expect(os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600)).To(Succeed())
		expectRefusal(runHarness(ctx, "prompt", "--db", text, "--session", "a"), 1, "not a database")
		expectRefusal(runHarness(ctx, "import", "--db", text, "testdata/cases/a01.jsonl"), 1, "not a database")

		file, _ := demoDir(ctx)
		expectRefusal(runHarness(ctx, "prompt", "--db", file, "--session", "none"), 1, "session none has no messages")
		expectRefusal(runHarness(ctx, "import", "--db", file, filepath.Join(dir, "none.jsonl")), 1, "no such file")
		expectRefusal(runHarness(ctx, "prompt", "--dsn", "root@unix("+dir+"/none)/a", "--session", "a"), 1, "open store on")
	})

	It("stores in a folder and a file of any name", func(ctx SpecContext) {
		dir := filepath.Join(GinkgoT().TempDir(), "50% of? #1 über")
		Expect(os.Mkdir(dir, 0o755)).To(Succeed())
		db := filepath.Join(dir, "a b.db")
		harnessOutput(ctx, "import", "--db", db, "testdata/cases/a01.jsonl")
		Expect(db).To(BeAnExistingFile())
		Expect(harnessOutput(ctx, "prompt", "--db", db, "--session", "a01")).To(ContainSubstring("2026-06-17"))
	})

	It("has help with examples for each command, and completion for shells", func(ctx SpecContext) {
		for _, command := range []string{"demo", "prompt", "import"} {
			Expect(harnessOutput(ctx, command, "--help")).To(ContainSubstring("Examples:\n  harness " + command))
		}
		Expect(harnessOutput(ctx, "completion", "bash")).To(ContainSubstring("bash completion"))
		Expect(runHarness(ctx, "__complete", "prompt", "--protocol", "").stdout).To(HavePrefix("chat\nresponses\nmessages\n"))
	})
})
