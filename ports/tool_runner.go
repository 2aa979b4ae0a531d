package ports

import (
	"context"

	"sessiondate/domain"
)

// A ToolRunner runs the tools that a model calls.
type ToolRunner interface {
	// RunTool runs a call and returns what the model is to read, and whether the
	// call failed. A tool that is not there, or that is called wrongly, is a
	// failed call and no error. A done context ends the run as a failed call.
	RunTool(ctx context.Context, call domain.ToolCall) (text string, failed bool)
}
