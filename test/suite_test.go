package test

import (
	"flag"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

// update makes the specs write golden files instead of comparing them:
//
//	go test ./test -update
var update = flag.Bool("update", false, "write the golden files")

// configure changes how the specs are run, in builds that need another way.
var configure = func(*types.SuiteConfig) {}

func TestSessiondate(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	configure(&suite)
	RunSpecs(t, "sessiondate", suite, reporter)
}
