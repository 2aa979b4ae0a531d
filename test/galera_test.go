//go:build cluster

package test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// galeraProvider is where Debian's galera-4 keeps the library.
const galeraProvider = "/usr/lib/galera/libgalera_smm.so"

// A galera is a MariaDB Galera cluster of three nodes on this machine.
type galera struct {
	dir   string
	nodes []*mariaDBServer
}

// startGalera installs what a cluster needs, if root may, and starts one. It is
// stopped when the spec or the container ends.
func startGalera(ctx context.Context) *galera {
	GinkgoHelper()
	Expect(findGalera(ctx)).To(Succeed())
	dir, err := os.MkdirTemp("", "galera")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	g := &galera{dir: dir}
	DeferCleanup(func() { Expect(g.processes()).To(BeEmpty(), "processes that the cluster left") })

	// The state transfer's rsync gives root's rights up and then cannot read what
	// is root's.
	var asUser []string
	if os.Geteuid() == 0 {
		account, err := osuser.Lookup("mysql")
		Expect(err).NotTo(HaveOccurred())
		uid, err := strconv.Atoi(account.Uid)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Chown(dir, uid, -1)).To(Succeed())
		asUser = []string{"--user=mysql"}
	}
	const nodes = 3
	ports := freePorts(3 * nodes)
	group := ports[:nodes]
	for i := range nodes {
		node := &mariaDBServer{socket: filepath.Join(dir, fmt.Sprint("s", i)), data: filepath.Join(dir, fmt.Sprint("data", i)), user: asUser}
		g.nodes = append(g.nodes, node)
		Expect(node.install(ctx)).To(Succeed())
		// The first node begins the cluster, and the others come to it one by one.
		node.start(ctx, "--wsrep-on=ON", "--wsrep-provider="+galeraProvider, "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
			"--wsrep-cluster-name="+filepath.Base(dir), "--wsrep-cluster-address=gcomm://"+strings.Join(group[:i], ","),
			"--wsrep-node-address="+group[i], "--wsrep-provider-options=gmcast.listen_addr=tcp://"+group[i]+";ist.recv_addr="+ports[nodes+i],
			"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address="+ports[2*nodes+i])
		Eventually(g.status).WithArguments(ctx, i, "wsrep_local_state_comment").WithContext(ctx).WithTimeout(time.Minute).Should(Equal("Synced"))
		Expect(g.status(ctx, i, "wsrep_cluster_size")).To(Equal(fmt.Sprint(i + 1)))
	}
	return g
}

// findGalera sees to it that the cluster's programs are there.
func findGalera(ctx context.Context) error {
	lookUp := func() error {
		if _, err := os.Stat(galeraProvider); err != nil {
			return err
		}
		for _, program := range []string{"wsrep_sst_rsync", "rsync"} {
			if _, err := exec.LookPath(program); err != nil {
				return err
			}
		}
		return lookUpMariaDB()
	}
	err := lookUp()
	if err == nil || os.Geteuid() != 0 {
		return err
	}
	if err := installPackages(ctx, "mariadb-server", "galera-4", "rsync"); err != nil {
		return err
	}
	return lookUp()
}

// freePorts returns addresses of this machine that nobody listens on.
func freePorts(n int) (addresses []string) {
	GinkgoHelper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		// Not until all are chosen, so that none is chosen twice.
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

// status is a node's status variable.
func (g *galera) status(ctx context.Context, node int, name string) (string, error) {
	db := connectMariaDB(g.nodes[node].socket, "", "")
	defer db.Close()
	var found, value string
	err := db.QueryRowContext(ctx, "SHOW STATUS LIKE '"+name+"'").Scan(&found, &value)
	return value, err
}

// execute runs a statement on a node.
func (g *galera) execute(ctx context.Context, node int, statement string) {
	GinkgoHelper()
	db := connectMariaDB(g.nodes[node].socket, "", "")
	defer db.Close()
	_, err := db.ExecContext(ctx, statement)
	Expect(err).NotTo(HaveOccurred())
}

// processes are those that have the cluster's folder in their command lines.
func (g *galera) processes() (found []string, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		// Processes come and go.
		if err == nil && bytes.Contains(line, []byte(g.dir)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found, err
}

// create makes a database with a schema on node 0, which is dropped when the spec
// ends, and waits until every node has it.
func (g *galera) create(ctx context.Context, schema string) (name string) {
	GinkgoHelper()
	name = fmt.Sprint("spec_", mariaDBDatabases.Add(1))
	first := connectMariaDB(g.nodes[0].socket, "", "multiStatements=true")
	DeferCleanup(func(ctx SpecContext) {
		defer first.Close()
		_, err := first.ExecContext(ctx, "DROP DATABASE "+name)
		Expect(err).NotTo(HaveOccurred())
	})
	_, err := first.ExecContext(ctx, "CREATE DATABASE "+name+" DEFAULT CHARACTER SET utf8mb4; USE "+name+"; "+schema)
	Expect(err).NotTo(HaveOccurred())
	for i := range g.nodes {
		Eventually(func() error {
			// The driver names the database when it connects.
			db := connectMariaDB(g.nodes[i].socket, name, "wsrep_sync_wait=1")
			defer db.Close()
			_, err := db.ExecContext(ctx, "SELECT 1 FROM message")
			return err
		}).WithContext(ctx).WithTimeout(10 * time.Second).Should(Succeed())
	}
	return name
}

// open opens a database on a node and, where that cannot be reached, on the one
// behind it, as through a load balancer.
func (g *galera) open(node int, database, parameters string) *sqlx.DB {
	GinkgoHelper()
	config, err := mysql.ParseDSN("root@unix(" + g.nodes[node].socket + ")/" + database + "?" + parameters)
	Expect(err).NotTo(HaveOccurred())
	config.Logger = &mysql.NopLogger{}
	config.DialFunc = func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		for i := range g.nodes {
			if conn, err = new(net.Dialer).DialContext(ctx, network, g.nodes[(node+i)%len(g.nodes)].socket); err == nil {
				break
			}
		}
		return conn, err
	}
	connector, err := mysql.NewConnector(config)
	Expect(err).NotTo(HaveOccurred())
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	DeferCleanup(db.Close)
	return db
}
