package analytics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// standard returns what encoding/json writes for a value, with HTML characters
// unchanged.
func standard(t testing.TB, v interface{}) (string, error) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// ours returns what the encoder writes for a value.
func ours(v interface{}) (string, error) {
	e := encoders.New().(*encoder)
	err := e.value(v, 0)
	return string(e.buf), err
}

func sameAsStandard(t testing.TB, v interface{}) {
	t.Helper()
	want, wantErr := standard(t, v)
	got, err := ours(v)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, encoding/json has %v", err, wantErr)
	}
	if err == nil && got != want {
		t.Fatalf("wrote\n%s\nencoding/json writes\n%s", got, want)
	}
}

type named map[string]interface{}

func (named) MarshalJSON() ([]byte, error) { return []byte(`{ "named": "<yes>" }`), nil }

type fails struct{}

func (fails) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

func TestValuesAreWrittenAsEncodingJSONWritesThem(t *testing.T) {
	deep := interface{}("bottom")
	for i := 0; i < 300; i++ {
		if i%2 == 0 {
			deep = map[string]interface{}{"k": deep}
		} else {
			deep = []interface{}{deep}
		}
	}
	wide := make(map[string]interface{})
	for i := 0; i < 100; i++ {
		wide[fmt.Sprint(i*7919%100)] = map[string]interface{}{"b": i, "a": []interface{}{i}}
	}
	text := "x"
	values := []interface{}{
		nil, true, false, "", "plain", "<a href=\"x\">&amp;</a>", "\x00\x01\x1f\x7f\b\f\n\r\t\\\"/",
		"caf\u00e9 \u65e5\u672c \U0001f600", "\xff\xfe\xc3", "a\u2028b\u2029c", "\xed\xa0\x80", "\ufffd",
		int(-1), int8(-128), int16(-32768), int32(math.MinInt32), int64(math.MinInt64),
		uint(1), uint8(255), uint16(65535), uint32(math.MaxUint32), uint64(math.MaxUint64),
		0.0, math.Copysign(0, -1), 1.0, 0.1, 1e20, 1e21, 1e-6, 9.9e-7, 1e-9, 1e100, -1e-100, math.MaxFloat64,
		math.SmallestNonzeroFloat64, float32(0.1), float32(1e21), float32(1e-7), float32(math.MaxFloat32),
		math.NaN(), math.Inf(1), math.Inf(-1), float32(math.Inf(1)),
		map[string]interface{}{}, map[string]interface{}(nil), []interface{}{}, []interface{}(nil),
		[]string{}, []string(nil), []string{"a", "<"}, []byte("bytes"), []int{1, 2}, &text, (*string)(nil),
		map[string]string{"b": "<", "a": ""}, map[int]string{2: "b", 1: "a"},
		json.Number("1.50"), json.Number("x"), json.RawMessage(`{ "a" : 1.0 }`), json.RawMessage(`{`),
		time.Date(2020, 2, 29, 1, 2, 3, 4e6, time.UTC), 5 * time.Second,
		named{}, fails{}, make(chan int), func() {}, complex(1, 1),
		struct {
			A string `json:"a,omitempty"`
			B int
		}{"<", 1},
		map[string]interface{}{"b": nil, "a": map[string]interface{}{"z": 1, "y": []interface{}{true, "x", 1.5}}, "": 0},
		map[string]interface{}{"\xff": 1, "\"": 2, "é": 3},
		deep, wide,
	}
	for i, v := range values {
		t.Run(fmt.Sprint(i), func(t *testing.T) { sameAsStandard(t, v) })
	}
}

func TestBadUTF8OfForeignValuesIsReplaced(t *testing.T) {
	got, err := ours([]interface{}{json.RawMessage("[\"a\xffb\"]"), "c"})
	noError(t, err)
	if got != "[[\"a\uFFFDb\"],\"c\"]" {
		t.Fatalf("%q", got)
	}
}

func TestAMapThatContainsItselfIsAnError(t *testing.T) {
	loop := map[string]interface{}{}
	loop["list"] = []interface{}{loop}
	if _, err := ours(loop); err == nil {
		t.Fatal("no error")
	}
}

func TestAnEncoderKeepsNothingOfTheCallersAlive(t *testing.T) {
	e := encoders.New().(*encoder)
	noError(t, e.value(map[string]interface{}{"a": map[string]interface{}{"b": 1}, "c": "d"}, 0))
	for _, m := range e.members[:cap(e.members)] {
		if m.key != "" || m.value != nil {
			t.Fatalf("kept %v", m)
		}
	}
}

