package analytics

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A receiver is an HTTP server in the gateway's place. It keeps the requests
// that it gets.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	requests []request
}

type request struct {
	at       time.Time
	answered int // status
	header   http.Header
	bytes    int // of the body as sent
	body     struct {
		Batch     []json.RawMessage `json:"batch"`
		MessageId string            `json:"messageId"`
		SentAt    string            `json:"sentAt"`
		Context   struct {
			Library struct{ Name, Version string } `json:"library"`
		} `json:"context"`
	}
	messages []map[string]interface{}
}

// An answer writes the gateway's answer to the nth request and returns its
// status. n counts from 1. If the function hijacks the connection, it returns
// 0.
type answer func(w http.ResponseWriter, r *http.Request, n int) int

func ok(w http.ResponseWriter, _ *http.Request, _ int) int {
	fmt.Fprint(w, `{"success":true}`)
	return http.StatusOK
}

// status answers with the statuses in turn, and then always with 200.
func status(codes ...int) answer {
	return func(w http.ResponseWriter, r *http.Request, n int) int {
		if n > len(codes) {
			return ok(w, r, n)
		}
		http.Error(w, fmt.Sprintf(`{"code":"answer-%d"}`, n), codes[n-1])
		return codes[n-1]
	}
}

func always(code int) answer {
	return func(w http.ResponseWriter, _ *http.Request, _ int) int {
		w.WriteHeader(code)
		return code
	}
}

// unavailableUntil answers 503 until up is true, and then 200.
func unavailableUntil(up *atomic.Bool) answer {
	return func(w http.ResponseWriter, r *http.Request, n int) int {
		if up.Load() {
			return ok(w, r, n)
		}
		return always(503)(w, r, n)
	}
}

func newReceiver(t *testing.T, answers answer) *receiver {
	t.Helper()
	rc := &receiver{t: t}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc.receive(w, r, answers)
	}))
	t.Cleanup(rc.Close)
	return rc
}

func (rc *receiver) receive(w http.ResponseWriter, r *http.Request, answers answer) {
	got := request{at: time.Now(), header: r.Header.Clone()}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut off by the client
	}
	got.bytes = len(raw)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			rc.t.Errorf("gzip: %v", err)
			return
		}
		if raw, err = io.ReadAll(z); err != nil {
			rc.t.Errorf("gzip: %v", err)
			return
		}
	}
	if r.Method == http.MethodPost {
		if err := json.Unmarshal(raw, &got.body); err != nil {
			rc.t.Errorf("the request is no JSON: %v: %.200s", err, raw)
			return
		}
	}
	for _, text := range got.body.Batch {
		var message map[string]interface{}
		if err := json.Unmarshal(text, &message); err != nil {
			rc.t.Errorf("a message is no object: %s", text)
		}
		got.messages = append(got.messages, message)
	}
	rc.mu.Lock()
	rc.requests = append(rc.requests, got)
	n := len(rc.requests)
	rc.mu.Unlock()
	code := answers(w, r, n)
	rc.mu.Lock()
	rc.requests[n-1].answered = code
	rc.mu.Unlock()
}

func (rc *receiver) all() []request {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return append([]request(nil), rc.requests...)
}

func (rc *receiver) count() int {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return len(rc.requests)
}

// accepted returns the messages of requests that were answered with 200, by
// messageId.
func (rc *receiver) accepted() map[string]int {
	times := make(map[string]int)
	for _, r := range rc.all() {
		if r.answered != http.StatusOK {
			continue
		}
		for _, m := range r.messages {
			times[m["messageId"].(string)]++
		}
	}
	return times
}

// An observed is a client that keeps its log lines and the failures that it
// reports.
type observed struct {
	*Client
	log lines

	mu       sync.Mutex
	failures []reported
}

type reported struct {
	messages []Message
	err      error
}

func newObserved(endpoint string) *observed {
	o := &observed{Client: New("test-write-key")}
	o.Endpoint = endpoint
	o.Logger = &o.log
	o.OnFailure = func(messages []Message, err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.failures = append(o.failures, reported{messages, err})
	}
	return o
}

func (o *observed) reported() []reported {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]reported(nil), o.failures...)
}

func (o *observed) track(t *testing.T, messageId string) {
	t.Helper()
	if err := o.Track(&Track{UserId: "u", Event: "Tested", MessageId: messageId}); err != nil {
		t.Fatalf("Track: %v", err)
	}
}

// lines is a Logger that keeps the lines.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Printf(format string, args ...interface{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, fmt.Sprintf(format, args...))
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}

// until polls until the condition is true.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// noGoroutines waits until no goroutine of the client runs.
func noGoroutines(t *testing.T) {
	t.Helper()
	var left string
	until(t, "no goroutine of the client is left", func() bool {
		stacks := make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = ""
		for _, stack := range strings.Split(string(stacks), "\n\n") {
			if strings.Contains(stack, "clients/go.(*queue)") || strings.Contains(stack, "clients/go.(*gateway)") ||
				strings.Contains(stack, "net/http.(*persistConn)") || strings.Contains(stack, "net/http.(*Transport)") {
				left = stack
			}
		}
		return left == ""
	})
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// quiet is a logger for servers that drops all lines.
var quiet = log.New(io.Discard, "", 0)
