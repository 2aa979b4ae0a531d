package test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/recording"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A scriptedReader answers as the reader in it, fails where it has an error, and
// counts what it is asked.
type scriptedReader struct {
	ports.SessionStampReader
	firstErr, previousErr     error
	firstAsked, previousAsked int
}

func (r *scriptedReader) FirstUserStamp(ctx context.Context, sessionID string) (domain.Stamp, error) {
	r.firstAsked++
	if r.firstErr != nil {
		return domain.Stamp{}, r.firstErr
	}
	return r.SessionStampReader.FirstUserStamp(ctx, sessionID)
}

func (r *scriptedReader) PreviousUserStamp(ctx context.Context, sessionID, beforeID string) (domain.Stamp, error) {
	r.previousAsked++
	if r.previousErr != nil {
		return domain.Stamp{}, r.previousErr
	}
	return r.SessionStampReader.PreviousUserStamp(ctx, sessionID, beforeID)
}

// errConnection is a cause of failure.
var errConnection = errors.New("connection lost")

// engineWithClock returns a prompt engine that reads stamps and whose clock stands at an
// instant.
func engineWithClock(sessions *memory.Sessions, instant time.Time, zone *time.Location) *app.PromptEngine {
	dates := app.NewSessionDate(app.Options{Stamps: sessions, Now: func() time.Time { return instant }, Zone: zone})
	return app.NewPromptEngine(app.PromptOptions{Dates: dates, History: sessions, Sink: &recording.Sink{}})
}

// anchored is an anchor as a spec spells it.
func anchored(day string, source domain.AnchorSource) domain.Anchor {
	GinkgoHelper()
	return domain.Anchor{Date: date(day), Source: source}
}

