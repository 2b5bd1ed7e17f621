package analytics

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestACallThatLacksAFieldSaysWhich(t *testing.T) {
	c := New("k")
	defer c.Close()
	for _, test := range []struct {
		name string
		err  error
		want error
		text string
	}{
		{"identify", c.Identify(&Identify{}), ErrNoIdentity, "You must pass either an 'anonymousId' or 'userId'."},
		{"track without event", c.Track(&Track{UserId: "u"}), ErrNoEvent, "You must pass 'event'."},
		{"track without user", c.Track(&Track{Event: "e"}), ErrNoIdentity, "You must pass either an 'anonymousId' or 'userId'."},
		{"page", c.Page(&Page{}), ErrNoIdentity, "You must pass either an 'anonymousId' or 'userId'."},
		{"screen", c.Screen(&Screen{}), ErrNoIdentity, "You must pass either an 'anonymousId' or 'userId'."},
		{"group without group", c.Group(&Group{UserId: "u"}), ErrNoGroupId, "You must pass a 'groupId'."},
		{"group without user", c.Group(&Group{GroupId: "g"}), ErrNoIdentity, "You must pass either an 'anonymousId' or 'userId'."},
		{"alias without user", c.Alias(&Alias{PreviousId: "p"}), ErrNoUserId, "You must pass a 'userId'."},
		{"alias without previous", c.Alias(&Alias{UserId: "u"}), ErrNoPreviousId, "You must pass a 'previousId'."},
		{"nil identify", c.Identify(nil), ErrNoMessage, "You must pass a message."},
		{"nil track", c.Track(nil), ErrNoMessage, "You must pass a message."},
		{"nil page", c.Page(nil), ErrNoMessage, "You must pass a message."},
		{"nil screen", c.Screen(nil), ErrNoMessage, "You must pass a message."},
		{"nil group", c.Group(nil), ErrNoMessage, "You must pass a message."},
		{"nil alias", c.Alias(nil), ErrNoMessage, "You must pass a message."},
		{"no key", New("").Track(&Track{UserId: "u", Event: "e"}), ErrNoWriteKey, "You must pass a write key."},
	} {
		if !errors.Is(test.err, test.want) || test.err.Error() != test.text {
			t.Errorf("%s: %v, want %s", test.name, test.err, test.text)
		}
	}
}

func TestEveryKindIsSentWithItsFields(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	object := func(v string) map[string]interface{} { return map[string]interface{}{"k": v} }
	noError(t, c.Identify(&Identify{"u", "a", object("t"), object("c"), object("i"), "2020-01-01T00:00:00Z", "m1"}))
	noError(t, c.Track(&Track{"u", "a", "e", object("p"), object("c"), object("i"), "2020-01-01T00:00:00Z", "m2"}))
	noError(t, c.Page(&Page{"u", "a", "cat", "n", object("p"), object("c"), object("i"), "2020-01-01T00:00:00Z", "m3"}))
	noError(t, c.Screen(&Screen{"u", "a", "cat", "n", object("p"), object("c"), object("i"), "2020-01-01T00:00:00Z", "m4"}))
	noError(t, c.Group(&Group{"u", "a", "g", object("t"), object("c"), object("i"), "2020-01-01T00:00:00Z", "m5"}))
	noError(t, c.Alias(&Alias{"u", "prev", object("c"), object("i"), "2020-01-01T00:00:00Z", "m6"}))
	noError(t, c.Close())

	var want []map[string]interface{}
	noError(t, json.Unmarshal([]byte(`[
		{"type":"identify","messageId":"m1","userId":"u","anonymousId":"a","traits":{"k":"t"}},
		{"type":"track","messageId":"m2","userId":"u","anonymousId":"a","event":"e","properties":{"k":"p"}},
		{"type":"page","messageId":"m3","userId":"u","anonymousId":"a","category":"cat","name":"n","properties":{"k":"p"}},
		{"type":"screen","messageId":"m4","userId":"u","anonymousId":"a","category":"cat","name":"n","properties":{"k":"p"}},
		{"type":"group","messageId":"m5","userId":"u","anonymousId":"a","groupId":"g","traits":{"k":"t"}},
		{"type":"alias","messageId":"m6","userId":"u","previousId":"prev"}
	]`), &want))
	for _, m := range want {
		m["timestamp"] = "2020-01-01T00:00:00Z"
		m["context"] = object("c")
		m["integrations"] = object("i")
	}
	if got := rc.all()[0].messages; !reflect.DeepEqual(got, want) {
		t.Fatalf("sent %v\nwant %v", got, want)
	}
}

