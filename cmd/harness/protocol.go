package main

import (
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

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
	// provider is the name under which harness chat knows the protocol's SDK.
	provider string
	// model is the model that is asked for unless another is named.
	model string
	// cacheOrder are the fields of a body in the order of caching.
	cacheOrder []string
	// encoder returns the protocol's encoder for a model. An empty base URL is
	// the provider's own.
	encoder func(model, baseURL string) encoder
}

var protocols = []protocol{
	{"chat", "openai-chat", "gpt-5.6", openaichat.CacheOrder(), func(model, baseURL string) encoder {
		return openaichat.New(openaiClient(baseURL), model)
	}},
	{"responses", "openai-responses", "gpt-5.6", openairesponses.CacheOrder(), func(model, baseURL string) encoder {
		return openairesponses.New(openaiClient(baseURL), model)
	}},
	{"messages", "anthropic", "claude-opus-5", anthropicmessages.CacheOrder(), func(model, baseURL string) encoder {
		var options []anthropicoption.RequestOption
		if baseURL != "" {
			options = append(options, anthropicoption.WithBaseURL(baseURL))
		}
		return anthropicmessages.New(anthropic.NewClient(options...), model, maxTokens)
	}},
}

func openaiClient(baseURL string) openai.Client {
	if baseURL == "" {
		return openai.NewClient()
	}
	return openai.NewClient(openaioption.WithBaseURL(baseURL))
}

func protocolNames() []string {
	var names []string
	for _, p := range protocols {
		names = append(names, p.name)
	}
	return names
}

func providerNames() []string {
	var names []string
	for _, p := range protocols {
		names = append(names, p.provider)
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

func protocolOfProvider(provider string) (protocol, error) {
	for _, p := range protocols {
		if p.provider == provider {
			return p, nil
		}
	}
	return protocol{}, usageError{fmt.Errorf("--provider %q is not %s", provider, strings.Join(providerNames(), ", "))}
}
