package domain

// A ToolMismatch is a call or a result that has no counterpart in a window.
type ToolMismatch struct {
	// MessageID is the id of the assistant message that called, or of the tool
	// message that answers no call.
	MessageID string
	// CallID is the id of the call.
	CallID string
	// Unanswered says that a call has no result; otherwise a result has no call.
	Unanswered bool
}

// OrderToolResults returns the messages in the order that every protocol takes:
// the results of an assistant message's calls stand right behind it, in the
// order of the calls. A call without a result gets a failed one that says so, in
// the text noResult. A result without a call before it, or a second one for the
// same call, is left out. Messages keep their identity and their text, and all
// others keep their order. What does not match is returned beside.
//
// Some models number their calls anew in each reply, so a result belongs to the
// newest assistant message that has a call of its id. Some give several calls of
// one reply the same id: those are answered in order.
//
// Messages that are in that order are returned as they are.
func OrderToolResults(messages []Message, noResult string) ([]Message, []ToolMismatch) {
	if ordered(messages) {
		return messages, nil
	}
	type place struct{ message, call int }
	open := make(map[string][]place)
	results := make(map[place]int)
	var mismatches []ToolMismatch
	for i, m := range messages {
		switch m.Role {
		case RoleAssistant:
			for _, c := range m.ToolCalls {
				delete(open, c.ID)
			}
			for j, c := range m.ToolCalls {
				open[c.ID] = append(open[c.ID], place{i, j})
			}
		case RoleTool:
			called := open[m.ToolCallID]
			if len(called) == 0 {
				mismatches = append(mismatches, ToolMismatch{MessageID: m.ID, CallID: m.ToolCallID})
				continue
			}
			results[called[0]] = i
			open[m.ToolCallID] = called[1:]
		}
	}

	result := make([]Message, 0, len(messages))
	for i, m := range messages {
		if m.Role == RoleTool {
			continue
		}
		result = append(result, m)
		if m.Role != RoleAssistant {
			continue
		}
		for j, c := range m.ToolCalls {
			if answer, ok := results[place{i, j}]; ok {
				result = append(result, messages[answer])
				continue
			}
			result = append(result, Message{Role: RoleTool, ToolCallID: c.ID, ToolFailed: true, Text: noResult})
			mismatches = append(mismatches, ToolMismatch{MessageID: m.ID, CallID: c.ID, Unanswered: true})
		}
	}
	return result, mismatches
}

// ordered reports whether each assistant message is followed by the results of
// its calls, in their order, and no result stands elsewhere.
func ordered(messages []Message) bool {
	for i := 0; i < len(messages); i++ {
		if messages[i].Role == RoleTool {
			return false
		}
		if messages[i].Role != RoleAssistant {
			continue
		}
		for _, c := range messages[i].ToolCalls {
			i++
			if i == len(messages) || messages[i].Role != RoleTool || messages[i].ToolCallID != c.ID {
				return false
			}
		}
	}
	return true
}
