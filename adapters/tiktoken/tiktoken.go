// Package tiktoken counts tokens offline, in the vocabulary of OpenAI's current
// models. For models of others, whose vocabularies are not public, its counts
// are estimates.
package tiktoken

import (
	"fmt"
	"unicode"

	tiktoken "github.com/pkoukk/tiktoken-go"
	tiktokenloader "github.com/pkoukk/tiktoken-go-loader"
)

// encoding is the vocabulary: that of GPT-4o and what came after.
const encoding = tiktoken.MODEL_O200K_BASE

// longestRun is how many bytes without white space, or of white space alone, are
// encoded at once. The encoder's time grows with the square of such a run's
// length, and a tool's output may hold a megabyte of base64 or of blanks.
const longestRun = 4096

// A Counter counts tokens. It is safe for concurrent use.
type Counter struct {
	encoding *tiktoken.Tiktoken
}

// New returns a counter. It reads the vocabulary that is built in, which takes
// some tenths of a second, and nothing from the network.
func New() (*Counter, error) {
	tiktoken.SetBpeLoader(tiktokenloader.NewOfflineLoader())
	e, err := tiktoken.GetEncoding(encoding)
	if err != nil {
		return nil, fmt.Errorf("load vocabulary %s: %w", encoding, err)
	}
	return &Counter{e}, nil
}

// Count returns how many tokens text has. It is exact but for runs of more than
// 4096 bytes without white space, or of white space alone, which are counted in
// pieces.
func (c *Counter) Count(text string) int {
	n := 0
	for piece := range pieces(text) {
		n += len(c.encoding.EncodeOrdinary(piece))
	}
	return n
}

// pieces yields text in one piece or, where it has a run that is too long, cut
// inside of that run.
func pieces(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			cut := firstCut(text)
			if cut < 0 {
				if text != "" {
					yield(text)
				}
				return
			}
			if !yield(text[:cut]) {
				return
			}
			text = text[cut:]
		}
	}
}

// firstCut returns where text is to be cut, at a rune's beginning, and -1 if it
// has no run that is too long.
func firstCut(text string) int {
	start, inSpace := 0, false
	for i, r := range text {
		if space := unicode.IsSpace(r); space != inSpace {
			start, inSpace = i, space
		}
		if i-start >= longestRun {
			return i
		}
	}
	return -1
}
