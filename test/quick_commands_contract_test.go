package test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/commandfiles"
	"sessiondate/adapters/memory"
	"sessiondate/domain"
	"sessiondate/ports"
)

// skill and command make markers.
func skill(name string) domain.Marker {
	return domain.Marker{Kind: domain.SkillMarker, Name: name}
}

func command(name string) domain.Marker {
	return domain.Marker{Kind: domain.CommandMarker, Name: name}
}

// expands is the contract of every [ports.QuickCommands]. It opens quick
// commands with the given texts.
func expands(open func(texts map[domain.Marker]string) ports.QuickCommands) {
	It("knows the texts of skills and of commands, and keeps them apart", func(ctx SpecContext) {
		commands := open(map[domain.Marker]string{
			skill("review"): "Review it.", command("review"): "Review the diff.", command("deploy"): "Deploy it.",
		})
		for marker, want := range map[domain.Marker]string{
			skill("review"): "Review it.", command("review"): "Review the diff.", command("deploy"): "Deploy it.",
		} {
			text, known, err := commands.Text(ctx, marker)
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeTrue(), "%v", marker)
			Expect(text).To(Equal(want))
		}
	})

	DescribeTable("does not know", func(ctx SpecContext, marker domain.Marker) {
		text, known, err := open(map[domain.Marker]string{skill("review"): "Review it."}).Text(ctx, marker)
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeFalse())
		Expect(text).To(BeEmpty())
	},
		Entry("a skill that is not there", skill("deploy")),
		Entry("a skill of that name as a command", command("review")),
		Entry("a skill whose name goes on", skill("review-2")),
		Entry("a skill of which that is a folder", skill("review/deep")),
		Entry("a skill's name with a file's ending", skill("review.md")),
		// A user may write a price in dollars, or anything, and the session must
		// go on.
		Entry("a skill in something that is no folder", skill("review.md/deep")),
		Entry("a name that is too long for a file", skill(strings.Repeat("a", 300))),
		Entry("a path that is too long for a file", skill(strings.Repeat("a/", 5000)+"a")),
	)

	It("knows a text by a name with letters, digits, signs and folders", func(ctx SpecContext) {
		for _, name := range []string{"a", "日报", "go-1.26_x", "team/review", "a/b/c", "..", "...", "a..b", "v1."} {
			text, known, err := open(map[domain.Marker]string{skill(name): "Text of " + name}).Text(ctx, skill(name))
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeTrue(), name)
			Expect(text).To(Equal("Text of " + name))
		}
	})

	It("answers the same every time, with markup, lines and markers as they are", func(ctx SpecContext) {
		want := "# Review\r\n\n\t<date-change>& \"all\" of it</date-change>\n\n$other$ #{other}# 日报"
		commands := open(map[domain.Marker]string{skill("review"): want})
		for range 2 {
			text, known, err := commands.Text(ctx, skill("review"))
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeTrue())
			Expect(text).To(Equal(want))
		}
	})

	It("knows nothing where there is nothing", func(ctx SpecContext) {
		_, known, err := open(nil).Text(ctx, skill("review"))
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeFalse())
	})

	It("fails with the context's error, having been cancelled, and names the marker", func(ctx SpecContext) {
		commands := open(map[domain.Marker]string{skill("review"): "Review it."})
		done, cancel := context.WithCancel(ctx)
		cancel()
		for _, marker := range []domain.Marker{skill("review"), command("unknown")} {
			text, known, err := commands.Text(done, marker)
			Expect(err).To(MatchError(context.Canceled))
			Expect(err).To(MatchError(ContainSubstring(marker.String())))
			Expect(known).To(BeFalse())
			Expect(text).To(BeEmpty())
		}
	})

	It("looks up many at once", func(ctx SpecContext) {
		const n = 16
		texts := make(map[domain.Marker]string)
		for i := range n {
			texts[skill(fmt.Sprint(i))] = fmt.Sprint("Text ", i)
		}
		commands := open(texts)
		Expect(together(n, func(i int) error {
			text, known, err := commands.Text(ctx, skill(fmt.Sprint(i)))
			if err == nil && (!known || text != fmt.Sprint("Text ", i)) {
				err = errors.New(text)
			}
			return err
		})).To(BeEmpty())
	})
}

// writeCommand writes the file of a marker into a folder of quick commands.
func writeCommand(dir, file, text string) {
	GinkgoHelper()
	path := filepath.Join(dir, filepath.FromSlash(file))
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
}

var _ = Describe("Quick commands in memory", func() {
	expands(func(texts map[domain.Marker]string) ports.QuickCommands { return memory.Commands(texts) })
})

