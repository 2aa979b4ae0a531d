package test

import (
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/app"
	"sessiondate/domain"
)

// Cases about a date that is stale or lost, about what a tag reads like, and
// about who sees it.

var _ = Describe("Case A06: a session that starts at midnight (anthropics/claude-code#24362)", func() {
	It("tells the new day once and keeps telling it in every later request", func(ctx SpecContext) {
		r := requestsOf(ctx, dialogue(
			"2026-02-08 23:55:00", "2026-02-09 00:02:00", "2026-02-09 09:00:00", "2026-02-09 09:30:00", "2026-02-09 23:59:59")...)
		expectDates(r[0], "2026-02-08")
		for _, later := range r[1:] {
			expectDates(later, "2026-02-08", "U2 2026-02-09")
		}
		expectPrefix(r, 1, 3, 5, 7, 9)
	})
})

var _ = Describe("Case A07: the day that a compaction takes away (anthropics/claude-code#71578)", func() {
	// The window is what a host shows after it compacted the session up to U6: a
	// summary, which is not stored, and what follows.
	window := func(shown ...app.WindowMessage) app.Window {
		return app.Window{SessionID: session, Messages: append([]app.WindowMessage{{Role: domain.RoleUser}}, shown...)}
	}
	var (
		u7 = app.WindowMessage{ID: "13", Role: domain.RoleUser, CreatedAt: "2026-06-26 11:00:00"}
		a7 = app.WindowMessage{ID: "14", Role: domain.RoleAssistant, CreatedAt: "2026-06-26 11:00:00"}
		u8 = app.WindowMessage{ID: "15", Role: domain.RoleUser, CreatedAt: "2026-06-26 11:10:00"}
	)

	It("tells the day again in front of the window's first message, and in every later request", func(ctx SpecContext) {
		_, store := newStore(ctx)
		stored := dialogue(
			"2026-06-25 20:00:00", "2026-06-25 20:10:00", "2026-06-25 20:20:00", "2026-06-25 20:30:00",
			"2026-06-26 09:00:00", "2026-06-26 10:00:00", "2026-06-26 11:00:00")
		Expect(store.Append(ctx, session, stored...)).To(Succeed())
		messages, err := messagesOf(ctx, store, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(messages[12]).To(Equal(domain.Message{ID: u7.ID, Role: u7.Role, CreatedAt: u7.CreatedAt, Text: "Question 7."}))
	})

	DescribeTable("states the first day in the system prompt and the real one in front of U7",
		func(ctx SpecContext, fifth string, shown []app.WindowMessage, want []string) {
			db, store := newStore(ctx)
			Expect(store.Append(ctx, session, dialogue(
				"2026-06-25 20:00:00", "2026-06-25 20:10:00", "2026-06-25 20:20:00", "2026-06-25 20:30:00",
				fifth, "2026-06-26 10:00:00", "2026-06-26 11:00:00", "2026-06-26 11:10:00")...)).To(Succeed())
			dates, err := app.NewSessionDate(app.Options{Stamps: sqlstamp.New(db), Now: clockAt("2031-01-01 12:00:00")}).
				Resolve(ctx, window(shown...))
			Expect(err).NotTo(HaveOccurred())
			Expect(dates.Anchor).To(Equal(domain.Anchor{Date: date("2026-06-25"), Source: domain.FromFirstUserMessage}))
			Expect(dateSpelled.FindAllString(dates.Section, -1)).To(Equal([]string{"2026-06-25"}))
			Expect(notices(app.BuiltPrompt{Dates: dates})).To(Equal(want))
		},
		// Index 1 is U7, behind the summary.
		Entry("in R(7)", "2026-06-26 09:00:00", []app.WindowMessage{u7}, []string{"1 2026-06-26"}),
		Entry("in R(8)", "2026-06-26 09:00:00", []app.WindowMessage{u7, a7, u8}, []string{"1 2026-06-26"}),
		Entry("in R(8) where only U6 stands between U7 and the first day", "2026-06-25 20:40:00",
			[]app.WindowMessage{u7, a7, u8}, []string{"1 2026-06-26"}),
	)

	It("tells nothing where the window is still on the first day", func(ctx SpecContext) {
		db, store := newStore(ctx)
		Expect(store.Append(ctx, session, dialogue("2026-06-25 20:00:00", "2026-06-25 20:10:00", "2026-06-25 20:20:00")...)).To(Succeed())
		dates, err := app.NewSessionDate(app.Options{Stamps: sqlstamp.New(db)}).
			Resolve(ctx, window(app.WindowMessage{ID: "5", Role: domain.RoleUser, CreatedAt: "2026-06-25 20:20:00"}))
		Expect(err).NotTo(HaveOccurred())
		Expect(dates.Anchor.Date).To(Equal(date("2026-06-25")))
		Expect(dates.Notices).To(BeEmpty())
	})
})

var _ = Describe("Case A08: deliverables that are stamped yesterday (NousResearch/hermes-agent#10421)", func() {
	It("tells the next morning after thirty messages of an evening", func(ctx SpecContext) {
		var times []string
		var counts []int
		for k := range 29 {
			// From 20:57 on, six minutes apart.
			minute := 57 + 6*k
			times = append(times, fmt.Sprintf("2026-09-06 %02d:%02d:00", 20+minute/60, minute%60))
		}
		times = append(times, "2026-09-06 23:58:00", "2026-09-07 09:56:00", "2026-09-07 10:02:00")
		for k := range times {
			counts = append(counts, 2*k+1)
		}
		r := requestsOf(ctx, dialogue(times...)...)
		Expect(r).To(HaveLen(32))
		expectDates(r[29], "2026-09-06")
		expectDates(r[30], "2026-09-06", "U31 2026-09-07")
		expectDates(r[31], "2026-09-06", "U31 2026-09-07")
		expectPrefix(r, counts...)
	})
})

var _ = Describe("Case A09: a runtime that is rebuilt for each turn (sudoprivacy/sudocode#135)", func() {
	It("tells the new day from the store alone", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "a09.db")
		// 2026-05-15T05:53Z and 2026-05-19T02:36Z, on the wall clock in Shanghai.
		story := dialogue("2026-05-15 13:53:00", "2026-05-19 10:36:00")
		r := []app.BuiltPrompt{
			resume(ctx, file, "2026-05-15 13:53:01", story[0]),
			resume(ctx, file, "2026-05-19 10:36:01", story[1:]...),
		}
		expectDates(r[0], "2026-05-15")
		expectDates(r[1], "2026-05-15", "U2 2026-05-19")
		Expect(bodies(resume(ctx, file, "2026-05-19 10:36:02"))).To(Equal(bodies(r[1])))
		expectPrefix(r, 1, 3)

		db := openSQLiteFile(file)
		expectUntagged(ctx, tableRows(ctx, db), sqlhistory.New(db))
	})
})

