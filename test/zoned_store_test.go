package test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/app"
	"sessiondate/domain"
)

// zone returns a zone by its name.
func zone(name string) *time.Location {
	GinkgoHelper()
	z, err := time.LoadLocation(name)
	Expect(err).NotTo(HaveOccurred())
	return z
}

// A zonedStory is a session whose store keeps the clock of a zone, and whose user
// lives in another.
type zonedStory struct {
	stored, lives string
	times         []string
}

// dates returns the date in the system prompt of a story's last request and its
// notices.
func (s zonedStory) dates(ctx context.Context) (stated string, told []string) {
	GinkgoHelper()
	var sessions memory.Sessions
	for i, t := range s.times {
		sessions.Add(session, user(fmt.Sprint(i+1), t, "Hello."))
	}
	options := app.Options{Stamps: &sessions, Now: clockAt("2031-01-01 12:00:00")}
	if s.stored != "" {
		options.StoredZone = zone(s.stored)
	}
	request := buildRequest()
	if s.lives != "" {
		request.Zone = zone(s.lives)
	}
	e := app.NewPromptEngine(app.PromptOptions{Dates: app.NewSessionDate(options), History: &sessions})
	built, err := e.Build(ctx, request)
	Expect(err).NotTo(HaveOccurred())
	return built.Dates.Anchor.Date.String(), notices(built)
}

var _ = Describe("A zoned store (R19)", func() {
	DescribeTable("dates a message by the day of its instant where the user lives",
		func(ctx SpecContext, s zonedStory, stated string, told ...string) {
			anchor, notices := s.dates(ctx)
			Expect(anchor).To(Equal(stated))
			Expect(notices).To(Equal(append([]string{}, told...)))
		},
		Entry("Case A11, east of Greenwich: a date that is one day off (earendil-works/pi#2814, apache/maka#538)",
			zonedStory{"UTC", "Asia/Shanghai", []string{"2026-05-29T16:30:00Z"}}, "2026-05-30"),
		Entry("Case A11, west of Greenwich",
			zonedStory{"UTC", "America/Phoenix", []string{"2026-05-30T02:00:00Z"}}, "2026-05-29"),
		Entry("Case A12: a server that keeps UTC, and a user in the morning (xorbitsai/xagent#1675)",
			zonedStory{"UTC", "Australia/Brisbane", []string{"2026-08-24 22:03:37", "2026-08-25 13:59:00", "2026-08-25 14:01:00"}},
			"2026-08-25", "2 2026-08-26"),
		Entry("Case A13: a scheduled run in the early morning (anthropics/claude-code#51110)",
			zonedStory{"UTC", "Asia/Tokyo", []string{"2026-04-15 20:30:00"}}, "2026-04-16"),
		Entry("Case A36: times that a server's default wrote in its own zone (langgenius/dify#38553)",
			zonedStory{"Asia/Shanghai", "Asia/Shanghai", []string{"2026-06-18 00:30:00"}}, "2026-06-18"),
		Entry("on a day of 25 hours, told once",
			zonedStory{"UTC", "America/Los_Angeles", []string{"2026-11-01 06:59:00", "2026-11-01 07:00:00", "2026-11-02 07:59:00", "2026-11-02 08:00:00"}},
			"2026-10-31", "1 2026-11-01", "3 2026-11-02"),
	)

	DescribeTable("is opted into by the host and by the session, and else the stored wall clock is the date (R3)",
		func(ctx SpecContext, s zonedStory) {
			s.times = []string{"2026-05-29 16:30:00"}
			anchor, notices := s.dates(ctx)
			Expect(anchor).To(Equal("2026-05-29"))
			Expect(notices).To(BeEmpty())
		},
		Entry("where neither says so", zonedStory{}),
		Entry("where the host alone does", zonedStory{stored: "UTC"}),
		Entry("where the session alone does", zonedStory{lives: "Asia/Shanghai"}),
	)

	It("Case A14: gives each of two sessions its own day, in one process and at once (openclaw/openclaw#51312, #39579)", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session, user("1", "2026-03-21T00:30:00Z", "Hello."))
		e := app.NewPromptEngine(app.PromptOptions{
			Dates: app.NewSessionDate(app.Options{Stamps: &sessions, StoredZone: time.UTC}), History: &sessions,
		})
		lives := []struct{ zone, date string }{{"America/New_York", "2026-03-20"}, {"Europe/London", "2026-03-21"}}
		Expect(together(16, func(i int) error {
			request := buildRequest()
			request.Zone = zone(lives[i%2].zone)
			built, err := e.Build(ctx, request)
			if err == nil && built.Dates.Anchor.Date.String() != lives[i%2].date {
				err = fmt.Errorf("%v in %s", built.Dates.Anchor.Date, lives[i%2].zone)
			}
			return err
		})).To(BeEmpty())
	})

	It("takes the clock's day in the session's zone as well (R2)", func(ctx SpecContext) {
		anchor, _ := zonedStory{"UTC", "Pacific/Auckland", nil}.dates(ctx)
		// It is noon in Shanghai, and five in the afternoon in Auckland.
		Expect(anchor).To(Equal("2031-01-01"))
		anchor, _ = zonedStory{"UTC", "Pacific/Honolulu", nil}.dates(ctx)
		// There it is six in the evening of the day before.
		Expect(anchor).To(Equal("2030-12-31"))
	})

	It("compares with the message before the boundary in the session's zone too", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session, user("1", "2026-05-28 12:00:00", "One."), user("2", "2026-05-29 16:30:00", "Two."), user("3", "2026-05-30 01:00:00", "Three."))
		Expect(sessions.MoveBoundary(ctx, session, "2", "")).To(Succeed())
		e := app.NewPromptEngine(app.PromptOptions{
			Dates: app.NewSessionDate(app.Options{Stamps: &sessions, StoredZone: time.UTC}), History: &sessions,
		})
		request := buildRequest()
		request.Zone = zone("Asia/Shanghai")
		built, err := e.Build(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(built.Dates.Anchor).To(Equal(domain.Anchor{Date: date("2026-05-28"), Source: domain.FromFirstUserMessage}))
		// The same day in Shanghai, and still restated behind the boundary (R12).
		Expect(notices(built)).To(Equal([]string{"0 2026-05-30"}))
	})
})
