package test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// windowOf returns the window of the session that shows the messages.
func windowOf(messages ...domain.Message) app.Window {
	w := app.Window{SessionID: session}
	for _, m := range messages {
		w.Messages = append(w.Messages, app.WindowMessage{ID: m.ID, Role: m.Role, CreatedAt: m.CreatedAt})
	}
	return w
}

// resolve returns what a prompt with the window must say of the date.
func resolve(ctx context.Context, stamps ports.SessionStampReader, w app.Window) app.BuiltPrompt {
	GinkgoHelper()
	dates := app.NewSessionDate(app.Options{Stamps: stamps, Now: clockAt("2031-01-01 12:00:00")})
	d, err := dates.Resolve(ctx, w)
	Expect(err).NotTo(HaveOccurred())
	return app.BuiltPrompt{Dates: d}
}

// chat makes messages with the ids 1, 2, … of a story, one word for each: a
// user's day of October 2026 at noon ("12"), a user message without a time
// ("?"), an assistant's day ("a13").
func chat(story string) []domain.Message {
	var messages []domain.Message
	for i, word := range strings.Fields(story) {
		id := fmt.Sprint(i + 1)
		switch word[0] {
		case 'a':
			messages = append(messages, assistant(id, "2026-10-"+word[1:]+" 12:00:05", "Hello!"))
		case '?':
			messages = append(messages, user(id, "", "Hello."))
		default:
			messages = append(messages, user(id, "2026-10-"+word+" 12:00:00", "Hello."))
		}
	}
	return messages
}

// handoff stands before a window for what was compacted. It is not stored.
func handoff() domain.Message { return user("", "", "## 会话任务交接\n\nThe user said hello.") }

// told spells notices, "3:13 5:15", as notices does in full.
func told(story string) []string {
	spelled := []string{}
	for word := range strings.FieldsSeq(story) {
		index, day, _ := strings.Cut(word, ":")
		spelled = append(spelled, index+" 2026-10-"+day)
	}
	return spelled
}

