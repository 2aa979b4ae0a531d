package test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"sessiondate/adapters/sqlhistory"
	"sessiondate/domain"
)

// chatSpecTimeout is far more than a spec needs, which is a second or two.
const chatSpecTimeout = SpecTimeout(40 * time.Second)

// A chatDay is a day that it is now, in some zone.
type chatDay struct {
	zone string
	// date is the day, and spelled the day as a notice spells it.
	date, spelled string
}

// chatDays returns two days that it is now, one after the other, in zones where
// it is at least an hour to midnight.
func chatDays() (first, second chatDay) {
	now := time.Now().UTC() //nolint:forbidigo // It is the harness's clock.
	// Zones from 12 hours west of Greenwich to 14 east of it. 14 hours lie
	// between the two, so a midnight does, unless the first is before 10 o'clock.
	for west := -12; west <= 0; west++ {
		a, b := now.Add(time.Duration(west)*time.Hour), now.Add(time.Duration(west+14)*time.Hour)
		if a.Day() != b.Day() && a.Hour() >= 1 && a.Hour() <= 22 && b.Hour() >= 1 && b.Hour() <= 22 {
			return dayOf(a, west), dayOf(b, west+14)
		}
	}
	panic("there is always such a zone")
}

func dayOf(local time.Time, east int) chatDay {
	date := local.Format(time.DateOnly)
	weekday := []string{"日", "一", "二", "三", "四", "五", "六"}[local.Weekday()]
	// The sign of these names is the other way round.
	return chatDay{fmt.Sprintf("Etc/GMT%+d", -east), date, date + "(星期" + weekday + ")"}
}

// A chatHost is a machine on which harness chat is run: a provider to talk to, a
// store, and a session in it.
type chatHost struct {
	provider *chatProvider
	// store is how the harness is told its store, and open opens it.
	store []string
	open  func() *sqlx.DB
	// path stands in front of the PATH.
	path string
	// today is the day, and tomorrow the next one.
	today, tomorrow chatDay
}

// newChatHost returns a host with a store in a file and a provider that follows a
// script.
func newChatHost(protocol providerProtocol, script ...chatAnswer) *chatHost {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "chats.db")
	h := &chatHost{
		provider: newChatProvider(protocol, script...), store: []string{"--db", file},
		open: func() *sqlx.DB { return openSQLiteFile(file) },
	}
	h.today, h.tomorrow = chatDays()
	return h
}

// command returns the command that talks in the session on a day.
func (h *chatHost) command(ctx context.Context, day chatDay, args ...string) *exec.Cmd {
	GinkgoHelper()
	args = append(append([]string{
		"chat", "--provider", h.provider.provider, "--base-url", h.provider.url,
		"--zone", day.zone, "--session", session,
	}, h.store...), args...)
	cmd := exec.CommandContext(ctx, harnessBinary(), args...)
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=test", "ANTHROPIC_API_KEY=test", "TZ=UTC", "LC_ALL=C")
	if h.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+h.path+":"+os.Getenv("PATH"))
	}
	return cmd
}

// says runs the harness to its end on lines of input, today.
func (h *chatHost) says(ctx context.Context, input string, args ...string) harnessRun {
	GinkgoHelper()
	return h.saysOn(ctx, h.today, input, args...)
}

func (h *chatHost) saysOn(ctx context.Context, day chatDay, input string, args ...string) harnessRun {
	GinkgoHelper()
	t := h.pipe(ctx, day, args...)
	t.enter(input)
	t.end()
	code := t.code(ctx)
	return harnessRun{code, t.screen(), string(t.errOut.Contents())}
}

// expectScreen expects a run that went well, had nothing to say on stderr, and
// printed a screen.
func expectScreen(run harnessRun, screen string) {
	GinkgoHelper()
	Expect(run.stderr).To(BeEmpty())
	Expect(run.stdout).To(Equal(screen))
	Expect(run.code).To(BeZero())
}

// expectFailure expects a run that failed with one line on stderr.
func expectFailure(run harnessRun, screen, saying string) {
	GinkgoHelper()
	Expect(run.stdout).To(Equal(screen))
	Expect(run.stderr).To(MatchRegexp(`^harness: [^\n]+\n$`))
	Expect(run.stderr).To(ContainSubstring(saying))
	Expect(run.code).To(Equal(1))
}

// A talk is a harness that runs.
type talk struct {
	cmd *exec.Cmd
	in  io.Writer
	// end ends the input.
	end         func()
	out, errOut *gbytes.Buffer
	// interrupt is what Ctrl-C does.
	interrupt func()
	exited    chan struct{}
}

// pipe starts the harness with its input and its output in pipes.
func (h *chatHost) pipe(ctx context.Context, day chatDay, args ...string) *talk {
	GinkgoHelper()
	t := &talk{cmd: h.command(ctx, day, args...), out: gbytes.NewBuffer(), errOut: gbytes.NewBuffer(), exited: make(chan struct{})}
	in, err := t.cmd.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	t.in, t.end = in, func() { _ = in.Close() }
	t.interrupt = func() { t.signal(os.Interrupt) }
	t.cmd.Stdout, t.cmd.Stderr = t.out, t.errOut
	Expect(t.cmd.Start()).To(Succeed())
	t.watch(func() {})
	return t
}

