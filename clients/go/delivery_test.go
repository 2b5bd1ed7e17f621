package analytics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestABatchIsSentAgainUntilItSucceeds(t *testing.T) {
	for name, codes := range map[string][]int{
		"5xx": {500, 503, 502}, "408": {408}, "429": {429}, "501": {501},
	} {
		t.Run(name, func(t *testing.T) {
			rc := newReceiver(t, status(codes...))
			c := newObserved(rc.URL)
			c.FlushAt = 2
			c.track(t, "a")
			c.track(t, "b")
			until(t, "it arrived", func() bool { return len(rc.accepted()) == 2 })
			noError(t, c.Close())
			all := rc.all()
			if len(all) != len(codes)+1 || len(c.reported()) != 0 {
				t.Fatalf("%d requests, reported %v", len(all), c.reported())
			}
			for _, r := range all[1:] {
				if r.body.MessageId != all[0].body.MessageId || !reflect.DeepEqual(r.messages, all[0].messages) {
					t.Errorf("a repeat differs: %v, first %v", r, all[0])
				}
			}
			if first, last := all[0].body.SentAt, all[len(all)-1].body.SentAt; last <= first {
				t.Errorf("sentAt stays: %s, %s", first, last)
			}
		})
	}
}

func TestAnAnswerThatRefusesIsReportedAndNotRepeated(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 413, 304} {
		rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
			w.Header().Set("Retry-After", "1")
			return always(code)(w, r, n)
		})
		c := newObserved(rc.URL)
		c.Size = 2
		c.track(t, "a")
		c.track(t, "b")
		until(t, "it is reported", func() bool { return len(c.reported()) == 1 })
		noError(t, c.Close())
		got := c.reported()[0]
		var answer *StatusError
		if !errors.As(got.err, &answer) || answer.StatusCode != code {
			t.Errorf("%d: %v", code, got.err)
		}
		if len(got.messages) != 2 || got.messages[0].MessageId != "a" || got.messages[1].MessageId != "b" ||
			got.messages[0].Type != "track" {
			t.Errorf("%d: reported %v", code, got.messages)
		}
		if rc.count() != 1 {
			t.Errorf("%d: %d requests", code, rc.count())
		}
	}
}

func TestABadWriteKeyIsToldByCloseAndSaysSo(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) int {
		http.Error(w, `{"code":"unauthorized","message":"no such source"}`, http.StatusUnauthorized)
		return 401
	})
	c := newObserved(rc.URL)
	c.track(t, "m")
	err := c.Close()
	var unsent *CloseError
	var answer *StatusError
	if !errors.As(err, &unsent) || len(unsent.Messages) != 1 || unsent.Messages[0].MessageId != "m" || unsent.Lost != 0 {
		t.Fatalf("%v", err)
	}
	if !errors.As(err, &answer) || answer.StatusCode != 401 || !strings.Contains(answer.Body, "no such source") {
		t.Fatalf("%v", err)
	}
	if text := err.Error(); !strings.Contains(text, "write key") || !strings.Contains(text, "1 message not sent") {
		t.Fatal(text)
	}
	if len(c.reported()) != 1 {
		t.Fatalf("reported %v", c.reported())
	}
}

func TestWithoutOnFailureLossesAreLoggedAndCloseTellsOfThem(t *testing.T) {
	rc := newReceiver(t, status(400))
	c := newObserved(rc.URL)
	c.OnFailure = nil
	c.Size = 1
	c.track(t, "lost")
	until(t, "it is logged", func() bool { return strings.Contains(c.log.String(), "1 message not delivered") })
	c.track(t, "sent")
	err := c.Close()
	var unsent *CloseError
	if !errors.As(err, &unsent) || unsent.Lost != 1 || len(unsent.Messages) != 0 || !strings.Contains(err.Error(), "1 message lost") {
		t.Fatalf("%v", err)
	}
	if rc.accepted()["sent"] != 1 {
		t.Fatal("the second was not sent")
	}
}

