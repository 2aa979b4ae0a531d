// Package ports names what the application needs from outside, in the domain's
// words. These are outbound interfaces: the application calls them and an
// adapter implements them. Each comment is a contract, and each sentence of it
// is a spec in the port's contract suite under test/.
package ports
