package test

import (
	"errors"
	gobuild "go/build"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// A layer is a folder and what its packages may import.
type layer struct {
	folder string
	allows func(path string) bool
}

const module = "sessiondate"

func oneOf(paths ...string) func(path string) bool {
	return func(path string) bool { return slices.Contains(paths, path) }
}

var layers = []layer{
	{"domain", oneOf("bytes", "cmp", "crypto/sha256", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt",
		"iter", "maps", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8")},
	{"ports", oneOf("context", module+"/domain")},
	{"app", oneOf("context", "errors", "fmt", "log/slog", "slices", "strings", "time", module+"/domain", module+"/ports")},
	{"adapters", func(path string) bool {
		return !strings.HasPrefix(path, module) || path == module+"/domain" || path == module+"/ports"
	}},
	// Hosts link the root: it may know one adapter, and no driver.
	{"", oneOf("log/slog", "time", "github.com/jmoiron/sqlx", module+"/adapters/sqlstamp", module+"/app", module+"/ports")},
}

// trespasses lists the imports below root that a layer does not allow, as
// "folder imports path". Tests may import what they need.
func trespasses(root string, l layer) []string {
	GinkgoHelper()
	found := []string{}
	err := filepath.WalkDir(filepath.Join(root, l.folder), func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if l.folder == "" && dir != filepath.Join(root, l.folder) {
			return fs.SkipDir
		}
		pkg, err := gobuild.ImportDir(dir, 0)
		if _, none := errors.AsType[*gobuild.NoGoError](err); none {
			return nil
		}
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, dir)
		for _, path := range pkg.Imports {
			if !l.allows(path) {
				found = append(found, folder+" imports "+path)
			}
		}
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return found
}

var _ = Describe("The layers", func() {
	for _, l := range layers {
		name := l.folder
		if name == "" {
			name = "the root"
		}
		It("keeps the imports of "+name+" within its bounds", func() {
			Expect(trespasses("..", l)).To(BeEmpty())
		})
	}

	It("catches an import that is planted", func() {
		root := GinkgoT().TempDir()
		plant := func(folder, path string) {
			dir := filepath.Join(root, folder)
			Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
			text := "package " + filepath.Base(folder) + "\n\nimport _ \"" + path + "\"\n"
			Expect(os.WriteFile(filepath.Join(dir, "planted.go"), []byte(text), 0o644)).To(Succeed())
		}
		plant("domain", "os")
		plant("ports", "net/http")
		plant("app", "database/sql")
		plant("adapters/memory", module+"/app")
		plant("adapters/sqlstamp", module+"/adapters/memory")
		var caught []string
		for _, l := range layers[:4] {
			caught = append(caught, trespasses(root, l)...)
		}
		Expect(caught).To(Equal([]string{
			"domain imports os", "ports imports net/http", "app imports database/sql",
			"adapters/memory imports sessiondate/app", "adapters/sqlstamp imports sessiondate/adapters/memory",
		}))
	})

	It("knows the standard library's pure packages from the impure", func() {
		for _, l := range layers[:3] {
			for _, impure := range []string{"os", "net", "net/http", "database/sql", "os/exec", "io/fs", "math/rand/v2", "crypto/rand"} {
				Expect(l.allows(impure)).To(BeFalse(), "%s must not import %s", l.folder, impure)
			}
		}
	})
})
