//go:build mutate

package test

import "github.com/onsi/ginkgo/v2/types"

// Mutants of app are judged by the specs that run in this process: a server and a
// command's binary would take minutes for each. The first failure is enough.
func init() {
	configure = func(suite *types.SuiteConfig) {
		suite.LabelFilter = "!mariadb && !harness && !tokens"
		suite.FailFast = true
	}
}
