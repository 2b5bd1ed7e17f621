package analytics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// poison answers 500 to requests with a message whose id begins with "poison".
func poison(rc **receiver) answer {
	return func(w http.ResponseWriter, r *http.Request, n int) int {
		for _, m := range (*rc).all()[n-1].messages {
			if strings.HasPrefix(m["messageId"].(string), "poison") {
				return always(500)(w, r, n)
			}
		}
		return ok(w, r, n)
	}
}

func TestBatchesThatFailHoldUpNoOther(t *testing.T) {
	for _, inFlight := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(inFlight), func(t *testing.T) {
			var rc *receiver
			rc = newReceiver(t, poison(&rc))
			c := newObserved(rc.URL)
			c.Size = 1
			c.MaxInFlight = inFlight
			c.CloseTimeout = time.Second
			c.track(t, "poison-1")
			c.track(t, "poison-2")
			until(t, "both have failed twice", func() bool { return rc.count() >= 4 })
			start := time.Now()
			for i := 0; i < 200; i++ {
				c.track(t, fmt.Sprint(i))
			}
			until(t, "the good ones have arrived", func() bool { return len(rc.accepted()) == 200 })
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("200 messages took %v", took)
			}
			if len(c.reported()) != 0 {
				t.Errorf("reported %v", c.reported())
			}
			var unsent *CloseError
			if err := c.Close(); !errors.As(err, &unsent) || len(unsent.Messages) != 2 {
				t.Errorf("Close: %v", err)
			}
			noGoroutines(t)
		})
	}
}

func TestDuringAnOutageTheQueueIsNotTriedAsAWhole(t *testing.T) {
	var up atomic.Bool
	rc := newReceiver(t, unavailableUntil(&up))
	c := newObserved(rc.URL)
	c.Size = 1
	for i := 0; i < 500; i++ {
		c.track(t, fmt.Sprint(i))
	}
	until(t, "it waits for longer than at first", func() bool { return rc.count() >= 40 })
	c.running.Load().mu.Lock()
	tried := len(c.running.Load().waiting) + len(c.running.Load().sending)
	c.running.Load().mu.Unlock()
	if tried > 20 {
		t.Errorf("%d of 500 batches were tried", tried)
	}
	up.Store(true)
	noError(t, c.Close())
	if len(rc.accepted()) != 500 {
		t.Errorf("%d arrived", len(rc.accepted()))
	}
}

func TestARetryAfterThatIsNoRateLimitIsABatchs(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		if n == 1 {
			w.Header().Set("Retry-After", "60")
			return always(503)(w, r, n)
		}
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	c.Size = 1
	c.CloseTimeout = time.Second
	c.track(t, "first")
	until(t, "it was refused", func() bool { return rc.count() == 1 })
	c.track(t, "second")
	until(t, "the second has arrived", func() bool { return rc.accepted()["second"] == 1 })
	var unsent *CloseError
	if err := c.Close(); !errors.As(err, &unsent) || !slices.Equal(namesOf(unsent.Messages), []string{"first"}) {
		t.Errorf("Close: %v", err)
	}
}

func namesOf(messages []Message) []string {
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.MessageId)
	}
	return ids
}

// leavesOut answers as the gateway does if it took a batch without some of its
// messages.
func leavesOut(rejected string) answer {
	return func(w http.ResponseWriter, _ *http.Request, _ int) int {
		fmt.Fprintf(w, `{"success":true,%s}`, rejected)
		return http.StatusOK
	}
}

func TestWhatTheGatewayLeftOutIsReportedWithItsReason(t *testing.T) {
	rc := newReceiver(t, leavesOut(`"rejected":[{"index":1,"messageId":"b","reason":"event_not_string"},`+
		`{"index":2,"messageId":"c","reason":"bad_timestamp"},{"index":3,"reason":"event_not_string"},`+
		`{"index":99,"messageId":"z","reason":"odd"}],"rejectedCount":7`))
	c := newObserved(rc.URL)
	c.Size = 5
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		c.track(t, id)
	}
	noError(t, c.Flush(context.Background()))
	want := map[string][]string{"event_not_string": {"b", "d"}, "bad_timestamp": {"c"}, "": nil}
	counts := map[string]int{"event_not_string": 2, "bad_timestamp": 1, "": 4}
	got := c.reported()
	if len(got) != len(want) {
		t.Fatalf("reported %v", got)
	}
	for _, failure := range got {
		var rejected *RejectedError
		if !errors.As(failure.err, &rejected) || !slices.Equal(namesOf(failure.messages), want[rejected.Reason]) ||
			rejected.Count != counts[rejected.Reason] || !strings.Contains(rejected.Error(), "left out") {
			t.Errorf("%v: %v", failure.err, failure.messages)
		}
	}
	noError(t, c.Close())
	if rc.count() != 1 {
		t.Errorf("%d requests", rc.count())
	}
}

