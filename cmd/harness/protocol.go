package main

import (
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"

	"sessiondate/adapters/anthropicmessages"
	"sessiondate/adapters/openaichat"
	"sessiondate/adapters/openairesponses"
	"sessiondate/domain"
	"sessiondate/ports"
)

// maxTokens is the longest reply that is asked for where a protocol wants to
// know.
const maxTokens = 8192

// An encoder knows the exact body of the request for a prompt, beside being able
// to send it.
type encoder interface {
	ports.PromptSink
	Body(domain.Prompt) ([]byte, error)
}

// A protocol is one of those that providers speak.
type protocol struct {
	name string
	// model is the model that is asked for unless another is named.
	model string
	// cacheOrder are the fields of a body in the order of caching.
	cacheOrder []string
	encoder    func(model string) encoder
}

var protocols = []protocol{
	{"chat", "gpt-5.6", openaichat.CacheOrder(), func(model string) encoder {
		return openaichat.New(openai.NewClient(), model)
	}},
	{"responses", "gpt-5.6", openairesponses.CacheOrder(), func(model string) encoder {
		return openairesponses.New(openai.NewClient(), model)
	}},
	{"messages", "claude-opus-5", anthropicmessages.CacheOrder(), func(model string) encoder {
		return anthropicmessages.New(anthropic.NewClient(anthropicoption.WithoutEnvironmentDefaults()), model, maxTokens)
	}},
}

func protocolNames() []string {
	var names []string
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return names
}

func protocolNamed(name string) (protocol, error) {
	for _, p := range protocols {
		if p.name == name {
			return p, nil
		}
	}
	return protocol{}, usageError{fmt.Errorf("--protocol %q is not %s", name, strings.Join(protocolNames(), ", "))}
}