var _ = Describe("Case A10: a session that is resumed over two midnights (ghostwright/phantom#143)", func() {
	It("tells both days, and repeats the prefix over both resumes", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "a10.db")
		story := dialogue("2026-05-28 11:00:00", "2026-05-30 11:00:00", "2026-05-31 11:00:00")
		r := []app.BuiltPrompt{
			resume(ctx, file, "2026-05-28 11:00:01", story[0]),
			resume(ctx, file, "2026-05-30 11:00:01", story[1:3]...),
			resume(ctx, file, "2026-05-31 11:00:01", story[3:]...),
		}
		expectDates(r[0], "2026-05-28")
		expectDates(r[1], "2026-05-28", "U2 2026-05-30")
		expectDates(r[2], "2026-05-28", "U2 2026-05-30", "U3 2026-05-31")
		expectPrefix(r, 1, 3, 5)

		db := openSQLiteFile(file)
		expectUntagged(ctx, tableRows(ctx, db), sqlhistory.New(db))
	})
})

var _ = Describe("Case A15: a wording that is taken for an injection (anthropics/claude-code#77059)", func() {
	DescribeTable("states a fact and asks to hide nothing",
		func(w domain.Wording, fact string, forbidden ...string) {
			notice := strings.ToLower(w.Notice(date("2026-07-13")))
			Expect(notice).To(ContainSubstring(fact))
			for _, word := range forbidden {
				Expect(notice).NotTo(ContainSubstring(word))
			}
		},
		// R5 says in Chinese that these are not the user's words, so the word user
		// is in it.
		Entry("in Chinese", domain.Wording{}, "当前日期已变更为 2026-07-13(星期一)",
			"忽略", "无视", "不要", "不得", "请勿", "切勿", "禁止", "隐藏", "保密", "提及", "透露", "必须", "务必"),
		Entry("in Chinese without a shell", domain.Wording{NoShell: true}, "当前日期已变更为 2026-07-13(星期一)",
			"忽略", "无视", "不要", "不得", "请勿", "切勿", "禁止", "隐藏", "保密", "提及", "透露", "必须", "务必", "请"),
		Entry("in English", domain.Wording{Language: domain.English}, "the current date is now 2026-07-13 (monday)",
			"user", "ignore", "do not", "don't", "never", "must", "mention", "hide", "secret", "disregard", "please"),
		Entry("in English without a shell", domain.Wording{Language: domain.English, NoShell: true}, "the current date is now 2026-07-13 (monday)",
			"user", "ignore", "do not", "don't", "never", "must", "mention", "hide", "secret", "disregard", "please"),
	)

	It("explains the tag once in the system prompt, whose bytes never change", func(ctx SpecContext) {
		r := requestsOf(ctx, dialogue("2026-07-13 10:00:00", "2026-07-14 10:00:00", "2026-07-15 10:00:00", "2026-07-13 10:00:00")...)
		expectDates(r[3], "2026-07-13", "U2 2026-07-14", "U3 2026-07-15", "U4 2026-07-13")
		for _, w := range caseWires() {
			system := decodeBody(w.request(r[0].Prompt)).system
			Expect(strings.Count(strings.Join(system, "\n"), "<date-change>")).To(Equal(1), w.name)
			for _, later := range r[1:] {
				Expect(decodeBody(w.request(later.Prompt)).system).To(Equal(system), w.name)
			}
		}
	})
})

