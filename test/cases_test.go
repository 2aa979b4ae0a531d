package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openai/openai-go/v3"

	"sessiondate"
	"sessiondate/adapters/anthropicmessages"
	"sessiondate/adapters/memory"
	"sessiondate/adapters/openaichat"
	"sessiondate/adapters/openairesponses"
	"sessiondate/adapters/recording"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// The specs in the files cases_*_test.go are named after public reports of
// agents with a wrong date or a lost cache. What is asserted, is asserted of the
// bodies of requests in each protocol, wherever a body can show it.

// A caseWire is a protocol and how its bodies are made.
type caseWire struct {
	name       string
	cacheOrder []string
	// system is how many prefix units the system prompt of build has: three
	// sections, which only Anthropic's protocol keeps apart.
	system int
	body   func(domain.Prompt) ([]byte, error)
}

func caseWires() []caseWire {
	chat := openaichat.New(openai.NewClient(), "gpt-5.6")
	responses := openairesponses.New(openai.NewClient(), "gpt-5.6")
	messages := anthropicmessages.New(anthropic.NewClient(anthropicoption.WithoutEnvironmentDefaults()), "claude-opus-5", 8192)
	return []caseWire{
		{"chat", openaichat.CacheOrder(), 1, chat.Body},
		{"responses", openairesponses.CacheOrder(), 1, responses.Body},
		{"messages", anthropicmessages.CacheOrder(), 3, messages.Body},
	}
}

// request returns the body of the request for a prompt.
func (w caseWire) request(p domain.Prompt) []byte {
	GinkgoHelper()
	body, err := w.body(p)
	Expect(err).NotTo(HaveOccurred(), w.name)
	return body
}

// units returns the prefix units of a body.
func (w caseWire) units(body []byte) []domain.PrefixUnit {
	GinkgoHelper()
	units, err := domain.PrefixUnits(body, w.cacheOrder...)
	Expect(err).NotTo(HaveOccurred(), w.name)
	return units
}

// A caseBody is what a spec needs to know of a body, in any protocol.
type caseBody struct {
	system []string
	items  []caseItem
}

// A caseItem is an element of a body's messages or input.
type caseItem struct {
	role string
	// shape is "string", "list" or, of an item without content, "none".
	shape  string
	blocks []caseBlock
	raw    string
}

// A caseBlock is a block of an item's content. A string is one block.
type caseBlock struct {
	// kind is "text", "image", or what the protocol calls it.
	kind, text, raw string
}

// decodeBody reads a body of any of the protocols.
func decodeBody(body []byte) caseBody {
	GinkgoHelper()
	var fields struct {
		Instructions, System json.RawMessage
		Messages, Input      []json.RawMessage
	}
	Expect(json.Unmarshal(body, &fields)).To(Succeed())
	var b caseBody
	for _, system := range []json.RawMessage{fields.Instructions, fields.System} {
		_, blocks := decodeContent(system)
		for _, block := range blocks {
			b.system = append(b.system, block.text)
		}
	}
	for i, raw := range append(fields.Messages, fields.Input...) {
		var item struct {
			Role, Type string
			Content    json.RawMessage
		}
		Expect(json.Unmarshal(raw, &item)).To(Succeed())
		shape, blocks := decodeContent(item.Content)
		if i == 0 && item.Role == "system" {
			Expect(blocks).To(HaveLen(1))
			b.system = append(b.system, blocks[0].text)
			continue
		}
		if item.Role == "" {
			item.Role = item.Type
		}
		b.items = append(b.items, caseItem{item.Role, shape, blocks, string(raw)})
	}
	return b
}

func decodeContent(content json.RawMessage) (shape string, blocks []caseBlock) {
	GinkgoHelper()
	switch {
	case len(content) == 0 || string(content) == "null":
		return "none", nil
	case content[0] == '"':
		var text string
		Expect(json.Unmarshal(content, &text)).To(Succeed())
		return "string", []caseBlock{{"text", text, string(content)}}
	}
	var list []json.RawMessage
	Expect(json.Unmarshal(content, &list)).To(Succeed())
	for _, raw := range list {
		var block struct{ Type, Text string }
		Expect(json.Unmarshal(raw, &block)).To(Succeed())
		switch block.Type {
		case "input_text":
			block.Type = "text"
		case "image_url", "input_image":
			block.Type = "image"
		}
		blocks = append(blocks, caseBlock{block.Type, block.Text, string(raw)})
	}
	return "list", blocks
}

// isUser reports whether i is a message of the user. Anthropic's protocol has
// tool results in messages of that role, too.
func (i caseItem) isUser() bool {
	return i.role == "user" && (len(i.blocks) == 0 || i.blocks[0].kind != "tool_result")
}

// users returns the user's messages.
func (b caseBody) users() []caseItem {
	var users []caseItem
	for _, i := range b.items {
		if i.isUser() {
			users = append(users, i)
		}
	}
	return users
}

// roles returns the role of each item.
func (b caseBody) roles() []string {
	var roles []string
	for _, i := range b.items {
		roles = append(roles, i.role)
	}
	return roles
}

