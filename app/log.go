package app

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// A sendError is the error of a prompt that was sent. Providers quote the prompt
// in the errors that they answer, so its text is for the caller and for no log.
type sendError struct {
	sessionID string
	err       error
}

func (e *sendError) Error() string {
	return fmt.Sprintf("send prompt of session %s: %v", e.sessionID, e.err)
}
func (e *sendError) Unwrap() error { return e.err }

// errorAttr is what a log may say of an error.
func errorAttr(err error) slog.Attr {
	if sent, ok := errors.AsType[*sendError](err); ok {
		return slog.String("error", fmt.Sprintf("send prompt of session %s: %s", sent.sessionID, errorType(sent.err)))
	}
	return slog.String("error", err.Error())
}

// errorType is the Go type of the first error in the chain that does more than
// wrap another with words.
func errorType(err error) string {
	for {
		t := fmt.Sprintf("%T", err)
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(t, "*fmt.") {
			return t
		}
		err = inner
	}
}

func orDiscard(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return logger
}
