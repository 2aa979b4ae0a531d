package test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"modernc.org/sqlite"

	"sessiondate/adapters/memory"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/domain"
	"sessiondate/ports"
)

// A stampRow is a message as a host's own writer stores it.
type stampRow struct {
	id, session, role string
	// createdAt is the stored time, and NULL where it is empty.
	createdAt string
}

// A stampBackend is one place where stamps are kept, and a way to put some
// there that is not the adapter's.
type stampBackend struct {
	reader ports.SessionStampReader
	put    func(ctx context.Context, rows ...stampRow)
	remove func(ctx context.Context, session, id string)
	// dump spells everything that is stored.
	dump func(ctx context.Context) string
}

// readsStamps is the contract of every [ports.SessionStampReader]. Its sessions
// are named by numbers, so that it holds for a numeric column too.
func readsStamps(open func(ctx context.Context) stampBackend) {
	var b stampBackend
	BeforeEach(func(ctx SpecContext) { b = open(ctx) })

	first := func(ctx context.Context, session string) domain.Stamp {
		GinkgoHelper()
		s, err := b.reader.FirstUserStamp(ctx, session)
		Expect(err).NotTo(HaveOccurred())
		return s
	}
	previous := func(ctx context.Context, session, before string) domain.Stamp {
		GinkgoHelper()
		s, err := b.reader.PreviousUserStamp(ctx, session, before)
		Expect(err).NotTo(HaveOccurred())
		// A reader that answers both questions at once answers as with one by one.
		if pairs, ok := b.reader.(ports.StampPairReader); ok {
			both := make([]domain.Stamp, 2)
			both[0], both[1], err = pairs.UserStamps(ctx, session, before)
			Expect(err).NotTo(HaveOccurred())
			Expect(both).To(Equal([]domain.Stamp{first(ctx, session), s}))
		}
		return s
	}

	Context("when it is asked for the first user stamp", func() {
		It("answers with the id and the stored time of the first user message", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "ASSISTANT", "2026-10-12 23:50:09"},
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(first(ctx, "7")).To(Equal(domain.Stamp{MessageID: "1", CreatedAt: "2026-10-12 23:50:00"}))
		})

		It("counts only messages of role USER", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "ASSISTANT", "2026-10-11 09:00:00"},
				stampRow{"2", "7", "TOOL", "2026-10-11 09:00:01"},
				stampRow{"3", "7", "USER", "2026-10-12 23:50:00"},
			)
			Expect(first(ctx, "7").MessageID).To(Equal("3"))
		})

		It("leaves out soft-deleted messages, so that the next one is the first", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "USER", "2026-10-13 08:00:00"},
			)
			b.remove(ctx, "7", "1")
			Expect(first(ctx, "7").MessageID).To(Equal("2"))
		})

		It("goes by the store's order of ids, in which 9 is before 10", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"9", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"10", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(first(ctx, "7").MessageID).To(Equal("9"))
		})

		It("goes by ids and not by times, which may step back", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-13 00:05:00"},
				stampRow{"2", "7", "USER", "2026-10-12 23:59:00"},
			)
			Expect(first(ctx, "7").MessageID).To(Equal("1"))
		})

		It("tells ids apart that no float can", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"9007199254740992", "7", "ASSISTANT", "2026-10-12 23:50:00"},
				stampRow{"9007199254740993", "7", "USER", "2026-10-12 23:50:01"},
				stampRow{"9007199254740994", "7", "USER", "2026-10-12 23:50:02"},
			)
			Expect(first(ctx, "7")).To(Equal(domain.Stamp{MessageID: "9007199254740993", CreatedAt: "2026-10-12 23:50:01"}))
		})

		It("answers none for a session that it does not know", func(ctx SpecContext) {
			b.put(ctx, stampRow{"1", "7", "USER", "2026-10-12 23:50:00"})
			Expect(first(ctx, "8")).To(Equal(domain.Stamp{}))
		})

		It("answers none for a session without a user message", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "ASSISTANT", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "USER", "2026-10-12 23:50:00"},
			)
			b.remove(ctx, "7", "2")
			Expect(first(ctx, "7")).To(Equal(domain.Stamp{}))
		})

		It("keeps sessions apart", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "8", "USER", "2026-10-11 09:00:00"},
				stampRow{"2", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"3", "8", "USER", "2026-10-13 08:00:00"},
			)
			Expect(first(ctx, "7").MessageID).To(Equal("2"))
			Expect(first(ctx, "8").MessageID).To(Equal("1"))
		})

		It("answers with an empty time where the store has none", func(ctx SpecContext) {
			b.put(ctx, stampRow{"1", "7", "USER", ""}, stampRow{"2", "7", "USER", "2026-10-13 08:00:00"})
			Expect(first(ctx, "7")).To(Equal(domain.Stamp{MessageID: "1"}))
		})

		It("answers with the stored time also where a zone skips that hour", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-04-24 00:30:00"}, // Skipped in Cairo.
				stampRow{"2", "8", "USER", "2026-09-06 00:30:00"}, // Skipped in Santiago.
			)
			Expect(first(ctx, "7").CreatedAt).To(Equal("2026-04-24 00:30:00"))
			Expect(first(ctx, "8").CreatedAt).To(Equal("2026-09-06 00:30:00"))
		})
	})

	Context("when it is asked for the user stamp before a message", func() {
		It("answers with the id and the stored time of the last user message before it", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-11 09:00:00"},
				stampRow{"2", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
				stampRow{"4", "7", "USER", "2026-10-14 08:00:00"},
			)
			Expect(previous(ctx, "7", "3")).To(Equal(domain.Stamp{MessageID: "2", CreatedAt: "2026-10-12 23:50:00"}))
		})

		It("counts only messages of role USER", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "ASSISTANT", "2026-10-12 23:50:09"},
				stampRow{"3", "7", "TOOL", "2026-10-12 23:50:10"},
				stampRow{"4", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(previous(ctx, "7", "4").MessageID).To(Equal("1"))
		})

		It("looks before a message of any role", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "ASSISTANT", "2026-10-12 23:50:09"},
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(previous(ctx, "7", "2").MessageID).To(Equal("1"))
		})

		It("leaves out soft-deleted messages", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "USER", "2026-10-13 00:10:00"},
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
			)
			b.remove(ctx, "7", "2")
			Expect(previous(ctx, "7", "3").MessageID).To(Equal("1"))
		})

		// A window is read first and its stamps second, and its first message may
		// be deleted in between. It keeps its place in the order.
		It("looks before a message that is soft-deleted by then", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "USER", "2026-10-13 08:00:00"},
			)
			b.remove(ctx, "7", "2")
			Expect(previous(ctx, "7", "2")).To(Equal(domain.Stamp{MessageID: "1", CreatedAt: "2026-10-12 23:50:00"}))
		})

		It("goes by the store's order of ids, in which 9 is before 10", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"9", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"10", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(previous(ctx, "7", "10").MessageID).To(Equal("9"))
			Expect(previous(ctx, "7", "9")).To(Equal(domain.Stamp{}))
		})

		It("goes by ids and not by times, which may step back", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-13 00:05:00"},
				stampRow{"2", "7", "USER", "2026-10-12 23:59:00"},
				stampRow{"3", "7", "USER", "2026-10-12 23:58:00"},
			)
			Expect(previous(ctx, "7", "3").MessageID).To(Equal("2"))
		})

		It("tells ids apart that no float can", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"9007199254740991", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"9007199254740992", "7", "USER", "2026-10-12 23:50:01"},
				stampRow{"9007199254740993", "7", "USER", "2026-10-12 23:50:02"},
				stampRow{"9007199254740994", "7", "USER", "2026-10-12 23:50:03"},
			)
			Expect(previous(ctx, "7", "9007199254740992").MessageID).To(Equal("9007199254740991"))
			Expect(previous(ctx, "7", "9007199254740993").MessageID).To(Equal("9007199254740992"))
			Expect(previous(ctx, "7", "9007199254740994").MessageID).To(Equal("9007199254740993"))
		})

		It("answers none at the session's first message", func(ctx SpecContext) {
			b.put(ctx, stampRow{"1", "7", "USER", "2026-10-12 23:50:00"}, stampRow{"2", "7", "USER", "2026-10-13 08:00:00"})
			Expect(previous(ctx, "7", "1")).To(Equal(domain.Stamp{}))
		})

		It("answers none where no user message stands before it", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "ASSISTANT", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
			)
			b.remove(ctx, "7", "2")
			Expect(previous(ctx, "7", "3")).To(Equal(domain.Stamp{}))
		})

		It("answers none for a session that it does not know", func(ctx SpecContext) {
			b.put(ctx, stampRow{"1", "7", "USER", "2026-10-12 23:50:00"}, stampRow{"2", "7", "USER", "2026-10-13 08:00:00"})
			Expect(previous(ctx, "8", "2")).To(Equal(domain.Stamp{}))
		})

		It("keeps sessions apart", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-11 09:00:00"},
				stampRow{"2", "8", "USER", "2026-10-12 23:50:00"},
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(previous(ctx, "7", "3").MessageID).To(Equal("1"))
		})

		It("answers with an empty time where the store has none", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
				stampRow{"2", "7", "USER", ""},
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(previous(ctx, "7", "3")).To(Equal(domain.Stamp{MessageID: "2"}))
		})

		It("answers with the stored time also where a zone skips that hour", func(ctx SpecContext) {
			b.put(ctx,
				stampRow{"1", "7", "USER", "2026-04-24 00:30:00"}, // Skipped in Cairo.
				stampRow{"2", "7", "USER", "2026-09-06 00:30:00"}, // Skipped in Santiago.
				stampRow{"3", "7", "USER", "2026-10-13 08:00:00"},
			)
			Expect(previous(ctx, "7", "2").CreatedAt).To(Equal("2026-04-24 00:30:00"))
			Expect(previous(ctx, "7", "3").CreatedAt).To(Equal("2026-09-06 00:30:00"))
		})
	})

	It("writes nothing", func(ctx SpecContext) {
		b.put(ctx,
			stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
			stampRow{"2", "7", "USER", ""},
			stampRow{"3", "8", "ASSISTANT", "2026-10-13 08:00:00"},
		)
		before := b.dump(ctx)
		for _, session := range []string{"7", "8", "9"} {
			first(ctx, session)
			previous(ctx, session, "2")
		}
		Expect(b.dump(ctx)).To(Equal(before))
	})

	Context("when its context is done", func() {
		endsWith := func(ctx context.Context, want error) {
			GinkgoHelper()
			s, err := b.reader.FirstUserStamp(ctx, "7")
			Expect(err).To(MatchError(want))
			Expect(err).To(MatchError(ContainSubstring("session 7")))
			Expect(s).To(Equal(domain.Stamp{}))
			s, err = b.reader.PreviousUserStamp(ctx, "7", "2")
			Expect(err).To(MatchError(want))
			Expect(err).To(MatchError(ContainSubstring("session 7")))
			Expect(s).To(Equal(domain.Stamp{}))
			if pairs, ok := b.reader.(ports.StampPairReader); ok {
				first, previous, err := pairs.UserStamps(ctx, "7", "2")
				Expect(err).To(MatchError(want))
				Expect(err).To(MatchError(ContainSubstring("session 7")))
				Expect([]domain.Stamp{first, previous}).To(Equal(make([]domain.Stamp, 2)))
			}
		}

		BeforeEach(func(ctx SpecContext) {
			b.put(ctx, stampRow{"1", "7", "USER", "2026-10-12 23:50:00"}, stampRow{"2", "7", "USER", "2026-10-13 08:00:00"})
		})

		It("fails with the context's error, having been cancelled", func(ctx SpecContext) {
			done, cancel := context.WithCancel(ctx)
			cancel()
			endsWith(done, context.Canceled)
		})

		It("fails with the context's error, being past its deadline", func(ctx SpecContext) {
			done, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
			defer cancel()
			endsWith(done, context.DeadlineExceeded)
		})
	})

	It("answers many at once, each with its own", func(ctx SpecContext) {
		const readers, readings = 16, 12
		for i := range readers {
			b.put(ctx,
				stampRow{fmt.Sprint(2*i + 1), fmt.Sprint(100 + i), "USER", "2026-10-12 23:50:00"},
				stampRow{fmt.Sprint(2*i + 2), fmt.Sprint(100 + i), "USER", "2026-10-13 08:00:00"},
			)
		}
		Expect(together(readers, func(i int) error {
			want := domain.Stamp{MessageID: fmt.Sprint(2*i + 1), CreatedAt: "2026-10-12 23:50:00"}
			for range readings {
				s, err := b.reader.FirstUserStamp(ctx, fmt.Sprint(100+i))
				if err != nil || s != want {
					return fmt.Errorf("reader %d: first %v, %w", i, s, err)
				}
				s, err = b.reader.PreviousUserStamp(ctx, fmt.Sprint(100+i), fmt.Sprint(2*i+2))
				if err != nil || s != want {
					return fmt.Errorf("reader %d: previous %v, %w", i, s, err)
				}
				if pairs, ok := b.reader.(ports.StampPairReader); ok {
					first, previous, err := pairs.UserStamps(ctx, fmt.Sprint(100+i), fmt.Sprint(2*i+2))
					if err != nil || first != want || previous != want {
						return fmt.Errorf("reader %d: both %v and %v, %w", i, first, previous, err)
					}
				}
			}
			return nil
		})).To(BeEmpty())
	})
}

