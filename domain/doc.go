// Package domain holds the pure rules of sessiondate: what date a stored time
// stands for, which date a session's system prompt states, which user messages
// are preceded by a date-change notice, and what the notice says.
//
// Nothing here waits, reads a clock, or knows where messages are kept. Every
// function answers the same for the same arguments, for ever: that is what
// keeps the bytes of a prompt still. Rule numbers (R1 to R19) are those of the
// design; each is told in the README's table.
package domain
