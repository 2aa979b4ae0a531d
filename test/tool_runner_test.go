package test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/shelltool"
	"sessiondate/domain"
	"sessiondate/ports"
)

// shellCall is a call of the shell tool with a command.
func shellCall(command string) domain.ToolCall {
	GinkgoHelper()
	arguments, err := json.Marshal(map[string]string{"command": command})
	Expect(err).NotTo(HaveOccurred())
	return domain.ToolCall{ID: "call_1", Name: shelltool.Name, Arguments: string(arguments)}
}

// standInForDate puts a program in the place of date, and alone in the path, for
// one spec. It leaves the file ran in the folder that it returns, and then does
// what the script says.
func standInForDate(script string) (dir string) {
	GinkgoHelper()
	dir = GinkgoT().TempDir()
	program := "#!/bin/sh\necho \"$@\" >'" + dir + "/ran'\n" + script + "\n"
	Expect(os.WriteFile(filepath.Join(dir, "date"), []byte(program), 0o700)).To(Succeed())
	GinkgoT().Setenv("PATH", dir)
	return dir
}

var _ = Describe("The shell tool", func() {
	var runner ports.ToolRunner
	BeforeEach(func(SpecContext) { runner = shelltool.Runner{} })

	It("runs the machine's date", func(ctx SpecContext) {
		text, failed := runner.RunTool(ctx, shellCall("date"))
		Expect(failed).To(BeFalse(), text)
		Expect(text).To(MatchRegexp(`\d\d:\d\d:\d\d`))
	})

	DescribeTable("shows what date prints, without the line's end", func(ctx SpecContext, command string) {
		dir := standInForDate("echo 'Tue Oct 13 08:00:00 CST 2026'")
		text, failed := runner.RunTool(ctx, shellCall(command))
		Expect(failed).To(BeFalse(), text)
		Expect(text).To(Equal("Tue Oct 13 08:00:00 CST 2026"))
		Expect(os.ReadFile(filepath.Join(dir, "ran"))).To(BeEquivalentTo("\n"), "date got arguments")
	},
		Entry("for date", "date"),
		Entry("for date with white space around it", " date\n"),
	)

	It("says that date failed", func(ctx SpecContext) {
		standInForDate("echo 'no clock'; exit 3")
		text, failed := runner.RunTool(ctx, shellCall("date"))
		Expect(failed).To(BeTrue())
		Expect(text).To(And(ContainSubstring("date"), ContainSubstring("exit status 3")))
	})

	It("says that there is no date", func(ctx SpecContext) {
		GinkgoT().Setenv("PATH", GinkgoT().TempDir())
		text, failed := runner.RunTool(ctx, shellCall("date"))
		Expect(failed).To(BeTrue())
		Expect(text).To(ContainSubstring("date"))
	})

	DescribeTable("refuses every other command, and runs nothing", func(ctx SpecContext, command string) {
		dir := standInForDate("echo forged")
		text, failed := runner.RunTool(ctx, shellCall(command))
		Expect(failed).To(BeTrue())
		Expect(text).To(And(ContainSubstring("date and no other"), Not(ContainSubstring("forged"))))
		Expect(filepath.Join(dir, "ran")).NotTo(BeAnExistingFile())
	},
		Entry("another one", "ls"),
		Entry("none", ""),
		Entry("date and another one", "date; ls"),
		Entry("date and another one in a line of its own", "date\nls"),
		Entry("date in the background", "date &"),
		Entry("one that date is put into", "echo $(date)"),
		Entry("date with an argument that sets the clock", "date -s 2020-01-01"),
		Entry("date with an argument that does no harm", "date +%F"),
		Entry("date with an environment", "TZ=UTC date"),
		Entry("date with a redirection", "date>/etc/passwd"),
		Entry("a date at another place", "/tmp/date"),
		Entry("a date in capitals", "DATE"),
		Entry("a longer word", "datediff"),
		Entry("date and a NUL", "date\x00"),
	)

	It("refuses a tool that is not there, by its name", func(ctx SpecContext) {
		dir := standInForDate("echo forged")
		call := shellCall("date")
		call.Name = "python"
		text, failed := runner.RunTool(ctx, call)
		Expect(failed).To(BeTrue())
		Expect(text).To(ContainSubstring("python"))
		Expect(filepath.Join(dir, "ran")).NotTo(BeAnExistingFile())
	})

	DescribeTable("refuses arguments that are none of its own, and runs nothing", func(ctx SpecContext, arguments string) {
		dir := standInForDate("echo forged")
		text, failed := runner.RunTool(ctx, domain.ToolCall{ID: "call_1", Name: shelltool.Name, Arguments: arguments})
		Expect(failed).To(BeTrue())
		Expect(text).To(And(HavePrefix("error: "), Not(ContainSubstring("forged"))))
		Expect(filepath.Join(dir, "ran")).NotTo(BeAnExistingFile())
	},
		Entry("because there are none", ``),
		Entry("because they broke off", `{"command":"date"`),
		Entry("because more comes behind", `{"command":"date"} {"command":"date"}`),
		Entry("because they are null", `null`),
		Entry("because they are text", `"date"`),
		Entry("because they are a list", `["date"]`),
		Entry("because the command is missing", `{}`),
		Entry("because the command is a list", `{"command":["date"]}`),
		Entry("because the command is a number", `{"command":1}`),
	)

	It("runs nothing, having been cancelled", func(ctx SpecContext) {
		dir := standInForDate("echo forged")
		done, cancel := context.WithCancel(ctx)
		cancel()
		text, failed := runner.RunTool(done, shellCall("date"))
		Expect(failed).To(BeTrue())
		Expect(text).To(ContainSubstring(context.Canceled.Error()))
		Expect(filepath.Join(dir, "ran")).NotTo(BeAnExistingFile())
	})

	It("ends a date that hangs, being cancelled", func(ctx SpecContext) {
		// An empty pipe holds the program, which has nothing else in its path.
		dir := standInForDate("read -r never <'hold'")
		_ = dir
		done, cancel := context.WithCancel(ctx)
		defer cancel()
		_, failed := runner.RunTool(done, shellCall("date"))
		Expect(failed).To(BeTrue())
	}, NodeTimeout(20*time.Second))

	It("runs many at once", func(ctx SpecContext) {
		standInForDate("echo 08:00")
		Expect(together(8, func(int) error {
			text, failed := runner.RunTool(ctx, shellCall("date"))
			if failed || text != "08:00" {
				return os.ErrInvalid
			}
			return nil
		})).To(BeEmpty())
	})
})
