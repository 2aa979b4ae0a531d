package test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The page of guarantees", func() {
	// rows returns the rows of the table below a heading, and of each the cells.
	rows := func(heading string) (rows [][]string) {
		GinkgoHelper()
		text, err := os.ReadFile("../docs/guarantees.md")
		Expect(err).NotTo(HaveOccurred())
		_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
		Expect(found).To(BeTrue(), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		for line := range strings.Lines(section) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "| ") {
				continue
			}
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
			Expect(cells).To(HaveLen(3), line)
			rows = append(rows, cells)
		}
		Expect(len(rows)).To(BeNumerically(">", 1), heading)
		return rows[1:]
	}

	It("names every property, each with twins that it refutes, and nothing else", func() {
		told := map[string][]string{}
		for _, cells := range rows("Prompts") {
			told[cells[1]] = strings.Split(cells[2], " · ")
		}
		Expect(told).To(HaveLen(len(properties)))
		refuting := map[fault]bool{}
		for _, p := range properties {
			Expect(told).To(HaveKey(p.promise))
			for _, twin := range told[p.promise] {
				Expect(refutations).To(ContainElement(refutation{fault(twin), p.promise}), p.promise)
				refuting[fault(twin)] = true
			}
		}
		for _, r := range refutations {
			Expect(refuting).To(HaveKey(r.twin), "no promise names this twin")
		}
	})

	It("names specs that there are for stores and servers, and for each promise one that breaks it", func() {
		files, err := filepath.Glob("*_test.go")
		Expect(err).NotTo(HaveOccurred())
		var sources string
		for _, file := range files {
			source, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			sources += string(source)
		}
		for _, cells := range rows("Stores and servers") {
			for _, specs := range cells[1:] {
				for spec := range strings.SplitSeq(specs, " · ") {
					Expect(sources).To(Or(ContainSubstring("It(%q, func", spec), ContainSubstring("DescribeTable(%q, func", spec)), cells[0])
				}
			}
		}
	})
})