// kinds returns the kind of each block.
func (i caseItem) kinds() []string {
	var kinds []string
	for _, b := range i.blocks {
		kinds = append(kinds, b.kind)
	}
	return kinds
}

// text returns all text of a user's message.
func (i caseItem) text() string {
	var text strings.Builder
	for _, b := range i.blocks {
		text.WriteString(b.text)
	}
	return text.String()
}

// genuine is a notice as it stands in front of a user's message, word for word
// (R5).
var genuine = regexp.MustCompile(`^<date-change>系统提示:当前日期已变更为 (\d{4}-\d{2}-\d{2})\(星期[一二三四五六日]\)。` +
	`这是系统注入的提示,不是用户说的话;需要精确到时分秒请用 shell 执行 date。</date-change>(?:\n\n|$)`)

// told returns the dates that a body tells in notices, "U2 2026-06-18" for one
// in front of the second message of the user. A tag that stands anywhere else or
// says anything else is told of, too.
func (b caseBody) told() []string {
	told := []string{}
	n := 0
	for _, i := range b.items {
		if !i.isUser() {
			// Not the whole tag: the SDKs do not agree on how < is spelled.
			if strings.Contains(i.raw, "date-change") {
				told = append(told, "a tag in an item of role "+i.role)
			}
			continue
		}
		n++
		for k, block := range i.blocks {
			text := block.text
			if found := genuine.FindStringSubmatch(text); k == 0 && found != nil {
				told = append(told, fmt.Sprintf("U%d %s", n, found[1]))
				text = strings.TrimPrefix(text, found[0])
			}
			if strings.Contains(text, "<date-change") || strings.Contains(text, "</date-change") {
				told = append(told, fmt.Sprintf("a tag inside of U%d: %s", n, text))
			}
		}
	}
	return told
}

// dateSpelled finds dates in a text.
var dateSpelled = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// stated returns every date that the system prompt of a body spells.
func (b caseBody) stated() []string {
	return dateSpelled.FindAllString(strings.Join(b.system, "\n"), -1)
}

// expectDates expects the request for a prompt to state the date system in its
// system prompt, and no other, and to have the notices told, and no others, in
// each protocol.
func expectDates(b app.BuiltPrompt, system string, told ...string) {
	GinkgoHelper()
	for _, w := range caseWires() {
		expectBodyDates(w.request(b.Prompt), w.name, system, told...)
	}
}

// expectBodyDates is expectDates of one body.
func expectBodyDates(body []byte, protocol, system string, told ...string) {
	GinkgoHelper()
	decoded := decodeBody(body)
	Expect(decoded.stated()).To(Equal([]string{system}), protocol)
	Expect(decoded.told()).To(Equal(append([]string{}, told...)), protocol)
}

// expectPrefix expects each request to be repeated, from its first byte to its
// last, by the one after it, in each protocol. The counts are how many messages
// each request has, each of which must be one unit.
func expectPrefix(requests []app.BuiltPrompt, counts ...int) {
	GinkgoHelper()
	Expect(requests).To(HaveLen(len(counts)))
	for _, w := range caseWires() {
		var earlier []domain.PrefixUnit
		for k, r := range requests {
			units := w.units(w.request(r.Prompt))
			Expect(units).To(HaveLen(w.system+counts[k]), "%s, request %d", w.name, k+1)
			if k > 0 {
				repeated := domain.Repeats(earlier, units)
				Expect(repeated.Units).To(Equal(w.system+counts[k-1]), "%s, request %d", w.name, k+1)
				Expect(repeated.Whole()).To(BeTrue(), "%s, request %d: %+v", w.name, k+1, repeated)
			}
			earlier = units
		}
	}
}

// bodies returns the body of the request for a prompt in each protocol.
func bodies(b app.BuiltPrompt) map[string]string {
	GinkgoHelper()
	all := make(map[string]string)
	for _, w := range caseWires() {
		all[w.name] = string(w.request(b.Prompt))
	}
	return all
}

// dialogue returns a session in which the user speaks at each of the given
// times and is answered at once. It ends with the user's last message, which is
// the state in which a request is sent.
func dialogue(times ...string) []domain.Message {
	var messages []domain.Message
	for i, t := range times {
		if i > 0 {
			messages = append(messages, assistant(fmt.Sprint(2*i), times[i-1], fmt.Sprintf("Answer %d.", i)))
		}
		messages = append(messages, user(fmt.Sprint(2*i+1), t, fmt.Sprintf("Question %d.", i+1)))
	}
	return messages
}

// requestsOf plays a session and returns the request of each message of the
// user: R(1), R(2) and so on.
func requestsOf(ctx context.Context, messages ...domain.Message) []app.BuiltPrompt {
	GinkgoHelper()
	var sessions memory.Sessions
	var requests []app.BuiltPrompt
	for _, m := range messages {
		sessions.Add(session, m)
		if m.Role == domain.RoleUser {
			requests = append(requests, build(ctx, engine(&sessions)))
		}
	}
	return requests
}

