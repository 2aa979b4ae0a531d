// Package sessiondate keeps the date in an agent's system prompt from spoiling
// the provider's prompt cache, without ever telling the model a wrong day.
//
// The system prompt states the date of the session's first user message, for
// ever. Each new day is told in a <date-change> tag in front of its first user
// message, in the request alone, derived from stored times each time anew. So no
// byte that was sent once changes later.
//
// [New] wires the whole prompt pipeline. A harness with message types of its own
// needs less: see [sessiondate/app.SessionDate].
package sessiondate
