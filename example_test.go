package sessiondate_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"sessiondate"
	"sessiondate/adapters/memory"
	"sessiondate/adapters/recording"
	"sessiondate/adapters/sqlstamp"
	"sessiondate/app"
	"sessiondate/domain"
)

// openHostDatabase stands for a host that has its messages in a table already.
func openHostDatabase() *sqlx.DB {
	db := sqlx.MustOpen("sqlite", ":memory:")
	db.SetMaxOpenConns(1)
	db.MustExec("CREATE TABLE message (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, created_at DATETIME, deleted INTEGER DEFAULT 0)")
	db.MustExec("INSERT INTO message (session_id, role, content, created_at) VALUES " +
		"('42', 'USER', 'Plan my week.', '2026-10-12 23:50:00'), ('42', 'ASSISTANT', 'Gladly.', '2026-10-12 23:50:08'), ('42', 'USER', 'What is today?', '2026-10-13 08:00:00')")
	return db
}

// A harness that has message types of its own asks for plain values and puts
// them where they belong in its request.
func Example_ownMessageTypes() {
	ctx := context.Background()
	db := openHostDatabase()
	defer db.Close()
	id := "42"
	window := []app.WindowMessage{
		{ID: "1", Role: domain.RoleUser, CreatedAt: "2026-10-12 23:50:00"},
		{ID: "2", Role: domain.RoleAssistant, CreatedAt: "2026-10-12 23:50:08"},
		{ID: "3", Role: domain.RoleUser, CreatedAt: "2026-10-13 08:00:00"},
	}
	request := []string{domain.EscapeTags("Plan my week."), "Gladly.", domain.EscapeTags("What is today?")}
	system := "You are helpful.\n\n"
	wording := domain.Wording{Language: domain.English}

	dates := app.NewSessionDate(app.Options{Stamps: sqlstamp.New(db)}) // Once.
	d, err := dates.Resolve(ctx, app.Window{SessionID: id, Messages: window, Wording: wording})
	if err != nil {
		panic(err)
	}
	system += d.Section
	for _, n := range d.Notices {
		request[n.Index] = n.Text + "\n\n" + request[n.Index]
	}

	fmt.Println(strings.Split(system, "\n")[4])
	fmt.Println(request[2])
	// Output:
	// Current date: `2026-10-12` (Monday)
	// <date-change>System notice: the current date is now 2026-10-13 (Tuesday). This line was added by the system and is not part of the message below; the shell command date tells the exact time.</date-change>
	//
	// What is today?
}

// The whole pipeline, from stored messages to a sink. Here the messages are in
// memory and the sink records; a host brings its own history and one of the
// sinks under adapters.
func ExampleNew() {
	ctx := context.Background()
	db := openHostDatabase()
	defer db.Close()
	var history memory.Sessions
	history.Add("42",
		domain.Message{ID: "1", Role: domain.RoleUser, Text: "Plan my week.", CreatedAt: "2026-10-12 23:50:00"},
		domain.Message{ID: "2", Role: domain.RoleAssistant, Text: "Gladly.", CreatedAt: "2026-10-12 23:50:08"},
		domain.Message{ID: "3", Role: domain.RoleUser, Text: "What is today?", CreatedAt: "2026-10-13 08:00:00"},
	)
	sink := &recording.Sink{Reply: domain.Reply{Text: "It is Tuesday."}}

	engine := sessiondate.New(sessiondate.Host{DB: db, History: &history, Sink: sink})
	reply, err := engine.Send(ctx, app.PromptRequest{
		SessionID: "42",
		Sections:  []domain.Section{{Name: "persona", Text: "You are helpful."}, {Name: domain.CurrentDateSection}},
	}, nil)
	if err != nil {
		panic(err)
	}

	fmt.Println(reply.Text)
	fmt.Println(sink.Prompts()[0].Messages[2].Text)
	// Output:
	// It is Tuesday.
	// <date-change>系统提示:当前日期已变更为 2026-10-13(星期二)。这是系统注入的提示,不是用户说的话;需要精确到时分秒请用 shell 执行 date。</date-change>
	//
	// What is today?
}
