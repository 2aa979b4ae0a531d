// Package commandfiles knows quick commands from a folder: $NAME$ stands for the
// file skills/NAME.md in it, and #{NAME}# for commands/NAME.md.
package commandfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"sessiondate/domain"
	"sessiondate/ports"
)

// Commands are the quick commands of a folder.
type Commands struct {
	dir string
}

var _ ports.QuickCommands = (*Commands)(nil)

// New returns the quick commands of the folder dir. No name leads out of it.
func New(dir string) *Commands { return &Commands{dir} }

// Text implements [ports.QuickCommands]. White space around a file's text is left
// out.
func (c *Commands) Text(ctx context.Context, marker domain.Marker) (string, bool, error) {
	text, known, err := c.text(ctx, marker)
	if err != nil {
		return "", false, fmt.Errorf("look up %v in %s: %w", marker, c.dir, err)
	}
	return text, known, nil
}

func (c *Commands) text(ctx context.Context, marker domain.Marker) (text string, known bool, err error) {
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	folder := "skills"
	if marker.Kind == domain.CommandMarker {
		folder = "commands"
	}
	file := path.Join(folder, marker.Name+".md")
	if !fs.ValidPath(file) || !strings.HasPrefix(file, folder+"/") {
		return "", false, nil
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	content, err := root.ReadFile(file)
	if isUnknown(err) {
		return "", false, nil
	}
	return strings.TrimSpace(string(content)), err == nil, err
}

// isUnknown reports whether a read failed because no file has that name. A user
// writes what he likes between two dollars, so a name may also lead through a
// file, be a folder's, or be too long for the file system.
func isUnknown(err error) bool {
	for _, cause := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}