func TestRetryAfterIsKeptByAllBatches(t *testing.T) {
	for name, header := range map[string]func() string{
		"seconds":                          func() string { return "1" },
		"a date":                           func() string { return httpDate(2 * time.Second) }, // whole seconds
		"a date of a clock that is behind": func() string { return httpDate(2*time.Second - time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
				if n == 1 {
					w.Header().Set("Retry-After", header())
					if strings.HasSuffix(name, "behind") {
						w.Header().Set("Date", httpDate(-time.Hour))
					}
					w.WriteHeader(429)
					return 429
				}
				return ok(w, r, n)
			})
			c := newObserved(rc.URL)
			c.Size = 1
			c.track(t, "first")
			until(t, "the answer is known", func() bool {
				q := c.running.Load()
				q.mu.Lock()
				defer q.mu.Unlock()
				return !q.heldUntil.IsZero()
			})
			c.track(t, "second")
			until(t, "both arrived", func() bool { return len(rc.accepted()) == 2 })
			noError(t, c.Close())
			all := rc.all()
			for _, r := range all[1:] {
				if waited := r.at.Sub(all[0].at); waited < 990*time.Millisecond {
					t.Errorf("a request %v after the answer", waited)
				}
			}
		})
	}
}

// httpDate returns the time after this duration from now, as an HTTP header
// writes it, in whole seconds.
func httpDate(from time.Duration) string {
	return time.Now().Add(from).UTC().Format(http.TimeFormat)
}

func TestRetryAfterOfABatchThatIsGivenUpIsKeptByTheOthers(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		if n == 1 {
			w.Header().Set("Retry-After", "1")
			return always(429)(w, r, n)
		}
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	c.Size = 1
	c.RetryFor = -1
	c.track(t, "first")
	until(t, "the first is given up", func() bool { return len(c.reported()) == 1 })
	c.track(t, "second")
	noError(t, c.Flush(context.Background()))
	all := rc.all()
	if waited := all[1].at.Sub(all[0].at); waited < 990*time.Millisecond {
		t.Errorf("a request %v after the answer", waited)
	}
	_ = c.Close()
}

func TestRetryAfterHeadersAreRead(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "1.5": 0,
		"Thu, 01 Jan 2026 00:01:00 GMT": time.Minute, "Wed, 31 Dec 2025 00:00:00 GMT": 0,
		"99999999999999999999": (1<<31 - 1) * time.Second,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
	if _, wait := judge(&StatusError{StatusCode: 429, RetryAfter: time.Hour}); wait != 5*time.Minute {
		t.Errorf("an hour is cut to %v", wait)
	}
}

func TestBackOffGrowsWithJitterToTenSeconds(t *testing.T) {
	for attempts := 1; attempts < 1000; attempts++ {
		most := maxBackOff
		if attempts < 8 {
			most = minBackOff << (attempts - 1)
		}
		if wait := backOff(attempts); wait < min(most, maxBackOff)/2 || wait > min(most, maxBackOff) {
			t.Fatalf("%v after %d attempts", wait, attempts)
		}
	}
	seen := make(map[time.Duration]bool)
	for i := 0; i < 100; i++ {
		seen[backOff(10)] = true
	}
	if len(seen) < 50 {
		t.Fatalf("only %d different waits", len(seen))
	}
}

func TestABatchIsGivenUpAfterRetryFor(t *testing.T) {
	rc := newReceiver(t, always(503))
	c := newObserved(rc.URL)
	c.Size = 1
	c.RetryFor = 300 * time.Millisecond
	start := time.Now()
	c.track(t, "m")
	until(t, "it is reported", func() bool { return len(c.reported()) == 1 })
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("given up after %v", took)
	}
	got := c.reported()[0]
	var answer *StatusError
	if !errors.As(got.err, &answer) || !strings.Contains(got.err.Error(), "attempts") || rc.count() < 3 {
		t.Errorf("%d requests: %v", rc.count(), got.err)
	}
	if !strings.Contains(c.log.String(), "can't deliver") {
		t.Errorf("the outage wasn't logged: %q", c.log.String())
	}
	noError(t, c.Close())
}

func TestRetryForBelowZeroMeansOneAttempt(t *testing.T) {
	rc := newReceiver(t, always(503))
	c := newObserved(rc.URL)
	c.Size = 1
	c.RetryFor = -1
	c.track(t, "m")
	until(t, "it is reported", func() bool { return len(c.reported()) == 1 })
	noError(t, c.Close())
	if rc.count() != 1 {
		t.Fatalf("%d requests", rc.count())
	}
}

