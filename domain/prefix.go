package domain

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A PrefixUnit is one piece of a request in the order in which providers cache
// it: each tool, then the system prompt, then each message.
type PrefixUnit struct {
	// Name says which piece it is: "tools[0]", "system[0]", "messages[3]".
	Name string
	// Bytes is the piece as it is sent.
	Bytes []byte
}

// PrefixUnits returns the prefix units of a request's JSON body. The fields are
// those that a provider caches, in its order of caching: each element of a field
// that is an array is a unit, and any other field is one. A field that the body
// lacks has none. The error says so if the body is no JSON object.
func PrefixUnits(body []byte, fields ...string) ([]PrefixUnit, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(body, &values); err != nil {
		return nil, fmt.Errorf("find the prefix units of a request: %w", err)
	}
	if values == nil {
		return nil, errors.New("find the prefix units of a request: the body is null")
	}
	var units []PrefixUnit
	for _, field := range fields {
		value, ok := values[field]
		if !ok {
			continue
		}
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) != nil || elements == nil {
			units = append(units, PrefixUnit{field, value})
			continue
		}
		for i, element := range elements {
			units = append(units, PrefixUnit{fmt.Sprintf("%s[%d]", field, i), element})
		}
	}
	return units, nil
}

// Repeated says how much of a request's prefix a later request repeats.
type Repeated struct {
	// Units is how many whole units are repeated before the first that differs.
	Units int
	// Bytes is how many bytes are repeated before the first that differs.
	Bytes int
	// Total is how many bytes the earlier request's units have.
	Total int
}

// Whole reports whether every byte of the earlier request is repeated.
func (r Repeated) Whole() bool { return r.Bytes == r.Total }

// Repeats says how much of the prefix earlier is repeated by later. A byte is
// repeated if it and all before it are the same in both, unit by unit: no unit
// is compared with a part of another.
func Repeats(earlier, later []PrefixUnit) Repeated {
	var r Repeated
	for _, u := range earlier {
		r.Total += len(u.Bytes)
	}
	for i, u := range earlier {
		if i == len(later) {
			break
		}
		n := commonPrefix(u.Bytes, later[i].Bytes)
		r.Bytes += n
		if n < len(u.Bytes) || n < len(later[i].Bytes) {
			break
		}
		r.Units++
	}
	return r
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