var _ = Describe("Quick commands in files", func() {
	expands(func(texts map[domain.Marker]string) ports.QuickCommands {
		GinkgoHelper()
		dir := GinkgoT().TempDir()
		folders := map[domain.MarkerKind]string{domain.SkillMarker: "skills/", domain.CommandMarker: "commands/"}
		for marker, text := range texts {
			writeCommand(dir, folders[marker.Kind]+marker.Name+".md", text)
		}
		return commandfiles.New(dir)
	})

	var dir string
	BeforeEach(func(SpecContext) {
		// The folder has neighbours, to which no name may lead.
		dir = filepath.Join(GinkgoT().TempDir(), "kept")
		Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		writeCommand(dir, "../secret.md", "secret")
		writeCommand(dir, "../skills/secret.md", "secret")
		writeCommand(dir, "secret.md", "secret")
		writeCommand(dir, "other/secret.md", "secret")
	})

	DescribeTable("leave out white space around a text", func(ctx SpecContext, content, want string) {
		writeCommand(dir, "skills/review.md", content)
		text, known, err := commandfiles.New(dir).Text(ctx, skill("review"))
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeTrue())
		Expect(text).To(Equal(want))
	},
		Entry("at its ends", "\n \tReview it.\n\nAll of it.\r\n\n", "Review it.\n\nAll of it."),
		Entry("where there is nothing else", " \n", ""),
		Entry("where there is nothing at all", "", ""),
	)

	DescribeTable("know no name that leads out of the folder", func(ctx SpecContext, marker domain.Marker) {
		writeCommand(dir, "skills/review.md", "Review it.")
		writeCommand(dir, "commands/review.md", "Review the diff.")
		text, known, err := commandfiles.New(dir).Text(ctx, marker)
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeFalse())
		Expect(text).To(BeEmpty())
	},
		Entry("to the folder above the skills", skill("../secret")),
		Entry("to the folder above all", skill("../../secret")),
		Entry("to another folder's skills", skill("../../skills/secret")),
		Entry("by way of a skill", skill("review/../../../secret")),
		Entry("from the skills to what is no command", skill("../other/secret")),
		Entry("from the skills to the commands", skill("../commands/review")),
		Entry("from the commands to the skills", command("../skills/review")),
		Entry("from the root", skill("/etc/hostname")),
		Entry("to the folder itself", skill(".")),
		Entry("to the folder above", skill("..")),
		Entry("to nothing", skill("/")),
	)

	It("know no name that spells its folder's whole path", func(ctx SpecContext) {
		_, known, err := commandfiles.New(dir).Text(ctx, skill(filepath.ToSlash(dir)+"/secret"))
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeFalse())
	})

	DescribeTable("do not follow a symlink out of the folder, and say so", func(ctx SpecContext, link, to, name string) {
		Expect(os.Mkdir(filepath.Join(dir, "skills"), 0o700)).To(Succeed())
		Expect(os.Symlink(to, filepath.Join(dir, link))).To(Succeed())
		text, known, err := commandfiles.New(dir).Text(ctx, skill(name))
		Expect(err).To(MatchError(ContainSubstring("$" + name + "$")))
		Expect(isError[*fs.PathError](err)).To(BeTrue(), "%v", err)
		Expect(known).To(BeFalse())
		Expect(text).To(BeEmpty())
	},
		Entry("of a file", "skills/link.md", "../../secret.md", "link"),
		Entry("of a file from the root", "skills/link.md", "/etc/hostname", "link"),
		Entry("of a folder", "skills/link", "../..", "link/secret"),
	)

	It("follow a symlink that stays in the folder", func(ctx SpecContext) {
		writeCommand(dir, "skills/review.md", "Review it.")
		Expect(os.Symlink("review.md", filepath.Join(dir, "skills", "link.md"))).To(Succeed())
		text, known, err := commandfiles.New(dir).Text(ctx, skill("link"))
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeTrue())
		Expect(text).To(Equal("Review it."))
	})

	It("fail where the folder is missing, with the cause, and name the marker", func(ctx SpecContext) {
		missing := filepath.Join(dir, "missing")
		text, known, err := commandfiles.New(missing).Text(ctx, command("review"))
		Expect(err).To(MatchError(fs.ErrNotExist))
		Expect(err).To(MatchError(And(ContainSubstring("#{review}#"), ContainSubstring(missing))))
		Expect(known).To(BeFalse())
		Expect(text).To(BeEmpty())
	})

	It("know nothing of a folder in a file's place", func(ctx SpecContext) {
		Expect(os.MkdirAll(filepath.Join(dir, "skills", "review.md"), 0o700)).To(Succeed())
		_, known, err := commandfiles.New(dir).Text(ctx, skill("review"))
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeFalse())
	})
})
