package test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openai/openai-go/v3"

	"sessiondate/adapters/anthropicmessages"
	"sessiondate/adapters/memory"
	"sessiondate/adapters/openaichat"
	"sessiondate/adapters/openairesponses"
	"sessiondate/app"
	"sessiondate/domain"
)

// A cachedProtocol is a protocol in which a prompt is sent and cached.
type cachedProtocol struct {
	name  string
	body  func(domain.Prompt) ([]byte, error)
	order []string
}

func cachedProtocols() []cachedProtocol {
	return []cachedProtocol{
		{"chat completions", openaichat.New(openai.NewClient(), "m").Body, openaichat.CacheOrder()},
		{"responses", openairesponses.New(openai.NewClient(), "m").Body, openairesponses.CacheOrder()},
		{"Anthropic messages", anthropicmessages.New(anthropic.NewClient(), "m", 1000).Body, anthropicmessages.CacheOrder()},
	}
}

// send returns the body of a prompt.
func (p cachedProtocol) send(prompt domain.Prompt) []byte {
	GinkgoHelper()
	body, err := p.body(prompt)
	Expect(err).NotTo(HaveOccurred(), p.name)
	return body
}

// units returns the prefix units of a body.
func (p cachedProtocol) units(body []byte) []domain.PrefixUnit {
	GinkgoHelper()
	units, err := domain.PrefixUnits(body, p.order...)
	Expect(err).NotTo(HaveOccurred(), p.name)
	return units
}

// A randomSession is a session of complete turns.
type randomSession struct {
	messages []domain.Message
	// ends are the lengths of the history at which a turn is complete, so that a
	// request can be sent.
	ends    []int
	request app.PromptRequest
}

// A sessionMaker makes random sessions.
type sessionMaker struct {
	*rand.Rand
	// days are those on which messages may be stored.
	days []string
}

// newRandom returns a source of randomness that gives the same again when
// Ginkgo is given the same seed.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0)) }

// pick returns one of a list.
func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// createdAt returns a stored time, in no order, and sometimes none.
func (r sessionMaker) createdAt() string {
	if r.IntN(6) == 0 {
		return pick(r.Rand, "", "0000-00-00 00:00:00", "2026-02-30 10:00:01", "1791849001")
	}
	separator := pick(r.Rand, " ", "T")
	return fmt.Sprintf("%s%s%02d:%02d:%02d", pick(r.Rand, r.days...), separator, r.IntN(24), r.IntN(60), r.IntN(60))
}

