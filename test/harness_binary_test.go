package test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// buildHarness builds the reference harness when the first spec asks for it.
var buildHarness = sync.OnceValues(func() (string, error) { return gexec.Build("sessiondate/cmd/harness") })

var _ = AfterSuite(func() { gexec.CleanupBuildArtifacts() })

// harnessBinary returns the file of the reference harness, which is built once
// for all specs.
func harnessBinary() string {
	GinkgoHelper()
	file, err := buildHarness()
	Expect(err).NotTo(HaveOccurred())
	return file
}

// A harnessRun is what a run of the reference harness left behind.
type harnessRun struct {
	code           int
	stdout, stderr string
}

// startHarness runs the reference harness in a process of its own, to its end.
// It asserts nothing, so that goroutines may call it. The error says why the
// harness could not be run.
func startHarness(ctx context.Context, binary string, args ...string) (harnessRun, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	return harnessRun{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, err
}

// runHarness runs the reference harness in a process of its own.
func runHarness(ctx context.Context, args ...string) harnessRun {
	GinkgoHelper()
	run, err := startHarness(ctx, harnessBinary(), args...)
	Expect(err).NotTo(HaveOccurred())
	return run
}

// harnessOutput runs the reference harness, which must succeed and have nothing
// to say on stderr, and returns what it printed.
func harnessOutput(ctx context.Context, args ...string) string {
	GinkgoHelper()
	run := runHarness(ctx, args...)
	Expect(run.stderr).To(BeEmpty())
	Expect(run.code).To(BeZero())
	return run.stdout
}