// terminal starts the harness on a terminal.
func (h *chatHost) terminal(ctx context.Context, day chatDay, args ...string) *talk {
	GinkgoHelper()
	t := &talk{cmd: h.command(ctx, day, args...), out: gbytes.NewBuffer(), exited: make(chan struct{})}
	tty, err := pty.Start(t.cmd)
	Expect(err).NotTo(HaveOccurred())
	t.in, t.end = tty, func() { t.enter("\x04") }
	t.interrupt = func() { t.enter("\x03") }
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		// A terminal whose program has ended is an error to read from.
		_, _ = io.Copy(t.out, tty)
	}()
	t.watch(func() { <-shown })
	DeferCleanup(tty.Close)
	return t
}

// watch waits for the harness to end and kills it if the spec ends first.
func (t *talk) watch(shown func()) {
	go func() {
		defer close(t.exited)
		_ = t.cmd.Wait()
		shown()
	}()
	DeferCleanup(func(ctx SpecContext) {
		_ = t.cmd.Process.Kill()
		Eventually(ctx, t.exited).Should(BeClosed())
	}, NodeTimeout(10*time.Second))
}

// enter types something.
func (t *talk) enter(keys string) {
	GinkgoHelper()
	_, err := io.WriteString(t.in, keys)
	Expect(err).NotTo(HaveOccurred())
}

func (t *talk) signal(s os.Signal) {
	GinkgoHelper()
	Expect(t.cmd.Process.Signal(s)).To(Succeed())
}

// screen is what was shown so far.
func (t *talk) screen() string { return string(t.out.Contents()) }

// shows waits until the screen is as expected.
func (t *talk) shows(ctx context.Context, screen string) {
	GinkgoHelper()
	Eventually(ctx, t.screen).Should(Equal(screen))
}

// code waits for the harness to end, and returns its exit code.
func (t *talk) code(ctx context.Context) int {
	GinkgoHelper()
	Eventually(ctx, t.exited).Should(BeClosed())
	return t.cmd.ProcessState.ExitCode()
}

// kill kills the harness as nothing can help it.
func (t *talk) kill(ctx context.Context) {
	GinkgoHelper()
	t.signal(syscall.SIGKILL)
	Expect(t.code(ctx)).To(Equal(-1))
}

// seed stores messages that were said on earlier days.
func (h *chatHost) seed(ctx context.Context, messages ...domain.Message) {
	GinkgoHelper()
	db := h.open()
	if h.store[0] == "--db" {
		_, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(sqlhistory.New(db).Append(ctx, session, messages...)).To(Succeed())
	Expect(db.Close()).To(Succeed())
}

// seedTwoDays stores two days of October, of which the first was a Monday.
func (h *chatHost) seedTwoDays(ctx context.Context) {
	GinkgoHelper()
	h.seed(ctx,
		user("", "2026-10-12 23:50:00", "Good night."),
		assistant("", "2026-10-12 23:50:09", "Sleep well!"),
		user("", "2026-10-13 08:00:00", "Good morning."),
		assistant("", "2026-10-13 08:00:05", "Did you sleep?"))
}

// stored tells the session's window as it is stored, in the words of
// providerProtocol.spell, and the rows of the table.
func (h *chatHost) stored(ctx context.Context, sessionID string) (said []string, rows string) {
	GinkgoHelper()
	db := h.open()
	defer db.Close()
	messages, err := messagesOf(ctx, sqlhistory.New(db), sessionID)
	Expect(err).NotTo(HaveOccurred())
	for _, m := range messages {
		switch {
		case m.Role == domain.RoleTool && m.ToolFailed:
			said = append(said, "failed result "+m.ToolCallID+": "+m.Text)
		case m.Role == domain.RoleTool:
			said = append(said, "result "+m.ToolCallID+": "+m.Text)
		case m.Text != "":
			said = append(said, m.Role.String()+": "+m.Text)
		}
		for _, c := range m.ToolCalls {
			said = append(said, fmt.Sprintf("call %s: %s %s", c.ID, c.Name, c.Arguments))
		}
	}
	return said, fmt.Sprintf("%s", tableRows(ctx, db))
}

// expectStored expects the session's window to say this and no more.
func (h *chatHost) expectStored(ctx context.Context, said ...string) {
	GinkgoHelper()
	stored, _ := h.stored(ctx, session)
	Expect(stored).To(Equal(said))
}

// callCells returns the rows of the table that /calls prints.
func callCells(screen string) [][]string {
	GinkgoHelper()
	var rows [][]string
	for line := range strings.Lines(screen) {
		cells := strings.Split(strings.TrimSpace(line), "│")
		if len(cells) != 11 {
			continue
		}
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
		}
		rows = append(rows, cells[1:10])
	}
	Expect(rows).NotTo(BeEmpty(), screen)
	Expect(rows[0]).To(Equal([]string{"at", "for", "prompt tokens", "cached", "", "written", "units repeated", "changed sections", "cache miss"}))
	return rows[1:]
}

