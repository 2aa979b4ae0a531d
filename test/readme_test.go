package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// A codeBlock is a fenced block of the README.
type codeBlock struct {
	language, text string
	// output is the text block that follows right behind a block of commands.
	output string
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```\n(\n```text\n(.*?)^```\n)?")

func readme() []codeBlock {
	GinkgoHelper()
	text, err := os.ReadFile("../README.md")
	Expect(err).NotTo(HaveOccurred())
	var blocks []codeBlock
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, codeBlock{m[1], m[2], m[4]})
	}
	return blocks
}

func readmeBlocks(language string) []codeBlock {
	GinkgoHelper()
	var blocks []codeBlock
	for _, b := range readme() {
		if b.language == language {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// runAsWritten runs the README's commands in dir with the harness that the suite
// built, and returns what they print.
func runAsWritten(ctx context.Context, dir, commands string) string {
	GinkgoHelper()
	bin := GinkgoT().TempDir()
	Expect(os.Symlink(harnessBinary(), filepath.Join(bin, "harness"))).To(Succeed())
	bash := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(commands, "go run ./cmd/harness", "harness"))
	bash.Dir = dir
	bash.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	bash.Stderr = &stderr
	output, err := bash.Output()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", commands, &stderr)
	return string(output)
}

var _ = Describe("The README", Label("harness"), func() {
	It("begins with the demo's command and the tests' command", func() {
		commands := readmeBlocks("sh")
		Expect(commands[0].text).To(Equal("go run ./cmd/harness demo\n"))
		Expect(commands[1].text).To(HavePrefix("go tool ginkgo "))
		Expect(strings.Count(commands[1].text, "\n")).To(Equal(1))
	})

	It("shows what its commands print", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		for i, c := range readmeBlocks("sh") {
			if i == 1 {
				continue // The command that runs this spec.
			}
			Expect(runAsWritten(ctx, dir, c.text)).To(Equal(c.output), c.text)
		}
	})

	It("shows code that is compiled and run as an example", func() {
		example, err := os.ReadFile("../example_test.go")
		Expect(err).NotTo(HaveOccurred())
		blocks := readmeBlocks("go")
		Expect(blocks).To(HaveLen(2))
		for _, b := range blocks {
			Expect(string(example)).To(ContainSubstring(b.text))
		}
	})

	It("shows the notice that is sent", func() {
		var shown []string
		for _, b := range readmeBlocks("text") {
			shown = append(shown, b.text)
		}
		Expect(shown).To(ContainElement(domain.Wording{Language: domain.English}.Notice(date("2026-10-13")) + "\n"))
	})

	It("names files and folders that exist", func() {
		text, err := os.ReadFile("../README.md")
		Expect(err).NotTo(HaveOccurred())
		links := regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(string(text), -1)
		Expect(len(links)).To(BeNumerically(">", 4))
		for _, l := range links {
			Expect(filepath.Join("..", l[1])).To(BeAnExistingFile())
		}
	})
})
