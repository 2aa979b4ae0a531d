package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"sessiondate"
	"sessiondate/adapters/commandfiles"
	"sessiondate/adapters/shelltool"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/tiktoken"
	"sessiondate/app"
	"sessiondate/domain"
)

// chatFlags are the flags of harness chat.
type chatFlags struct {
	store    storeFlags
	session  string
	provider string
	baseURL  string
	model    string
	zone     string
	commands string
	limit    int
	verbose  bool
	wordings wordingFlags
}

func newChatCommand() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat --provider NAME (--db FILE | --dsn DSN)",
		Short: "Talk to a model, in a session that is kept",
		Long: `chat talks to a model, over any of the three protocols, and streams what it
answers. The session is kept and can be resumed, today or on another day. Keys
are read from the environment as the provider's SDK reads them: OPENAI_API_KEY
or ANTHROPIC_API_KEY.

Each line is a message. A line that begins with a slash is a command:

  /continue   ask for the answer to a message that has none yet
  /compact    replace what is old in the session by a summary
  /fork [ID]  go on in a copy of the session
  /prompt     show the request that would be sent next
  /context    show what that request consists of, in tokens
  /calls      show the session's calls, and what came from the cache
  /quit       leave

Ctrl-C ends an answer that is coming in, and otherwise leaves. A message is
stored before it is sent, so it is never lost.`,
		Example: `  harness chat --provider anthropic --db chats.db
  harness chat --provider openai-responses --db chats.db --session monday
  harness chat --provider openai-chat --base-url http://127.0.0.1:8080/v1 --model local --db chats.db
  echo 'What day is it?' | harness chat --provider anthropic --db chats.db --session monday`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runChat(cmd.Context(), f, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.store.add(cmd)
	flags.StringVar(&f.session, "session", "", "`id` of the session, new or known (default: a new one, named after the time)")
	flags.StringVar(&f.provider, "provider", "", "`name` of the protocol and its SDK: openai-chat, openai-responses or anthropic")
	flags.StringVar(&f.baseURL, "base-url", "", "`URL` of the provider, for one that speaks the same protocol")
	flags.StringVar(&f.model, "model", "", "`model` to ask for (default gpt-5.6, or claude-opus-5 for anthropic)")
	flags.StringVar(&f.zone, "zone", "Asia/Shanghai", "`zone` of the clock: in it the times of messages are stored")
	flags.StringVar(&f.commands, "commands", "", "`folder` of quick commands: skills/NAME.md for $NAME$ and commands/NAME.md for #{NAME}#")
	flags.IntVar(&f.limit, "limit", 100_000, "compact a session that has more than so many `tokens`; 0 for never")
	flags.BoolVar(&f.verbose, "verbose", false, "log each call on standard error")
	f.wordings.add(cmd)
	complete(cmd, "provider", providerNames()...)
	return cmd
}

// chat is a running conversation.
type chat struct {
	out, errOut  io.Writer
	terminal     bool
	session      string
	wording      domain.Wording
	model        string
	encoder      encoder
	store        *sqlhistory.Store
	engine       *app.PromptEngine
	compactor    *app.Compactor
	conversation *app.Conversation
	count        func(string) int
	// terminated says that a SIGTERM came.
	terminated bool
}

func runChat(ctx context.Context, f chatFlags, in io.Reader, out, errOut io.Writer) (err error) {
	wording, err := f.wordings.wording()
	if err != nil {
		return err
	}
	p, err := protocolOfProvider(f.provider)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return usageError{fmt.Errorf("--zone: %w", err)}
	}
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelInfo
	}
	logger := slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: level}))
	db, err := f.store.openOrCreate(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	counter, err := tiktoken.New()
	if err != nil {
		return err
	}
	c := newChat(f, p, wording, zone, db, counter.Count, logger)
	c.out, c.errOut = out, errOut
	if file, ok := in.(*os.File); ok {
		if stat, err := file.Stat(); err == nil {
			c.terminal = stat.Mode()&os.ModeCharDevice != 0
		}
	}
	return c.run(ctx, in)
}

