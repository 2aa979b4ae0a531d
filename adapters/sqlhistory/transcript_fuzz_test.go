package sqlhistory

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"unicode/utf8"

	"sessiondate/domain"
)

// refusal is how an import says what is wrong with a file.
var refusal = regexp.MustCompile(`^(line [1-9]\d*: .+|the transcript has no message)$`)

// FuzzReadTranscript holds that any file is either refused, with the line that is
// wrong, or imported, and that what is imported comes back from the store as it
// was.
func FuzzReadTranscript(f *testing.F) {
	files, err := filepath.Glob("../../test/testdata/cases/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"", "\n", "{}", "null", "[]", "\ufeff{\"role\":\"user\",\"content\":\"\"}", "{\"role\":\"user\",\"content\":\"a\"}\r\n\r\n",
		`{"transcript":1,"session":"s"}`, `{"transcript":2}`, `{"transcript":1}` + "\n" + `{"role":"user","content":"a","created_at":"2026-10-12 08:00:00"}`,
		`{"role":"system","content":"a"}`, `{"role":"user","content":1}`, `{"role":"user","content":"a","role":"tool"}`, `{"role":"user","content":"a"} x`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","url":"u"},{"type":"image","media_type":"image/png","data":"aGk="}]}`,
		`{"role":"user","content":[{"type":"image","media_type":"image/png","data":"?"}]}`, `{"role":"user","content":[]}`,
		`{"role":"assistant","tool_calls":[{"id":"c","name":"n","arguments":{"z":1,"a":1.50}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"c","name":"n","arguments":"{\"z\": 1}"}]}` + "\n" + `{"role":"tool","tool_call_id":"c","content":"r","tool_failed":true}`,
		"{\"role\":\"user\",\"content\":\"\xff\"}", `{"role":"user","content":"\u0000\ud800"}`, `{"role":"user","content":"a","created_at":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		transcript, err := ReadTranscript(bytes.NewReader(text))
		if err != nil {
			if !refusal.MatchString(err.Error()) || !reflect.DeepEqual(transcript, Transcript{}) {
				t.Fatalf("refused with %q and %v", err, transcript)
			}
			return
		}
		for i, m := range transcript.Messages {
			if m.ID != "" || m.Role == 0 || !utf8.ValidString(m.Text) {
				t.Fatalf("message %d is %#v", i, m)
			}
			parts, err := encodeParts(m.Parts)
			if err != nil {
				t.Fatal(err)
			}
			calls, err := encodeToolCalls(m.ToolCalls)
			if err != nil {
				t.Fatal(err)
			}
			back, err := row{
				Role: m.Role.String(), Content: m.Text, Parts: parts, ToolCalls: calls,
				ToolCallID: orNull(m.ToolCallID), ToolFailed: m.ToolFailed, CreatedAt: orNull(m.CreatedAt),
			}.message()
			if err != nil || !reflect.DeepEqual(back, m) {
				t.Fatalf("message %d is\n%#v (%v), not\n%#v", i, back, err, m)
			}
			if _, err := domain.StoredDate(m.CreatedAt); err != nil && m.CreatedAt != "" {
				t.Fatalf("message %d has the stored time %q, which is no date", i, m.CreatedAt)
			}
		}
	})
}
