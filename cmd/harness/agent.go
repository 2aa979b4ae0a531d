package main

import (
	"sessiondate/adapters/shelltool"
	"sessiondate/app"
	"sessiondate/domain"
)

// agentPrompt asks for a prompt of the reference harness's agent.
func agentPrompt(sessionID string, w domain.Wording) app.PromptRequest {
	r := app.PromptRequest{
		SessionID: sessionID,
		Sections: []domain.Section{
			{Name: "persona", Text: persona},
			{Name: "environment", Text: environment},
			{Name: domain.CurrentDateSection},
			{Name: "tools", Text: fileGuidance},
		},
		Tools:   []domain.Tool{readFile},
		Wording: w,
	}
	if !w.NoShell {
		r.Sections = append(r.Sections, domain.Section{Name: "shell", Text: shellGuidance})
		r.Tools = append(r.Tools, shell)
	}
	return r
}

// chatPrompt asks for a prompt of harness chat, whose shell runs date alone.
func chatPrompt(sessionID string, w domain.Wording) app.PromptRequest {
	r := app.PromptRequest{
		SessionID: sessionID,
		Sections: []domain.Section{
			{Name: "persona", Text: chatPersona},
			{Name: domain.CurrentDateSection},
		},
		Wording: w,
	}
	if !w.NoShell {
		r.Tools = []domain.Tool{dateShell}
	}
	return r
}

const (
	chatPersona = `You are a helpful assistant. Answer in the language of the question, and be brief.`

	persona = `You are the operations assistant of a small team. You look after its nightly jobs, its servers and its dashboards.

Answer in the language of the question. Be brief: say what you found, what you did, and what is still open. Where you are not sure, say so and say what would settle it. Quote numbers, dates and paths as they are, and never round a number that somebody may act on.`

	environment = `## Environment

- Hosts: export-1 (Debian 12), db-1 (Debian 12, MariaDB 10.11)
- Logs: /var/log/export, one file a night, rotated after four weeks
- Exports: /var/lib/export, on a disk of its own
- Time zone of logs and messages: Asia/Shanghai`

	fileGuidance = `## Files

Read a file before you speak of it. Logs are long: ask for the lines that you need.`

	shellGuidance = `## Shell

Commands run as an ordinary user on export-1. Say what a command changes before you run it. Never remove what you have not listed first.`
)

var (
	readFile = domain.Tool{
		Name:        "read_file",
		Description: "Read lines of a text file.",
		Schema: `{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Absolute path of the file."},` +
			`"offset":{"type":"integer","minimum":0,"description":"First line to read, from 0."},` +
			`"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"How many lines to read."}},` +
			`"required":["path"],"additionalProperties":false}`,
	}
	dateShell = domain.Tool{
		Name:        shelltool.Name,
		Description: "Run a command in the shell and return what it prints. Only the command date is there.",
		Schema: `{"type":"object","properties":{` +
			`"command":{"type":"string","enum":["date"],"description":"The command line."}},` +
			`"required":["command"],"additionalProperties":false}`,
	}
	shell = domain.Tool{
		Name:        "shell",
		Description: "Run a command in the shell and return what it prints.",
		Schema: `{"type":"object","properties":{` +
			`"command":{"type":"string","description":"The command line."}},` +
			`"required":["command"],"additionalProperties":false}`,
	}
)