// together runs do n times at once and returns the errors.
func together(n int, do func(i int) error) []error {
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for i := range n {
		all.Go(func() {
			if err := do(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	return errs
}

// sessionsThatDiffer are pairs of session ids that some collation, or some
// column, holds for the same.
var sessionsThatDiffer = []TableEntry{
	Entry("that differ in case", "s1", "S1"),
	Entry("of which one ends in a space", "s1", "s1 "),
	Entry("of which the stored one ends in a space", "s1 ", "s1"),
	Entry("of which one ends in a NUL", "s1", "s1\x00"),
	Entry("that are different emoji", "😀", "😁"),
	Entry("that differ in an accent", "é", "e"),
	Entry("that spell one accent in two ways", "\u00e9", "e\u0301"),
	Entry("that differ in width", "s1", "\uff53\uff11"),
	Entry("of which one spells out a letter", "straße", "strasse"),
	Entry("that name the same number", "7", "07"),
}

// matchesSessionsByByte is the part of the contract that a store with text ids
// can break: a session's id matches byte for byte.
func matchesSessionsByByte(open func(ctx context.Context) stampBackend) {
	DescribeTable("tells session ids apart", func(ctx SpecContext, stored, asked string) {
		tellsApart(ctx, open(ctx), stored, asked)
	}, sessionsThatDiffer)
}

// tellsApart stores one session, and expects the reader to know nothing of the
// other.
func tellsApart(ctx context.Context, b stampBackend, stored, asked string) {
	GinkgoHelper()
	b.put(ctx, stampRow{"1", stored, "USER", "2026-10-12 23:50:00"}, stampRow{"2", stored, "USER", "2026-10-13 08:00:00"})

	s, err := b.reader.FirstUserStamp(ctx, asked)
	Expect(err).NotTo(HaveOccurred())
	Expect(s).To(Equal(domain.Stamp{}))
	s, err = b.reader.PreviousUserStamp(ctx, asked, "2")
	Expect(err).NotTo(HaveOccurred())
	Expect(s).To(Equal(domain.Stamp{}))

	s, err = b.reader.FirstUserStamp(ctx, stored)
	Expect(err).NotTo(HaveOccurred())
	Expect(s.MessageID).To(Equal("1"))
	s, err = b.reader.PreviousUserStamp(ctx, stored, "2")
	Expect(err).NotTo(HaveOccurred())
	Expect(s.MessageID).To(Equal("1"))
}

// matchesNumbersByByte is the same for a store whose ids are numbers.
func matchesNumbersByByte(open func(ctx context.Context) stampBackend) {
	DescribeTable("does not take for session 7", func(ctx SpecContext, asked string) {
		b := open(ctx)
		b.put(ctx, stampRow{"1", "7", "USER", "2026-10-12 23:50:00"}, stampRow{"2", "7", "USER", "2026-10-13 08:00:00"})

		s, err := b.reader.FirstUserStamp(ctx, asked)
		Expect(err).NotTo(HaveOccurred())
		Expect(s).To(Equal(domain.Stamp{}))
		s, err = b.reader.PreviousUserStamp(ctx, asked, "2")
		Expect(err).NotTo(HaveOccurred())
		Expect(s).To(Equal(domain.Stamp{}))
	},
		Entry("an id that begins with it", "7abc"),
		Entry("an id with a zero before it", "07"),
		Entry("an id with a space before it", " 7"),
		Entry("an id with a space behind it", "7 "),
		Entry("an id with a sign", "+7"),
		Entry("an id with a fraction", "7.0"),
		Entry("an id with an exponent", "7e0"),
	)
}

// tellsFailures is the part of the contract that a store can break which can
// fail: the error wraps its cause, names the session and is never an absence.
// The db is the one that the reader reads.
func tellsFailures(open func(ctx context.Context) (ports.SessionStampReader, *sqlx.DB), missingTable types.GomegaMatcher) {
	var (
		reader ports.SessionStampReader
		db     *sqlx.DB
	)
	BeforeEach(func(ctx SpecContext) { reader, db = open(ctx) })

	It("fails with the cause and the session where the table is missing", func(ctx SpecContext) {
		_, err := db.ExecContext(ctx, "DROP TABLE message")
		Expect(err).NotTo(HaveOccurred())
		failsWith(ctx, reader, missingTable)
	})

	It("fails with the cause and the session where the database is closed", func(ctx SpecContext) {
		Expect(db.Close()).To(Succeed())
		closed := db.PingContext(ctx)
		Expect(closed).To(HaveOccurred())
		failsWith(ctx, reader, MatchError(closed))
	})
}

// failsWith expects every answer about session 7 to be an error of that cause.
func failsWith(ctx context.Context, reader ports.SessionStampReader, cause types.GomegaMatcher) {
	GinkgoHelper()
	failed := func(step string) types.GomegaMatcher {
		return And(MatchError(And(ContainSubstring("session 7"), ContainSubstring(step))), cause)
	}
	_, err := reader.FirstUserStamp(ctx, "7")
	Expect(err).To(failed("first user stamp"))
	_, err = reader.PreviousUserStamp(ctx, "7", "2")
	Expect(err).To(failed("before message 2"))
	_, _, err = reader.(ports.StampPairReader).UserStamps(ctx, "7", "2")
	Expect(err).To(And(failed("first user stamp"), failed("before message 2")))
}

func memoryStamps(context.Context) stampBackend {
	var sessions memory.Sessions
	known := map[string]bool{}
	return stampBackend{
		reader: &sessions,
		put: func(_ context.Context, rows ...stampRow) {
			GinkgoHelper()
			for _, r := range rows {
				role, err := domain.ParseRole(r.role)
				Expect(err).NotTo(HaveOccurred())
				sessions.Add(r.session, domain.Message{ID: r.id, Role: role, CreatedAt: r.createdAt})
				known[r.session] = true
			}
		},
		remove: func(_ context.Context, session, id string) { sessions.Delete(session, id) },
		dump: func(ctx context.Context) string {
			GinkgoHelper()
			all := map[string][]domain.Message{}
			for session := range known {
				messages, err := messagesOf(ctx, &sessions, session)
				Expect(err).NotTo(HaveOccurred())
				all[session] = messages
			}
			return fmt.Sprint(all)
		},
	}
}

// sqlStamps returns a backend whose fixtures are raw SQL over writer.
func sqlStamps(reader ports.SessionStampReader, writer *sqlx.DB) stampBackend {
	return stampBackend{
		reader: reader,
		put: func(ctx context.Context, rows ...stampRow) {
			GinkgoHelper()
			for _, r := range rows {
				_, err := writer.ExecContext(ctx, "INSERT INTO message (id, session_id, role, created_at) VALUES (?, ?, ?, NULLIF(?, ''))",
					r.id, r.session, r.role, r.createdAt)
				Expect(err).NotTo(HaveOccurred())
			}
		},
		remove: func(ctx context.Context, session, id string) {
			GinkgoHelper()
			_, err := writer.ExecContext(ctx, "UPDATE message SET deleted = 1 WHERE session_id = ? AND id = ?", session, id)
			Expect(err).NotTo(HaveOccurred())
		},
		dump: func(ctx context.Context) string { return dumpMessages(ctx, writer) },
	}
}

// dumpMessages spells every row and every column of the table message.
func dumpMessages(ctx context.Context, db *sqlx.DB) string {
	GinkgoHelper()
	rows, err := db.QueryxContext(ctx, "SELECT * FROM message ORDER BY id")
	Expect(err).NotTo(HaveOccurred())
	defer rows.Close()
	var dump string
	for rows.Next() {
		row, err := rows.SliceScan()
		Expect(err).NotTo(HaveOccurred())
		dump += fmt.Sprintf("%q\n", row)
	}
	Expect(rows.Err()).NotTo(HaveOccurred())
	Expect(dump).NotTo(BeEmpty())
	return dump
}

// A hostTable is how a host declared its message table.
type hostTable struct{ id, session, createdAt string }

// create creates the table message, with an index on the session alone.
func (t hostTable) create(ctx context.Context, db *sqlx.DB) {
	GinkgoHelper()
	_, err := db.ExecContext(ctx, fmt.Sprintf("CREATE TABLE message (id %s PRIMARY KEY, session_id %s, role VARCHAR(16) NOT NULL, deleted INTEGER NOT NULL DEFAULT 0, created_at %s)",
		t.id, t.session, t.createdAt))
	Expect(err).NotTo(HaveOccurred())
	_, err = db.ExecContext(ctx, "CREATE INDEX message_session ON message (session_id)")
	Expect(err).NotTo(HaveOccurred())
}

func sqliteStamps(t hostTable) func(ctx context.Context) stampBackend {
	return func(ctx context.Context) stampBackend {
		db := openSQLite()
		t.create(ctx, db)
		return sqlStamps(sqlstamp.New(db), db)
	}
}

func mariaDBStamps(t hostTable, parameters string) func(ctx context.Context) stampBackend {
	return func(ctx context.Context) stampBackend {
		name := newMariaDB(ctx)
		writer := openMariaDB(name, "")
		t.create(ctx, writer)
		return sqlStamps(sqlstamp.New(openMariaDB(name, parameters)), writer)
	}
}

var (
	textSQLite    = hostTable{"INTEGER", "TEXT NOT NULL", "TEXT"}
	textMariaDB   = hostTable{"BIGINT", "VARCHAR(64) NOT NULL", "DATETIME NULL"}
	numberMariaDB = hostTable{"BIGINT", "BIGINT NOT NULL", "DATETIME NULL"}
)

// mariaDBParameters are the spellings of a DSN that decide what a driver makes
// of a stored time and how it sends arguments.
var mariaDBParameters = []string{
	"",
	"parseTime=true",
	"parseTime=true&loc=Asia%2FShanghai",
	"parseTime=true&loc=Africa%2FCairo",
	"parseTime=true&loc=America%2FSantiago",
	"interpolateParams=true",
}

var _ = Describe("Stamps in memory", func() {
	readsStamps(memoryStamps)
	matchesSessionsByByte(memoryStamps)

	// A column has an order of all ids. In memory the order is that of adding, and
	// an id that was not added to the session has no place in it.
	It("answer none before a message that the session does not have", func(ctx SpecContext) {
		b := memoryStamps(ctx)
		b.put(ctx,
			stampRow{"1", "7", "USER", "2026-10-12 23:50:00"},
			stampRow{"2", "7", "USER", "2026-10-13 08:00:00"},
			stampRow{"3", "8", "USER", "2026-10-14 08:00:00"},
		)
		for _, id := range []string{"3", "4", ""} {
			Expect(b.reader.PreviousUserStamp(ctx, "7", id)).To(Equal(domain.Stamp{}), "before %q", id)
		}
	})
})

var _ = Describe("Stamps in SQLite", func() {
	for _, declared := range []string{"DATETIME", "TEXT"} {
		Context("with created_at declared "+declared, func() {
			readsStamps(sqliteStamps(hostTable{"INTEGER", "TEXT NOT NULL", declared}))
		})
	}
	Context("with numeric session ids", func() {
		t := hostTable{"INTEGER", "INTEGER NOT NULL", "TEXT"}
		readsStamps(sqliteStamps(t))
		matchesNumbersByByte(sqliteStamps(t))
	})
	for _, collation := range []string{"BINARY", "NOCASE", "RTRIM"} {
		Context("with the collation "+collation, func() {
			matchesSessionsByByte(sqliteStamps(hostTable{"INTEGER", "TEXT NOT NULL COLLATE " + collation, "TEXT"}))
		})
	}

	tellsFailures(func(ctx context.Context) (ports.SessionStampReader, *sqlx.DB) {
		db := openSQLite()
		textSQLite.create(ctx, db)
		return sqlstamp.New(db), db
	}, Satisfy(isError[*sqlite.Error]))

	It("goes by the id and not by the order of insertion", func(ctx SpecContext) {
		goesByID(ctx, sqliteStamps(textSQLite)(ctx))
	})

	It("needs no right to write", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "host.db")
		writer := openSQLiteFile(file)
		textSQLite.create(ctx, writer)
		reader, err := sqlx.Open("sqlite", "file:"+file+"?_pragma=query_only(1)")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(reader.Close)
		readsBoth(ctx, sqlStamps(sqlstamp.New(reader), writer))
		_, err = reader.ExecContext(ctx, "DELETE FROM message")
		Expect(err).To(HaveOccurred(), "the reader's connection can write")
	})
})

var _ = Describe("Stamps in MariaDB", Label("mariadb"), func() {
	for _, parameters := range mariaDBParameters {
		Context(fmt.Sprintf("with the DSN parameters %q", parameters), func() {
			readsStamps(mariaDBStamps(textMariaDB, parameters))
		})
	}
	for _, parameters := range []string{"", "interpolateParams=true"} {
		Context(fmt.Sprintf("with numeric session ids and the DSN parameters %q", parameters), func() {
			readsStamps(mariaDBStamps(numberMariaDB, parameters))
			matchesNumbersByByte(mariaDBStamps(numberMariaDB, parameters))
		})
		for _, collation := range []string{"utf8mb4_unicode_ci", "utf8mb4_general_ci", "utf8mb4_bin"} {
			Context(fmt.Sprintf("with the collation %s and the DSN parameters %q", collation, parameters), func() {
				matchesSessionsByByte(mariaDBStamps(hostTable{"BIGINT", "VARCHAR(64) COLLATE " + collation + " NOT NULL", "DATETIME NULL"}, parameters))
			})
		}
	}

	// An id is text to the host. The server turns its characters into those of the
	// column, whose bytes are then not those of the argument.
	DescribeTable("finds a session whose id is kept in another character set", func(ctx SpecContext, charset, id string) {
		for _, parameters := range []string{"", "interpolateParams=true"} {
			b := mariaDBStamps(hostTable{"BIGINT", "VARCHAR(64) CHARACTER SET " + charset + " NOT NULL", "DATETIME NULL"}, parameters)(ctx)
			b.put(ctx, stampRow{"1", id, "USER", "2026-10-12 23:50:00"})
			Expect(b.reader.FirstUserStamp(ctx, id)).To(HaveField("MessageID", "1"))
			Expect(b.reader.PreviousUserStamp(ctx, id, "2")).To(HaveField("MessageID", "1"))
		}
	},
		Entry("of Western Europe", "latin1", "é"),
		Entry("of China", "gbk", "会话"),
		Entry("that is an older UTF-8", "utf8mb3", "会话"),
		Entry("that is bytes", "binary", "会话"),
	)

	tellsFailures(func(ctx context.Context) (ports.SessionStampReader, *sqlx.DB) {
		db := openMariaDB(newMariaDB(ctx), "")
		textMariaDB.create(ctx, db)
		return sqlstamp.New(db), db
	}, MatchError(&mysql.MySQLError{Number: 1146}))

	It("goes by the id and not by the order of insertion", func(ctx SpecContext) {
		goesByID(ctx, mariaDBStamps(textMariaDB, "")(ctx))
	})

	It("needs no right but SELECT on the table", func(ctx SpecContext) {
		name := newMariaDB(ctx)
		root := openMariaDB(name, "")
		textMariaDB.create(ctx, root)
		readOnly := "reader_" + name
		for _, statement := range []string{
			"CREATE USER '" + readOnly + "'@'localhost'",
			"GRANT SELECT ON " + name + ".message TO '" + readOnly + "'@'localhost'",
		} {
			_, err := root.ExecContext(ctx, statement)
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(func(ctx SpecContext) {
			db := connectMariaDB(mariaDBSocket, "", "")
			defer db.Close()
			_, err := db.ExecContext(ctx, "DROP USER '"+readOnly+"'@'localhost'")
			Expect(err).NotTo(HaveOccurred())
		})
		reader, err := sqlx.Open("mysql", readOnly+"@unix("+mariaDBSocket+")/"+name)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(reader.Close)
		readsBoth(ctx, sqlStamps(sqlstamp.New(reader), root))
		_, err = reader.ExecContext(ctx, "DELETE FROM message")
		Expect(err).To(MatchError(&mysql.MySQLError{Number: 1142}), "the reader's user can write")
	})

	It("leaves the table's checksum as it is", func(ctx SpecContext) {
		name := newMariaDB(ctx)
		db := openMariaDB(name, "")
		textMariaDB.create(ctx, db)
		checksum := func() (sum int64) {
			GinkgoHelper()
			var table string
			Expect(db.QueryRowContext(ctx, "CHECKSUM TABLE message EXTENDED").Scan(&table, &sum)).To(Succeed())
			return sum
		}
		empty := checksum()
		b := sqlStamps(sqlstamp.New(db), db)
		b.put(ctx, stampRow{"1", "7", "USER", "2026-10-12 23:50:00"})
		before := checksum()
		Expect(before).NotTo(Equal(empty), "the checksum sees no rows")
		_, err := b.reader.FirstUserStamp(ctx, "7")
		Expect(err).NotTo(HaveOccurred())
		_, err = b.reader.PreviousUserStamp(ctx, "7", "2")
		Expect(err).NotTo(HaveOccurred())
		Expect(checksum()).To(Equal(before))
	})
})

// goesByID checks what memory cannot show, whose order is that of adding.
func goesByID(ctx context.Context, b stampBackend) {
	GinkgoHelper()
	b.put(ctx,
		stampRow{"30", "7", "USER", "2026-10-14 08:00:00"},
		stampRow{"20", "7", "USER", "2026-10-13 08:00:00"},
		stampRow{"10", "7", "USER", "2026-10-12 23:50:00"},
	)
	s, err := b.reader.FirstUserStamp(ctx, "7")
	Expect(err).NotTo(HaveOccurred())
	Expect(s.MessageID).To(Equal("10"))
	s, err = b.reader.PreviousUserStamp(ctx, "7", "30")
	Expect(err).NotTo(HaveOccurred())
	Expect(s.MessageID).To(Equal("20"))
}

// readsBoth checks that both readings find their stamp.
func readsBoth(ctx context.Context, b stampBackend) {
	GinkgoHelper()
	b.put(ctx, stampRow{"1", "7", "USER", "2026-10-12 23:50:00"}, stampRow{"2", "7", "USER", "2026-10-13 08:00:00"})
	s, err := b.reader.FirstUserStamp(ctx, "7")
	Expect(err).NotTo(HaveOccurred())
	Expect(s.MessageID).To(Equal("1"))
	s, err = b.reader.PreviousUserStamp(ctx, "7", "2")
	Expect(err).NotTo(HaveOccurred())
	Expect(s.MessageID).To(Equal("1"))
}
