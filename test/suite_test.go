package test

import (
	"flag"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// update makes the specs write golden files instead of comparing them:
//
//	go test ./test -update
var update = flag.Bool("update", false, "write the golden files")

func TestSessiondate(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	// A mutant is to be killed in seconds, by a tool that takes no flags for tests.
	if labels := os.Getenv("LABEL_FILTER"); labels != "" {
		suite.LabelFilter, suite.FailFast = labels, true
	}
	RunSpecs(t, "sessiondate", suite, reporter)
}