func TestWhatTheGatewayLeftOutIsCountedByCloseWithoutOnFailure(t *testing.T) {
	rc := newReceiver(t, leavesOut(`"rejected":[{"index":0,"messageId":"a","reason":"odd"}],"rejectedCount":1`))
	c := newObserved(rc.URL)
	c.OnFailure = nil
	c.track(t, "a")
	c.track(t, "b")
	noError(t, c.Flush(context.Background()))
	if !strings.Contains(c.log.String(), "left out 1 message: odd") {
		t.Error(c.log.String())
	}
	var unsent *CloseError
	if err := c.Close(); !errors.As(err, &unsent) || unsent.Lost != 1 {
		t.Errorf("Close: %v", err)
	}
}

func TestOnly200WithTheGatewaysBodyIsASuccess(t *testing.T) {
	for name, answer := range map[string]struct {
		code int
		body string
	}{
		"a page": {200, "<html>Welcome</html>"}, "nothing": {200, ""}, "no success": {200, `{"success":false}`},
		"another object": {200, `{"ok":true}`}, "201": {201, `{"success":true}`}, "204": {204, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) int {
				w.WriteHeader(answer.code)
				fmt.Fprint(w, answer.body)
				return answer.code
			})
			c := newObserved(rc.URL)
			c.track(t, "m")
			noError(t, c.Flush(context.Background()))
			var status *StatusError
			if got := c.reported(); len(got) != 1 || !errors.As(got[0].err, &status) || status.StatusCode != answer.code ||
				!strings.Contains(status.Error(), "Endpoint") {
				t.Errorf("reported %v", got)
			}
			noError(t, c.Close())
		})
	}
}