// The columns of that table.
const (
	callAt = iota
	callFor
	callPrompt
	callCached
	callShare
	callWritten
	callUnits
	callChanged
)

// number reads a cell.
func number(cell string) int {
	GinkgoHelper()
	n, err := strconv.Atoi(cell)
	Expect(err).NotTo(HaveOccurred())
	return n
}

// dateOutput is what date prints in UTC.
const dateOutput = `[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d UTC \d{4}`

// callScreen is the beginning of a screen on which a call was run.
var callScreen = regexp.MustCompile(`^Let me look\.\n\[shell \{"command":"date"\}\]\n\[(` + dateOutput + `)\]\n`)

// looks is an answer that says something and calls the shell.
func looks() chatAnswer { return chatAnswer{text: []string{"Let me ", "look."}, call: "call_1"} }

// blockDate puts a date in front of the PATH that does not come to an end before
// the spec does, and returns a file that is there when it runs.
func (h *chatHost) blockDate() string {
	GinkgoHelper()
	h.path = GinkgoT().TempDir()
	fifo, started := filepath.Join(h.path, "release"), filepath.Join(h.path, "started")
	Expect(syscall.Mkfifo(fifo, 0o600)).To(Succeed())
	release, err := os.OpenFile(fifo, os.O_RDWR, 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		_, err := release.WriteString("\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(release.Close()).To(Succeed())
	})
	script := fmt.Sprintf("#!/bin/sh\nexec 3<'%s'\n: >'%s'\nread line <&3\n", fifo, started)
	Expect(os.WriteFile(filepath.Join(h.path, "date"), []byte(script), 0o700)).To(Succeed())
	return started
}

const offer = "The last message has no answer yet. /continue asks for it.\n"