func TestAConnectionResetIsRepeatedWithTheSameMessageIds(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		if n > 3 {
			return ok(w, r, n)
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return 0
		}
		if n < 3 {
			_ = conn.(*net.TCPConn).SetLinger(0) // a reset
		}
		conn.Close()
		return 0
	})
	c := newObserved(rc.URL)
	noError(t, c.Track(&Track{UserId: "u", Event: "e"}))
	noError(t, c.Close())
	all := rc.all()
	if len(all) != 4 || len(c.reported()) != 0 {
		t.Fatalf("%d requests, reported %v", len(all), c.reported())
	}
	for _, r := range all {
		if r.messages[0]["messageId"] != all[0].messages[0]["messageId"] || r.body.MessageId != all[0].body.MessageId {
			t.Errorf("messageIds differ: %v and %v", r.messages[0], all[0].messages[0])
		}
	}
}

func TestAConnectionClosedWhileIdleLosesNothing(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.Size = 1
	for i := 1; i <= 10; i++ {
		c.track(t, fmt.Sprint(i))
		until(t, "it arrived", func() bool { return len(rc.accepted()) == i })
		rc.CloseClientConnections()
	}
	noError(t, c.Close())
}

func TestAnAnswerInPiecesAndASlowServerAreWaitedFor(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, _ int) int {
		timer := time.NewTimer(100 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		fmt.Fprint(w, `{"success"`)
		w.(http.Flusher).Flush()
		fmt.Fprint(w, `:true}`)
		return 200
	})
	c := newObserved(rc.URL)
	c.FlushAt = 1
	for i := 0; i < 40; i++ {
		c.track(t, fmt.Sprint(i))
	}
	noError(t, c.Close())
	for id, times := range rc.accepted() {
		if times != 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
	if len(rc.accepted()) != 40 {
		t.Fatalf("%d arrived", len(rc.accepted()))
	}
}

func TestNoMoreThanMaxInFlightRequestsAtATime(t *testing.T) {
	var now, most atomic.Int32
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		if running := now.Add(1); running > most.Load() {
			most.Store(running)
		}
		timer := time.NewTimer(5 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		now.Add(-1)
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	c.Size = 1
	c.MaxInFlight = 3
	for i := 0; i < 100; i++ {
		c.track(t, fmt.Sprint(i))
	}
	noError(t, c.Close())
	if most.Load() != 3 || len(rc.accepted()) != 100 {
		t.Fatalf("%d at a time, %d arrived", most.Load(), len(rc.accepted()))
	}
}

func TestARequestThatHangsTimesOutAndIsRepeated(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request, n int) int {
		if n == 1 {
			<-r.Context().Done()
			return 0
		}
		return ok(w, r, n)
	}
	t.Run("by the caller's Client", func(t *testing.T) {
		rc := newReceiver(t, hang)
		c := newObserved(rc.URL)
		c.Client.Client = &http.Client{Timeout: 100 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
		c.track(t, "m")
		noError(t, c.Close())
		if rc.accepted()["m"] != 1 {
			t.Fatal("not sent")
		}
	})
	t.Run("by default", func(t *testing.T) {
		rc := newReceiver(t, hang)
		c := newObserved(rc.URL)
		q, err := c.start()
		noError(t, err)
		q.gateway.timeout = 100 * time.Millisecond // not the ten seconds
		c.track(t, "m")
		noError(t, c.Close())
		if rc.accepted()["m"] != 1 {
			t.Fatal("not sent")
		}
	})
	t.Run("by default with a Client that has no timeout", func(t *testing.T) {
		c := newObserved("")
		c.Client.Client = &http.Client{}
		q, err := c.start()
		noError(t, err)
		if q.gateway.timeout != DefaultTimeout {
			t.Fatal(q.gateway.timeout)
		}
		noError(t, c.Close())
	})
}

func TestARedirectThatDropsTheBodyIsAFailure(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
		return 301
	})
	c := newObserved(rc.URL)
	c.track(t, "m")
	var answer *StatusError
	if err := c.Close(); !errors.As(err, &answer) || answer.StatusCode != 301 || rc.count() != 1 {
		t.Fatalf("%d requests: %v", rc.count(), err)
	}
}

func TestARedirectThatKeepsTheBodyIsFollowed(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		if n == 1 {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
			return 308
		}
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	c.Verbose = true
	c.track(t, "m")
	noError(t, c.Close())
	if rc.accepted()["m"] != 1 || strings.Contains(c.log.String(), "failed") {
		t.Fatalf("not sent at once: %s", c.log.String())
	}
}

func TestCloseSendsWhatIsQueued(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	for i := 0; i < 1005; i++ {
		c.track(t, fmt.Sprint(i))
	}
	noError(t, c.Close())
	if len(rc.accepted()) != 1005 {
		t.Fatalf("%d arrived", len(rc.accepted()))
	}
	noGoroutines(t)
}

