// Package shelltool runs the shell tool of the reference harness: the command
// date, and nothing else.
package shelltool

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"

	"sessiondate/domain"
	"sessiondate/ports"
)

// Name is the tool's name.
const Name = "shell"

// A Runner is a [ports.ToolRunner] with one tool, which runs the program date.
type Runner struct{}

var _ ports.ToolRunner = Runner{}

// RunTool implements [ports.ToolRunner].
func (Runner) RunTool(ctx context.Context, call domain.ToolCall) (text string, failed bool) {
	if call.Name != Name {
		return "error: there is no tool " + call.Name, true
	}
	var arguments struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
		return "error: the arguments are not a JSON object with a command", true
	}
	if strings.TrimSpace(arguments.Command) != "date" {
		return "error: this shell runs the command date and no other, without arguments", true
	}
	var output bytes.Buffer
	date := exec.CommandContext(ctx, "date")
	date.Stdout, date.Stderr = &output, &output
	if err := date.Run(); err != nil {
		return "error: date: " + err.Error(), true
	}
	return strings.TrimSuffix(output.String(), "\n"), false
}