var _ = Describe("harness chat", Label("harness"), func() {
	for _, protocol := range chatProtocols {
		Context("over "+protocol.provider, func() {
			It("answers lines from a pipe, and shows what the model says and nothing else", func(ctx SpecContext) {
				h := newChatHost(protocol, says("Hello! ", "How are you?"), says("Good."))
				expectScreen(h.says(ctx, "Hello.\nFine.\n"), "Hello! How are you?\nGood.\n")
				Expect(h.provider.said(0)).To(Equal([]string{"user: Hello."}))
				Expect(h.provider.said(1)).To(Equal([]string{"user: Hello.", "assistant: Hello! How are you?", "user: Fine."}))
				h.expectStored(ctx, "user: Hello.", "assistant: Hello! How are you?", "user: Fine.", "assistant: Good.")
				h.provider.expectContinued(h.provider.bodies()...)
			}, chatSpecTimeout)

			It("shows text on a terminal as it streams, and then waits for the next line", func(ctx SpecContext) {
				h := newChatHost(protocol, chatAnswer{text: []string{"Hel", "lo!"}, hang: midStream})
				t := h.terminal(ctx, h.today, "--model", "small")
				screen := "session s1, model small. /quit leaves.\r\n> "
				t.shows(ctx, screen)
				t.enter("Hello.\n")
				Eventually(ctx, h.provider.hung).Should(Receive())
				screen += "Hello.\r\nHel"
				t.shows(ctx, screen)
				h.provider.release <- struct{}{}
				screen += "lo!\r\n> "
				t.shows(ctx, screen)
				h.expectStored(ctx, "user: Hello.", "assistant: Hello!")
				t.enter("/quit\n")
				Expect(t.code(ctx)).To(BeZero())
				Expect(t.screen()).To(Equal(screen + "/quit\r\n"))
			}, chatSpecTimeout)

			It("runs date when the model calls the shell, and sends what it printed", func(ctx SpecContext) {
				h := newChatHost(protocol, looks(), says("It is ", "late."))
				run := h.says(ctx, "What time is it?\n")
				Expect(run.stderr).To(BeEmpty())
				Expect(run.code).To(BeZero())
				shown := callScreen.FindStringSubmatch(run.stdout)
				Expect(shown).NotTo(BeNil(), run.stdout)
				Expect(run.stdout).To(Equal(shown[0] + "It is late.\n"))
				said := []string{
					"user: What time is it?", "assistant: Let me look.", `call call_1: shell {"command":"date"}`,
					"result call_1: " + shown[1],
				}
				Expect(h.provider.said(1)).To(Equal(said))
				h.expectStored(ctx, append(said, "assistant: It is late.")...)
				h.provider.expectContinued(h.provider.bodies()...)
			}, chatSpecTimeout)

			It("tells the model each new day in a session that is resumed, and nobody else (R14, R16)", func(ctx SpecContext) {
				h := newChatHost(protocol, says("Yes."), looks(), says("It is early."))
				h.seedTwoDays(ctx)
				first := h.saysOn(ctx, h.today, "Still there?\n")
				expectScreen(first, "Yes.\n")
				second := h.saysOn(ctx, h.tomorrow, "What time is it?\n")
				Expect(second.stderr).To(BeEmpty())
				Expect(second.code).To(BeZero())

				bodies := h.provider.bodies()
				Expect(bodies).To(HaveLen(3))
				days := []string{"U2 2026-10-13", "U3 " + h.today.date, "U4 " + h.tomorrow.date}
				expectBodyDates(bodies[0], protocol.wire, "2026-10-12", days[:2]...)
				expectBodyDates(bodies[1], protocol.wire, "2026-10-12", days...)
				expectBodyDates(bodies[2], protocol.wire, "2026-10-12", days...)
				Expect(h.provider.said(1)).To(Equal([]string{
					"user: Good night.", "assistant: Sleep well!",
					"user: " + noticeOf13 + "\n\nGood morning.", "assistant: Did you sleep?",
					"user: " + noticeOf(h.today.spelled) + "\n\nStill there?", "assistant: Yes.",
					"user: " + noticeOf(h.tomorrow.spelled) + "\n\nWhat time is it?",
				}))
				h.provider.expectContinued(bodies...)

				stored, rows := h.stored(ctx, session)
				Expect(stored).To(HaveLen(11))
				Expect(rows + first.stdout + second.stdout).NotTo(ContainSubstring("date-change"))

				// What /prompt shows is the request, and so the one screen with notices.
				prompt := h.saysOn(ctx, h.tomorrow, "/prompt\n")
				Expect(prompt.stderr).To(BeEmpty())
				expectBodyDates([]byte(prompt.stdout), protocol.wire, "2026-10-12", days...)
			}, chatSpecTimeout)

			It("shows with /calls what the provider took from its cache, and a dash where it does not say", func(ctx SpecContext) {
				h := newChatHost(protocol, says("1"), says("2"), chatAnswer{text: []string{"3"}, bare: true},
					chatAnswer{status: 500}, chatAnswer{status: 500}, chatAnswer{status: 500})
				run := h.says(ctx, "One.\nTwo.\nThree.\nFour.\n/calls\n")
				rows := callCells(run.stdout)
				Expect(rows).To(HaveLen(4))
				for _, row := range rows {
					Expect(row[callAt]).To(HavePrefix(h.today.date + " "))
					Expect(row[callFor]).To(Equal("turn"))
					Expect(row[callChanged]).To(BeEmpty())
				}
				// The second prompt had the whole of the first in front.
				Expect(number(rows[0][callPrompt])).To(BeNumerically(">", 0))
				Expect(number(rows[0][callCached])).To(BeZero())
				Expect(rows[0][callUnits]).To(Equal("0 of 0"))
				Expect(rows[1][callCached]).To(Equal(rows[0][callPrompt]))
				Expect(number(rows[1][callPrompt])).To(BeNumerically(">", number(rows[1][callCached])))
				Expect(rows[1][callShare]).To(Equal(fmt.Sprintf("%d %%", 100*number(rows[1][callCached])/number(rows[1][callPrompt]))))
				// A tool, the three system sections as one or as many, and a message.
				Expect(rows[1][callUnits]).To(MatchRegexp(`^(\d+) of (\d+)$`))
				units := strings.Split(rows[1][callUnits], " of ")
				Expect(units[0]).To(Equal(units[1]))
				if protocol.provider == "anthropic" {
					Expect(rows[1][callWritten]).NotTo(Equal("-"))
				} else {
					Expect(rows[1][callWritten]).To(Equal("-"))
				}
				Expect(number(rows[2][callPrompt])).To(BeNumerically(">", number(rows[1][callPrompt])))
				Expect(rows[2][callCached : callWritten+1]).To(Equal([]string{"-", "", "-"}))
				Expect(rows[3][callPrompt : callUnits+1]).To(Equal([]string{"-", "-", "", "-", "failed"}))
			}, chatSpecTimeout)

			It("compacts with /compact: the request is the last one and an instruction (R15), and the handoff leads the next", func(ctx SpecContext) {
				h := newChatHost(protocol, says("1"), says("2"), says("The user ", "counts."), says("3"))
				expectScreen(h.says(ctx, "One.\nTwo.\n/compact\nThree.\n"),
					"1\n2\nThe session was compacted. What stands for its older part:\nThe user counts.\n3\n")
				bodies := h.provider.bodies()
				Expect(bodies).To(HaveLen(4))
				h.provider.expectContinued(bodies[1], bodies[2])
				said := h.provider.said(2)
				Expect(said).To(HaveLen(5))
				Expect(said[:4]).To(Equal([]string{"user: One.", "assistant: 1", "user: Two.", "assistant: 2"}))
				Expect(said[4]).To(And(HavePrefix("user: <system-notice>"), HaveSuffix("</system-notice>")))
				Expect(h.provider.said(3)).To(Equal([]string{
					"user: ## 会话任务交接\n\nThe user counts.", "user: Two.", "assistant: 2", "user: Three.",
				}))
				h.expectStored(ctx, "user: Two.", "assistant: 2", "user: Three.", "assistant: 3")
			}, chatSpecTimeout)

			It("compacts before it answers what passes --limit", func(ctx SpecContext) {
				h := newChatHost(protocol, says("They slept."), says("Good."), says("Ah."))
				h.seedTwoDays(ctx)
				expectScreen(h.says(ctx, "I did.\n", "--limit", "10"), "The session was compacted.\nGood.\n")
				expectScreen(h.says(ctx, "Very well.\n", "--limit", "0"), "Ah.\n")
				bodies := h.provider.bodies()
				Expect(bodies).To(HaveLen(3))
				// R12: the window's first message tells the day that the system prompt does
				// not, though no message before it is left.
				expectBodyDates(bodies[1], protocol.wire, "2026-10-12", "U2 "+h.today.date)
				said := []string{
					"user: ## 会话任务交接\n\nThey slept.",
					"user: " + noticeOf(h.today.spelled) + "\n\nI did.",
				}
				Expect(h.provider.said(1)).To(Equal(said))
				Expect(h.provider.said(2)).To(Equal(append(said, "assistant: Good.", "user: Very well.")))
				h.provider.expectContinued(bodies[1:]...)
			}, chatSpecTimeout)

			DescribeTable("keeps the message of a call that fails, and asks again with it once",
				func(ctx SpecContext, failing []chatAnswer, screen, saying string) {
					h := newChatHost(protocol, append(failing, says("Hello!"))...)
					expectFailure(h.says(ctx, "Hello.\n"), screen, saying)
					h.expectStored(ctx, "user: Hello.")
					expectScreen(h.says(ctx, "/continue\n"), offer+"Hello!\n")
					bodies := h.provider.bodies()
					Expect(bodies).To(HaveLen(len(failing) + 1))
					Expect(h.provider.said(len(failing))).To(Equal([]string{"user: Hello."}))
					h.expectStored(ctx, "user: Hello.", "assistant: Hello!")
				},
				Entry("with status 500", chatSpecTimeout, outOfOrder(), "", "500"),
				Entry("in the middle of the stream", chatSpecTimeout, []chatAnswer{{text: []string{"Hel", "lo!"}, drop: midStream}}, "Hel\n", "EOF"),
				Entry("before the stream's last event", chatSpecTimeout, []chatAnswer{{text: []string{"Hel", "lo!"}, drop: beforeEnd}}, "Hello!\n", "EOF"),
			)

			It("goes on with /continue behind a failure", func(ctx SpecContext) {
				h := newChatHost(protocol, append(outOfOrder(), says("Hello!"))...)
				run := h.says(ctx, "Hello.\n/calls\n/continue\n/continue\n")
				Expect(run.stderr).To(MatchRegexp(`^harness: [^\n]+\n$`))
				Expect(run.stdout).To(HaveSuffix("┘\nHello!\n"))
				Expect(run.code).To(BeZero())
				h.expectStored(ctx, "user: Hello.", "assistant: Hello!")
				Expect(h.provider.bodies()).To(HaveLen(4))
			}, chatSpecTimeout)

			It("lets the SDK try again when the provider is busy", func(ctx SpecContext) {
				h := newChatHost(protocol, chatAnswer{status: 429}, says("Hello!"))
				expectScreen(h.says(ctx, "Hello.\n"), "Hello!\n")
				bodies := h.provider.bodies()
				Expect(bodies).To(HaveLen(2))
				Expect(string(bodies[1])).To(Equal(string(bodies[0])))
			}, chatSpecTimeout)

			It("ends a stream on Ctrl-C, keeps the message, and goes on", func(ctx SpecContext) {
				h := newChatHost(protocol, chatAnswer{text: []string{"Hel", "lo!"}, hang: midStream}, says("Yes."))
				t := h.terminal(ctx, h.today)
				Eventually(ctx, t.screen).Should(HaveSuffix("> "))
				before := t.screen()
				t.enter("Hello.\n")
				Eventually(ctx, h.provider.hung).Should(Receive())
				t.shows(ctx, before+"Hello.\r\nHel")
				t.interrupt()
				Eventually(ctx, h.provider.gone).Should(Receive())
				screen := before + "Hello.\r\nHel^C\r\n\r\nInterrupted. The message is kept; /continue asks again.\r\n> "
				t.shows(ctx, screen)
				h.expectStored(ctx, "user: Hello.")
				t.enter("Are you there?\n")
				screen += "Are you there?\r\nYes.\r\n> "
				t.shows(ctx, screen)
				t.interrupt()
				Expect(t.code(ctx)).To(BeZero())
				Expect(t.screen()).To(Equal(screen + "^C\r\n"))
				Expect(h.provider.said(1)).To(Equal([]string{"user: Hello.", "user: Are you there?"}))
				h.expectStored(ctx, "user: Hello.", "user: Are you there?", "assistant: Yes.")
			}, chatSpecTimeout)

			It("ends a stream on SIGINT in a pipe, and goes on", func(ctx SpecContext) {
				h := newChatHost(protocol, chatAnswer{text: []string{"Hel", "lo!"}, hang: midStream}, says("Hello!"))
				t := h.pipe(ctx, h.today)
				t.enter("Hello.\n")
				Eventually(ctx, h.provider.hung).Should(Receive())
				t.shows(ctx, "Hel")
				t.interrupt()
				Eventually(ctx, h.provider.gone).Should(Receive())
				t.enter("/continue\n")
				t.end()
				Expect(t.code(ctx)).To(BeZero())
				Expect(t.screen()).To(Equal("Hel\n\nInterrupted. The message is kept; /continue asks again.\nHello!\n"))
				Expect(t.errOut.Contents()).To(BeEmpty())
				Expect(h.provider.said(1)).To(Equal([]string{"user: Hello."}))
				h.expectStored(ctx, "user: Hello.", "assistant: Hello!")
			}, chatSpecTimeout)

			DescribeTable("goes on after SIGKILL where it was",
				func(ctx SpecContext, stage chatStage, shown string) {
					h := newChatHost(protocol, chatAnswer{text: []string{"Hel", "lo!"}, hang: stage}, says("Hello!"))
					t := h.pipe(ctx, h.today)
					t.enter("Hello.\n")
					Eventually(ctx, h.provider.hung).Should(Receive())
					t.shows(ctx, shown)
					h.expectStored(ctx, "user: Hello.")
					t.kill(ctx)
					h.expectStored(ctx, "user: Hello.")
					expectScreen(h.says(ctx, "/continue\n"), offer+"Hello!\n")
					Expect(h.provider.bodies()).To(HaveLen(2))
					Expect(h.provider.said(1)).To(Equal([]string{"user: Hello."}))
					h.expectStored(ctx, "user: Hello.", "assistant: Hello!")
				},
				Entry("before the call is answered", chatSpecTimeout, beforeAnswer, ""),
				Entry("in the middle of the stream", chatSpecTimeout, midStream, "Hel"),
				Entry("before the reply is stored", chatSpecTimeout, beforeEnd, "Hello!"),
			)

			It("goes on after SIGKILL between a call of a tool and its result", func(ctx SpecContext) {
				h := newChatHost(protocol, looks(), says("It is late."))
				started := h.blockDate()
				t := h.pipe(ctx, h.today)
				t.enter("What time is it?\n")
				Eventually(ctx, started).Should(BeAnExistingFile())
				t.shows(ctx, "Let me look.\n[shell {\"command\":\"date\"}]\n")
				t.kill(ctx)
				said := []string{"user: What time is it?", "assistant: Let me look.", `call call_1: shell {"command":"date"}`}
				h.expectStored(ctx, said...)

				h.path = ""
				run := h.says(ctx, "/continue\n")
				Expect(run.stderr).To(BeEmpty())
				Expect(run.code).To(BeZero())
				result := regexp.MustCompile(dateOutput).FindString(run.stdout)
				Expect(run.stdout).To(Equal(offer + "[shell {\"command\":\"date\"}]\n[" + result + "]\nIt is late.\n"))
				said = append(said, "result call_1: "+result)
				Expect(h.provider.bodies()).To(HaveLen(2))
				Expect(h.provider.said(1)).To(Equal(said))
				h.expectStored(ctx, append(said, "assistant: It is late.")...)
			}, chatSpecTimeout)
		})
	}

	It("leaves on Ctrl-C, on SIGINT and on SIGTERM where nothing comes in", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[0], says("Hello!"), says("Hello!"))
		t := h.terminal(ctx, h.today)
		Eventually(ctx, t.screen).Should(HaveSuffix("> "))
		t.interrupt()
		Expect(t.code(ctx)).To(BeZero())
		for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			t = h.pipe(ctx, h.today)
			t.enter("Hello.\n")
			t.shows(ctx, "Hello!\n")
			t.signal(s)
			Expect(t.code(ctx)).To(BeZero(), "%v", s)
			Expect(t.errOut.Contents()).To(BeEmpty())
		}
	}, chatSpecTimeout)

	It("ends a stream on SIGTERM and leaves, and keeps the message", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[1], chatAnswer{text: []string{"Hel", "lo!"}, hang: midStream})
		t := h.pipe(ctx, h.today)
		t.enter("Hello.\nAre you there?\n")
		Eventually(ctx, h.provider.hung).Should(Receive())
		t.shows(ctx, "Hel")
		t.signal(syscall.SIGTERM)
		Expect(t.code(ctx)).To(Equal(1))
		Expect(t.screen()).To(Equal("Hel\n\nInterrupted. The message is kept; /continue asks again.\n"))
		Expect(t.errOut.Contents()).To(BeEmpty())
		h.expectStored(ctx, "user: Hello.")
	}, chatSpecTimeout)

	It("leaves with /quit, and at the end of the input, in a line or on a terminal", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[2], says("Hello!"), says("Bye!"))
		expectScreen(h.says(ctx, "Hello.\n/quit\nHello again.\n"), "Hello!\n")
		expectScreen(h.says(ctx, "Bye."), "Bye!\n")
		t := h.terminal(ctx, h.today)
		Eventually(ctx, t.screen).Should(HaveSuffix("> "))
		t.end()
		Expect(t.code(ctx)).To(BeZero())
		Expect(h.provider.bodies()).To(HaveLen(2))
	}, chatSpecTimeout)

	It("passes over empty lines, and takes Chinese and paths for messages", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[0], says("今天", "是晴天。"), says("A file."))
		expectScreen(h.says(ctx, "\n  \n今天天气怎么样?\r\n\n/etc/hosts is what?\n\n"), "今天是晴天。\nA file.\n")
		Expect(h.provider.said(1)).To(Equal([]string{"user: 今天天气怎么样?", "assistant: 今天是晴天。", "user: /etc/hosts is what?"}))
		h.expectStored(ctx, "user: 今天天气怎么样?", "assistant: 今天是晴天。", "user: /etc/hosts is what?", "assistant: A file.")
	}, chatSpecTimeout)

	It("refuses a command that it does not know, and sends nothing", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[1], says("Hello!"))
		expectFailure(h.says(ctx, "/compress now\n"), "", "there is no command /compress")
		Expect(h.provider.bodies()).To(BeEmpty())
		h.expectStored(ctx)
		run := h.says(ctx, "/compress\nHello.\n")
		Expect(run.stdout).To(Equal("Hello!\n"))
		Expect(run.code).To(BeZero())
	}, chatSpecTimeout)

	It("has nothing to continue, to compact or to fork in a new session, and says so", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[2])
		expectScreen(h.says(ctx, "/continue\n"), "")
		expectFailure(h.says(ctx, "/compact\n"), "", "nothing stands before the newest user message")
		expectFailure(h.says(ctx, "/fork\n"), "", "the session has no messages")
		Expect(h.provider.bodies()).To(BeEmpty())
	}, chatSpecTimeout)

	It("fails with its code also where something was shown behind the failure", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[0], outOfOrder()...)
		run := h.says(ctx, "Hello.\n/context\n")
		Expect(run.stdout).To(HavePrefix("system prompt "))
		Expect(run.stderr).To(MatchRegexp(`^harness: [^\n]+\n$`))
		Expect(run.code).To(Equal(1))
	}, chatSpecTimeout)

	It("answers with what it has when a session cannot be compacted", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[1], append(outOfOrder(), says("Good."))...)
		h.seedTwoDays(ctx)
		run := h.says(ctx, "I did.\n", "--limit", "10")
		Expect(run.stdout).To(Equal("Good.\n"))
		Expect(run.code).To(BeZero())
		Expect(run.stderr).To(MatchRegexp(`^[^\n]+session is not compacted[^\n]+\nharness: compact: send prompt of session [^\n]+ 500 [^\n]+\n$`))
		Expect(h.provider.said(3)).To(HaveLen(5))
	}, chatSpecTimeout)

	It("tells the model what became of a call that was cut off and passed over", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[2], says("Never mind."))
		h.seed(ctx,
			user("", "2026-10-12 23:50:00", "What time is it?"),
			assistant("", "2026-10-12 23:50:09", "", domain.ToolCall{ID: "call_1", Name: "shell", Arguments: `{"command":"date"}`}))
		run := h.says(ctx, "Hello?\n", "--lang", "en")
		Expect(run.stdout).To(Equal(offer + "Never mind.\n"))
		Expect(run.code).To(BeZero())
		said := h.provider.said(0)
		Expect(said).To(HaveLen(4))
		Expect(said[:3]).To(Equal([]string{
			"user: What time is it?", `call call_1: shell {"command":"date"}`,
			"failed result call_1: error: no result of this call was recorded",
		}))
		Expect(said[3]).To(And(HavePrefix("user: <date-change>System notice: "), HaveSuffix("</date-change>\n\nHello?")))
	}, chatSpecTimeout)

	It("goes on in copies with /fork, with the days of their source", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[1], says("1"), says("2"), says("3"))
		h.seedTwoDays(ctx)
		expectScreen(h.says(ctx, "One.\n/fork\nTwo.\n/fork other\nThree.\n"),
			"1\nThis is now session s1-fork-1.\n2\nThis is now session other.\n3\n")
		bodies := h.provider.bodies()
		Expect(bodies).To(HaveLen(3))
		h.provider.expectContinued(bodies...)
		expectBodyDates(bodies[2], "responses", "2026-10-12", "U2 2026-10-13", "U3 "+h.today.date)
		source, _ := h.stored(ctx, session)
		Expect(source).To(HaveLen(6))
		fork, _ := h.stored(ctx, "s1-fork-1")
		Expect(fork).To(Equal(append(source, "user: Two.", "assistant: 2")))
		other, _ := h.stored(ctx, "other")
		Expect(other).To(Equal(append(fork, "user: Three.", "assistant: 3")))
		expectFailure(h.says(ctx, "/fork other\n"), "", "the session exists")
	}, chatSpecTimeout)

	It("shows with /context what the next request consists of", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[2], says("OK"))
		// "Hello", "." and "OK" are a token each.
		run := h.says(ctx, "Hello.\n/context\n")
		Expect(run.stderr).To(BeEmpty())
		found := regexp.MustCompile(`^OK\nsystem prompt (\d+), tools (\d+), session messages 3: (\d+) tokens, and 0 images\n$`).FindStringSubmatch(run.stdout)
		Expect(found).NotTo(BeNil(), run.stdout)
		Expect(number(found[1])).To(BeNumerically(">", 0))
		Expect(number(found[2])).To(BeNumerically(">", 0))
		Expect(number(found[3])).To(Equal(number(found[1]) + number(found[2]) + 3))
	}, chatSpecTimeout)

	It("keeps sessions apart, and names a new one after the time", func(ctx SpecContext) {
		h := newChatHost(chatProtocols[0], says("Hello!"), says("Hello!"))
		expectScreen(h.says(ctx, "Hello.\n"), "Hello!\n")
		// The last --session holds, and an empty one is a new one.
		t := h.terminal(ctx, h.today, "--session", "")
		Eventually(ctx, t.screen).Should(MatchRegexp(`^session chat-%s-\d{6}, model gpt-5\.6\. `, strings.ReplaceAll(h.today.date, "-", "")))
		t.enter("Hello.\n")
		Eventually(ctx, t.screen).Should(HaveSuffix("Hello!\r\n> "))
		Expect(h.provider.said(1)).To(Equal([]string{"user: Hello."}))
	}, chatSpecTimeout)

	for _, protocol := range chatProtocols {
		It("keeps its sessions on MariaDB, over "+protocol.provider, Label("mariadb"), func(ctx SpecContext) {
			name := newMariaDB(ctx)
			createStore(ctx, name, sqlhistory.SchemaMySQL)
			h := newChatHost(protocol, looks(), says("It is late."), says("Yes."))
			h.store = []string{"--dsn", "root@unix(" + mariaDBSocket + ")/" + name}
			h.open = func() *sqlx.DB { return openMariaDB(name, "") }
			h.seedTwoDays(ctx)
			run := h.saysOn(ctx, h.today, "What time is it?\n")
			Expect(run.stderr).To(BeEmpty())
			Expect(run.code).To(BeZero())
			Expect(run.stdout).To(MatchRegexp(callScreen.String() + `It is late\.\n$`))
			next := h.saysOn(ctx, h.tomorrow, "Still there?\n/calls\n")
			Expect(next.stderr).To(BeEmpty())
			Expect(next.code).To(BeZero())
			Expect(next.stdout).To(HavePrefix("Yes.\n"))

			bodies := h.provider.bodies()
			Expect(bodies).To(HaveLen(3))
			expectBodyDates(bodies[2], protocol.wire, "2026-10-12", "U2 2026-10-13", "U3 "+h.today.date, "U4 "+h.tomorrow.date)
			h.provider.expectContinued(bodies...)
			rows := callCells(next.stdout)
			Expect(rows).To(HaveLen(3))
			Expect(rows[1][callCached]).To(Equal(rows[0][callPrompt]))
			Expect(rows[2][callCached]).To(Equal(rows[1][callPrompt]))
			stored, table := h.stored(ctx, session)
			Expect(stored).To(HaveLen(11))
			Expect(table + run.stdout + next.stdout).NotTo(ContainSubstring("date-change"))
		}, chatSpecTimeout)
	}

	// Without an engine there is nothing to declare, so nothing is skipped either.
	engine := os.Getenv("ENGINE_URL")
	if engine == "" {
		return
	}
	for _, protocol := range chatProtocols {
		It("keeps the cache of a real inference server over a change of days, over "+protocol.provider, func(ctx SpecContext) {
			h := newChatHost(protocol)
			h.provider.url = strings.TrimSuffix(engine, "/") + protocol.base
			// The server may remember an earlier run, so its first words are not to be the
			// same.
			var long strings.Builder
			fmt.Fprintf(&long, "%s %d %s. Remember these numbers:", protocol.provider, GinkgoRandomSeed(), h.store[1])
			for i := range 600 {
				fmt.Fprintf(&long, " %d", i*i)
			}
			h.seed(ctx,
				user("", "2026-10-12 23:50:00", long.String()),
				assistant("", "2026-10-12 23:50:09", "I will."))
			first := h.saysOn(ctx, h.today, "Answer with one word: are you there?\n", "--limit", "0")
			Expect(first.code).To(BeZero(), first.stderr)
			second := h.saysOn(ctx, h.tomorrow, "Answer with one word: and today?\n/calls\n", "--limit", "0")
			Expect(second.code).To(BeZero(), second.stderr)
			rows := callCells(second.stdout)
			last := rows[len(rows)-1]
			Expect(number(last[callPrompt])).To(BeNumerically(">", 1000))
			Expect(100 * number(last[callCached])).To(BeNumerically(">=", 95*number(last[callPrompt])))
			_, table := h.stored(ctx, session)
			Expect(table + first.stdout + second.stdout).NotTo(ContainSubstring("date-change"))
		}, SpecTimeout(10*time.Minute))
	}
})