func TestCallsAfterCloseAreAnErrorAndCloseTwiceIsFine(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.track(t, "m")
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if rc.accepted()["m"] != 1 {
				t.Error("a Close returned before the first was done")
			}
		}()
	}
	wg.Wait()
	noError(t, c.Close())
	for name, err := range map[string]error{
		"identify": c.Identify(&Identify{UserId: "u"}),
		"track":    c.Track(&Track{UserId: "u", Event: "e"}),
		"page":     c.Page(&Page{UserId: "u"}),
		"screen":   c.Screen(&Screen{UserId: "u"}),
		"group":    c.Group(&Group{UserId: "u", GroupId: "g"}),
		"alias":    c.Alias(&Alias{UserId: "u", PreviousId: "p"}),
		"resend":   c.Resend(Message{JSON: []byte(`{}`)}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	noError(t, New("unused").Close())
}

func TestCloseOfAServerThatHangsEndsAtItsDeadlineAndTellsWhatWasNotSent(t *testing.T) {
	rc := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) int {
		<-r.Context().Done()
		return 0
	})
	c := newObserved(rc.URL)
	c.CloseTimeout = 300 * time.Millisecond
	c.MaxInFlight = 2
	const messages = 110 // two batches in flight, three and a half behind
	for i := 0; i < messages; i++ {
		c.track(t, fmt.Sprint(i))
	}
	start := time.Now()
	err := c.Close()
	if took := time.Since(start); took < 300*time.Millisecond || took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
	var unsent *CloseError
	if !errors.As(err, &unsent) || !errors.Is(err, ErrCloseTimeout) {
		t.Fatalf("%v", err)
	}
	if ids := idsOf(unsent.Messages); len(ids) != messages {
		t.Errorf("%d different messages in the error", len(ids))
	}
	var reported []Message
	for _, r := range c.reported() {
		if !errors.Is(r.err, ErrCloseTimeout) {
			t.Errorf("reported with %v", r.err)
		}
		reported = append(reported, r.messages...)
	}
	if ids := idsOf(reported); len(ids) != messages || len(reported) != messages {
		t.Errorf("%d reported, %d different", len(reported), len(ids))
	}
	if again := c.Close(); again != err {
		t.Errorf("the second Close: %v", again)
	}
	noGoroutines(t)
}

func idsOf(messages []Message) map[string]bool {
	ids := make(map[string]bool)
	for _, m := range messages {
		ids[m.MessageId] = true
	}
	return ids
}

func TestCloseDuringAnOutageTriesAtOnceAndThenUntilItsDeadline(t *testing.T) {
	var up atomic.Bool
	rc := newReceiver(t, unavailableUntil(&up))
	c := newObserved(rc.URL)
	c.Size = 1
	c.Verbose = true
	c.track(t, "m")
	until(t, "it waits for more than a second", func() bool { return strings.Contains(c.log.String(), "attempt 6 ") })
	up.Store(true)
	start := time.Now()
	noError(t, c.Close())
	if took := time.Since(start); took > 400*time.Millisecond {
		t.Errorf("Close took %v", took)
	}
}

func TestCloseDoesNotWaitForARetryAfterBeyondItsDeadline(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) int {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(429)
		return 429
	})
	c := newObserved(rc.URL)
	c.Size = 1
	c.CloseTimeout = 15 * time.Second
	for i := 0; i < 30; i++ {
		c.track(t, fmt.Sprint(i))
	}
	start := time.Now()
	err := c.Close()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	var unsent *CloseError
	var answer *StatusError
	if !errors.As(err, &unsent) || len(idsOf(unsent.Messages)) != 30 || !errors.Is(err, ErrCloseTimeout) ||
		!errors.As(err, &answer) || answer.StatusCode != 429 || answer.RetryAfter != time.Minute {
		t.Fatalf("%v", err)
	}
	if rc.count() > DefaultMaxInFlight {
		t.Errorf("%d requests against the Retry-After", rc.count())
	}
}

func TestCloseOfAServerThatIsDownTellsWhy(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	c := newObserved(strings.Replace(down.URL, "http://", "http://someone@", 1))
	c.CloseTimeout = 200 * time.Millisecond
	c.track(t, "m")
	err := c.Close()
	var unsent *CloseError
	var network net.Error
	if !errors.As(err, &unsent) || len(unsent.Messages) != 1 || !errors.As(err, &network) || !errors.Is(err, ErrCloseTimeout) {
		t.Fatalf("%v", err)
	}
	if strings.Contains(err.Error(), "someone") {
		t.Errorf("the endpoint's user is told: %v", err)
	}
	if text := string(unsent.Messages[0].JSON); !strings.HasPrefix(text, `{"type":"track","messageId":"m"`) {
		t.Fatal(text)
	}
}