func TestFieldsThatAreNotSetAreLeftOut(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	noError(t, c.Page(&Page{AnonymousId: "a", Traits: map[string]interface{}{}}))
	noError(t, c.Close())
	m := rc.all()[0].messages[0]
	delete(m, "messageId")
	delete(m, "timestamp")
	if want := (map[string]interface{}{"type": "page", "anonymousId": "a"}); !reflect.DeepEqual(m, want) {
		t.Fatalf("sent %v", m)
	}
}

func TestABatchIsPostedWithTheKeyAndItsEnvelope(t *testing.T) {
	var method, path string
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		method, path = r.Method, r.URL.Path
		if length := r.ContentLength; length <= 0 {
			t.Errorf("Content-Length is %d", length)
		}
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	c.track(t, "m")
	noError(t, c.Close())
	r := rc.all()[0]
	if method != "POST" || path != "/v1/batch" {
		t.Errorf("%s %s", method, path)
	}
	for header, want := range map[string]string{
		"Authorization":    "Basic " + base64.StdEncoding.EncodeToString([]byte("test-write-key:")),
		"Content-Type":     "application/json",
		"User-Agent":       "sluice-analytics-go/" + Version,
		"Content-Encoding": "",
	} {
		if got := r.header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	if len(r.body.MessageId) != 36 {
		t.Errorf("the batch's messageId is %q", r.body.MessageId)
	}
	sentAt, err := time.Parse("2006-01-02T15:04:05.000Z", r.body.SentAt)
	if err != nil || time.Since(sentAt) > time.Minute {
		t.Errorf("sentAt is %q: %v", r.body.SentAt, err)
	}
	if library := r.body.Context.Library; library.Name != "sluice-analytics-go" || library.Version != Version {
		t.Errorf("context.library is %v", library)
	}
}

func TestTheTimestampIsThatOfTheCall(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	before := time.Now().Truncate(time.Millisecond)
	c.track(t, "m")
	after := time.Now()
	until(t, "the clock has moved on", func() bool { return time.Since(after) > 20*time.Millisecond })
	noError(t, c.Close())
	r := rc.all()[0]
	text := r.messages[0]["timestamp"].(string)
	at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
	if err != nil || at.Before(before) || at.After(after) {
		t.Errorf("timestamp %s isn't between %v and %v", text, before, after)
	}
	if r.body.SentAt <= text {
		t.Errorf("sentAt %s, timestamp %s", r.body.SentAt, text)
	}
}

func TestGzipCompressesRequestsWhenAsked(t *testing.T) {
	rc := newReceiver(t, status(500))
	c := newObserved(rc.URL)
	c.Gzip = true
	noError(t, c.Track(&Track{UserId: "u", Event: strings.Repeat("long ", 1000), MessageId: "m"}))
	noError(t, c.Close())
	r := rc.all()[1]
	if r.header.Get("Content-Encoding") != "gzip" || r.bytes > 2000 || rc.accepted()["m"] != 1 {
		t.Fatalf("%d bytes, %v", r.bytes, r.header)
	}
}

func TestEndpointIsABaseOrAFullURL(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                            "http://127.0.0.1:8080/v1/batch",
		"http://h":                    "http://h/v1/batch",
		"https://h:1/":                "https://h:1/v1/batch",
		"http://h/sluice":             "http://h/sluice/v1/batch",
		"http://h/sluice/":            "http://h/sluice/v1/batch",
		"http://h/v1":                 "http://h/v1/batch",
		"http://h/v1/":                "http://h/v1/batch",
		"http://h/v1/batch":           "http://h/v1/batch",
		"https://proxy/segment":       "https://proxy/segment/v1/batch",
		"https://proxy/v1/segment":    "https://proxy/v1/segment/v1/batch",
		"https://proxy/v1/import/x":   "https://proxy/v1/import/x/v1/batch",
		"http://h/v1/import":          "http://h/v1/import",
		"http://h/sluice/v1/batch?a=": "http://h/sluice/v1/batch?a=",
		"http://h?a=b":                "http://h/v1/batch?a=b",
	} {
		u, err := batchURL(endpoint)
		if err != nil || u.String() != want || !strings.HasPrefix(u.RequestURI(), "/") {
			t.Errorf("%q: %v %v, want %s", endpoint, u, err, want)
		}
	}
}

