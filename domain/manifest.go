package domain

// A Manifest says what a prompt consists of, in tokens.
type Manifest struct {
	SystemPrompt int
	Tools        int
	// SessionMessages counts the messages, date-change notices included: what is
	// counted is what is sent.
	SessionMessages int
	// Images is how many images there are. Their tokens are counted nowhere:
	// each provider has a rule of its own for them.
	Images int
}

// Total returns the tokens of the whole prompt, without its images.
func (m Manifest) Total() int { return m.SystemPrompt + m.Tools + m.SessionMessages }

// Manifest returns the prompt's manifest. Count counts the tokens of a text. The
// tokens that a protocol adds around the texts are not counted.
func (p Prompt) Manifest(count func(string) int) Manifest {
	manifest := Manifest{SystemPrompt: count(p.System())}
	for _, t := range p.Tools {
		manifest.Tools += count(t.Name) + count(t.Description) + count(t.Schema)
	}
	for _, m := range p.Messages {
		manifest.SessionMessages += m.Tokens(count)
		for _, part := range m.Parts {
			if part.IsImage() {
				manifest.Images++
			}
		}
	}
	return manifest
}

// Tokens returns the tokens of a message's texts and tool calls.
func (m Message) Tokens(count func(string) int) int {
	n := 0
	if m.Text != "" {
		n += count(m.Text)
	}
	for _, p := range m.Parts {
		if p.Text != "" {
			n += count(p.Text)
		}
	}
	for _, c := range m.ToolCalls {
		n += count(c.Name) + count(c.Arguments)
	}
	return n
}