// deaf is a transport that ignores the end of a request's context.
type deaf chan struct{}

func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	<-d
	return nil, context.Canceled
}

func TestCloseDoesNotHangOnATransportThatDoes(t *testing.T) {
	release := make(deaf)
	c := newObserved("")
	c.Client.Client = &http.Client{Transport: release}
	c.CloseTimeout = 100 * time.Millisecond
	for i := 0; i < 50; i++ {
		c.track(t, fmt.Sprint(i))
	}
	start := time.Now()
	err := c.Close()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
	var unsent *CloseError
	if !errors.As(err, &unsent) || len(idsOf(unsent.Messages)) != 50 {
		t.Fatalf("%v", err)
	}
	close(release)
	noGoroutines(t)
	if n := len(c.reported()); n != 1 || len(c.reported()[0].messages) != 50 {
		t.Fatalf("reported %d times", n)
	}
}

func TestOnFailureMayMakeCallsAndIsNeverRunTwiceAtATime(t *testing.T) {
	rc := newReceiver(t, status(400, 400, 400, 400, 400, 400, 400, 400))
	c := newObserved(rc.URL)
	c.Size = 1
	var running atomic.Int32
	var told []string
	c.OnFailure = func(messages []Message, err error) {
		if running.Add(1) != 1 {
			t.Error("OnFailure runs twice")
		}
		defer running.Add(-1)
		time.Sleep(10 * time.Millisecond) // for others to come
		for _, m := range messages {
			told = append(told, m.MessageId)
			if e := c.Resend(m); e != nil {
				t.Error(e)
			}
		}
	}
	for i := 0; i < 8; i++ {
		c.track(t, fmt.Sprint(i))
	}
	until(t, "all arrived", func() bool { return len(rc.accepted()) == 8 })
	noError(t, c.Close())
	if len(told) != 8 {
		t.Fatalf("told of %v", told)
	}
}

