// Command harness is the reference harness of sessiondate: it shows what the
// module does, and prints the exact requests that a stored session would send.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	// Zones by name, on machines that have no zone database.
	_ "time/tzdata"
)

// The exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command with the given arguments and returns its exit code. An
// error is one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errExplained) {
		fmt.Fprintf(stderr, "harness: %s\n", oneLine(err))
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// oneLine spells an error in one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// A usageError is a call of the command that says the wrong thing.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "harness",
		Short: "The reference harness of sessiondate",
		Long: `harness shows how sessiondate keeps the date in a prompt: the system prompt
states the day of the session's first user message, for ever, and each new day
is told in a <date-change> tag in front of its first user message.

It exits with 0 if all went well, 2 if it was called wrongly, and 1 if anything
else failed.`,
		Example: `  harness demo
  harness import --db my.db transcript.jsonl
  harness prompt --db my.db --session transcript --protocol messages
  harness chat --db my.db --provider anthropic`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDemoCommand(), newChatCommand(), newPromptCommand(), newImportCommand())
	return root
}

// usageArgs makes the errors of a check of arguments usage errors.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
