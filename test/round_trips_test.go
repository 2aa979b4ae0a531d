package test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sessiondate/adapters/memory"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A pairReader answers both questions at once, and counts how often it does.
type pairReader struct {
	scriptedReader
	bothErr   error
	bothAsked int
}

func (r *pairReader) UserStamps(ctx context.Context, sessionID, beforeID string) (first, previous domain.Stamp, err error) {
	r.bothAsked++
	if r.bothErr != nil {
		return domain.Stamp{}, domain.Stamp{}, r.bothErr
	}
	first, err = r.SessionStampReader.FirstUserStamp(ctx, sessionID)
	Expect(err).NotTo(HaveOccurred())
	previous, err = r.SessionStampReader.PreviousUserStamp(ctx, sessionID, beforeID)
	return first, previous, err
}

var _ ports.StampPairReader = (*pairReader)(nil)

var _ = Describe("The round trips of a prompt's dates", func() {
	var sessions *memory.Sessions
	var one *scriptedReader
	var pair *pairReader
	BeforeEach(func() {
		sessions = &memory.Sessions{}
		sessions.Add(session, chat("12 a12 13 a13 13 a14")...)
		one = &scriptedReader{SessionStampReader: sessions}
		pair = &pairReader{scriptedReader: scriptedReader{SessionStampReader: sessions}}
	})
	// asked tells how often the readers were asked for the first stamp, for the
	// previous one, and for both.
	asked := func() []int { return []int{one.firstAsked, one.previousAsked, pair.bothAsked} }

	It("are none for a window that is the whole session, which answers both questions itself", func(ctx SpecContext) {
		for _, reader := range []ports.SessionStampReader{one, pair} {
			built := build(ctx, engineOver(sessions, reader))
			Expect(built.Dates).To(Equal(build(ctx, engineOver(loadedFrom{sessions}, sessions)).Dates))
			Expect(notices(built)).To(Equal(told("2:13")))
		}
		Expect(asked()).To(Equal([]int{0, 0, 0}))
	})

	It("are none for a host's own window that is whole", func(ctx SpecContext) {
		w := windowOf(chat("12 a12 13")...)
		w.Whole = true
		Expect(notices(resolve(ctx, one, w))).To(Equal(told("2:13")))
		Expect(asked()).To(Equal([]int{0, 0, 0}))
	})

	It("are one for a window behind a boundary, with a reader that answers both at once", func(ctx SpecContext) {
		Expect(sessions.MoveBoundary(ctx, session, "4", "They talked.")).To(Succeed())
		Expect(notices(build(ctx, engineOver(sessions, pair)))).To(Equal(told("1:13")))
		Expect(asked()).To(Equal([]int{0, 0, 1}))
	})

	It("would be two with a reader that answers one question at a time, and the dates the same", func(ctx SpecContext) {
		Expect(sessions.MoveBoundary(ctx, session, "4", "They talked.")).To(Succeed())
		built := build(ctx, engineOver(sessions, one))
		Expect(asked()).To(Equal([]int{1, 1, 0}))
		Expect(built.Dates).To(Equal(build(ctx, engineOver(sessions, pair)).Dates))
	})

	It("are one for a window behind a boundary without a user message", func(ctx SpecContext) {
		Expect(sessions.MoveBoundary(ctx, session, "5", "They talked.")).To(Succeed())
		Expect(notices(build(ctx, engineOver(sessions, one)))).To(BeEmpty())
		Expect(asked()).To(Equal([]int{1, 0, 0}))
		Expect(notices(build(ctx, engineOver(sessions, pair)))).To(BeEmpty())
		Expect([]int{pair.firstAsked, pair.previousAsked, pair.bothAsked}).To(Equal([]int{1, 0, 0}))
	})

	It("are one more for each undated message right before the window", func(ctx SpecContext) {
		sessions.Add("other", chat("12 13 ? ? 13")...)
		Expect(sessions.MoveBoundary(ctx, "other", "4", "")).To(Succeed())
		built, err := engineOver(sessions, pair).Build(ctx, app.PromptRequest{SessionID: "other"})
		Expect(err).NotTo(HaveOccurred())
		// R12, for the 13th is the day before the boundary as well.
		Expect(notices(built)).To(Equal(told("0:13")))
		Expect([]int{pair.firstAsked, pair.previousAsked, pair.bothAsked}).To(Equal([]int{0, 2, 1}))
	})

	It("R10: end in an error that wraps its cause and names the session where they fail", func(ctx SpecContext) {
		pair.bothErr = errConnection
		built, err := engineOver(loadedFrom{sessions}, pair).Build(ctx, app.PromptRequest{SessionID: session})
		Expect(err).To(MatchError(errConnection))
		Expect(err).To(MatchError(ContainSubstring("session " + session)))
		Expect(built).To(Equal(app.BuiltPrompt{}))
	})
})
