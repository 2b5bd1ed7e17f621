package analytics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestABatchGoesWhenFlushAtMessagesAreQueued(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.FlushAfter = time.Hour
	for i := 0; i < 19; i++ {
		c.track(t, fmt.Sprint(i))
	}
	if q := c.running.Load(); q.senders != 0 || q.pending.len() != 19 {
		t.Fatalf("%d senders, %d pending", q.senders, q.pending.len())
	}
	c.track(t, "19")
	until(t, "the batch arrived", func() bool { return len(rc.accepted()) == 20 })
	noError(t, c.Close())
	if rc.count() != 1 {
		t.Fatalf("%d requests", rc.count())
	}
}

func TestABatchHoldsFlushAtMessagesAtTheMost(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.FlushAt = 7
	for i := 0; i < 71; i++ {
		c.track(t, fmt.Sprint(i))
	}
	noError(t, c.Close())
	sizes := make(map[int]int)
	for _, r := range rc.all() {
		sizes[len(r.messages)]++
	}
	if len(sizes) != 2 || sizes[7] != 10 || sizes[1] != 1 || len(rc.accepted()) != 71 {
		t.Fatalf("sizes %v", sizes)
	}
}

func TestSizeWinsOverFlushAt(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.FlushAfter = time.Hour
	c.Size, c.FlushAt = 2, 100
	c.track(t, "a")
	c.track(t, "b")
	until(t, "the batch arrived", func() bool { return len(rc.accepted()) == 2 })
	noError(t, c.Close())
}

func TestSizeOneSendsEveryCall(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.Size = 1
	for i := 0; i < 50; i++ {
		c.track(t, fmt.Sprint(i))
	}
	noError(t, c.Close())
	if rc.count() != 50 || len(rc.accepted()) != 50 {
		t.Fatalf("%d requests, %d messages", rc.count(), len(rc.accepted()))
	}
}

func TestAMessageWaitsNoLongerThanFlushAfter(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.FlushAfter = 60 * time.Millisecond
	for round := 1; round <= 3; round++ {
		start := time.Now()
		c.track(t, fmt.Sprint(round))
		until(t, "the batch arrived", func() bool { return rc.count() == round })
		if waited := rc.all()[round-1].at.Sub(start); waited < 60*time.Millisecond {
			t.Errorf("round %d came after %v", round, waited)
		}
	}
	noError(t, c.Close())
}

func TestABatchThatFillsAndANewOneKeepTheirTimes(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.FlushAt = 2
	c.FlushAfter = 200 * time.Millisecond
	c.track(t, "a") // starts the timer
	until(t, "half the time is over", func() bool {
		q := c.running.Load()
		q.mu.Lock()
		defer q.mu.Unlock()
		return time.Since(q.pending.since) > 100*time.Millisecond
	})
	c.track(t, "b") // fills the batch
	start := time.Now()
	c.track(t, "c") // the timer of a must not send it
	until(t, "both arrived", func() bool { return len(rc.accepted()) == 3 })
	if waited := rc.all()[1].at.Sub(start); waited < 190*time.Millisecond {
		t.Errorf("the second batch came after %v", waited)
	}
	noError(t, c.Close())
}

func TestBatchesAreSplitAt500KB(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.Size = 1000
	for i := 0; i < 100; i++ {
		size := 1000 + i*7919%30_000
		noError(t, c.Track(&Track{
			UserId: "u", Event: "e", MessageId: fmt.Sprint(i),
			Properties: map[string]interface{}{"pad": strings.Repeat("é", size/2)},
		}))
	}
	noError(t, c.Close())
	if len(rc.accepted()) != 100 {
		t.Fatalf("%d arrived", len(rc.accepted()))
	}
	short := 0
	for _, r := range rc.all() {
		if r.bytes > 512_000 {
			t.Errorf("a request of %d bytes", r.bytes)
		}
		if r.bytes < 512_000-32_768 {
			short++
		}
	}
	if short > 1 {
		t.Errorf("%d of %d requests could have taken more", short, rc.count())
	}
}

func TestABatchCanHave500KBToTheByteAndNoMore(t *testing.T) {
	for over, requests := range []int{1, 2} {
		rc := newReceiver(t, ok)
		c := newObserved(rc.URL)
		c.Size = 1000
		add := func(bytes int) {
			e := encoders.New().(*encoder)
			m := &Track{UserId: "u", Event: "e", MessageId: "m", Properties: map[string]interface{}{"p": ""}}
			noError(t, e.encode(&call{kind: "track", userId: "u", event: "e", messageId: "m", properties: m.Properties}, time.Now()))
			m.Properties["p"] = strings.Repeat("x", bytes-len(e.buf))
			noError(t, c.Track(m))
		}
		for i := 0; i < 16; i++ {
			add(30_000)
		}
		add(512_000 - len(batchHead) - 16*(30_000+len(",")) - batchTailBytes + over)
		noError(t, c.Close())
		if rc.count() != requests || requests == 1 && rc.all()[0].bytes != 512_000 {
			t.Errorf("%d over: %d requests, the first of %d bytes", over, rc.count(), rc.all()[0].bytes)
		}
	}
}