// engineAt returns a prompt engine over sessions in memory with a clock of its
// own.
func engineAt(sessions *memory.Sessions, now func() time.Time) *app.PromptEngine {
	dates := app.NewSessionDate(app.Options{Stamps: sessions, Now: now})
	return app.NewPromptEngine(app.PromptOptions{Dates: dates, History: sessions, Sink: &recording.Sink{}})
}

// storeEngine returns a prompt engine over a SQL store, wired as hosts have it,
// with a clock that stands at a time in Shanghai.
func storeEngine(db *sqlx.DB, now string) *app.PromptEngine {
	GinkgoHelper()
	return sessiondate.New(sessiondate.Host{DB: db, History: sqlhistory.New(db), Sink: &recording.Sink{}, Now: clockAt(now)})
}

// resume is a process that opens a SQLite file, adds messages to the session,
// builds its prompt and ends. Nothing of it is left but the file.
func resume(ctx context.Context, file, now string, added ...domain.Message) app.BuiltPrompt {
	GinkgoHelper()
	db := openSQLiteFile(file)
	_, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite)
	Expect(err).NotTo(HaveOccurred())
	Expect(sqlhistory.New(db).Append(ctx, session, added...)).To(Succeed())
	built := build(ctx, storeEngine(db, now))
	Expect(db.Close()).To(Succeed())
	return built
}

// newStore returns an empty SQLite store.
func newStore(ctx context.Context) (*sqlx.DB, *sqlhistory.Store) {
	GinkgoHelper()
	db := openSQLite()
	_, err := db.ExecContext(ctx, sqlhistory.SchemaSQLite)
	Expect(err).NotTo(HaveOccurred())
	return db, sqlhistory.New(db)
}

// tableRows returns every column of every row of the table message.
func tableRows(ctx context.Context, db *sqlx.DB) [][]any {
	GinkgoHelper()
	rows, err := db.QueryxContext(ctx, "SELECT * FROM message ORDER BY id")
	Expect(err).NotTo(HaveOccurred())
	defer rows.Close()
	table := [][]any{}
	for rows.Next() {
		row, err := rows.SliceScan()
		Expect(err).NotTo(HaveOccurred())
		table = append(table, row)
	}
	Expect(rows.Err()).NotTo(HaveOccurred())
	return table
}

// expectUntagged expects that nothing in the table, and nothing that the
// histories read from it, holds a tag or a trace of one.
func expectUntagged(ctx context.Context, rows [][]any, history ports.History) {
	GinkgoHelper()
	Expect(rows).NotTo(BeEmpty())
	Expect(fmt.Sprintf("%s", rows)).NotTo(ContainSubstring("date-change"))
	messages, err := messagesOf(ctx, history, session)
	Expect(err).NotTo(HaveOccurred())
	Expect(messages).NotTo(BeEmpty())
	Expect(fmt.Sprintf("%+v", messages)).NotTo(ContainSubstring("date-change"))
}

var _ = Describe("The specs of the cases", func() {
	// They rest on what told and expectPrefix find. Were those blind, no case
	// could fail.
	It("see a tag that is inside of a text, behind one, in another role or worded otherwise", func() {
		notice := domain.Wording{}.Notice(date("2026-06-18"))
		for _, w := range caseWires() {
			body := decodeBody(w.request(domain.Prompt{Messages: []domain.Message{
				user("1", "", notice+"\n\nHello."),
				assistant("2", "", notice),
				user("3", "", "Hello. "+notice),
				user("4", "", notice+"Hello."),
				user("5", "", domain.Wording{Language: domain.English}.Notice(date("2026-06-18"))),
				{ID: "6", Role: domain.RoleUser, Parts: []domain.Part{{Text: notice}, {Text: notice}}},
			}}))
			Expect(body.told()).To(HaveExactElements(
				"U1 2026-06-18", "a tag in an item of role assistant", HavePrefix("a tag inside of U2"),
				HavePrefix("a tag inside of U3"), HavePrefix("a tag inside of U4"),
				"U5 2026-06-18", HavePrefix("a tag inside of U5")), w.name)
		}
	})

	It("see a message that changed between two requests", func(ctx SpecContext) {
		changed := requestsOf(ctx, dialogue("2026-06-17 23:50:00", "2026-06-18 00:05:00")...)
		changed[0].Prompt.Messages[0].Text += " "
		Expect(InterceptGomegaFailures(func() { expectPrefix(changed, 1, 3) })).NotTo(BeEmpty())
	})

	It("see a stored tag", func(ctx SpecContext) {
		db, store := newStore(ctx)
		Expect(store.Append(ctx, session, user("", "2026-06-18 00:05:00", domain.Wording{}.Notice(date("2026-06-18"))))).To(Succeed())
		rows := tableRows(ctx, db)
		Expect(bytes.Contains(fmt.Append(nil, rows), []byte("<date-change>"))).To(BeTrue())
		Expect(InterceptGomegaFailures(func() { expectUntagged(ctx, rows, store) })).NotTo(BeEmpty())
	})
})
