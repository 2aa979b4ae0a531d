package domain_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// units makes prefix units of texts.
func units(texts ...string) []domain.PrefixUnit {
	var list []domain.PrefixUnit
	for _, t := range texts {
		list = append(list, domain.PrefixUnit{Bytes: []byte(t)})
	}
	return list
}

var _ = Describe("PrefixUnits", func() {
	DescribeTable("are the pieces of a body in the order of caching",
		func(body, fields string, want ...string) {
			got, err := domain.PrefixUnits([]byte(body), strings.Fields(fields)...)
			Expect(err).NotTo(HaveOccurred())
			spelled := []string{}
			for _, u := range got {
				spelled = append(spelled, u.Name+" "+string(u.Bytes))
			}
			Expect(spelled).To(Equal(append([]string{}, want...)))
		},
		Entry("each element of an array", `{"messages":[{"a":1},"b",3]}`, "messages",
			`messages[0] {"a":1}`, `messages[1] "b"`, `messages[2] 3`),
		Entry("a string as one", `{"instructions":"be kind"}`, "instructions", `instructions "be kind"`),
		Entry("an object as one", `{"system":{"a":[1,2]}}`, "system", `system {"a":[1,2]}`),
		Entry("what stands behind a string", `{"system":"be kind","messages":["m"]}`, "system messages", `system "be kind"`, `messages[0] "m"`),
		Entry("null as one, since it is no array", `{"system":null}`, "system", `system null`),
		Entry("in the order of caching and not of the body", `{"messages":["m"],"model":"x","tools":["t"]}`, "tools messages",
			`tools[0] "t"`, `messages[0] "m"`),
		Entry("none for a field that the body lacks", `{"messages":["m"]}`, "tools messages", `messages[0] "m"`),
		Entry("none for an empty array", `{"tools":[],"messages":["m"]}`, "tools messages", `messages[0] "m"`),
		Entry("none of a field that is not cached", `{"model":"x","messages":["m"]}`, "messages", `messages[0] "m"`),
		Entry("with the bytes that are sent", `{"m":[ {"b": 1,"a":"\u003c"} , "<"]}`, "m",
			`m[0] {"b": 1,"a":"\u003c"}`, `m[1] "<"`),
		Entry("none of an empty body", `{}`, "tools messages"),
	)

	DescribeTable("are refused where the body is no JSON object",
		func(body string) {
			_, err := domain.PrefixUnits([]byte(body), "messages")
			Expect(err).To(HaveOccurred())
		},
		Entry("nothing", ""),
		Entry("an array", `[1]`),
		Entry("a string", `"messages"`),
		Entry("null", `null`),
		Entry("an object broken off", `{"messages":[1`),
	)
})

var _ = Describe("Repeats", func() {
	DescribeTable("counts what is repeated before the first difference",
		func(earlier, later []domain.PrefixUnit, want domain.Repeated, whole bool) {
			got := domain.Repeats(earlier, later)
			Expect(got).To(Equal(want))
			Expect(got.Whole()).To(Equal(whole))
		},
		Entry("the same", units("aa", "bbb"), units("aa", "bbb"), domain.Repeated{Units: 2, Bytes: 5, Total: 5}, true),
		Entry("a continuation", units("aa", "bbb"), units("aa", "bbb", "c"), domain.Repeated{Units: 2, Bytes: 5, Total: 5}, true),
		Entry("a change in the first unit", units("aa", "bbb"), units("ax", "bbb"), domain.Repeated{Units: 0, Bytes: 1, Total: 5}, false),
		Entry("a change in the last unit", units("aa", "bbb"), units("aa", "bxb"), domain.Repeated{Units: 1, Bytes: 3, Total: 5}, false),
		Entry("nothing behind a change", units("a", "b", "c"), units("x", "b", "c"), domain.Repeated{Total: 3}, false),
		Entry("a unit that became longer, and nothing behind it", units("aa", "b"), units("aab", "b"),
			domain.Repeated{Units: 0, Bytes: 2, Total: 3}, false),
		Entry("a unit that became shorter", units("aab", "b"), units("aa", "bb"), domain.Repeated{Units: 0, Bytes: 2, Total: 4}, false),
		Entry("units that were cut elsewhere", units("ab", "c"), units("a", "bc"), domain.Repeated{Units: 0, Bytes: 1, Total: 3}, false),
		Entry("a unit that fell away", units("a", "b"), units("a"), domain.Repeated{Units: 1, Bytes: 1, Total: 2}, false),
		Entry("two units that fell away", units("a", "b", "c"), units("a"), domain.Repeated{Units: 1, Bytes: 1, Total: 3}, false),
		Entry("a unit in between", units("a", "b"), units("a", "x", "b"), domain.Repeated{Units: 1, Bytes: 1, Total: 2}, false),
		Entry("nothing of something", units("a"), nil, domain.Repeated{Total: 1}, false),
		Entry("all of nothing", nil, units("a"), domain.Repeated{}, true),
	)
})