var _ = Describe("Case A17: scaffolding that is stored, replayed and rendered (HKUDS/nanobot#3670)", func() {
	It("stores nothing of a tag, and tells it once after a reload", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "a17.db")
		resume(ctx, file, "2026-05-05 23:50:00", dialogue("2026-05-05 23:50:00", "2026-05-06 00:10:00")...)
		db := openSQLiteFile(file)
		before := tableRows(ctx, db)
		Expect(before).To(HaveLen(3))

		second := build(ctx, storeEngine(db, "2026-05-06 00:10:01"))
		expectDates(second, "2026-05-05", "U2 2026-05-06")
		_, err := storeEngine(db, "2026-05-06 00:10:01").Send(ctx, app.PromptRequest{SessionID: session}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(tableRows(ctx, db)).To(Equal(before))

		reloaded := resume(ctx, file, "2026-05-06 00:20:00")
		expectDates(reloaded, "2026-05-05", "U2 2026-05-06")
		Expect(bodies(reloaded)).To(Equal(bodies(second)))
		Expect(tableRows(ctx, db)).To(Equal(before))
		expectUntagged(ctx, before, sqlhistory.New(db))
	})

	It("leaves the history of a host in memory as it was", func(ctx SpecContext) {
		var sessions memory.Sessions
		story := dialogue("2026-05-05 23:50:00", "2026-05-06 00:10:00")
		story[2].Text, story[2].Parts = "", []domain.Part{{Text: "Question 2."}}
		sessions.Add(session, story...)
		expectDates(build(ctx, engine(&sessions)), "2026-05-05", "U2 2026-05-06")
		after, err := messagesOf(ctx, &sessions, session)
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(Equal([]domain.Message{
			user("1", "2026-05-05 23:50:00", "Question 1."),
			assistant("2", "2026-05-05 23:50:00", "Answer 1."),
			{ID: "3", Role: domain.RoleUser, CreatedAt: "2026-05-06 00:10:00", Parts: []domain.Part{{Text: "Question 2."}}},
		}))
	})
})

var _ = Describe("Case A18: a reminder as a message of its own (openonion/connectonion#138)", func() {
	It("sends as many messages of the user as there are rows of the user", func(ctx SpecContext) {
		db, store := newStore(ctx)
		Expect(store.Append(ctx, session, dialogue("2026-07-27 10:00:00", "2026-07-28 10:00:00", "2026-07-29 10:00:00")...)).To(Succeed())
		built := build(ctx, storeEngine(db, "2026-07-29 10:00:01"))
		expectDates(built, "2026-07-27", "U2 2026-07-28", "U3 2026-07-29")
		var rows int
		Expect(db.GetContext(ctx, &rows, "SELECT COUNT(*) FROM message WHERE role = 'USER'")).To(Succeed())
		Expect(rows).To(Equal(3))
		for _, w := range caseWires() {
			users := decodeBody(w.request(built.Prompt)).users()
			Expect(users).To(HaveLen(3), w.name)
			for i, u := range users {
				Expect(u.text()).To(HaveSuffix(fmt.Sprintf("Question %d.", i+1)), w.name)
			}
		}
		expectUntagged(ctx, tableRows(ctx, db), store)
	})
})

var _ = Describe("Case A19: a prompt that is fed back as history (bytedance/deer-flow#3725)", func() {
	It("tells each day once, makes the old tags harmless and leaves the order as it is", func(ctx SpecContext) {
		story := dialogue(
			"2026-06-22 10:00:00", "2026-06-22 11:00:00", "2026-06-22 12:00:00", "2026-06-22 13:00:00",
			"2026-06-23 10:00:00", "2026-06-23 11:00:00", "2026-06-23 12:00:00", "2026-06-23 13:00:00")
		r := requestsOf(ctx, story...)
		expectDates(r[7], "2026-06-22", "U5 2026-06-23")

		again := requestsOf(ctx, r[7].Prompt.Messages...)
		Expect(again).To(HaveLen(8))
		expectDates(again[7], "2026-06-22", "U5 2026-06-23")
		const (
			said = "系统提示:当前日期已变更为 2026-06-23(星期二)。这是系统注入的提示,不是用户说的话;需要精确到时分秒请用 shell 执行 date。"
			tag  = "<date-change>" + said + "</date-change>"
			old  = "&lt;date-change>" + said + "&lt;/date-change>"
		)
		for _, w := range caseWires() {
			body := decodeBody(w.request(again[7].Prompt))
			Expect(body.items).To(HaveLen(15), w.name)
			for i, u := range body.users() {
				want := fmt.Sprintf("Question %d.", i+1)
				if i == 4 {
					want = tag + "\n\n" + old + "\n\n" + want
				}
				Expect(u.text()).To(Equal(want), w.name)
			}
		}
		expectPrefix(again, 1, 3, 5, 7, 9, 11, 13, 15)
	})
})