func newChat(f chatFlags, p protocol, wording domain.Wording, zone *time.Location, db *sqlx.DB, count func(string) int, logger *slog.Logger) *chat {
	model := p.model
	if f.model != "" {
		model = f.model
	}
	session := f.session
	if session == "" {
		session = time.Now().In(zone).Format("chat-20060102-150405")
	}
	store := sqlhistory.New(db)
	c := &chat{session: session, wording: wording, model: model, encoder: p.encoder(model, f.baseURL), store: store, count: count}
	host := sessiondate.Host{
		DB: db, History: store, Sink: c.encoder, Calls: store, Zone: zone,
		Logger: logger,
	}
	if f.commands != "" {
		host.Commands = commandfiles.New(f.commands)
	}
	c.engine = sessiondate.New(host)
	c.compactor = app.NewCompactor(app.CompactorOptions{Engine: c.engine, Boundaries: store, Count: count, Limit: f.limit})
	c.conversation = app.NewConversation(app.ConversationOptions{
		Engine: c.engine, History: store, Archive: store, Tools: shelltool.Runner{}, Compactor: c.compactor, Zone: zone,
	})
	return c
}

// run reads lines until the last one, and answers each.
func (c *chat) run(ctx context.Context, in io.Reader) error {
	// What interrupts is to end an answer and not the chat, so the signals are
	// read here and not by way of the context.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	ctx = context.WithoutCancel(ctx)

	if c.terminal {
		fmt.Fprintf(c.out, "session %s, model %s. /quit leaves.\n", c.session, c.model)
	}
	waiting, err := c.conversation.Waiting(ctx, c.session)
	if err != nil {
		return err
	}
	if waiting {
		fmt.Fprintln(c.out, "The last message has no answer yet. /continue asks for it.")
	}
	lines := newLineReader(in)
	failed := false
	for !c.terminated {
		if c.terminal {
			fmt.Fprint(c.out, "> ")
		}
		line, err := lines.next(interrupts)
		if err != nil {
			if c.terminal {
				fmt.Fprintln(c.out)
			}
			if !errors.Is(err, io.EOF) && !errors.Is(err, errInterrupted) {
				return err
			}
			break
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if line == "/quit" {
			break
		}
		err = c.interruptible(ctx, interrupts, func(ctx context.Context) error { return c.do(ctx, line) })
		switch {
		case err != nil:
			c.explain(err)
			failed = true
		case !slices.Contains(showing, line):
			failed = false
		}
	}
	if failed {
		return errExplained
	}
	return nil
}

// showing are the commands that only show something. What failed before them is
// not mended by them.
var showing = []string{"/prompt", "/context", "/calls"}

// errExplained is the error of a chat whose last answer did not come, which was
// said when it happened.
var errExplained = errors.New("the last answer did not come")

// explain says why an answer did not come.
func (c *chat) explain(err error) {
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(c.out, "\nInterrupted. The message is kept; /continue asks again.")
		return
	}
	fmt.Fprintf(c.errOut, "harness: %s\n", oneLine(err))
}

// errInterrupted is the error of waiting for a line when a signal comes.
var errInterrupted = errors.New("interrupted")

// interruptible does something with a context that a signal cancels. After a
// SIGTERM nothing more is to be done.
func (c *chat) interruptible(ctx context.Context, interrupts <-chan os.Signal, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case s := <-interrupts:
			c.terminated = c.terminated || s == syscall.SIGTERM
			cancel()
		}
	}
}

