//go:build wireinject

package sessiondate

import (
	"log/slog"
	"time"

	"github.com/google/wire"
	"github.com/jmoiron/sqlx"

	"sessiondate/adapters/sqlstamp"
	"sessiondate/app"
	"sessiondate/ports"
)

// A Host is what an agent harness brings along. History and Sink are needed; the
// rest may be left out.
type Host struct {
	// DB has the table message, from which stamps are read. The host opens it
	// and closes it. If it is nil, prompts are anchor-only (R10).
	DB *sqlx.DB
	// StoredZone is as in [app.Options].
	StoredZone *time.Location

	// History loads what prompts show.
	History ports.History
	// Sink takes prompts to the model.
	Sink ports.PromptSink
	// Commands and Calls are as in [app.PromptOptions].
	Commands ports.QuickCommands
	Calls    ports.CallLog

	// Now, Zone and Logger are as in [app.Options] and [app.PromptOptions].
	Now    func() time.Time
	Zone   *time.Location
	Logger *slog.Logger
}

// New returns the prompt engine of a host.
func New(host Host) *app.PromptEngine {
	panic(wire.Build(
		stampReader,
		dateOptions,
		app.NewSessionDate,
		wire.FieldsOf(new(Host), "DB", "History", "Sink", "Commands", "Calls", "Now", "Zone", "Logger"),
		wire.Struct(new(app.PromptOptions), "*"),
		app.NewPromptEngine,
	))
}

// stampReader returns a nil interface if db is nil, and not an interface that
// holds a nil *sqlstamp.Reader, so that app can tell that there is none.
func stampReader(db *sqlx.DB) ports.SessionStampReader {
	if db == nil {
		return nil
	}
	return sqlstamp.New(db)
}

// dateOptions gathers what the dates need. Wire cannot tell the host's two zones
// apart, whose types are the same.
func dateOptions(host Host, stamps ports.SessionStampReader) app.Options {
	return app.Options{
		Stamps:     stamps,
		Now:        host.Now,
		Zone:       host.Zone,
		StoredZone: host.StoredZone,
		Logger:     host.Logger,
	}
}
