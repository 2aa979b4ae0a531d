package test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The specs run against a real MariaDB server, which the run starts itself, on a
// socket and in a folder of its own. Where the server is not installed, a run
// that is CI's or root's installs Debian's packages. Elsewhere its specs are
// skipped, and one line at the end says so.

// mariaDBSocket is the server's socket, and empty if there is no server.
var mariaDBSocket string

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	if !Label("mariadb").MatchesLabelFilter(GinkgoLabelFilter()) {
		return nil
	}
	if err := findMariaDB(ctx); err != nil {
		Expect(os.Getenv("CI")).To(BeEmpty(), "CI needs MariaDB: %v", err)
		AddReportEntry("SKIPPED: every spec on MariaDB, which is not installed: "+err.Error(), ReportEntryVisibilityAlways)
		return nil
	}
	return []byte(startMariaDB(ctx))
}, func(socket []byte) {
	mariaDBSocket = string(socket)
}, NodeTimeout(5*time.Minute))

// findMariaDB sees to it that the server's programs are there.
func findMariaDB(ctx context.Context) error {
	err := lookUpMariaDB()
	if err == nil || os.Getenv("CI") == "" && os.Geteuid() != 0 {
		return err
	}
	if err := installPackages(ctx, "mariadb-server-core", "mariadb-client-core"); err != nil {
		return err
	}
	return lookUpMariaDB()
}

// installPackages installs Debian's packages.
func installPackages(ctx context.Context, packages ...string) error {
	for _, args := range [][]string{
		{"update"},
		append([]string{"install", "--yes", "--no-install-recommends"}, packages...),
	} {
		apt := exec.CommandContext(ctx, "apt-get", args...)
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := apt.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, output)
		}
	}
	return nil
}

// lookUpMariaDB reports which of the server's programs is missing.
func lookUpMariaDB() error {
	// Debian keeps servers where an ordinary user does not look for programs.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin"); err != nil {
		return err
	}
	for _, program := range []string{"mariadbd", "mariadb-install-db", "my_print_defaults"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	return nil
}

// A mariaDBServer is a server on a socket and in a folder of its own.
type mariaDBServer struct {
	socket, data string
	user         []string
	process      *exec.Cmd
}

// startMariaDB installs and starts a server and returns its socket. It is stopped
// when the suite ends.
func startMariaDB(ctx context.Context) string {
	s := installMariaDB(ctx)
	s.start(ctx)
	return s.socket
}

// installMariaDB makes the folder of a server. It is removed when the spec or the
// suite ends.
func installMariaDB(ctx context.Context) *mariaDBServer {
	dir, err := os.MkdirTemp("", "mdb")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	s := &mariaDBServer{socket: filepath.Join(dir, "s"), data: filepath.Join(dir, "data")}
	Expect(s.install(ctx)).To(Succeed())
	return s
}

// start starts the server, which is stopped when the spec or the suite ends,
// unless something else has ended it.
func (s *mariaDBServer) start(ctx context.Context, flags ...string) {
	Expect(s.run(ctx, flags...)).To(Succeed())
	process := s.process
	DeferCleanup(func() error { return stop(process) })
}

// install makes the server's folder.
func (s *mariaDBServer) install(ctx context.Context) error {
	if os.Geteuid() == 0 && s.user == nil {
		s.user = []string{"--user=root"}
	}
	install := exec.CommandContext(ctx, "mariadb-install-db",
		append([]string{"--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir=" + s.data}, s.user...)...)
	if output, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, output)
	}
	return nil
}

// run starts the server and waits until it answers.
func (s *mariaDBServer) run(ctx context.Context, flags ...string) error {
	args := append([]string{"--no-defaults", "--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--datadir=" + s.data, "--socket=" + s.socket}, s.user...)
	var log bytes.Buffer
	s.process = exec.Command("mariadbd", append(args, flags...)...)
	s.process.Stdout, s.process.Stderr = &log, &log
	if err := s.process.Start(); err != nil {
		return err
	}
	db, err := sqlx.Open("mysql", "root@unix("+s.socket+")/")
	if err != nil {
		return err
	}
	defer db.Close()
	for range 600 {
		if err = db.PingContext(ctx); err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("mariadbd does not answer: %w: %s", err, &log), s.process.Process.Kill())
}

// stop stops a server, unless something else has ended it.
func stop(server *exec.Cmd) error {
	if server.ProcessState != nil {
		return nil
	}
	return errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait())
}

// kill kills the server as nothing can help it.
func (s *mariaDBServer) kill() {
	GinkgoHelper()
	Expect(s.process.Process.Kill()).To(Succeed())
	_ = s.process.Wait()
}

// connectMariaDB opens a database of the server. Parameters are those of a DSN,
// such as "parseTime=true&loc=UTC".
func connectMariaDB(socket, database, parameters string) *sqlx.DB {
	GinkgoHelper()
	config, err := mysql.ParseDSN("root@unix(" + socket + ")/" + database + "?" + parameters)
	Expect(err).NotTo(HaveOccurred())
	// The driver prints the breaks that specs make.
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	Expect(err).NotTo(HaveOccurred())
	return sqlx.NewDb(sql.OpenDB(connector), "mysql")
}

// mariaDBDatabases counts the databases made by this process.
var mariaDBDatabases atomic.Int64

// newMariaDB returns the name of a new and empty database on the server, which
// is dropped when the spec ends.
func newMariaDB(ctx context.Context) string {
	GinkgoHelper()
	if mariaDBSocket == "" {
		Skip("MariaDB is not installed")
	}
	name := fmt.Sprintf("spec_%d_%d", GinkgoParallelProcess(), mariaDBDatabases.Add(1))
	db := connectMariaDB(mariaDBSocket, "", "")
	DeferCleanup(func(ctx SpecContext) {
		defer db.Close()
		_, err := db.ExecContext(ctx, "DROP DATABASE "+name)
		Expect(err).NotTo(HaveOccurred())
	})
	_, err := db.ExecContext(ctx, "CREATE DATABASE "+name+" DEFAULT CHARACTER SET utf8mb4")
	Expect(err).NotTo(HaveOccurred())
	return name
}

// openMariaDB opens a database that newMariaDB made. It is closed when the spec
// ends.
func openMariaDB(name, parameters string) *sqlx.DB {
	GinkgoHelper()
	db := connectMariaDB(mariaDBSocket, name, parameters)
	DeferCleanup(db.Close)
	return db
}

// createStore runs a schema, of as many statements as it has, in a database that
// newMariaDB made.
func createStore(ctx context.Context, name, schema string) {
	GinkgoHelper()
	_, err := openMariaDB(name, "multiStatements=true").ExecContext(ctx, schema)
	Expect(err).NotTo(HaveOccurred())
}
