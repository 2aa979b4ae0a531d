package domain_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/domain"
)

// quickCommands are the texts of the markers that are known, as they are spelled.
var quickCommands = map[string]string{
	"$skill$":         "SKILL",
	"$a$":             "A",
	"$b$":             "B",
	"$技能$":            "技",
	"$x-1_y.z:w/v$":   "ALL",
	"$quotes$":        "$skill$ and #{run}#",
	"$quotes-itself$": "$quotes-itself$",
	"$opens$":         "$",
	"$nothing$":       "",
	"#{run}#":         "RUN",
	"#{a}#":           "command a",
	"#{发布}#":          "发",
	"#{nothing}#":     "",
}

// lookUp looks a marker up in quickCommands.
func lookUp(m domain.Marker) (text string, known bool, err error) {
	text, known = quickCommands[m.String()]
	return text, known, nil
}

var _ = Describe("Marker", func() {
	DescribeTable("is spelled as it stands in a message",
		func(m domain.Marker, want string) { Expect(m.String()).To(Equal(want)) },
		Entry("a skill", domain.Marker{Kind: domain.SkillMarker, Name: "skill"}, "$skill$"),
		Entry("a command", domain.Marker{Kind: domain.CommandMarker, Name: "run"}, "#{run}#"),
		Entry("a skill in Chinese", domain.Marker{Kind: domain.SkillMarker, Name: "技能"}, "$技能$"),
		Entry("a command in Chinese", domain.Marker{Kind: domain.CommandMarker, Name: "发布"}, "#{发布}#"),
	)
})

