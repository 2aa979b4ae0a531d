package test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The page of guarantees", func() {
	It("names every property, each with twins that it refutes, and nothing else", func() {
		text, err := os.ReadFile("../docs/guarantees.md")
		Expect(err).NotTo(HaveOccurred())
		told := map[string][]string{}
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSpace(line), " | ")
			if len(cells) != 3 || strings.HasPrefix(line, "| rule") {
				continue
			}
			told[cells[1]] = strings.Split(strings.TrimSuffix(cells[2], " |"), " · ")
		}
		Expect(told).To(HaveLen(len(properties)))
		for _, p := range properties {
			Expect(told).To(HaveKey(p.promise))
			for _, twin := range told[p.promise] {
				Expect(refutations).To(ContainElement(refutation{fault(twin), p.promise}), p.promise)
			}
		}
	})
})
