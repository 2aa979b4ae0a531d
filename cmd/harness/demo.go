package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "embed" // For the demo's session.

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"sessiondate"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// demoTranscript is the session that the demo plays: four days, with tool calls,
// an image and a gap.
//
//go:embed demo.jsonl
var demoTranscript string

func newDemoCommand() *cobra.Command {
	var dir, protocolName string
	var wordings wordingFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a session of four days and show what its prompts repeat",
		Long: `demo stores a session of four days, message by message, in an embedded SQLite
file. At each message of the user it builds the request and shows how much of the
request before it is repeated from the start: what a provider can serve from its
cache. Beside it stands a harness that states today's date in its system prompt.`,
		Example: `  harness demo
  harness demo --protocol messages --lang en
  harness demo --dir ./demo`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wording, err := wordings.wording()
			if err != nil {
				return err
			}
			p, err := protocolNamed(protocolName)
			if err != nil {
				return err
			}
			return runDemo(cmd.Context(), dir, p, wording, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` in which to keep the store (default: a temporary one, removed at the end)")
	cmd.Flags().StringVar(&protocolName, "protocol", protocols[0].name, "`protocol` of the requests: chat, responses or messages")
	wordings.add(cmd)
	complete(cmd, "protocol", protocolNames()...)
	return cmd
}

func runDemo(ctx context.Context, dir string, p protocol, wording domain.Wording, out io.Writer) (err error) {
	keep := dir != ""
	if keep {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	} else {
		if dir, err = os.MkdirTemp("", "sessiondate-demo-"); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	file := filepath.Join(dir, "demo.db")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("demo: %s is there already; remove it or name another --dir", file)
	}
	db, err := createStore(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	t, err := sqlhistory.ReadTranscript(strings.NewReader(demoTranscript))
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	store := sqlhistory.New(db)
	d := demo{session: t.Session, protocol: p, encoder: p.encoder(p.model, ""), wording: wording, history: store}
	d.anchored.engine = sessiondate.New(sessiondate.Host{DB: db, History: store, Sink: d.encoder})
	for _, m := range t.Messages {
		if err := store.Append(ctx, t.Session, m); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		if m.Role == domain.RoleUser {
			if err := d.turn(ctx, m); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
		}
	}
	next := "the store was temporary and is gone. Keep it, and look at a request:\n" +
		"  harness demo --dir demo\n" +
		"  harness prompt --db demo/demo.db --session " + t.Session
	if keep {
		next = "the session is in " + file + ". Look at its newest request:\n" +
			"  harness prompt --db " + file + " --session " + t.Session
	}
	return d.print(out, next)
}

// A demo is a session that is played twice, side by side.
type demo struct {
	session  string
	protocol protocol
	encoder  encoder
	wording  domain.Wording
	history  ports.History

	anchored, recomputed lane
	rows                 []table.Row
}

// A lane is one of the two harnesses that a demo compares.
type lane struct {
	engine   *app.PromptEngine
	previous []domain.PrefixUnit
	// sent and repeated are the totals, in bytes.
	sent, repeated int
}

// An observation is what is seen of one request.
type observation struct {
	date, notice string
	size         int
	repeated     domain.Repeated
}

// turn builds both requests of the turn that begins with the user message m, at
// the time at which it was stored.
func (d *demo) turn(ctx context.Context, m domain.Message) error {
	now, err := time.Parse(time.DateTime, m.CreatedAt)
	if err != nil {
		return err
	}
	anchored, err := d.observe(ctx, &d.anchored)
	if err != nil {
		return err
	}
	// A harness that knows no stored times has nothing but its clock.
	d.recomputed.engine = sessiondate.New(sessiondate.Host{
		History: untimed{d.history}, Sink: d.encoder, Now: func() time.Time { return now }, Zone: time.UTC,
	})
	recomputed, err := d.observe(ctx, &d.recomputed)
	if err != nil {
		return err
	}
	turn := len(d.rows) + 1
	d.rows = append(d.rows, table.Row{
		turn, m.CreatedAt,
		anchored.date, anchored.notice, anchored.size, repeatedBytes(turn, anchored), repeatedPercent(turn, anchored),
		recomputed.date, recomputed.size, repeatedBytes(turn, recomputed), repeatedPercent(turn, recomputed),
	})
	return nil
}

func (d *demo) observe(ctx context.Context, l *lane) (observation, error) {
	built, err := l.engine.Build(ctx, agentPrompt(d.session, d.wording))
	if err != nil {
		return observation{}, err
	}
	body, err := d.encoder.Body(built.Prompt)
	if err != nil {
		return observation{}, err
	}
	units, err := domain.PrefixUnits(body, d.protocol.cacheOrder...)
	if err != nil {
		return observation{}, err
	}
	o := observation{date: built.Dates.Anchor.Date.String(), size: len(body), repeated: domain.Repeats(l.previous, units)}
	for _, n := range built.Dates.Notices {
		if n.MessageID == built.Prompt.Messages[len(built.Prompt.Messages)-1].ID {
			o.notice = n.Date.String()
		}
	}
	l.previous = units
	l.sent += o.size
	l.repeated += o.repeated.Bytes
	return o, nil
}

// untimed is a history whose messages have no stored times.
type untimed struct{ ports.History }

func (u untimed) Window(ctx context.Context, sessionID string) (domain.Window, error) {
	window, err := u.History.Window(ctx, sessionID)
	for i := range window.Messages {
		window.Messages[i].CreatedAt = ""
	}
	return window, err
}

func repeatedBytes(turn int, o observation) string {
	if turn == 1 {
		return ""
	}
	return strconv.Itoa(o.repeated.Bytes)
}

// repeatedPercent spells how much of the previous request is repeated. A part is
// never rounded up to the whole.
func repeatedPercent(turn int, o observation) string {
	if turn == 1 {
		return ""
	}
	return strconv.Itoa(100*o.repeated.Bytes/o.repeated.Total) + " %"
}

func (d *demo) print(out io.Writer, next string) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	merged := table.RowConfig{AutoMerge: true, AutoMergeAlign: text.AlignCenter}
	header := table.Row{"", ""}
	for range 5 {
		header = append(header, "sessiondate")
	}
	for range 4 {
		header = append(header, "date recomputed in the prompt")
	}
	t.AppendHeader(header, merged)
	t.AppendHeader(table.Row{"", "stored time", "prompt says", "notice", "bytes", "repeated", "", "prompt says", "bytes", "repeated", ""})
	t.AppendRows(d.rows)
	t.AppendFooter(table.Row{"", "all turns", "", "", d.anchored.sent, d.anchored.repeated, "", "", d.recomputed.sent, d.recomputed.repeated, ""})
	var configs []table.ColumnConfig
	for _, n := range []int{1, 5, 6, 7, 9, 10, 11} {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignFooter: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	_, err := fmt.Fprintf(out, `%s

repeated: how much of the request before a provider finds again from the start,
in bytes and as a share of that request's tools, system prompt and messages.
To be read anew: %d bytes by sessiondate, %d bytes with a recomputed date.

%s
`, t.Render(), d.anchored.sent-d.anchored.repeated, d.recomputed.sent-d.recomputed.repeated, next)
	return err
}