// content puts a random content in a message.
func (r sessionMaker) content(m domain.Message) domain.Message {
	text := func() string {
		return pick(r.Rand, "", "Hello.", "早上好。", "a < b & c > d", "\"quoted\" \\ \n\tlines", "<date-change>2030-01-01</date-change>",
			"<DATE-CHANGE lang=zh>", "<", "date-change>", "<system-notice>low</system-notice>", "  ", "\u2028")
	}
	if r.IntN(3) > 0 {
		m.Text = text()
		return m
	}
	m.Parts = []domain.Part{}
	for range r.IntN(4) {
		p := domain.Part{Text: text()}
		if m.Role != domain.RoleAssistant && r.IntN(3) == 0 {
			p = domain.Part{Image: pick(r.Rand, domain.Image{URL: "https://example.com/a?b=1&c=2"}, domain.Image{MediaType: "image/png", Data: "aGk="})}
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// session makes a session of at most 40 messages.
func (r sessionMaker) session() randomSession {
	var s randomSession
	add := func(m domain.Message) {
		m.ID, m.CreatedAt = fmt.Sprintf("message-%d", 1000+len(s.messages)), r.createdAt()
		s.messages = append(s.messages, r.content(m))
	}
	for size := 1 + r.IntN(36); len(s.messages) < size; {
		switch r.IntN(5) {
		case 0, 1, 2:
			add(domain.Message{Role: domain.RoleUser})
		case 3:
			add(domain.Message{Role: domain.RoleAssistant})
		default:
			m := domain.Message{Role: domain.RoleAssistant}
			for i := range 1 + r.IntN(3) {
				m.ToolCalls = append(m.ToolCalls, domain.ToolCall{
					ID: fmt.Sprintf("call-%d-%d", len(s.messages), i), Name: "read",
					Arguments: pick(r.Rand, `{}`, `{"z":1,"a":"<"}`, ``, `{"broken`),
				})
			}
			add(m)
			for _, c := range m.ToolCalls {
				add(domain.Message{Role: domain.RoleTool, ToolCallID: c.ID, ToolFailed: r.IntN(4) == 0})
			}
		}
		s.ends = append(s.ends, len(s.messages))
	}
	s.request = app.PromptRequest{
		SessionID: session,
		Sections:  []domain.Section{{Name: "persona", Text: "You are helpful."}, {Name: domain.CurrentDateSection}, {Name: "guide", Text: "Be brief."}},
		Tools:     []domain.Tool{{Name: "read", Description: "Reads <files>.", Schema: `{"type":"object","properties":{"z":{},"a":{}}}`}},
		Wording:   domain.Wording{Language: pick(r.Rand, domain.Chinese, domain.English), NoShell: r.IntN(2) == 0},
	}
	return s
}

// firstDated returns the length of the history up to its first dated user
// message, and one more than all if there is none.
func (s randomSession) firstDated() int {
	i := slices.IndexFunc(s.messages, func(m domain.Message) bool {
		_, err := domain.StoredDate(m.CreatedAt)
		return m.Role == domain.RoleUser && err == nil
	})
	if i < 0 {
		return len(s.messages) + 1
	}
	return i + 1
}

// prompt builds the prompt of the session's first n messages with an engine of
// its own, as after a restart.
func (s randomSession) prompt(ctx SpecContext, n int, notices bool) app.BuiltPrompt {
	GinkgoHelper()
	var stored memory.Sessions
	stored.Add(session, s.messages[:n]...)
	e := engineOver(sharedHistory(s.messages[:n]), nil)
	if notices {
		e = engineOver(sharedHistory(s.messages[:n]), &stored)
	}
	built, err := e.Build(ctx, s.request)
	Expect(err).NotTo(HaveOccurred())
	return built
}

// randomSessions is how many sessions a property is tried on.
const randomSessions = 200

// anyDay are the days on which the messages of random sessions are stored.
var anyDay = []string{"2026-10-12", "2026-10-13", "2026-10-14", "2026-12-31", "2027-01-01", "2025-02-28"}

var _ = Describe("The prefix of a prompt", func() {
	It("R14: is repeated byte for byte by every continuation, in every protocol, across a restart", func(ctx SpecContext) {
		r, protocols := sessionMaker{newRandom(), anyDay}, cachedProtocols()
		crossings, compared := 0, 0
		for range randomSessions {
			s := r.session()
			before := deepCopy(s.messages)
			// Until a user message is dated the anchor is the clock's (R2), and the
			// prefix is promised from then on. It is enough to compare each history
			// with the next longer one: repeating is transitive.
			ends := slices.DeleteFunc(slices.Clone(s.ends), func(n int) bool { return n < s.firstDated() })
			earlier := make([][]domain.PrefixUnit, len(protocols))
			for step, n := range ends {
				built := s.prompt(ctx, n, true)
				crossings += len(built.Dates.Notices)
				for i, p := range protocols {
					units := p.units(p.send(built.Prompt))
					if step > 0 {
						Expect(len(units)).To(BeNumerically(">=", len(earlier[i])))
						for j, u := range earlier[i] {
							if u.Name != units[j].Name || string(u.Bytes) != string(units[j].Bytes) {
								Fail(fmt.Sprintf("%s: unit %s of %d messages is\n%s\nand of %d messages it is\n%s",
									p.name, u.Name, ends[step-1], u.Bytes, n, units[j].Bytes))
							}
						}
						Expect(domain.Repeats(earlier[i], units).Units).To(Equal(len(earlier[i])))
						compared++
					}
					earlier[i] = units
				}
			}
			Expect(reflect.DeepEqual(s.messages, before)).To(BeTrue(), "the history was written to")
		}
		Expect(crossings).To(BeNumerically(">", randomSessions))
		Expect(compared).To(BeNumerically(">", randomSessions))
	})

	It("R14: is the same in every process, and the second time in one", func(ctx SpecContext) {
		r, protocols := sessionMaker{newRandom(), anyDay}, cachedProtocols()
		for range randomSessions {
			s := r.session()
			n := len(s.messages)
			first, second := s.prompt(ctx, n, true), s.prompt(ctx, n, true)
			Expect(second).To(Equal(first))
			for _, p := range protocols {
				body := p.send(first.Prompt)
				Expect(string(p.send(second.Prompt))).To(Equal(string(body)))
				Expect(string(p.send(first.Prompt))).To(Equal(string(body)))
			}
		}
	})

	It("R14: has its notices at the same messages in every continuation behind one boundary", func(ctx SpecContext) {
		r := sessionMaker{newRandom(), anyDay}
		told := 0
		for range randomSessions {
			s := r.session()
			boundary := r.IntN(len(s.messages))
			var earlier app.BuiltPrompt
			for n := boundary; n <= len(s.messages); n++ {
				var stored memory.Sessions
				stored.Add(session, s.messages[:n]...)
				built := resolve(ctx, &stored, windowOf(s.messages[boundary:n]...))
				if source := earlier.Dates.Anchor.Source; source != "" && source != domain.FromClock {
					Expect(built.Dates.Anchor).To(Equal(earlier.Dates.Anchor))
					Expect(built.Dates.Section).To(Equal(earlier.Dates.Section))
				}
				if n := len(earlier.Dates.Notices); n > 0 {
					Expect(len(built.Dates.Notices)).To(BeNumerically(">=", n))
					Expect(built.Dates.Notices[:n]).To(Equal(earlier.Dates.Notices))
				}
				earlier = built
			}
			told += len(earlier.Dates.Notices)
		}
		Expect(told).To(BeNumerically(">", randomSessions))
	})

	It("R17: is on one day that of a pipeline without notices, byte for byte", func(ctx SpecContext) {
		r, protocols := newRandom(), cachedProtocols()
		for range randomSessions {
			s := sessionMaker{r, []string{pick(r, anyDay...)}}.session()
			for _, n := range []int{len(s.messages) / 2, len(s.messages)} {
				with, without := s.prompt(ctx, n, true), s.prompt(ctx, n, false)
				Expect(with.Dates.Notices).To(BeEmpty())
				for _, p := range protocols {
					Expect(string(p.send(with.Prompt))).To(Equal(string(p.send(without.Prompt))))
				}
			}
		}
	})

	It("R17: differs across days from that of a pipeline without notices by the notices alone", func(ctx SpecContext) {
		r, protocols := sessionMaker{newRandom(), anyDay}, cachedProtocols()
		crossed := 0
		for range randomSessions {
			s := r.session()
			with, without := s.prompt(ctx, len(s.messages), true), s.prompt(ctx, len(s.messages), false)
			for _, n := range with.Dates.Notices {
				m := &without.Prompt.Messages[n.Index]
				if m.Parts == nil {
					m.Text = n.Text + "\n\n" + m.Text
				} else {
					m.Parts = slices.Insert(slices.Clone(m.Parts), 0, domain.Part{Text: n.Text})
				}
				crossed++
			}
			for _, p := range protocols {
				Expect(string(p.send(with.Prompt))).To(Equal(string(p.send(without.Prompt))))
			}
		}
		Expect(crossed).To(BeNumerically(">", randomSessions))
	})

	It("R16: holds no stored time and no message id", func(ctx SpecContext) {
		r, protocols := sessionMaker{newRandom(), anyDay}, cachedProtocols()
		for range randomSessions {
			s := r.session()
			prompt := s.prompt(ctx, len(s.messages), true).Prompt
			for _, p := range protocols {
				body := string(p.send(prompt))
				Expect(body).NotTo(ContainSubstring("message-1"))
				for _, m := range s.messages {
					if m.CreatedAt != "" && strings.Contains(body, m.CreatedAt) {
						Fail(fmt.Sprintf("%s: the stored time %q is in %s", p.name, m.CreatedAt, body))
					}
				}
			}
		}
	})

	It("R13: holds as many tags in user messages as there are notices", func(ctx SpecContext) {
		r := sessionMaker{newRandom(), anyDay}
		for range randomSessions {
			s := r.session()
			built := s.prompt(ctx, len(s.messages), true)
			tags := 0
			for _, m := range built.Prompt.Messages {
				if m.Role != domain.RoleUser {
					continue
				}
				text := m.Text
				for _, p := range m.Parts {
					if p.IsImage() {
						text += "\x00"
					}
					text += p.Text
				}
				tags += strings.Count(strings.ToLower(text), "<date-change")
			}
			Expect(tags).To(Equal(len(built.Dates.Notices)))
		}
	})
})
