package app

import (
	"context"
	"log/slog"
	"time"

	"sessiondate/domain"
)

// The names of a call's attributes in the log. Those that begin with gen_ai or
// error are OpenTelemetry's (semantic conventions for generative AI, semconv v1.41 and the
// newer cache_write); those that begin with sessiondate are ours, for there is
// none.
const (
	attrErrorType       = "error.type"
	attrOperation       = "gen_ai.operation.name"
	attrProvider        = "gen_ai.provider.name"
	attrModel           = "gen_ai.response.model"
	attrConversation    = "gen_ai.conversation.id"
	attrResponse        = "gen_ai.response.id"
	attrInput           = "gen_ai.usage.input_tokens"
	attrOutput          = "gen_ai.usage.output_tokens"
	attrCacheRead       = "gen_ai.usage.cache_read.input_tokens"
	attrCacheWrite      = "gen_ai.usage.cache_write.input_tokens"
	attrCacheCreation   = "gen_ai.usage.cache_creation.input_tokens"
	attrPurpose         = "sessiondate.call.purpose"
	attrPrefixHash      = "sessiondate.prefix.hash"
	attrUnits           = "sessiondate.prefix.units"
	attrPreviousUnits   = "sessiondate.prefix.previous_units"
	attrRepeatedUnits   = "sessiondate.prefix.repeated_units"
	attrChangedSections = "changedSections"
	attrChangedTools    = "changedTools"
	attrCacheMiss       = "sessiondate.cache_miss_reason"
)

// recordTimeout bounds how long a call that was cut off waits to be recorded.
const recordTimeout = 2 * time.Second

// lastCall returns the session's newest call that was answered, and the zero
// Call if there is none.
func (e *PromptEngine) lastCall(ctx context.Context, sessionID string) (domain.Call, error) {
	if e.calls == nil {
		return domain.Call{}, nil
	}
	call, _, err := e.calls.LastCall(ctx, sessionID)
	return call, err
}

// record logs a call, and what it failed with, and adds it to the log of calls.
// It does so also for a call that was cut off by its context.
func (e *PromptEngine) record(ctx context.Context, call domain.Call, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	attrs := callAttrs(call)
	if failure != nil {
		attrs = append(attrs, slog.String(attrErrorType, errorType(failure)))
	}
	e.logger.LogAttrs(ctx, slog.LevelInfo, "model call", attrs...)
	if e.calls == nil {
		return
	}
	if err := e.calls.Record(ctx, call); err != nil {
		e.logger.LogAttrs(ctx, slog.LevelError, "call is not recorded",
			slog.String("session", call.SessionID), errorAttr(err))
	}
}

func callAttrs(call domain.Call) []slog.Attr {
	attrs := []slog.Attr{
		slog.String(attrOperation, "chat"),
		slog.String(attrConversation, call.SessionID),
		slog.String(attrPurpose, string(call.Purpose)),
		slog.Int(attrUnits, len(call.Fingerprint)),
		slog.Int(attrPreviousUnits, call.Comparison.PreviousUnits),
		slog.Int(attrRepeatedUnits, call.Comparison.RepeatedUnits),
		slog.Any(attrChangedSections, call.Comparison.ChangedSections),
		slog.Any(attrChangedTools, call.Comparison.ChangedTools),
	}
	if n := len(call.Fingerprint); n > 0 {
		attrs = append(attrs, slog.String(attrPrefixHash, call.Fingerprint[n-1].Chained.String()))
	}
	for _, a := range []struct{ name, value string }{
		{attrProvider, call.Provider}, {attrModel, call.Model}, {attrResponse, call.ReplyID}, {attrCacheMiss, call.CacheMiss},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	for _, a := range []struct {
		name  string
		count domain.TokenCount
	}{
		{attrInput, call.Usage.Input},
		{attrOutput, call.Usage.Output},
		{attrCacheRead, call.Usage.CacheRead},
		{attrCacheWrite, call.Usage.CacheWrite},
		{attrCacheCreation, call.Usage.CacheWrite},
	} {
		if a.count.Reported {
			attrs = append(attrs, slog.Int64(a.name, a.count.Tokens))
		}
	}
	if call.Failed {
		attrs = append(attrs, slog.Bool("failed", true))
	}
	return attrs
}