var _ = Describe("The sequence of dates", func() {
	DescribeTable("in a session from its beginning",
		func(ctx SpecContext, story, want string) {
			var sessions memory.Sessions
			sessions.Add(session, chat(story)...)
			built := build(ctx, engine(&sessions))
			Expect(notices(built)).To(Equal(told(want)))
			for _, n := range built.Dates.Notices {
				Expect(built.Prompt.Messages[n.Index].Text).To(Equal(n.Text + "\n\nHello."))
			}
		},
		Entry("R4: tells nothing on one day", "12 a12 12 a12 12", ""),
		Entry("R4: tells the next day to its first user message alone", "12 a12 13 a13 13", "2:13"),
		Entry("R4: tells a gap of three days once", "12 a12 15 a15 15", "2:15"),
		Entry("R4: tells each new day", "12 13 14 14", "1:13 2:14"),
		Entry("R4: tells a date that goes backwards", "13 12 12", "1:12"),
		Entry("R4: tells a date that goes backwards and forwards again", "12 13 12 13", "1:13 2:12 3:13"),
		Entry("R8: skips an undated user message on the same day", "12 ? 12", ""),
		Entry("R8: skips an undated user message at a new day", "12 ? 13", "2:13"),
		Entry("R8: skips the assistant's dates", "12 a13 12 a14 14", "4:14"),
		Entry("R8: starts at the first dated message", "? 12 13", "2:13"),
		Entry("R8: tells nothing where nothing is dated", "? a12 ?", ""),
		Entry("tells nothing to an assistant alone", "a12 a13", ""),
		Entry("tells nothing in an empty session", "", ""),
	)

	It("R18: tells a run that passes midnight with the next user message, not before", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session, user("1", "2026-10-12 23:59:00", "Work."), assistant("2", "2026-10-13 00:30:00", "I do."))
		e := engine(&sessions)
		Expect(notices(build(ctx, e))).To(BeEmpty())
		sessions.Add(session, user("3", "2026-10-13 00:31:00", "And?"))
		Expect(notices(build(ctx, e))).To(Equal(told("2:13")))
	})

	It("R4: tells nothing in two thousand messages of one day, and one thing on the next", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session, chat(strings.Repeat("12 a12 ", 1000))...)
		e := engine(&sessions)
		Expect(notices(build(ctx, e))).To(BeEmpty())
		sessions.Add(session, user("2001", "2026-10-13 08:00:00", "Good morning."))
		Expect(notices(build(ctx, e))).To(Equal([]string{"2000 2026-10-13"}))
	})

	DescribeTable("in a window that begins at a boundary",
		func(ctx SpecContext, compacted, window, want string) {
			all := chat(compacted + " " + window)
			var sessions memory.Sessions
			sessions.Add(session, all...)
			tail := all[len(strings.Fields(compacted)):]
			Expect(notices(resolve(ctx, &sessions, windowOf(tail...)))).To(Equal(told(want)))

			// The handoff only moves the indices on.
			var moved []string
			for _, n := range resolve(ctx, &sessions, windowOf(tail...)).Dates.Notices {
				moved = append(moved, fmt.Sprintf("%d %v", n.Index+1, n.Date))
			}
			withHandoff := notices(resolve(ctx, &sessions, windowOf(append([]domain.Message{handoff()}, tail...)...)))
			Expect(withHandoff).To(Equal(append([]string{}, moved...)))
		},
		Entry("R4: tells the first user message that its day differs from the one before", "12 a12 13 a13", "14 a14 14", "0:14"),
		Entry("R4: tells it also of the anchor's day", "12 13", "12 12", "0:12"),
		Entry("R4: tells nothing where all are on the anchor's day", "12 a12 12 a12", "12 a12 12", ""),
		Entry("R4: tells a new day within the window once", "12 12", "12 13 13", "1:13"),
		Entry("R12: restates a day that the compacted messages had told", "12 13 a13", "13 13", "0:13"),
		Entry("R12: restates it to the first dated user message", "12 13", "a13 ? 13 13", "2:13"),
		Entry("R12: restates once, also where the day differs from the one before as well", "12 13", "14 14", "0:14"),
		Entry("R8: looks past an undated user message before the boundary", "12 13 ?", "12", "0:12"),
		Entry("R8: looks past several", "12 13 ? ? a13 ?", "12", "0:12"),
		Entry("R8: looks past undated messages on both sides", "12 13 ?", "? 12", "1:12"),
		Entry("R12: compares with the anchor where the first user message of all is undated", "? ?", "13 13 14", "2:14"),
		Entry("R8: tells nothing where nothing in the window is dated", "12 13", "? a14", ""),
		Entry("tells nothing without a user message", "12 13", "a13 a14", ""),
		Entry("tells nothing to a window of nothing", "12 13", "", ""),
		Entry("is no boundary where only an assistant stands before", "a11", "12 13", "1:13"),
	)

	DescribeTable("in a window of a host's own, whose messages have no ids",
		func(ctx SpecContext, stamps ports.SessionStampReader, whole bool, source domain.AnchorSource, want string) {
			all := chat("12 a12 13 ? 13 14")
			for i := range all {
				all[i].ID = ""
			}
			w := windowOf(all...)
			w.Whole = whole
			built := resolve(ctx, stamps, w)
			Expect(built.Dates.Anchor).To(Equal(anchored("2026-10-12", source)))
			Expect(notices(built)).To(Equal(told(want)))
		},
		Entry("R1, R4: goes by the stored times of a window that is whole", &memory.Sessions{}, true, domain.FromFirstUserMessage, "2:13 5:14"),
		Entry("R10: is anchored by them without a stamp reader", nil, false, domain.FromLoadedHistory, ""),
	)

	It("R1: keeps the anchor of the session in a window behind a boundary", func(ctx SpecContext) {
		all := chat("12 13 14")
		var sessions memory.Sessions
		sessions.Add(session, all...)
		Expect(resolve(ctx, &sessions, windowOf(all[2:]...)).Dates.Anchor).
			To(Equal(anchored("2026-10-12", domain.FromFirstUserMessage)))
	})

	It("R14: answers for a window behind a boundary as for its continuation", func(ctx SpecContext) {
		all := chat("12 13 13 a13 13 14 ? 14 12")
		var sessions memory.Sessions
		sessions.Add(session, all...)
		Expect(notices(resolve(ctx, &sessions, windowOf(all[2:5]...)))).To(Equal(told("0:13")))
		Expect(notices(resolve(ctx, &sessions, windowOf(all[2:6]...)))).To(Equal(told("0:13 3:14")))
		Expect(notices(resolve(ctx, &sessions, windowOf(all[2:]...)))).To(Equal(told("0:13 3:14 6:12")))
	})

	It("does not look before a window without a dated user message", func(ctx SpecContext) {
		all := chat("12 13 a13 ?")
		var sessions memory.Sessions
		sessions.Add(session, all...)
		reader := &scriptedReader{SessionStampReader: &sessions}
		resolve(ctx, reader, windowOf(all[2:]...))
		Expect(reader.previousAsked).To(Equal(0))
		resolve(ctx, reader, windowOf(all[1:]...))
		Expect(reader.previousAsked).To(Equal(1))
	})

	Context("when the window's first user message is soft-deleted", func() {
		It("R4: compares the next one with the message before the boundary", func(ctx SpecContext) {
			all := chat("12 14 13 12")
			var sessions memory.Sessions
			sessions.Add(session, all...)
			sessions.Delete(session, "3")
			Expect(notices(resolve(ctx, &sessions, windowOf(all[3])))).To(Equal(told("0:12")))
		})

		It("R4: compares a window that was loaded before the deletion as it was", func(ctx SpecContext) {
			all := chat("12 13 12 12")
			var sessions memory.Sessions
			sessions.Add(session, all...)
			sessions.Delete(session, "3")
			Expect(notices(resolve(ctx, &sessions, windowOf(all[2:]...)))).To(Equal(told("0:12")))
		})
	})

	It("R3: logs a stored time that is no date once in a prompt, by the message's id, and without content", func(ctx SpecContext) {
		var sessions memory.Sessions
		sessions.Add(session,
			user("41", "0000-00-00 00:00:00", "My secret."),
			user("42", "2026-10-12 08:00:00", "Hello."),
			user("43", "", "My other secret."),
			assistant("44", "", "Hello!"),
		)
		stored, err := messagesOf(ctx, &sessions, session)
		Expect(err).NotTo(HaveOccurred())
		var log bytes.Buffer
		dates := app.NewSessionDate(app.Options{Stamps: &sessions, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		_, err = dates.Resolve(ctx, windowOf(append([]domain.Message{handoff()}, stored...)...))
		Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		Expect(lines).To(HaveLen(2))
		Expect(lines[0]).To(And(ContainSubstring("message=41"), ContainSubstring("session="+session)))
		Expect(lines[1]).To(And(ContainSubstring("message=43"), ContainSubstring("session="+session)))
		Expect(log.String()).NotTo(ContainSubstring("secret"))
	})
})