var _ = Describe("Expand", func() {
	DescribeTable("R9: replaces what is known and nothing else",
		func(text, want string) {
			m := fullMessage()
			m.Text = text
			wanted := fullMessage()
			wanted.Text = want
			Expect(m.Expand(lookUp)).To(Equal(wanted))

			m = fullMessage()
			m.Parts = parts(text, "IMG", "", text)
			wanted = fullMessage()
			wanted.Parts = parts(want, "IMG", "", want)
			Expect(m.Expand(lookUp)).To(Equal(wanted))
		},
		Entry("no text", "", ""),
		Entry("no marker", "Good morning.", "Good morning."),
		Entry("a skill", "use $skill$ now", "use SKILL now"),
		Entry("a command", "please #{run}# it", "please RUN it"),
		Entry("a skill that is the text", "$skill$", "SKILL"),
		Entry("a command that is the text", "#{run}#", "RUN"),
		Entry("every one", "$skill$ #{run}# $skill$", "SKILL RUN SKILL"),
		Entry("a skill and a command of one name, each with its own text", "$a$ #{a}#", "A command a"),
		Entry("a name of every kind of character", "$x-1_y.z:w/v$", "ALL"),
		Entry("a skill in Chinese", "请用$技能$处理", "请用技处理"),
		Entry("a command in Chinese", "请#{发布}#吧", "请发吧"),

		Entry("an unknown skill stays", "use $other$ now", "use $other$ now"),
		Entry("an unknown command stays", "please #{other}# it", "please #{other}# it"),
		Entry("an unknown one stays beside a known one", "$other$ $skill$ #{other}#", "$other$ SKILL #{other}#"),
		Entry("a name in upper case is another", "$SKILL$", "$SKILL$"),
		Entry("a skill is no command", "#{skill}#", "#{skill}#"),
		Entry("a command is no skill", "$run$", "$run$"),

		Entry("what was expanded is not expanded again", "$quotes$", "$skill$ and #{run}#"),
		Entry("also where it is the marker itself", "$quotes-itself$", "$quotes-itself$"),
		Entry("also where it makes a marker of what follows", "$opens$skill$", "$skill$"),
		Entry("also where it makes a marker with the next one", "$opens$skill$opens$", "$skill$"),

		Entry("an empty text takes a skill away", "a $nothing$b", "a b"),
		Entry("an empty text takes a command away", "a #{nothing}#b", "a b"),
		Entry("an empty text leaves nothing of a skill alone", "$nothing$", ""),
		Entry("what an empty text brings together is no marker", "$ski$nothing$ll$", "$skill$"),

		Entry("a $ that ends an unknown skill may begin a known one", "$5$skill$", "$5SKILL"),
		Entry("a $ that ended a known skill begins no other", "$a$b$", "Ab$"),
		Entry("a $ that ended a known skill, before an amount", "$skill$5$", "SKILL5$"),
		Entry("skills side by side", "$a$$b$", "AB"),
		Entry("an unknown skill beside a known one", "$no$$b$", "$no$B"),
		Entry("commands side by side", "#{a}##{run}#", "command aRUN"),
		Entry("a # that ended a known command begins no other", "#{run}#{run}#", "RUN{run}#"),
		Entry("a # that ends an unknown command may begin a known one", "#{no}#{run}#", "#{no}RUN"),
		Entry("a skill beside a command", "$a$#{run}#$b$", "ARUNB"),
		Entry("a skill inside a command", "#{$skill$}#", "#{SKILL}#"),
		Entry("a command inside a skill", "$#{run}#$", "$RUN$"),
		Entry("a skill between more $", "$$skill$$", "$SKILL$"),
		Entry("a command between more #", "##{run}##", "#RUN#"),

		Entry("$$ is no marker", "$$", "$$"),
		Entry("$$$ is no marker", "$$$", "$$$"),
		Entry("#{}# is no marker", "#{}#", "#{}#"),
		Entry("$ alone", "$", "$"),
		Entry("# alone", "#", "#"),
		Entry("#{ alone", "#{", "#{"),
		Entry("a skill that is not closed", "$skill", "$skill"),
		Entry("a skill that is not opened", "skill$", "skill$"),
		Entry("a skill that # closes", "$skill#", "$skill#"),
		Entry("a command that is not closed", "#{run", "#{run"),
		Entry("a command that is closed by half", "#{run}", "#{run}"),
		Entry("a command that is closed by the other half", "#{run#", "#{run#"),
		Entry("a command that is opened by half", "#run}#", "#run}#"),
		Entry("a command that is opened by the other half", "{run}#", "{run}#"),
		Entry("a command that $ opens", "${run}#", "${run}#"),
		Entry("one that is not closed does not hide the next", "$skill $a$", "$skill A"),
		Entry("one that is not closed does not hide the next command", "#{run #{run}#", "#{run RUN"),
		Entry("a space in the name", "$my skill$", "$my skill$"),
		Entry("a space around the name", "$ skill $", "$ skill $"),
		Entry("a line break in the name", "$ski\nll$", "$ski\nll$"),
		Entry("amounts of money", "from $5 to $6", "from $5 to $6"),
		Entry("shell variables", "echo $HOME/bin:$PATH", "echo $HOME/bin:$PATH"),
		Entry("Markdown headings", "# a\n## b", "# a\n## b"),
		Entry("fullwidth characters", "＄skill＄ ＃｛run｝＃", "＄skill＄ ＃｛run｝＃"),
		Entry("bytes that are no UTF-8 stay and end a name", "\xff$a\xff$a$\xff", "\xff$a\xffA\xff"),
	)

	It("R9: keeps parts apart: no marker spans two", func() {
		m := domain.Message{Role: domain.RoleUser, Parts: parts("$sk", "ill$", "$skill$")}
		Expect(m.Expand(lookUp)).To(Equal(domain.Message{Role: domain.RoleUser, Parts: parts("$sk", "ill$", "SKILL")}))
	})

	It("R9: keeps string and parts apart, empty ones included", func() {
		Expect(domain.Message{Role: domain.RoleUser}.Expand(lookUp)).To(Equal(domain.Message{Role: domain.RoleUser}))
		empty := domain.Message{Role: domain.RoleUser, Parts: parts()}
		got, err := empty.Expand(lookUp)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Parts).To(Equal([]domain.Part{}))
	})

	It("looks up each marker as it stands, from left to right", func() {
		var asked []domain.Marker
		m := domain.Message{Role: domain.RoleUser, Parts: parts("$5$skill$ #{发布}#", "IMG", "$5$")}
		_, err := m.Expand(func(m domain.Marker) (string, bool, error) {
			asked = append(asked, m)
			return lookUp(m)
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(asked).To(Equal([]domain.Marker{
			{Kind: domain.SkillMarker, Name: "5"},
			{Kind: domain.SkillMarker, Name: "skill"},
			{Kind: domain.CommandMarker, Name: "发布"},
			{Kind: domain.SkillMarker, Name: "5"},
		}))
	})

	DescribeTable("looks nothing up where there is no marker",
		func(text string) {
			m := domain.Message{Role: domain.RoleUser, Text: text}
			Expect(m.Expand(func(m domain.Marker) (string, bool, error) {
				return "", false, errors.New("was asked for " + m.String())
			})).To(Equal(m))
		},
		Entry("no text", ""),
		Entry("$$", "$$"),
		Entry("no name", "#{}#"),
		Entry("an emoji for a name", "$😀$"),
		Entry("Chinese punctuation in the name", "$技，能$"),
		Entry("a comma in the name", "$a,b$"),
		Entry("a brace in a skill's name", "${a}$"),
		Entry("bytes that are no UTF-8 in the name", "$a\xff$"),
	)

	It("writes to nothing of the message it came from, spare room included", func() {
		room := append(make([]domain.Part, 0, 8), parts("$skill$", "IMG", "#{run}#")...)
		m := fullMessage()
		m.Parts = room
		before := m.Clone()
		got, err := m.Expand(lookUp)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Parts).To(Equal(parts("SKILL", "IMG", "RUN")))
		Expect(m).To(Equal(before))
		Expect(room[:4][3]).To(Equal(domain.Part{}))
		got.Parts[1].Image.URL = "other"
		Expect(m).To(Equal(before))
	})

	DescribeTable("fails as the lookup does, and asks no further",
		func(m domain.Message) {
			m.Role = domain.RoleUser
			before := m.Clone()
			broken := errors.New("no such table")
			asked := 0
			_, err := m.Expand(func(marker domain.Marker) (string, bool, error) {
				asked++
				if marker.Name == "broken" {
					return "half", true, broken
				}
				return lookUp(marker)
			})
			Expect(err).To(MatchError(broken))
			Expect(asked).To(Equal(2))
			Expect(m).To(Equal(before))
		},
		Entry("in a string", domain.Message{Text: "$skill$ $broken$ #{run}#"}),
		Entry("in parts", domain.Message{Parts: parts("$skill$", "IMG", "$broken$ #{run}#", "#{run}#")}),
	)

	DescribeTable("leaves messages of other roles alone",
		func(role domain.Role) {
			for _, m := range []domain.Message{
				{Role: role, Text: "$skill$", ToolCalls: []domain.ToolCall{{Arguments: `"$skill$"`}}},
				{Role: role, Parts: parts("#{run}#")},
			} {
				Expect(m.Expand(lookUp)).To(Equal(m))
			}
		},
		Entry("an assistant's", domain.RoleAssistant),
		Entry("a tool's", domain.RoleTool),
		Entry("none", domain.Role(0)),
	)
})
