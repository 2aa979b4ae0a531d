package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sessiondate/adapters/sqlhistory"
)

func newImportCommand() *cobra.Command {
	var db, session string
	cmd := &cobra.Command{
		Use:   "import --db FILE TRANSCRIPT.jsonl",
		Short: "Load a transcript into the embedded store",
		Long: `import loads a transcript as a new session into the embedded store, which it
creates if need be. A transcript has one JSON message a line:

  {"role": "user", "content": "Is it done?", "created_at": "2026-10-12 23:50:00"}

  role          user, assistant or tool
  content       a string, or a list of parts: {"type": "text", "text": "..."},
                {"type": "image", "media_type": "image/png", "data": "BASE64"}
                or {"type": "image", "url": "https://..."}
  created_at    the stored time, as the writer's wall clock spelled it; null or
                left out if there is none
  tool_calls    of an assistant: [{"id": "c1", "name": "shell", "arguments": {}}]
  tool_call_id  of a tool: the call that it answers
  tool_failed   of a tool: true if the content reports a failure

The first line may be a header: {"transcript": 1, "session": "ID"}. The number is
the version of the format. Without a session of its own, in the header or by
--session, a transcript is named after its file.

If a line is wrong, import says which and why, and nothing is stored.`,
		Example: `  harness import --db my.db transcript.jsonl
  harness import --db my.db --session friday transcript.jsonl`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if db == "" {
				return usageError{errors.New("which store? Name a --db")}
			}
			return runImport(cmd.Context(), db, session, args[0], cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&db, "db", "", "`file` of the embedded store")
	cmd.Flags().StringVar(&session, "session", "", "`id` of the new session")
	return cmd
}

func runImport(ctx context.Context, file, session, transcript string, out io.Writer) (err error) {
	t, err := readTranscript(transcript)
	if err != nil {
		return err
	}
	switch {
	case session != "":
	case t.Session != "":
		session = t.Session
	default:
		session = strings.TrimSuffix(filepath.Base(transcript), filepath.Ext(transcript))
	}
	db, err := createStore(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := sqlhistory.New(db).Create(ctx, session, t.Messages); err != nil {
		if errors.Is(err, sqlhistory.ErrSessionExists) {
			return fmt.Errorf("%w; name another --session", err)
		}
		return err
	}
	_, err = fmt.Fprintf(out, "stored %d messages as session %s in %s\nnext: harness prompt --db %s --session %s\n",
		len(t.Messages), session, file, file, session)
	return err
}

func readTranscript(path string) (t sqlhistory.Transcript, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if t, err = sqlhistory.ReadTranscript(f); err != nil {
		return t, fmt.Errorf("import %s: %w", path, err)
	}
	return t, nil
}