func TestMessageIdsAreRandomUUIDsOfVersion4(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	const goroutines, each = 8, 20_000
	var mu sync.Mutex
	seen := make(map[string]bool, goroutines*each)
	var wg sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var source idSource
			ids := make([]string, each)
			for i := range ids {
				id, err := source.append(nil)
				if err != nil {
					t.Error(err)
				}
				ids[i] = string(id)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				seen[id] = true
			}
		}()
	}
	wg.Wait()
	if len(seen) != goroutines*each {
		t.Fatalf("%d of %d are different", len(seen), goroutines*each)
	}
	checked := 0
	for id := range seen {
		if !form.MatchString(id) {
			t.Fatalf("%s is no UUID of version 4", id)
		}
		if checked++; checked == 1000 {
			break
		}
	}
}

func TestAClockWritesUTCWithMilliseconds(t *testing.T) {
	var c clock
	for _, at := range []time.Time{
		time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 6, 7e6, time.FixedZone("", 7200)),
		time.Date(2026, 1, 2, 3, 4, 5, 45e6, time.UTC),
		time.Unix(0, 0),
		time.Date(1969, 12, 31, 23, 59, 59, 1e6, time.UTC),
	} {
		want := at.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
		if got := string(c.append(nil, at)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// common returns a typical message.
func common() *Track {
	return &Track{
		UserId: "user-84c1", Event: "Order Completed",
		Properties: map[string]interface{}{
			"orderId": "o-1093", "total": 129.95, "currency": "EUR", "items": 3, "express": true,
		},
	}
}

func TestACommonMessageIsEncodedWithoutAllocation(t *testing.T) {
	if raceDetector {
		t.Log("the race detector allocates: measured without it only")
		return
	}
	e := encoders.New().(*encoder)
	m, now := common(), time.Now()
	allocations := testing.AllocsPerRun(1000, func() {
		if err := e.encode(&call{kind: "track", userId: m.UserId, event: m.Event, properties: m.Properties}, now); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Fatalf("%v allocations", allocations)
	}
}

func BenchmarkEncode(b *testing.B) {
	e := encoders.New().(*encoder)
	m := common()
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		if err := e.encode(&call{kind: "track", userId: m.UserId, event: m.Event, properties: m.Properties}, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", "<&>", "\xff", "\u2028", "é\x00\"\\", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sameAsStandard(t, s)
		sameAsStandard(t, map[string]interface{}{s: s, "k": []string{s}})
	})
}

func FuzzFloat(f *testing.F) {
	for _, n := range []float64{0, 1, -1.5, 1e21, 1e-7, math.MaxFloat64, math.Inf(1), math.NaN()} {
		f.Add(math.Float64bits(n))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		sameAsStandard(t, math.Float64frombits(bits))
		sameAsStandard(t, math.Float32frombits(uint32(bits)))
	})
}

// FuzzValue uses any JSON as a value in a caller's map.
func FuzzValue(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,2.5,"x",null,true,{"b":{}}]}`, `[[[]]]`, `1e400`, `{"\u0000":"\ud800"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v interface{}
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		sameAsStandard(t, v)
		exact := json.NewDecoder(strings.NewReader(text))
		exact.UseNumber()
		if exact.Decode(&v) == nil {
			sameAsStandard(t, v)
		}
	})
}

// FuzzCall compares whole messages with a struct that encoding/json writes.
func FuzzCall(f *testing.F) {
	f.Add("u", "", "", "Order Completed", "m-1", "", "total", "30")
	f.Add("", "a\xff", "<g>", "", "", "2020-01-01T00:00:00Z", "\u2028", "")
	f.Fuzz(func(t *testing.T, userId, anonymousId, groupId, event, messageId, timestamp, key, value string) {
		object := map[string]interface{}{key: value, "n": len(value)}
		e := encoders.New().(*encoder)
		err := e.encode(&call{
			kind: "track", userId: userId, anonymousId: anonymousId, groupId: groupId, event: event,
			messageId: messageId, timestamp: timestamp, properties: object, context: object,
		}, time.Now())
		if len([]rune(messageId)) > maxIdLength {
			if err == nil {
				t.Fatal("a long messageId passed")
			}
			return
		}
		noError(t, err)
		type fields struct {
			Type        string                 `json:"type"`
			MessageId   string                 `json:"messageId"`
			Timestamp   string                 `json:"timestamp"`
			UserId      string                 `json:"userId,omitempty"`
			AnonymousId string                 `json:"anonymousId,omitempty"`
			GroupId     string                 `json:"groupId,omitempty"`
			Event       string                 `json:"event,omitempty"`
			Properties  map[string]interface{} `json:"properties,omitempty"`
			Context     map[string]interface{} `json:"context,omitempty"`
		}
		want := fields{"track", messageId, timestamp, userId, anonymousId, groupId, event, object, object}
		var got fields
		noError(t, json.Unmarshal(e.buf, &got))
		if messageId == "" {
			want.MessageId = got.MessageId // random
		}
		if timestamp == "" {
			want.Timestamp = got.Timestamp // now
		}
		text, err := standard(t, want)
		noError(t, err)
		if string(e.buf) != text {
			t.Fatalf("wrote\n%s\nwant\n%s", e.buf, text)
		}
	})
}
