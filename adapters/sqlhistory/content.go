package sqlhistory

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"sessiondate/domain"
)

// part is a part of a message's content, as JSON in the table and in
// transcripts.
type part struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	URL       string `json:"url,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
}

// toolCall is a call of an assistant's message, as JSON in the table and in
// transcripts. Arguments is a JSON string that holds the text which the model
// wrote. In transcripts it may be the object itself.
type toolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func decodeParts(data []byte) ([]domain.Part, error) {
	var parts []part
	if err := decodeStrictly(data, &parts); err != nil {
		return nil, fmt.Errorf("decode parts: %w", err)
	}
	decoded := make([]domain.Part, len(parts))
	for i, p := range parts {
		var err error
		if decoded[i], err = p.decode(); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
	}
	return decoded, nil
}

func (p part) decode() (domain.Part, error) {
	switch {
	case p.Type == "text" && p == part{Type: p.Type, Text: p.Text}:
		return domain.Part{Text: p.Text}, nil
	case p.Type == "text":
		return domain.Part{}, errors.New("a text part has a text and nothing else")
	case p.Type != "image":
		return domain.Part{}, fmt.Errorf("type %q is not text or image", p.Type)
	case p.URL != "" && p == part{Type: p.Type, URL: p.URL}:
		return domain.Part{Image: domain.Image{URL: p.URL}}, nil
	case p.MediaType == "" || p.Data == "" || p.URL != "" || p.Text != "":
		return domain.Part{}, errors.New("an image part has either a url, or a media_type and data")
	}
	if _, err := base64.StdEncoding.DecodeString(p.Data); err != nil {
		return domain.Part{}, fmt.Errorf("data of the image: %w", err)
	}
	return domain.Part{Image: domain.Image{MediaType: p.MediaType, Data: p.Data}}, nil
}

func encodeParts(parts []domain.Part) (sql.NullString, error) {
	if parts == nil {
		return sql.NullString{}, nil
	}
	encoded := make([]part, len(parts))
	for i, p := range parts {
		if p.IsImage() {
			encoded[i] = part{Type: "image", URL: p.Image.URL, MediaType: p.Image.MediaType, Data: p.Image.Data}
		} else {
			encoded[i] = part{Type: "text", Text: p.Text}
		}
	}
	return encode(encoded)
}

func decodeToolCalls(data []byte) ([]domain.ToolCall, error) {
	var calls []toolCall
	if err := decodeStrictly(data, &calls); err != nil {
		return nil, fmt.Errorf("decode tool calls: %w", err)
	}
	decoded := make([]domain.ToolCall, len(calls))
	for i, c := range calls {
		if c.ID == "" || c.Name == "" {
			return nil, fmt.Errorf("tool call %d: a call has an id and a name", i)
		}
		arguments := string(c.Arguments)
		switch {
		case len(c.Arguments) == 0:
		case c.Arguments[0] == '"':
			if err := json.Unmarshal(c.Arguments, &arguments); err != nil {
				return nil, fmt.Errorf("tool call %d: %w", i, err)
			}
		case c.Arguments[0] != '{':
			return nil, fmt.Errorf("tool call %d: arguments are neither an object nor a string", i)
		}
		decoded[i] = domain.ToolCall{ID: c.ID, Name: c.Name, Arguments: arguments}
	}
	return decoded, nil
}

func encodeToolCalls(calls []domain.ToolCall) (sql.NullString, error) {
	if len(calls) == 0 {
		return sql.NullString{}, nil
	}
	encoded := make([]toolCall, len(calls))
	for i, c := range calls {
		arguments, err := encode(c.Arguments)
		if err != nil {
			return sql.NullString{}, err
		}
		encoded[i] = toolCall{ID: c.ID, Name: c.Name, Arguments: json.RawMessage(arguments.String)}
	}
	return encode(encoded)
}

// encode returns v as JSON in which < and > stand as they are, so that stored
// content can be searched and read.
func encode(v any) (sql.NullString, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return sql.NullString{}, err
	}
	return sql.NullString{String: string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), Valid: true}, nil
}

// decodeStrictly decodes one JSON value, with no field that v does not know and
// nothing behind it.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := "the line"
		if wrong.Field != "" {
			where = wrong.Field
		}
		return fmt.Errorf("%s is a JSON %s, which does not belong there", where, wrong.Value)
	}
	if err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}