func TestAnOnFailureThatClosesOrHangsDoesNotHangClose(t *testing.T) {
	rc := newReceiver(t, always(400))
	c := newObserved(rc.URL)
	c.Size = 1
	c.MaxInFlight = 1
	c.CloseTimeout = 100 * time.Millisecond
	inner := make(chan error, 100)
	c.OnFailure = func([]Message, error) { inner <- c.Close() }
	q, err := c.start()
	noError(t, err)
	q.reportGrace = 100 * time.Millisecond
	for i := 0; i < 10; i++ { // all but the first are left when the inner Close ends
		if err := c.Track(&Track{UserId: "u", Event: "e"}); err != nil && !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
	select {
	case <-inner:
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
	_ = c.Close()
	noGoroutines(t)
}

// hangs answers nothing until the client breaks off.
func hangs(_ http.ResponseWriter, r *http.Request, _ int) int {
	<-r.Context().Done()
	return 0
}

func TestWhatIsLeftAtCloseIsReportedThoughOnFailureIsBusy(t *testing.T) {
	rc := newReceiver(t, hangs)
	c := newObserved(rc.URL)
	c.Size = 1
	c.MaxInFlight = 1
	c.CloseTimeout = 50 * time.Millisecond
	var told []string
	c.OnFailure = func(messages []Message, _ error) {
		if len(told) == 0 { // the one that was cut off: returns when Close has found the other one
			q := c.running.Load()
			until(t, "both are known to be unsent", func() bool {
				q.mu.Lock()
				defer q.mu.Unlock()
				return len(q.unsent) == 2
			})
		}
		for _, m := range messages {
			told = append(told, m.MessageId)
		}
	}
	c.track(t, "in flight")
	until(t, "the first is in flight", func() bool { return rc.count() == 1 })
	c.track(t, "left")
	if err := c.Close(); !errors.Is(err, ErrCloseTimeout) {
		t.Errorf("Close: %v", err)
	}
	if strings.Join(told, ", ") != "in flight, left" {
		t.Errorf("OnFailure was told of %q when Close returned", told)
	}
	noGoroutines(t)
}

func TestAnOnFailureThatHangsWithWhatIsLeftDoesNotHangClose(t *testing.T) {
	rc := newReceiver(t, hangs)
	c := newObserved(rc.URL)
	c.Size = 1
	c.MaxInFlight = 1
	c.CloseTimeout = 50 * time.Millisecond
	told := make(chan []Message, 1) // has room for one, and nobody reads before Close has returned
	c.OnFailure = func(messages []Message, _ error) { told <- messages }
	q, err := c.start()
	noError(t, err)
	q.reportGrace = 100 * time.Millisecond
	c.track(t, "in flight")
	until(t, "the first is in flight", func() bool { return rc.count() == 1 })
	c.track(t, "left")
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	select {
	case err := <-closed:
		var unsent *CloseError
		if !errors.As(err, &unsent) || len(unsent.Messages) != 2 {
			t.Errorf("Close: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
	for count := 0; count < 2; {
		count += len(<-told) // hangs if one of them is never reported
	}
	noGoroutines(t)
}

func TestACallDuringCloseIsRefusedAsSuchThoughTheQueueIsFull(t *testing.T) {
	release := make(chan struct{})
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		<-release
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	c.QueueBytes = 1
	call := func() error { return c.Track(&Track{UserId: "u", Event: "e"}) }
	until(t, "the queue is full", func() bool { return errors.Is(call(), ErrQueueFull) })
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	until(t, "the client is closed", func() bool { return errors.Is(call(), ErrClosed) })
	close(release)
	noError(t, <-closed)
}

func TestResendKeepsAFailedMessageAsItWas(t *testing.T) {
	rc := newReceiver(t, status(401))
	c := newObserved(rc.URL)
	c.Size = 1
	noError(t, c.Identify(&Identify{UserId: "u", Traits: map[string]interface{}{"a": 1.5}}))
	until(t, "it is reported", func() bool { return len(c.reported()) == 1 })
	failed := c.reported()[0].messages[0]
	noError(t, c.Resend(failed))
	noError(t, c.Close())
	all := rc.all()
	if len(all) != 2 || !reflect.DeepEqual(all[0].messages, all[1].messages) || failed.Type != "identify" ||
		failed.MessageId != all[1].messages[0]["messageId"] {
		t.Fatalf("%v", all)
	}
}

func TestResendRefusesWhatIsNoMessage(t *testing.T) {
	c := New("k")
	defer c.Close()
	for text, want := range map[string]error{
		"": ErrNoMessage, "{": nil, "\"\xff\"": nil, `"` + strings.Repeat("x", 32<<10) + `"`: ErrTooLarge,
	} {
		err := c.Resend(Message{JSON: []byte(text)})
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.10s: %v", text, err)
		}
	}
}

func TestEveryCallThatRacesCloseArrivesOrIsRefused(t *testing.T) {
	for round := 0; round < 8; round++ {
		rc := newReceiver(t, ok)
		c := newObserved(rc.URL)
		var mu sync.Mutex
		var taken []string
		var wg sync.WaitGroup
		var made atomic.Int32
		for g := 0; g < 16; g++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				var mine []string
				for i := 0; ; i++ {
					id := fmt.Sprintf("%d-%d", g, i)
					err := c.Track(&Track{UserId: "u", Event: "e", MessageId: id})
					if errors.Is(err, ErrClosed) {
						break
					}
					if err == nil {
						mine = append(mine, id)
						made.Add(1)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, mine...)
			}()
		}
		until(t, "calls are made", func() bool { return made.Load() > 200 })
		noError(t, c.Close())
		wg.Wait()
		got := rc.accepted()
		if len(got) != len(taken) {
			sort.Strings(taken)
			t.Fatalf("%d arrived of %d", len(got), len(taken))
		}
		for _, id := range taken {
			if got[id] != 1 {
				t.Fatalf("%s arrived %d times", id, got[id])
			}
		}
		rc.Close()
	}
	noGoroutines(t)
}

func TestTheCallersClientIsUsedAndLeftAlone(t *testing.T) {
	rc := newReceiver(t, ok)
	var used atomic.Int32
	own := &http.Client{Transport: counting{&used}}
	c := newObserved(rc.URL)
	c.Client.Client = own
	c.track(t, "m")
	noError(t, c.Close())
	if used.Load() != 1 || own.CheckRedirect != nil || own.Timeout != 0 {
		t.Fatalf("used %d times: %+v", used.Load(), own)
	}
}

type counting struct{ used *atomic.Int32 }

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.used.Add(1)
	_, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"success":true}`)), Request: r}, nil
}
