package analytics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// An encoder writes a call as JSON. It writes the same bytes as encoding/json
// does with SetEscapeHTML(false): the keys of maps are sorted, invalid UTF-8
// becomes U+FFFD, and HTML characters stay unchanged. It passes values of other
// types to encoding/json.
type encoder struct {
	buf     []byte
	members []member // of the objects being written, a stack
	other   *json.Encoder
	ids     idSource
	clock   clock
}

type member struct {
	key   string
	value interface{}
}

var encoders = sync.Pool{New: func() interface{} {
	e := &encoder{buf: make([]byte, 0, 1024)}
	e.other = json.NewEncoder(e)
	e.other.SetEscapeHTML(false)
	return e
}}

// keptBytes limits the size of a buffer that is kept for the next call.
const keptBytes = 2 * maxMessageBytes

func (e *encoder) release() {
	if cap(e.buf) <= keptBytes {
		encoders.Put(e)
	}
}

// Write appends bytes that encoding/json has written.
func (e *encoder) Write(p []byte) (int, error) {
	e.buf = append(e.buf, p...)
	return len(p), nil
}

// encode writes the call into buf, as the JSON of its message.
func (e *encoder) encode(m *call, now time.Time) error {
	b := append(e.buf[:0], `{"type":"`...)
	b = append(b, m.kind...)
	if m.messageId == "" {
		b = append(b, `","messageId":"`...)
		var err error
		if b, err = e.ids.append(b); err != nil {
			return fmt.Errorf("analytics: messageId: %w", err)
		}
		b = append(b, '"')
	} else {
		if utf8.RuneCountInString(m.messageId) > maxIdLength {
			return fmt.Errorf("analytics: the messageId is over %d characters", maxIdLength)
		}
		b = append(b, `","messageId":`...)
		b = appendString(b, m.messageId)
	}
	if m.timestamp == "" {
		b = append(b, `,"timestamp":"`...)
		b = e.clock.append(b, now)
		b = append(b, '"')
	} else {
		b = append(b, `,"timestamp":`...)
		b = appendString(b, m.timestamp)
	}
	b = appendField(b, `,"userId":`, m.userId)
	b = appendField(b, `,"anonymousId":`, m.anonymousId)
	b = appendField(b, `,"previousId":`, m.previousId)
	b = appendField(b, `,"groupId":`, m.groupId)
	b = appendField(b, `,"event":`, m.event)
	b = appendField(b, `,"category":`, m.category)
	b = appendField(b, `,"name":`, m.name)
	e.buf = b
	if err := e.object("traits", m.traits); err != nil {
		return err
	}
	if err := e.object("properties", m.properties); err != nil {
		return err
	}
	if err := e.object("context", m.context); err != nil {
		return err
	}
	if err := e.object("integrations", m.integrations); err != nil {
		return err
	}
	e.buf = append(e.buf, '}')
	return nil
}

func appendField(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, key...), value)
}

func (e *encoder) object(name string, object map[string]interface{}) error {
	if len(object) == 0 {
		return nil
	}
	e.buf = append(e.buf, ',', '"')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '"', ':')
	if err := e.mapping(object, 0); err != nil {
		return fmt.Errorf("analytics: %s: %w", name, err)
	}
	return nil
}

// maxDepth is the number of levels that the encoder writes itself. It passes
// deeper values to encoding/json, which detects maps that contain themselves.
const maxDepth = 64

func (e *encoder) value(v interface{}, depth int) error {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case string:
		e.buf = appendString(e.buf, v)
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	case int:
		e.buf = strconv.AppendInt(e.buf, int64(v), 10)
	case int8:
		e.buf = strconv.AppendInt(e.buf, int64(v), 10)
	case int16:
		e.buf = strconv.AppendInt(e.buf, int64(v), 10)
	case int32:
		e.buf = strconv.AppendInt(e.buf, int64(v), 10)
	case int64:
		e.buf = strconv.AppendInt(e.buf, v, 10)
	case uint:
		e.buf = strconv.AppendUint(e.buf, uint64(v), 10)
	case uint8:
		e.buf = strconv.AppendUint(e.buf, uint64(v), 10)
	case uint16:
		e.buf = strconv.AppendUint(e.buf, uint64(v), 10)
	case uint32:
		e.buf = strconv.AppendUint(e.buf, uint64(v), 10)
	case uint64:
		e.buf = strconv.AppendUint(e.buf, v, 10)
	case float64:
		return e.float(v, 64)
	case float32:
		return e.float(float64(v), 32)
	case map[string]interface{}:
		if v == nil || depth >= maxDepth {
			return e.foreign(v)
		}
		return e.mapping(v, depth+1)
	case []interface{}:
		if v == nil || depth >= maxDepth {
			return e.foreign(v)
		}
		e.buf = append(e.buf, '[')
		for i, item := range v {
			if i > 0 {
				e.buf = append(e.buf, ',')
			}
			if err := e.value(item, depth+1); err != nil {
				return err
			}
		}
		e.buf = append(e.buf, ']')
	case []string:
		if v == nil {
			return e.foreign(v)
		}
		e.buf = append(e.buf, '[')
		for i, item := range v {
			if i > 0 {
				e.buf = append(e.buf, ',')
			}
			e.buf = appendString(e.buf, item)
		}
		e.buf = append(e.buf, ']')
	default:
		return e.foreign(v)
	}
	return nil
}

