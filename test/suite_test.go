package test

import (
	"flag"
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
	RunSpecs(t, "sessiondate")
}
