// Package app holds the use cases: finding out what a session's prompt must say
// of the date ([SessionDate], for a harness with message types of its own), and
// building and sending the whole prompt ([PromptEngine]).
package app
