package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"sessiondate"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/domain"
)

// promptFlags are the flags of harness prompt.
type promptFlags struct {
	store     storeFlags
	session   string
	protocol  string
	model     string
	zone      string
	noStamps  bool
	raw       bool
	wordings  wordingFlags
	logWriter io.Writer
}

func newPromptCommand() *cobra.Command {
	var f promptFlags
	cmd := &cobra.Command{
		Use:   "prompt (--db FILE | --dsn DSN) --session ID",
		Short: "Print the request that a stored session would send",
		Long: `prompt builds the prompt of a stored session and prints the body of the request
that would be sent: indented, or with --raw byte for byte as it would be on the
wire. It sends nothing and writes nothing.`,
		Example: `  harness prompt --db demo/demo.db --session demo
  harness prompt --db demo/demo.db --session demo --protocol messages --lang en
  harness prompt --db demo/demo.db --session demo --raw | sha256sum
  harness prompt --dsn 'agent@unix(/run/mysqld/mysqld.sock)/agent' --session 42`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.logWriter = cmd.ErrOrStderr()
			return runPrompt(cmd.Context(), f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	f.store.add(cmd)
	flags.StringVar(&f.session, "session", "", "`id` of the session")
	flags.StringVar(&f.protocol, "protocol", protocols[0].name, "`protocol` of the request: chat, responses or messages")
	flags.StringVar(&f.model, "model", "", "`model` that the request names (default gpt-5.6, or claude-opus-5 for messages)")
	flags.StringVar(&f.zone, "zone", "Asia/Shanghai", "`zone` of the clock, for a session in which no user message has a date")
	flags.BoolVar(&f.noStamps, "no-stamps", false, "build without a stamp reader: anchored, and without notices")
	flags.BoolVar(&f.raw, "raw", false, "print the body as it is sent, not indented")
	f.wordings.add(cmd)
	complete(cmd, "protocol", protocolNames()...)
	return cmd
}

func runPrompt(ctx context.Context, f promptFlags, out io.Writer) (err error) {
	wording, err := f.wordings.wording()
	if err != nil {
		return err
	}
	p, err := protocolNamed(f.protocol)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return usageError{fmt.Errorf("--zone: %w", err)}
	}
	if f.session == "" {
		return usageError{errors.New("which --session?")}
	}
	logger := slog.New(slog.NewTextHandler(f.logWriter, nil))
	db, err := f.store.open(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	model := p.model
	if f.model != "" {
		model = f.model
	}
	encoder := p.encoder(model, "")
	host := sessiondate.Host{
		DB: db, History: sqlhistory.New(db), Sink: encoder, Zone: zone,
		Logger: logger,
	}
	if f.noStamps {
		host.DB = nil
	}
	built, err := sessiondate.New(host).Build(ctx, agentPrompt(f.session, wording))
	if err != nil {
		return err
	}
	if len(built.Prompt.Messages) == 0 {
		return fmt.Errorf("session %s has no messages", f.session)
	}
	return printBody(out, encoder, built.Prompt, f.raw)
}

func printBody(out io.Writer, e encoder, prompt domain.Prompt, raw bool) error {
	body, err := e.Body(prompt)
	if err != nil {
		return err
	}
	if !raw {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "  "); err != nil {
			return fmt.Errorf("indent the body: %w", err)
		}
		indented.WriteByte('\n')
		body = indented.Bytes()
	}
	_, err = out.Write(body)
	return err
}