func TestAnEndpointThatIsNoURLIsAnErrorOfEveryCall(t *testing.T) {
	for _, endpoint := range []string{"127.0.0.1:8080", "ftp://h", "http://", "/v1/batch", "http://h:x"} {
		c := New("k")
		c.Endpoint = endpoint
		for i := 0; i < 2; i++ {
			if err := c.Track(&Track{UserId: "u", Event: "e"}); err == nil || !strings.Contains(err.Error(), "Endpoint") {
				t.Errorf("%q: %v", endpoint, err)
			}
		}
		noError(t, c.Close())
	}
}

func TestTheErrorOfAnEndpointShowsNoLogin(t *testing.T) {
	for _, endpoint := range []string{
		"http://key:sec/ret@h", "http://key:%secret@h", "http://key:secret@h:x", "ftp://key:secret@h", "key:secret@h",
		"://key:secret@h", "http://key:secret@", "http://h\x7f?k=secret",
	} {
		c := New("k")
		c.Endpoint = endpoint
		err := c.Track(&Track{UserId: "u", Event: "e"})
		if err == nil || !strings.Contains(err.Error(), "Endpoint") || strings.Contains(err.Error(), "sec") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestAnEndpointWithAUserKeepsTheWriteKey(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(strings.Replace(rc.URL, "http://", "http://someone:secret@", 1))
	c.track(t, "m")
	noError(t, c.Close())
	if got := rc.all()[0].header.Get("Authorization"); got != "Basic "+base64.StdEncoding.EncodeToString([]byte("test-write-key:")) {
		t.Fatal(got)
	}
}

func TestACallerMayChangeItsMapsAfterTheCall(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.Size = 1
	list := []interface{}{"before"}
	properties := map[string]interface{}{"k": "before", "list": list}
	m := &Track{UserId: "u", Event: "e", Properties: properties, MessageId: "m"}
	noError(t, c.Track(m))
	for i := 0; i < 1000; i++ { // the race detector watches
		properties["k"] = "after"
		list[0] = "after"
		m.Event = "after"
	}
	noError(t, c.Close())
	got := rc.all()[0].messages[0]
	want := map[string]interface{}{"k": "before", "list": []interface{}{"before"}}
	if got["event"] != "e" || !reflect.DeepEqual(got["properties"], want) {
		t.Fatalf("sent %v", got)
	}
}

func TestAValueWithoutJSONIsAnErrorOfTheCall(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	for name, v := range map[string]interface{}{"NaN": math.NaN(), "channel": make(chan int), "marshaler": fails{}} {
		err := c.Track(&Track{UserId: "u", Event: "e", Properties: map[string]interface{}{"a": 1, "k": v}})
		if err == nil || !strings.Contains(err.Error(), "properties") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.track(t, "good")
	noError(t, c.Close())
	if got := rc.accepted(); len(got) != 1 || got["good"] != 1 {
		t.Fatalf("sent %v", got)
	}
}

func TestACallOver32KBIsRefused(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	// é is two bytes, the quotation mark becomes two.
	m := &Track{UserId: "u", Event: `é"`, MessageId: "m", Timestamp: "2020-01-01T00:00:00Z"}
	e := encoders.New().(*encoder)
	noError(t, e.encode(&call{
		kind: "track", userId: m.UserId, event: m.Event, messageId: m.MessageId, timestamp: m.Timestamp,
		properties: map[string]interface{}{"pad": ""},
	}, time.Now()))
	pad := 32*1024 - len(e.buf)

	m.Properties = map[string]interface{}{"pad": strings.Repeat("x", pad+1)}
	if err := c.Track(m); !errors.Is(err, ErrTooLarge) {
		t.Errorf("32,769 bytes: %v", err)
	}
	m.Properties["pad"] = strings.Repeat("x", pad)
	noError(t, c.Track(m))
	noError(t, c.Close())
	if got := rc.all()[0].body.Batch; len(got) != 1 || len(got[0]) != 32*1024 {
		t.Fatalf("%d messages, the first has %d bytes", len(got), len(got[0]))
	}
}

func TestAMessageIdOver100CharactersIsRefused(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.track(t, strings.Repeat("é", 100))
	if err := c.Track(&Track{UserId: "u", Event: "e", MessageId: strings.Repeat("m", 101)}); err == nil {
		t.Error("no error")
	}
	noError(t, c.Close())
}

func TestDebugVariableTurnsLoggingOn(t *testing.T) {
	for variable, want := range map[string]bool{
		"analytics": true, "http,analytics": true, "*": true, "": false, "analytic": false, "other": false,
	} {
		if got := debugs(variable); got != want {
			t.Errorf("DEBUG=%s: %v", variable, got)
		}
	}
	t.Setenv("DEBUG", "analytics")
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.track(t, "m")
	noError(t, c.Close())
	if !strings.Contains(c.log.String(), "sent 1 message") {
		t.Fatalf("logged %q", c.log.String())
	}
}

func TestVerboseTellsOfEveryRequestButNoKeyAndNoContent(t *testing.T) {
	rc := newReceiver(t, status(500, 401))
	c := newObserved(rc.URL)
	c.OnFailure = nil
	c.Size = 1
	c.Verbose = true
	noError(t, c.Track(&Track{UserId: "person", Event: "Secret Event", MessageId: "m"}))
	until(t, "it failed", func() bool { return strings.Contains(c.log.String(), "not delivered") })
	c.track(t, "m2")
	if err := c.Close(); err == nil {
		t.Error("no error")
	}
	log := c.log.String()
	for _, word := range []string{"attempt 1 to send 1 message failed", "500", "401", "sent 1 message"} {
		if !strings.Contains(log, word) {
			t.Errorf("no %q in the log:\n%s", word, log)
		}
	}
	for _, word := range []string{"test-write-key", "dGVzdC13cml0ZS1rZXk", "person", "Secret"} {
		if strings.Contains(log, word) {
			t.Errorf("%q in the log:\n%s", word, log)
		}
	}
}

func TestWithoutVerboseADeliveryIsNotLogged(t *testing.T) {
	rc := newReceiver(t, status(500))
	c := newObserved(rc.URL)
	c.track(t, "m")
	noError(t, c.Close())
	if log := c.log.String(); log != "" {
		t.Fatalf("logged %q", log)
	}
}

func TestADefaultClientSendsToTheLocalGatewayWithLimits(t *testing.T) {
	noError(t, os.Unsetenv("DEBUG"))
	c := New("k")
	if c.FlushAt != 20 || c.FlushAfter != 5*time.Second || c.Endpoint != DefaultEndpoint || c.Size != 0 {
		t.Errorf("New made %+v", c.FlushAt)
	}
	s, err := (&Client{writeKey: "k"}).settings()
	noError(t, err)
	if s.flushAt != 20 || s.flushAfter != 5*time.Second || s.queueBytes != 64<<20 || s.maxInFlight != 8 ||
		s.retryFor != 10*time.Minute || DefaultCloseTimeout != 10*time.Second || s.verbose {
		t.Errorf("defaults %+v", s)
	}
	if s.gateway.url.String() != "http://127.0.0.1:8080/v1/batch" || s.gateway.timeout != 10*time.Second {
		t.Errorf("gateway %+v", s.gateway.url)
	}
}

func TestAnOnFailureThatEndsItsGoroutineStopsNoSender(t *testing.T) {
	rc := newReceiver(t, always(400))
	c := newObserved(rc.URL)
	c.Size = 1
	c.MaxInFlight = 1
	var told atomic.Int32
	c.OnFailure = func([]Message, error) {
		told.Add(1)
		runtime.Goexit() // as t.Fatal does
	}
	for i := 0; i < 3; i++ {
		c.track(t, fmt.Sprint(i))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	noError(t, c.Flush(ctx))
	noError(t, c.CloseContext(ctx))
	if told.Load() != 3 {
		t.Errorf("OnFailure was told %d times, not 3", told.Load())
	}
	noGoroutines(t)
}
