package test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/tiktoken"
)

// newCounter returns a token counter.
func newCounter() *tiktoken.Counter {
	GinkgoHelper()
	counter, err := tiktoken.New()
	Expect(err).NotTo(HaveOccurred())
	return counter
}

// base64Of returns n bytes of base64 in which nothing repeats.
func base64Of(n int) string {
	data := make([]byte, n/4*3)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return base64.StdEncoding.EncodeToString(data)
}

var _ = Describe("The token counter", Label("tokens"), func() {
	DescribeTable("counts in the vocabulary of current models", func(_ SpecContext, text string, tokens int) {
		Expect(newCounter().Count(text)).To(Equal(tokens))
	},
		Entry("nothing", "", 0),
		Entry("two words", "hello world", 2),
		// Some tokenizers count the blank line for two.
		Entry("a blank line with spaces in it: 64, 132652, 65", "a\n   \nb", 3),
		// OpenAI's cookbook on counting tokens spells these three out.
		Entry("a long word: 493, 129901, 376, 160388, 21203, 2367", "antidisestablishmentarianism", 6),
		Entry("a sum: 17, 659, 220, 17, 314, 220, 19", "2 + 2 = 4", 7),
		Entry("Japanese: 8930, 9697, 243, 128225, 8930, 17693, 4344, 48669", "お誕生日おめでとう", 8),
	)

	It("takes the spelling of a control token for text", func(SpecContext) {
		Expect(newCounter().Count("<|endoftext|>")).To(BeNumerically(">", 1))
	})

	It("counts what is no UTF-8, too", func(SpecContext) {
		Expect(newCounter().Count("hello world \xff\xfe")).To(BeNumerically(">", 2))
	})

	It("counts many at once", func(ctx SpecContext) {
		counter := newCounter()
		Expect(together(16, func(i int) error {
			// "hello" is one token, and so is " hello".
			if n := counter.Count(strings.Repeat("hello ", i) + "hello"); n != i+1 {
				return fmt.Errorf("%d tokens in place of %d", n, i+1)
			}
			return nil
		})).To(BeEmpty())
	})

	// The encoder's time grows with the square of what it takes for one word, so
	// that each of these would take it minutes or hours.
	DescribeTable("counts within seconds", func(_ SpecContext, text string, least, most int) {
		Expect(newCounter().Count(text)).To(And(BeNumerically(">=", least), BeNumerically("<=", most)))
	},
		Entry("a megabyte of base64", NodeTimeout(time.Minute), base64Of(1<<20), 1<<19, 1<<20),
		// Eight letters a are one token, and so are 128 spaces.
		Entry("one letter, over and over", NodeTimeout(time.Minute), strings.Repeat("a", 1<<18), 1<<15, 1<<15),
		Entry("blanks", NodeTimeout(time.Minute), strings.Repeat(" ", 1<<18), 1<<11, 1<<11),
		Entry("empty lines", NodeTimeout(time.Minute), strings.Repeat("\n", 1<<18), 1<<14, 1<<14),
	)

	It("counts a word that is too long in pieces of 4096 bytes", func(SpecContext) {
		counter, word := newCounter(), base64Of(10000)
		Expect(counter.Count("see " + word + " there")).To(Equal(
			counter.Count("see "+word[:4096]) + counter.Count(word[4096:8192]) + counter.Count(word[8192:]+" there")))
	})

	It("cuts between runes", func(SpecContext) {
		// A rune of three bytes does not end at 4096: 1366 of them come first.
		counter, runes := newCounter(), strings.Repeat("日", 1366)
		Expect(counter.Count(runes + "本")).To(Equal(counter.Count(runes) + counter.Count("本")))
	})
})
