//go:build cluster

package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"sessiondate"
	"sessiondate/adapters/sqlhistory"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/app"
	"sessiondate/domain"
	"sessiondate/ports"
)

// afterWrites makes a connection's reads, and its transactions, wait until the
// node has what was written on any other.
const afterWrites = "wsrep_sync_wait=1"

var _ = Describe("A Galera cluster of three nodes", Label("cluster"), Ordered, ContinueOnFailure, func() {
	var g *galera
	BeforeAll(func(ctx SpecContext) { g = startGalera(ctx) }, NodeTimeout(10*time.Minute))

	Context("written on one node and read on another, after writes", func() {
		stamps := func(ctx context.Context) stampBackend {
			name := g.create(ctx, "CREATE TABLE message (id BIGINT PRIMARY KEY, session_id VARCHAR(64) NOT NULL, role VARCHAR(16) NOT NULL, deleted INTEGER NOT NULL DEFAULT 0, created_at DATETIME NULL, INDEX (session_id))")
			return sqlStamps(sqlstamp.New(g.open(1, name, afterWrites)), g.open(0, name, ""))
		}
		readsStamps(stamps)
		matchesSessionsByByte(stamps)

		// The contract counts messages by their ids, in which a cluster leaves gaps.
		BeforeAll(func(ctx SpecContext) { g.execute(ctx, 0, "SET GLOBAL wsrep_auto_increment_control = OFF") })
		AfterAll(func(ctx SpecContext) { g.execute(ctx, 0, "SET GLOBAL wsrep_auto_increment_control = ON") })
		history := func(ctx context.Context) historyBackend {
			name := g.create(ctx, sqlhistory.SchemaMySQL)
			writer := g.open(0, name, "auto_increment_increment=1")
			store := sqlhistory.New(writer)
			return historyBackend{
				history: sqlhistory.New(g.open(1, name, afterWrites)),
				put: func(ctx context.Context, session string, messages ...domain.Message) {
					GinkgoHelper()
					Expect(store.Append(ctx, session, messages...)).To(Succeed())
				},
				remove: func(ctx context.Context, session, id string) {
					GinkgoHelper()
					softDelete(ctx, writer, session, id)
				},
				dump: func(ctx context.Context) string { return dumpMessages(ctx, writer) },
			}
		}
		holdsSessions(history)
		matchesHistoriesByByte(history)
	})

	// misses counts how many of 2000 sessions are not there on node 1 right after
	// their first message was stored on node 0. Every other read has a deadline, of
	// which the statement tells the server.
	misses := func(ctx context.Context, parameters string) (n int) {
		GinkgoHelper()
		name := g.create(ctx, sqlhistory.SchemaMySQL)
		writer, reader := sqlhistory.New(g.open(0, name, "")), sqlstamp.New(g.open(1, name, parameters))
		for i := range 2000 {
			id := fmt.Sprint("s", i)
			Expect(writer.Append(ctx, id, user("", "2026-10-12 23:50:00", "Hello."))).To(Succeed())
			reading, cancel := ctx, context.CancelFunc(func() {})
			if i%2 == 1 {
				reading, cancel = context.WithTimeout(ctx, time.Minute)
			}
			stamp, err := reader.FirstUserStamp(reading, id)
			cancel()
			Expect(err).NotTo(HaveOccurred())
			if (stamp == domain.Stamp{}) {
				n++
			}
		}
		AddReportEntry(fmt.Sprintf("read on another node with the DSN parameters %q: %d of 2000 were missing", parameters, n), ReportEntryVisibilityAlways)
		return n
	}

	It("shows on one node what has just been written on another, if it is asked to wait", func(ctx SpecContext) {
		Expect(misses(ctx, afterWrites)).To(BeZero())
	}, NodeTimeout(5*time.Minute))

	It("does not always show it if it is not asked to", func(ctx SpecContext) {
		Expect(misses(ctx, "")).To(BeNumerically(">", 0))
	}, NodeTimeout(5*time.Minute))

	// disorders counts how many of 500 sessions have their messages in another
	// order than that in which they were stored, each on the next node. Ten times
	// the other nodes have much to take over from the first just then.
	disorders := func(ctx context.Context, parameters string) (n int) {
		GinkgoHelper()
		name := g.create(ctx, sqlhistory.SchemaMySQL)
		var writers []*sqlhistory.Store
		for i := range g.nodes {
			writers = append(writers, sqlhistory.New(g.open(i, name, parameters)))
		}
		g.execute(ctx, 0, "CREATE TABLE "+name+".busy (id INT PRIMARY KEY)")
		var stored []string
		for i := range 6 {
			stored = append(stored, fmt.Sprint("Text ", i))
		}
		for i := range 500 {
			id := fmt.Sprint("s", i)
			if i%51 == 0 {
				g.execute(ctx, 0, fmt.Sprintf("INSERT INTO %s.busy SELECT seq FROM mysql.seq_%d_to_%d", name, i*10_000, i*10_000+100_000))
			}
			for k, text := range stored {
				Expect(writers[(i+k)%len(writers)].Append(ctx, id, user("", "2026-10-12 23:50:00", text))).To(Succeed())
			}
		}
		all := sqlhistory.New(g.open(0, name, afterWrites))
		for i := range 500 {
			messages, err := messagesOf(ctx, all, fmt.Sprint("s", i))
			Expect(err).NotTo(HaveOccurred())
			var read []string
			for _, m := range messages {
				read = append(read, m.Text)
			}
			Expect(read).To(ConsistOf(stored))
			if !slices.Equal(read, stored) {
				n++
			}
		}
		AddReportEntry(fmt.Sprintf("written on each node in turn with the DSN parameters %q: %d of 500 sessions were out of order", parameters, n), ReportEntryVisibilityAlways)
		return n
	}

	It("gives ids in order to a session that is written on several nodes, if it is asked to wait", func(ctx SpecContext) {
		Expect(disorders(ctx, afterWrites)).To(BeZero())
	}, NodeTimeout(5*time.Minute))

	It("does not always give them in order if it is not asked to", func(ctx SpecContext) {
		Expect(disorders(ctx, "")).To(BeNumerically(">", 0))
	}, NodeTimeout(5*time.Minute))

	It("is one of which the harness warns where reads do not wait", func(ctx SpecContext) {
		name := g.create(ctx, sqlhistory.SchemaMySQL)
		Expect(sqlhistory.New(g.open(0, name, "")).Append(ctx, session, user("", "2026-10-12 23:50:00", "Hello."))).To(Succeed())
		dsn := "root@unix(" + g.nodes[0].socket + ")/" + name
		Expect(warningsOf(ctx, dsn)).To(ConsistOf(ContainSubstring("put wsrep_sync_wait=1 into the DSN")))
		Expect(warningsOf(ctx, dsn+"?wsrep_sync_wait=6")).To(HaveLen(1), "writes alone wait")
		Expect(warningsOf(ctx, dsn+"?"+afterWrites)).To(BeEmpty())
		Expect(warningsOf(ctx, dsn+"?wsrep_sync_wait=7")).To(BeEmpty())
	})

	DescribeTable("would be seen to lose a message or to tell a wrong date, were it to store something else than it is given", func(ctx SpecContext, forged string, stores []domain.Message, seen string) {
		const turns = 6
		name := g.create(ctx, sqlhistory.SchemaMySQL)
		reads := g.open(1, name, afterWrites)
		s := newClusterSession(session, reads, forgingArchive{sqlhistory.New(g.open(0, name, afterWrites)), forged, stores})
		for turn := range turns {
			met, err := s.turn(ctx, turn, new(atomic.Bool))
			Expect(met).To(BeEmpty())
			if err != nil {
				Expect(err).To(MatchError(ContainSubstring(seen)))
				return
			}
		}
		Expect(keepsAll(ctx, sqlhistory.New(reads), session, turns)).To(MatchError(ContainSubstring(seen)))
	},
		Entry("no question", question(2), nil, "turn 3: the prompt says"),
		Entry("no answer", answer(2), nil, "turn 3: the prompt says"),
		Entry("no last answer", answer(5), nil, "has stored"),
		Entry("an answer twice", answer(5), []domain.Message{{Role: domain.RoleAssistant, Text: answer(5)}, {Role: domain.RoleAssistant, Text: answer(5)}}, "has stored"),
		Entry("a question of the day before", question(4), []domain.Message{user("", "2026-10-13 12:00:00", question(4))}, "turn 4: the prompt says"),
	)

	It("loses a node in the middle of 64 sessions' turns, and no date is wrong and no message lost", func(ctx SpecContext) {
		const sessions, turns = 64, 10
		name := g.create(ctx, sqlhistory.SchemaMySQL)
		before := gleak.Goroutines()
		var pools []*sqlx.DB
		for i := range g.nodes {
			db := g.open(i, name, afterWrites+"&interpolateParams=true&timeout=2s")
			db.SetMaxOpenConns(16)
			db.SetMaxIdleConns(16)
			pools = append(pools, db)
		}
		var (
			begun atomic.Int64
			gone  atomic.Bool
			mu    sync.Mutex
			met   []clusterFailure
		)
		var unstored atomic.Int64
		Expect(together(sessions, func(i int) error {
			s := newClusterSession(fmt.Sprint("s", i), pools[i%len(pools)], sqlhistory.New(pools[(i+1)%len(pools)]))
			for turn := range turns {
				if begun.Add(1) == sessions*turns/3 {
					g.nodes[2].kill()
					gone.Store(true)
				}
				failures, err := s.turn(ctx, turn, &gone)
				mu.Lock()
				met = append(met, failures...)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			unstored.Add(int64(s.unstored))
			return nil
		})).To(BeEmpty())

		// What broke is said, and what came after the node's end went right.
		Expect(met).NotTo(BeEmpty(), "the node was killed when nobody used it")
		AddReportEntry(fmt.Sprintf("%d messages were not stored at first", unstored.Load()), ReportEntryVisibilityAlways)
		said := map[string]int{}
		for _, f := range met {
			if f.gone {
				Expect(f.err).To(MatchError(&mysql.MySQLError{Number: 1213}), "a try of session %s after the node was gone", f.session)
			}
			said[strings.ReplaceAll(f.err.Error(), "session "+f.session, "session …")]++
		}
		for err, n := range said {
			AddReportEntry(fmt.Sprintf("%d times: %s", n, err), ReportEntryVisibilityAlways)
		}

		// Node 0 and node 1 are left.
		for i, db := range pools[:2] {
			for k := range sessions {
				Expect(keepsAll(ctx, sqlhistory.New(db), fmt.Sprint("s", k), turns)).To(Succeed(), "on node %d", i)
			}
		}
		for _, db := range pools {
			Expect(db.Stats().InUse).To(BeZero())
			Expect(db.Close()).To(Succeed())
		}
		Eventually(ctx, gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	}, NodeTimeout(5*time.Minute))
})

// A clusterSession is a session that is read through one pool of connections and
// written through another. Two turns are on each day. It is its own model.
type clusterSession struct {
	id           string
	now          int
	history      ports.History
	conversation *app.Conversation
	request      app.PromptRequest
	wrong        error
	// unstored counts the turns that failed before their question was stored.
	unstored int
}

func newClusterSession(id string, reads *sqlx.DB, writes ports.Archive) *clusterSession {
	s := &clusterSession{id: id, history: sqlhistory.New(reads)}
	s.conversation = app.NewConversation(app.ConversationOptions{
		Engine:  sessiondate.New(sessiondate.Host{DB: reads, History: s.history, Sink: s}),
		History: s.history, Archive: writes,
		Now: func() time.Time { return noonOf(s.now) },
	})
	s.request = app.PromptRequest{SessionID: id, Sections: []domain.Section{{Name: domain.CurrentDateSection}}}
	return s
}

func question(turn int) string { return fmt.Sprint("Question ", turn) }
func answer(turn int) string   { return fmt.Sprint("Answer ", turn) }

// noonOf is noon in Shanghai on the day of a turn.
func noonOf(turn int) time.Time { return time.Date(2026, 10, 12+turn/2, 4, 0, 0, 0, time.UTC) }

// A clusterFailure is the error of a try to carry on a session, and whether the
// node was gone when the try began.
type clusterFailure struct {
	session string
	err     error
	gone    bool
}

// turn carries the session on by one turn, and tries again as long as the node is
// about to go, and once more. It returns what failed meanwhile.
func (s *clusterSession) turn(ctx context.Context, turn int, gone *atomic.Bool) (met []clusterFailure, err error) {
	s.now = turn
	try := s.say
	for {
		f := clusterFailure{s.id, nil, gone.Load()}
		f.err = try(ctx)
		switch {
		case s.wrong != nil:
			return met, s.wrong
		case f.err == nil:
			return met, nil
		case !strings.Contains(f.err.Error(), "session "+s.id):
			return met, fmt.Errorf("the error does not name session %s: %w", s.id, f.err)
		case ctx.Err() != nil, f.gone && len(met) > 0 && met[len(met)-1].gone:
			return met, fmt.Errorf("the next try failed too: %w", f.err)
		}
		met = append(met, f)
		try = s.resume
	}
}

func (s *clusterSession) say(ctx context.Context) error {
	return s.conversation.Say(ctx, s.request, question(s.now), app.Listener{})
}

// resume goes on as a host does that does not know whether its message was
// stored: it looks.
func (s *clusterSession) resume(ctx context.Context) error {
	messages, err := messagesOf(ctx, s.history, s.id)
	if err != nil {
		return err
	}
	if len(messages) <= 2*s.now {
		s.unstored++
		return s.say(ctx)
	}
	return s.conversation.Continue(ctx, s.request, app.Listener{})
}

// Send implements [ports.PromptSink]. It keeps what is wrong with a prompt that
// does not say all that was said, and the right dates.
func (s *clusterSession) Send(_ context.Context, p domain.Prompt, _ func(string)) (domain.Reply, error) {
	dates := func(text string) string { return strings.Join(dateSpelled.FindAllString(text, -1), ", ") }
	says := []string{"anchor " + dates(p.System())}
	for _, m := range p.Messages {
		notice, text, found := strings.Cut(m.Text, "\n\n")
		if found {
			says = append(says, "notice "+dates(notice), text)
		} else {
			says = append(says, m.Text)
		}
	}
	expected := []string{"anchor 2026-10-12"}
	for turn := range s.now + 1 {
		if turn > 0 && turn%2 == 0 {
			expected = append(expected, "notice "+noonOf(turn).Format(time.DateOnly))
		}
		expected = append(expected, question(turn), answer(turn))
	}
	expected = expected[:len(expected)-1] // The last answer is yet to come.
	if !slices.Equal(says, expected) {
		s.wrong = fmt.Errorf("session %s, turn %d: the prompt says %q and not %q", s.id, s.now, says, expected)
	}
	return domain.Reply{Text: answer(s.now)}, nil
}

// keepsAll returns an error if other messages of a session are stored than those
// of its turns.
func keepsAll(ctx context.Context, history ports.History, id string, turns int) error {
	messages, err := messagesOf(ctx, history, id)
	if err != nil {
		return err
	}
	var stored, expected []string
	for _, m := range messages {
		stored = append(stored, m.Text)
	}
	for turn := range turns {
		expected = append(expected, question(turn), answer(turn))
	}
	if !slices.Equal(stored, expected) {
		return fmt.Errorf("session %s has stored %q and not %q", id, stored, expected)
	}
	return nil
}

// A forgingArchive stores other messages in the place of one, and says that it is
// stored.
type forgingArchive struct {
	ports.Archive
	text   string
	stores []domain.Message
}

// Append implements [ports.Archive].
func (a forgingArchive) Append(ctx context.Context, id string, messages ...domain.Message) error {
	if len(messages) == 1 && messages[0].Text == a.text {
		messages = a.stores
	}
	return a.Archive.Append(ctx, id, messages...)
}
