package test

import "errors"

// isError reports whether err wraps an E.
func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