var _ = Describe("The anchor", func() {
	Context("of a session with user messages", func() {
		var sessions *memory.Sessions
		BeforeEach(func() {
			sessions = &memory.Sessions{}
			sessions.Add(session,
				assistant("1", "2026-10-11 09:00:00", "Hello!"),
				user("2", "2026-10-12 23:50:00", "Hello."),
				assistant("3", "2026-10-12 23:50:09", "How can I help?"),
				user("4", "2026-10-10 08:00:00", "The clock stepped back."),
				user("5", "2026-10-14 08:00:00", "Good morning."),
			)
		})

		It("R1: is the date of the first user message, earlier dates behind it notwithstanding", func(ctx SpecContext) {
			Expect(build(ctx, engine(sessions)).Dates.Anchor).To(Equal(anchored("2026-10-12", domain.FromFirstUserMessage)))
		})

		It("R1: does not depend on the clock", func(ctx SpecContext) {
			early := build(ctx, engineWithClock(sessions, time.Date(2026, 10, 12, 15, 50, 0, 0, time.UTC), nil))
			late := build(ctx, engineWithClock(sessions, time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC), nil))
			Expect(late).To(Equal(early))
		})

		It("R3: does not depend on the zone", func(ctx SpecContext) {
			now := time.Date(2026, 10, 12, 15, 50, 0, 0, time.UTC)
			here := build(ctx, engineWithClock(sessions, now, nil))
			there := build(ctx, engineWithClock(sessions, now, time.FixedZone("Honolulu", -10*60*60)))
			Expect(there).To(Equal(here))
		})

		It("R1: moves to the next user message when the first is soft-deleted", func(ctx SpecContext) {
			e := engine(sessions)
			Expect(build(ctx, e).Dates.Anchor.Date).To(Equal(date("2026-10-12")))
			sessions.Delete(session, "2")
			Expect(build(ctx, e).Dates.Anchor).To(Equal(anchored("2026-10-10", domain.FromFirstUserMessage)))
			sessions.Delete(session, "4")
			Expect(build(ctx, e).Dates.Anchor).To(Equal(anchored("2026-10-14", domain.FromFirstUserMessage)))
		})

		It("R1: is read for every prompt anew", func(ctx SpecContext) {
			reader := &scriptedReader{SessionStampReader: sessions}
			e := engineOver(loadedFrom{sessions}, reader)
			for n := range 3 {
				build(ctx, e)
				Expect(reader.firstAsked).To(Equal(n + 1))
			}
		})

		It("R1: is a session's own", func(ctx SpecContext) {
			sessions.Add("fork", user("6", "2026-10-13 10:00:00", "Hello."))
			built, err := engine(sessions).Build(ctx, app.PromptRequest{SessionID: "fork"})
			Expect(err).NotTo(HaveOccurred())
			Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-13", domain.FromFirstUserMessage)))
		})

		It("R1: stands in the system prompt and stays there on later days", func(ctx SpecContext) {
			e := engine(sessions)
			before := build(ctx, e)
			sessions.Add(session, user("7", "2026-12-24 08:00:00", "Still there?"))
			after := build(ctx, e)
			Expect(before.Prompt.System()).To(ContainSubstring("`2026-10-12`(星期一)"))
			Expect(after.Prompt.System()).To(Equal(before.Prompt.System()))
		})
	})

	It("R1: is the user message with the smallest id, in the order of the store's column", func(ctx SpecContext) {
		db := openSQLite()
		_, err := db.ExecContext(ctx, "CREATE TABLE message (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, created_at TEXT, deleted INTEGER)")
		Expect(err).NotTo(HaveOccurred())
		insert := func(id int, role, createdAt string, deleted int) {
			GinkgoHelper()
			_, err := db.ExecContext(ctx, "INSERT INTO message VALUES (?, 's1', ?, ?, ?)", id, role, createdAt, deleted)
			Expect(err).NotTo(HaveOccurred())
		}
		// As text, 10 would come before 9; by time, 10 would come first as well.
		insert(10, "USER", "2026-10-10 08:00:00", 0)
		insert(9, "USER", "2026-10-12 08:00:00", 0)
		insert(8, "ASSISTANT", "2026-10-08 08:00:00", 0)
		insert(7, "USER", "2026-10-07 08:00:00", 1)
		d, err := app.NewSessionDate(app.Options{Stamps: sqlstamp.New(db)}).Resolve(ctx, app.Window{SessionID: session})
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Anchor).To(Equal(anchored("2026-10-12", domain.FromFirstUserMessage)))
	})

	Context("of a session without a user message", func() {
		DescribeTable("R2: is today",
			func(ctx SpecContext, now string, zone *time.Location, want string) {
				instant, err := time.Parse(time.RFC3339Nano, now)
				Expect(err).NotTo(HaveOccurred())
				var sessions memory.Sessions
				Expect(build(ctx, engineWithClock(&sessions, instant, zone)).Dates.Anchor).To(Equal(anchored(want, domain.FromClock)))
				sessions.Add(session,
					assistant("1", "2026-01-01 08:00:00", "A signal came.", domain.ToolCall{ID: "c", Name: "n", Arguments: "{}"}),
					toolResult("2", "2026-01-01 08:00:01", "c", "done"),
				)
				Expect(build(ctx, engineWithClock(&sessions, instant, zone)).Dates.Anchor).To(Equal(anchored(want, domain.FromClock)))
			},
			Entry("just before midnight in Shanghai", "2026-10-12T15:59:59.999999999Z", nil, "2026-10-12"),
			Entry("at midnight in Shanghai", "2026-10-12T16:00:00Z", nil, "2026-10-13"),
			Entry("by a clock that is set to another zone", "2026-10-12T09:00:00-07:00", nil, "2026-10-13"),
			Entry("just before midnight in the configured zone", "2026-10-13T03:59:59Z", time.FixedZone("New York", -4*60*60), "2026-10-12"),
			Entry("at midnight in the configured zone", "2026-10-13T04:00:00Z", time.FixedZone("New York", -4*60*60), "2026-10-13"),
			Entry("in UTC, where it is configured", "2026-10-12T16:00:00Z", time.UTC, "2026-10-12"),
		)

		It("R2: carries no notice", func(ctx SpecContext) {
			var sessions memory.Sessions
			sessions.Add(session, assistant("1", "2026-01-01 08:00:00", "A signal came."))
			Expect(notices(build(ctx, engine(&sessions)))).To(BeEmpty())
		})

		It("R1: becomes the first user message's date as soon as there is one", func(ctx SpecContext) {
			var sessions memory.Sessions
			e := engine(&sessions)
			Expect(build(ctx, e).Dates.Anchor).To(Equal(anchored("2031-01-01", domain.FromClock)))
			sessions.Add(session, user("1", "2026-10-12 08:00:00", "Hello."))
			Expect(build(ctx, e).Dates.Anchor).To(Equal(anchored("2026-10-12", domain.FromFirstUserMessage)))
		})
	})

	Context("without a stamp reader", func() {
		var sessions *memory.Sessions
		BeforeEach(func() {
			sessions = &memory.Sessions{}
			sessions.Add(session,
				assistant("1", "2026-10-11 08:00:00", "Hello!"),
				user("2", "", "An import lost my time."),
				user("3", "2026-10-13 08:00:00", "Hello."),
				user("4", "2026-10-12 08:00:00", "The clock stepped back."),
				user("5", "2026-10-14 08:00:00", "Good morning."),
			)
		})

		It("R10: is the earliest dated user message of the window, and no notice is written", func(ctx SpecContext) {
			built := build(ctx, engineOver(sessions, nil))
			Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-13", domain.FromLoadedHistory)))
			Expect(notices(built)).To(BeEmpty())
			Expect(built.Prompt.System()).To(ContainSubstring("`2026-10-13`(星期二)"))
			stored, err := messagesOf(ctx, sessions, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(built.Prompt.Messages).To(Equal(stored))
		})

		It("R10: is today where the window has no dated user message", func(ctx SpecContext) {
			var undated memory.Sessions
			undated.Add(session, assistant("1", "2026-10-11 08:00:00", "Hello!"), user("2", "", "Hello."))
			Expect(build(ctx, engineOver(&undated, nil)).Dates.Anchor).To(Equal(anchored("2031-01-01", domain.FromClock)))
		})

		It("R10: is missed in one line of the log, at start-up", func(ctx SpecContext) {
			var log bytes.Buffer
			dates := app.NewSessionDate(app.Options{Now: clockAt("2031-01-01 12:00:00"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
			Expect(strings.Count(log.String(), "\n")).To(Equal(1))
			Expect(log.String()).To(ContainSubstring("no session stamp reader"))
			for range 3 {
				_, err := dates.Resolve(ctx, windowOf(user("3", "2026-10-13 08:00:00", "Hello.")))
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(strings.Count(log.String(), "\n")).To(Equal(1))
		})

		It("R10: fails in nothing with no options at all", func(ctx SpecContext) {
			d, err := app.NewSessionDate(app.Options{}).Resolve(ctx, windowOf(user("3", "2026-10-13 08:00:00", "Hello.")))
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Anchor).To(Equal(anchored("2026-10-13", domain.FromLoadedHistory)))
		})
	})

	It("R10: with a stamp reader, nothing is logged at start-up", func() {
		var log bytes.Buffer
		app.NewSessionDate(app.Options{Stamps: &memory.Sessions{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		Expect(log.String()).To(BeEmpty())
	})

	Context("with a stamp reader that fails", func() {
		var sessions *memory.Sessions
		BeforeEach(func() {
			sessions = &memory.Sessions{}
			sessions.Add(session, user("1", "2026-10-12 08:00:00", "Hello."))
		})

		DescribeTable("R10: is an error that wraps its cause and names the session",
			func(ctx SpecContext, reader scriptedReader) {
				reader.SessionStampReader = sessions
				built, err := engineOver(loadedFrom{sessions}, &reader).Build(ctx, app.PromptRequest{SessionID: session})
				Expect(err).To(MatchError(errConnection))
				Expect(err).To(MatchError(ContainSubstring("session " + session)))
				Expect(built).To(Equal(app.BuiltPrompt{}))
			},
			Entry("at the first user message", scriptedReader{firstErr: errConnection}),
			Entry("at the message before the window", scriptedReader{previousErr: errConnection}),
		)

		DescribeTable("R10: sends nothing",
			func(ctx SpecContext, reader scriptedReader) {
				reader.SessionStampReader = sessions
				var sink recording.Sink
				_, err := app.NewPromptEngine(app.PromptOptions{Dates: app.NewSessionDate(app.Options{Stamps: &reader}), History: loadedFrom{sessions}, Sink: &sink}).
					Send(ctx, app.PromptRequest{SessionID: session}, nil)
				Expect(err).To(MatchError(errConnection))
				Expect(sink.Prompts()).To(BeEmpty())
			},
			Entry("at the first user message", scriptedReader{firstErr: errConnection}),
			Entry("at the message before the window", scriptedReader{previousErr: errConnection}),
		)
	})

	Context("with a stamp reader and a first user message whose time is no date", func() {
		DescribeTable("R10: is the earliest dated user message of the window",
			func(ctx SpecContext, createdAt string) {
				var sessions memory.Sessions
				sessions.Add(session,
					user("1", createdAt, "Hello."),
					user("2", "2026-10-13 08:00:00", "Hello?"),
					user("3", "2026-10-12 08:00:00", "The clock stepped back."),
				)
				built := build(ctx, engine(&sessions))
				Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-13", domain.FromLoadedHistory)))
				Expect(notices(built)).To(Equal([]string{"2 2026-10-12"}))
			},
			Entry("NULL", ""),
			Entry("zero", "0000-00-00 00:00:00"),
			Entry("no day of the calendar", "2026-02-30 08:00:00"),
		)

		It("R2: is today where the window has no dated user message", func(ctx SpecContext) {
			var sessions memory.Sessions
			sessions.Add(session, user("1", "", "Hello."))
			Expect(build(ctx, engine(&sessions)).Dates.Anchor).To(Equal(anchored("2031-01-01", domain.FromClock)))
		})
	})

	Context("when the context is done", func() {
		DescribeTable("is the context's error and names the session",
			func(ctx SpecContext, withReader bool) {
				var sessions memory.Sessions
				sessions.Add(session, user("1", "2026-10-12 08:00:00", "Hello."))
				var o app.Options
				if withReader {
					o.Stamps = &sessions
				}
				canceled, cancel := context.WithCancel(ctx)
				cancel()
				dates := app.NewSessionDate(o)
				_, err := dates.Resolve(canceled, app.Window{SessionID: session})
				Expect(err).To(MatchError(context.Canceled))
				Expect(err).To(MatchError(ContainSubstring("session " + session)))
				_, err = app.NewPromptEngine(app.PromptOptions{Dates: dates, History: &sessions, Sink: &recording.Sink{}}).Build(canceled, app.PromptRequest{SessionID: session})
				Expect(err).To(MatchError(context.Canceled))
				Expect(err).To(MatchError(ContainSubstring("session " + session)))
			},
			Entry("with a stamp reader", true),
			Entry("without one", false),
		)
	})
})