func TestABatchHas2500MessagesAtTheMost(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.Size = 10_000
	for i := 0; i < 2501; i++ {
		noError(t, c.Alias(&Alias{UserId: "u", PreviousId: "p", MessageId: fmt.Sprint(i)}))
	}
	noError(t, c.Close())
	if rc.count() != 2 || len(rc.accepted()) != 2501 {
		t.Fatalf("%d requests, %d messages", rc.count(), len(rc.accepted()))
	}
}

func TestAFullQueueRefusesAtOnceAndTakesCallsAgainWhenThereIsRoom(t *testing.T) {
	release := make(chan struct{})
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) int {
		<-release
		return ok(w, r, n)
	})
	c := newObserved(rc.URL)
	c.QueueBytes = 100_000
	taken, bytes := 0, 0
	var full error
	for full == nil {
		start := time.Now()
		full = c.Track(&Track{
			UserId: "u", Event: "e", MessageId: fmt.Sprint(taken),
			Properties: map[string]interface{}{"pad": strings.Repeat("x", 1000)},
		})
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("a call waited %v", waited)
		}
		if full == nil {
			taken++
			bytes += 1000
		}
		if bytes > 100_000 {
			t.Fatal("the queue has no bound")
		}
	}
	if !errors.Is(full, ErrQueueFull) {
		t.Fatalf("%v", full)
	}
	if taken < 80 {
		t.Errorf("only %d were taken", taken)
	}
	close(release)
	until(t, "there is room", func() bool {
		return c.Track(&Track{UserId: "u", Event: "e", MessageId: "later"}) == nil
	})
	noError(t, c.Close())
	if got := rc.accepted(); len(got) != taken+1 || got["later"] != 1 {
		t.Fatalf("%d arrived of %d", len(got), taken+1)
	}
}

func TestAFullQueueOfOneUnfinishedBatchIsSent(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.QueueBytes = 1 // 32 KB all the same
	c.FlushAfter = time.Hour
	c.Size = 1000
	for i := 0; i < 3000; i++ {
		until(t, "there is room", func() bool {
			err := c.Track(&Track{UserId: "u", Event: "e", MessageId: fmt.Sprint(i)})
			if err != nil && !errors.Is(err, ErrQueueFull) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	noError(t, c.Close())
	if len(rc.accepted()) != 3000 {
		t.Fatalf("%d arrived", len(rc.accepted()))
	}
}

func TestAFullQueueIsSentWhenOnFailureHasReturned(t *testing.T) {
	rc := newReceiver(t, status(400))
	c := newObserved(rc.URL)
	c.FlushAt = 2500
	c.FlushAfter = time.Hour
	c.QueueBytes = 1
	c.MaxInFlight = 1
	told, release := make(chan struct{}), make(chan struct{})
	c.OnFailure = func([]Message, error) {
		close(told)
		<-release
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	c.track(t, "refused")
	_ = c.Flush(gone) // so that it is sent at once
	<-told
	call := func() error { return c.Track(&Track{UserId: "u", Event: "e"}) }
	until(t, "the queue is full", func() bool { return errors.Is(call(), ErrQueueFull) })
	close(release)
	until(t, "there is room again", func() bool { return call() == nil })
	noError(t, c.Close())
}

func TestASmallBatchKeepsNoRoomForFlushAtMessages(t *testing.T) {
	rc := newReceiver(t, always(503))
	c := newObserved(rc.URL)
	c.FlushAt = 2500
	c.RetryFor = time.Hour
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for i := 0; i < 100; i++ {
		c.track(t, fmt.Sprint(i))
		_ = c.Flush(gone) // as FlushAfter does
	}
	q := c.running.Load()
	q.mu.Lock()
	room := 0
	for _, b := range q.unreleased() {
		room += cap(b.ends)
	}
	q.mu.Unlock()
	if room > 300 {
		t.Errorf("100 batches of one message have room for %d", room)
	}
	ended, end := context.WithTimeout(context.Background(), time.Millisecond)
	defer end()
	_ = c.CloseContext(ended)
}

func TestTheQueueCountsItsBytesExactly(t *testing.T) {
	rc := newReceiver(t, status(401, 500, 400))
	c := newObserved(rc.URL)
	for i := 0; i < 200; i++ {
		c.track(t, fmt.Sprint(i))
	}
	noError(t, errOtherThan[*CloseError](c.Close()))
	if q := c.running.Load(); q.bytes != 0 || len(q.sending) != 0 || q.head != nil {
		t.Fatalf("%d bytes, %d batches in flight", q.bytes, len(q.sending))
	}
}

// errOtherThan returns nil for an error of the type E, and otherwise an error.
func errOtherThan[E error](err error) error {
	var expected E
	if errors.As(err, &expected) {
		return nil
	}
	return err
}

func TestAnIdleClientHasNoGoroutine(t *testing.T) {
	rc := newReceiver(t, ok)
	c := newObserved(rc.URL)
	c.Client.Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c.Size = 1
	c.track(t, "m")
	until(t, "it arrived", func() bool { return len(rc.accepted()) == 1 })
	noGoroutines(t)
	noError(t, c.Close())
}