// do answers one line.
func (c *chat) do(ctx context.Context, line string) error {
	name, argument, _ := strings.Cut(line, " ")
	switch name {
	case "/continue":
		return c.converse(ctx, func(l app.Listener) error { return c.conversation.Continue(ctx, c.request(), l) })
	case "/compact":
		return c.compact(ctx)
	case "/fork":
		return c.fork(ctx, strings.TrimSpace(argument))
	case "/prompt":
		return c.showPrompt(ctx)
	case "/context":
		return c.showContext(ctx)
	case "/calls":
		return c.showCalls(ctx)
	}
	if strings.HasPrefix(name, "/") && !strings.Contains(name[1:], "/") {
		return fmt.Errorf("there is no command %s; harness chat --help lists them", name)
	}
	return c.converse(ctx, func(l app.Listener) error { return c.conversation.Say(ctx, c.request(), line, l) })
}

func (c *chat) request() app.PromptRequest { return chatPrompt(c.session, c.wording) }

// converse has a turn, and shows it as it comes.
func (c *chat) converse(_ context.Context, turn func(app.Listener) error) error {
	// Whether what was printed last ends a line.
	ended := true
	line := func(format string, args ...any) {
		if !ended {
			fmt.Fprintln(c.out)
		}
		fmt.Fprintf(c.out, format+"\n", args...)
		ended = true
	}
	err := turn(app.Listener{
		Text: func(text string) {
			fmt.Fprint(c.out, text)
			ended = strings.HasSuffix(text, "\n")
		},
		ToolCall:   func(call domain.ToolCall) { line("[%s %s]", call.Name, call.Arguments) },
		ToolResult: func(text string, _ bool) { line("[%s]", text) },
		Compacted:  func() { line("The session was compacted.") },
		NotCompacted: func(err error) {
			fmt.Fprintf(c.errOut, "harness: %s\n", oneLine(err))
		},
	})
	if !ended {
		fmt.Fprintln(c.out)
	}
	return err
}

func (c *chat) compact(ctx context.Context) error {
	handoff, err := c.compactor.Compact(ctx, c.request())
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "The session was compacted. What stands for its older part:\n%s\n", handoff)
	return nil
}

func (c *chat) fork(ctx context.Context, id string) error {
	for n := 1; id == ""; n++ {
		next := fmt.Sprintf("%s-fork-%d", c.session, n)
		window, err := c.store.Window(ctx, next)
		if err != nil {
			return err
		}
		if len(window.Messages) == 0 {
			id = next
		}
	}
	if err := c.store.Fork(ctx, c.session, id, ""); err != nil {
		return err
	}
	c.session = id
	fmt.Fprintf(c.out, "This is now session %s.\n", id)
	return nil
}

func (c *chat) showPrompt(ctx context.Context) error {
	built, err := c.engine.Build(ctx, c.request())
	if err != nil {
		return err
	}
	return printBody(c.out, c.encoder, built.Prompt, false)
}

func (c *chat) showContext(ctx context.Context) error {
	built, err := c.engine.Build(ctx, c.request())
	if err != nil {
		return err
	}
	m := built.Prompt.Manifest(c.count)
	fmt.Fprintf(c.out, "system prompt %d, tools %d, session messages %d: %d tokens, and %d images\n",
		m.SystemPrompt, m.Tools, m.SessionMessages, m.Total(), m.Images)
	return nil
}

// A lineReader reads lines without standing in the way of signals.
type lineReader struct {
	lines chan string
	err   chan error
}

func newLineReader(in io.Reader) *lineReader {
	r := &lineReader{make(chan string), make(chan error, 1)}
	// A read of a terminal cannot be ended, so this goroutine ends with the input
	// or with the process.
	go func() {
		buffered := bufio.NewReader(in)
		for {
			line, err := buffered.ReadString('\n')
			if line != "" {
				r.lines <- line
			}
			if err != nil {
				r.err <- err
				return
			}
		}
	}()
	return r
}

func (r *lineReader) next(interrupts <-chan os.Signal) (string, error) {
	select {
	case line := <-r.lines:
		return line, nil
	case err := <-r.err:
		return "", err
	case <-interrupts:
		return "", errInterrupted
	}
}