func (e *encoder) mapping(object map[string]interface{}, depth int) error {
	first := len(e.members)
	for key, value := range object {
		e.members = append(e.members, member{key, value})
	}
	last := len(e.members)
	sortMembers(e.members[first:last])
	separator := byte('{')
	for i := first; i < last; i++ {
		// The loop uses the index, because nested values may make the stack grow and
		// move in memory.
		e.buf = appendString(append(e.buf, separator), e.members[i].key)
		e.buf = append(e.buf, ':')
		if err := e.value(e.members[i].value, depth); err != nil {
			return err
		}
		separator = ','
	}
	if separator == '{' {
		e.buf = append(e.buf, '{')
	}
	e.buf = append(e.buf, '}')
	clear(e.members[first:last]) // otherwise the caller's values would stay in memory
	e.members = e.members[:first]
	return nil
}

func sortMembers(members []member) {
	if len(members) > 12 {
		slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
		return
	}
	for i := 1; i < len(members); i++ {
		m := members[i]
		j := i
		for ; j > 0 && m.key < members[j-1].key; j-- {
			members[j] = members[j-1]
		}
		members[j] = m
	}
}

// foreign passes a value to encoding/json.
func (e *encoder) foreign(v interface{}) error {
	start := len(e.buf)
	if err := e.other.Encode(v); err != nil {
		return err
	}
	e.buf = e.buf[:len(e.buf)-1] // the line feed that Encode adds
	if written := e.buf[start:]; !utf8.Valid(written) {
		// encoding/json doesn't check the strings of a MarshalJSON or a RawMessage.
		// With invalid UTF-8 in them, the gateway would refuse the whole batch.
		e.buf = append(e.buf[:start], bytes.ToValidUTF8(written, []byte("\uFFFD"))...)
	}
	return nil
}

// float writes a number as encoding/json and JavaScript do.
func (e *encoder) float(f float64, bits int) error {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return e.foreign(f) // encoding/json returns the error
	}
	size := math.Abs(f)
	format := byte('f')
	if size != 0 {
		if bits == 64 && (size < 1e-6 || size >= 1e21) ||
			bits == 32 && (float32(size) < 1e-6 || float32(size) >= 1e21) {
			format = 'e'
		}
	}
	b := strconv.AppendFloat(e.buf, f, format, -1, bits)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 becomes e-9
		b = b[:n-1]
	}
	e.buf = b
	return nil
}

const hexDigits = "0123456789abcdef"

// plain marks the ASCII characters that need no escape.
var plain = func() (table [utf8.RuneSelf]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, '\\', 'b')
			case '\f':
				b = append(b, '\\', 'f')
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(b, s[start:i]...)
			b = append(b, `\ufffd`...)
			start = i + size
		case r == '\u2028' || r == '\u2029': // line ends in JavaScript
			b = append(b, s[start:i]...)
			b = append(b, `\u202`...)
			b = append(b, hexDigits[r&15])
			start = i + size
		}
		i += size
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// A clock writes times as ISO 8601, in UTC and with milliseconds. It keeps the
// text of the last second, because there are often many calls in a second.
type clock struct {
	second int64
	text   []byte
}

func (c *clock) append(b []byte, t time.Time) []byte {
	if second := t.Unix(); second != c.second || len(c.text) == 0 {
		c.second = second
		c.text = t.UTC().AppendFormat(c.text[:0], "2006-01-02T15:04:05.")
	}
	b = append(b, c.text...)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}
