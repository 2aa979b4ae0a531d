package ports

import (
	"context"

	"sessiondate/domain"
)

// QuickCommands knows the texts that quick-command markers stand for.
//
// A look-up that failed is an error that wraps its cause and names the marker. A
// done context ends a look-up with the context's error. QuickCommands is safe
// for concurrent use.
type QuickCommands interface {
	// Text returns the text that a marker stands for, and false if it stands for
	// none. A text must stay the same for as long as a session shows it: the
	// request repeats it in every turn.
	Text(ctx context.Context, marker domain.Marker) (string, bool, error)
}