func TestAnAnswerThatIsCutOffIsNoSuccessYet(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		if n > 1 {
			return ok(w, r, n)
		}
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"success":true`)
		panic(http.ErrAbortHandler)
	})
	c := newObserved(rc.URL)
	c.track(t, "m")
	noError(t, c.Flush(context.Background()))
	noError(t, c.Close())
	if rc.count() != 2 || len(c.reported()) != 0 {
		t.Errorf("%d requests, reported %v", rc.count(), c.reported())
	}
}

func TestACertificateThatIsNotTrustedFailsAtOnceAndSaysSo(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request was sent")
	}))
	server.Config.ErrorLog = quiet
	server.StartTLS()
	defer server.Close()
	c := newObserved(server.URL)
	c.track(t, "m")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	noError(t, c.Flush(ctx))
	got := c.reported()
	if len(got) != 1 || !errors.Is(got[0].err, ErrCertificate) || !strings.Contains(got[0].err.Error(), "certificate is not trusted") {
		t.Errorf("reported %v", got)
	}
	noError(t, c.Close())
}

func TestFlushWaitsForWhatIsQueuedAndNoLongerThanItsContext(t *testing.T) {
	release := make(chan struct{})
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		if n == 2 {
			<-release
		}
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	noError(t, c.Flush(context.Background())) // of nothing
	c.track(t, "a")
	noError(t, c.Flush(context.Background()))
	if rc.accepted()["a"] != 1 {
		t.Error("the first isn't there")
	}
	c.track(t, "b")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush: %v", err)
	}
	close(release)
	noError(t, c.Flush(context.Background()))
	if rc.accepted()["b"] != 1 {
		t.Error("the second isn't there")
	}
	noError(t, c.Close())
	if err := c.Flush(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
}

func TestFlushWaitsUntilOnFailureHasReturned(t *testing.T) {
	rc := newReceiver(t, always(400))
	c := newObserved(rc.URL)
	c.Size = 1
	told, release := make(chan struct{}), make(chan struct{})
	c.OnFailure = func([]Message, error) {
		close(told)
		<-release
	}
	c.track(t, "m")
	<-told
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush while the message is being reported: %v", err)
	}
	close(release)
	noError(t, c.Flush(context.Background()))
	noError(t, c.Close())
}

func TestAFlushThatGaveUpIsNotKept(t *testing.T) {
	var up atomic.Bool
	rc := newReceiver(t, unavailableUntil(&up))
	c := newObserved(rc.URL)
	c.Size = 1
	for i := 0; i < 20; i++ {
		c.track(t, fmt.Sprint(i))
	}
	flushed := make(chan error, 1)
	go func() { flushed <- c.Flush(context.Background()) }()
	q := c.running.Load()
	flushes := func() (count int) {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, b := range q.unreleased() {
			count += len(b.flushes)
		}
		return count
	}
	until(t, "the flush waits for all", func() bool { return flushes() == 20 })
	for i := 0; i < 10; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
		cancel()
	}
	if count := flushes(); count != 20 {
		t.Errorf("20 batches keep %d flushes, of which one waits", count)
	}
	up.Store(true)
	noError(t, <-flushed)
	noError(t, c.Close())
}

func TestCloseContextEndsWithItsContextAndNotWithCloseTimeout(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		<-r.Context().Done()
		return 0
	})
	c := newObserved(rc.URL)
	c.CloseTimeout = time.Hour
	c.track(t, "m")
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	var unsent *CloseError
	if err := c.CloseContext(ctx); !errors.As(err, &unsent) || len(unsent.Messages) != 1 {
		t.Errorf("CloseContext: %v", err)
	}
	noGoroutines(t)
}

func TestCloseContextWithoutAnEndOutlastsAnOutage(t *testing.T) {
	rc := newReceiver(t, status(503, 503, 503))
	c := newObserved(rc.URL)
	c.CloseTimeout = time.Nanosecond
	c.track(t, "m")
	noError(t, c.CloseContext(context.Background()))
	if rc.accepted()["m"] != 1 {
		t.Error("it isn't there")
	}
}

func TestATimestampThatTheGatewayCannotReadIsAnErrorOfTheCall(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	for _, text := range []string{"yesterday", "1257894000", "2009-13-10T23:00:00Z", "2009-02-30", "2009-11-10T24:00:00Z",
		"2009-11-10T23:00:00 CET", " 2009-11-10T23:00:00Z", "2009-11-10T23:00:00Z\n"} {
		if err := c.Track(&Track{UserId: "u", Event: "e", Timestamp: text}); !errors.Is(err, ErrTimestamp) {
			t.Errorf("%q: %v", text, err)
		}
	}
	readable := []string{"2009-11-10T23:00:00Z", "2009-11-10T23:00:00+0000", "2009-11-10t23:00:00.123456789+01:00",
		"2009-11-10", "2009-11-10 23:00", "2008-02-29T00:00:60,5-08", time.Now().Format(time.RFC3339Nano)}
	for _, text := range readable {
		noError(t, c.Page(&Page{UserId: "u", Timestamp: text}))
	}
	noError(t, c.Close())
	if got := rc.all()[0].messages; len(got) != len(readable) || got[0]["timestamp"] != readable[0] {
		t.Errorf("sent %v", got)
	}
}

func TestNewWithConfigNamesEverythingThatIsWrong(t *testing.T) {
	_, err := NewWithConfig("", Config{Endpoint: "ftp://h", FlushAt: 2501, FlushAfter: -1, CloseTimeout: -1, MaxInFlight: -1, QueueBytes: 9})
	if !errors.Is(err, ErrNoWriteKey) {
		t.Fatalf("%v", err)
	}
	for _, name := range []string{"Endpoint", "FlushAt", "FlushAfter", "CloseTimeout", "MaxInFlight", "QueueBytes"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is missing in: %v", name, err)
		}
	}
}

func TestNewWithConfigMakesAClientWithItsSettings(t *testing.T) {
	rc := newReceiver(t, ok)
	client := &http.Client{Timeout: time.Second}
	config := Config{Endpoint: rc.URL, FlushAt: 2, FlushAfter: time.Hour, Client: client, Logger: &lines{}, Verbose: true, Gzip: true,
		OnFailure: func([]Message, error) {}, QueueBytes: 1 << 20, MaxInFlight: 3, RetryFor: time.Minute, CloseTimeout: time.Minute}
	c, err := NewWithConfig("key", config)
	noError(t, err)
	for i := 0; i < reflect.TypeOf(config).NumField(); i++ {
		field := reflect.TypeOf(config).Field(i)
		given, taken := reflect.ValueOf(config).Field(i), reflect.ValueOf(c).Elem().FieldByName(field.Name)
		if given.IsZero() || taken.IsZero() || (field.Name != "OnFailure" && !reflect.DeepEqual(given.Interface(), taken.Interface())) {
			t.Errorf("%s: %v, given %v", field.Name, taken, given)
		}
	}
	noError(t, c.Track(&Track{UserId: "u", Event: "e"}))
	noError(t, c.Close())
	if rc.count() != 1 || rc.all()[0].header.Get("Content-Encoding") != "gzip" {
		t.Error("it isn't sent as set")
	}
}
