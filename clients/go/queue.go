package analytics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A queue holds messages from the call until they are delivered or reported.
// Calls add their messages to the pending batch. A batch that is full or old
// enough is sealed, and then waits for a sender. The senders are goroutines
// that exist only while there is something to send. A batch that failed waits
// for its next attempt without a sender, so it doesn't delay other batches.
type queue struct {
	settings

	mu       sync.Mutex
	pending  *batch // takes calls; nil when there are none
	lastSize int    // bytes of the batch that was sealed last; the next one is allocated by it
	lastLen  int    // number of messages of the batch that was sealed last
	head     *batch // the first of the sealed batches that wait for their first attempt
	tail     *batch
	sending  map[*batch]struct{} // the batches in an attempt, or being reported
	waiting  []*batch            // the batches that wait for another attempt
	bytes    int                 // the size of all messages that aren't settled
	full     atomic.Bool         // true if a call was refused and nothing was settled since
	senders  int
	timer    *time.Timer // seals the pending batch when it is old enough
	armed    bool        // true while the timer runs
	waker    *time.Timer // starts a sender when an attempt is due

	heldUntil time.Time // nothing is sent before this, because of a Retry-After for all batches
	failures  int       // failed attempts since a batch was taken or finally refused
	probeAt   time.Time // during an outage: when the next batch may have its first attempt
	trouble   error     // the error of the last failed attempt; nil after an outage
	told      bool      // true if the trouble was logged

	closed    bool
	deadline  time.Time // the deadline of Close; zero if it has none
	isDrained bool
	lost      int // number of messages that failed before Close and were only logged
	lostBy    error
	unsent    []failure // the failures since Close began

	ctx      context.Context // the context of requests; ends at Close's deadline
	cancel   context.CancelFunc
	drained  chan struct{} // closed when Close has begun and nothing more will be tried
	done     chan struct{} // closed when Close has ended
	closeErr error         // the result of Close; valid after done is closed

	reporting sync.Mutex // only one OnFailure runs at a time
}

// A flush waits for batches.
type flush struct {
	left int           // guarded by the queue's lock
	done chan struct{} // closed when no batch is left
}

// A failure holds messages to report, all for the same reason.
type failure struct {
	messages []Message
	count    int // the number of messages, including those that the gateway didn't name
	err      error
}

func newQueue(s settings) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	return &queue{
		settings: s,
		lastSize: 4 << 10,
		sending:  make(map[*batch]struct{}),
		ctx:      ctx,
		cancel:   cancel,
		drained:  make(chan struct{}),
		done:     make(chan struct{}),
	}
}

// add copies a message into the pending batch. now is the time of the call.
func (q *queue) add(message []byte, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if q.bytes+len(message) > q.queueBytes {
		q.full.Store(true) // cleared when a batch ends; one is being sent or will be soon
		if q.senders == 0 {
			q.seal() // otherwise there would be no room before FlushAfter
		}
		return ErrQueueFull
	}
	if q.pending != nil && !q.pending.fits(len(message)) {
		q.seal()
	}
	if q.pending == nil {
		length := min(q.flushAt, q.lastLen+q.lastLen/8+1)
		q.pending = newBatch(length, q.lastSize+q.lastSize/8+len(message), now)
	}
	q.pending.add(message)
	q.bytes += len(message)
	if q.pending.len() >= q.flushAt {
		q.seal()
	} else if !q.armed {
		q.arm(q.flushAfter)
	}
	return nil
}

// seal ends the pending batch, which then waits for a sender. The caller holds
// the lock.
func (q *queue) seal() {
	b := q.pending
	if b == nil {
		return
	}
	q.pending = nil
	q.lastSize = len(b.body)
	q.lastLen = b.len()
	if q.head == nil {
		q.head = b
	} else {
		q.tail.next = b
	}
	q.tail = b
	q.startSender()
}

// arm starts the timer. The timer isn't stopped when its batch is sealed. When
// it ends, it finds a younger batch and starts again. This is cheaper than
// stopping and starting the timer for each batch. The caller holds the lock.
func (q *queue) arm(wait time.Duration) {
	q.armed = true
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.ring)
	} else {
		q.timer.Reset(wait)
	}
}

// ring is called when the timer ends. It seals the pending batch if the batch
// is old enough.
func (q *queue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = false
	if q.closed || q.pending == nil {
		return
	}
	if left := q.flushAfter - time.Since(q.pending.since); left > 0 {
		q.arm(left)
		return
	}
	q.seal()
}

// send makes attempts until none is due.
func (q *queue) send() {
	for {
		b := q.next()
		if b == nil {
			return
		}
		q.attempt(b)
	}
}

// next takes a batch whose attempt is due. If it returns nil, the sender ends.
func (q *queue) next() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	b := q.take(now)
	if b == nil {
		q.senders--
		if q.senders == 0 && q.full.Load() {
			q.seal() // no batch is being sent, so no end of a batch would make room
		}
		q.pause()
		return nil
	}
	q.sending[b] = struct{}{}
	if at, any := q.nextAt(now); any && !at.After(now) {
		q.startSender()
	}
	return b
}

// startSender adds a sender, unless there are enough. The caller holds the lock.
func (q *queue) startSender() {
	if q.senders < q.maxInFlight && q.ctx.Err() == nil {
		q.senders++
		go q.send()
	}
}

// nextAt returns the time at which the next attempt is due. It returns false if
// there is nothing to send. The caller holds the lock.
func (q *queue) nextAt(now time.Time) (at time.Time, any bool) {
	if q.head != nil {
		at, any = now, true
		if q.isOutage() {
			at = q.probeAt
		}
	}
	for _, b := range q.waiting {
		if !any || b.due.Before(at) {
			at, any = b.due, true
		}
	}
	if q.heldUntil.After(at) {
		at = q.heldUntil
	}
	return at, any
}

// isOutage returns true if so many attempts have failed that single batches
// can't be the cause. In an outage, first attempts are made one at a time,
// after longer and longer waits. Otherwise all batches of the queue would be
// tried again and again. The caller holds the lock.
func (q *queue) isOutage() bool { return q.failures >= q.maxInFlight }

// take removes the batch that has to be sent now, and returns it. It returns
// nil if there is none. The caller holds the lock.
func (q *queue) take(now time.Time) *batch {
	if at, any := q.nextAt(now); !any || at.After(now) || q.ctx.Err() != nil {
		return nil
	}
	first := -1
	for i, b := range q.waiting {
		if !b.due.After(now) && (first < 0 || b.due.Before(q.waiting[first].due)) {
			first = i
		}
	}
	if first >= 0 {
		b := q.waiting[first]
		q.waiting = slices.Delete(q.waiting, first, first+1)
		return b
	}
	b := q.head
	q.head = b.next
	b.next = nil
	if q.isOutage() {
		q.probeAt = now.Add(q.backOff(q.failures - q.maxInFlight + 1))
	}
	return b
}

// pause is called at the end of a sender. It starts another sender when the
// next attempt is due. If Close waits and nothing more will be sent, it tells
// Close. The caller holds the lock.
func (q *queue) pause() {
	at, any := q.nextAt(time.Now())
	isOver := !any || q.ctx.Err() != nil || (q.closed && !q.deadline.IsZero() && at.After(q.deadline))
	switch {
	case !isOver:
		q.wakeAt(at)
	case q.closed && q.senders == 0 && !q.isDrained:
		q.isDrained = true
		close(q.drained)
	}
}

func (q *queue) wakeAt(at time.Time) {
	wait := max(time.Until(at), 0)
	if q.waker == nil {
		q.waker = time.AfterFunc(wait, q.wake)
	} else {
		q.waker.Reset(wait)
	}
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.startSender()
}

// attempt sends a batch once. After that, the batch is delivered, is reported,
// or waits for another attempt.
func (q *queue) attempt(b *batch) {
	start := time.Now()
	if b.attempts == 0 {
		id, err := randomId()
		if err != nil {
			q.fail(b, fmt.Errorf("analytics: messageId: %w", err))
			return
		}
		b.id = id
		b.giveUp = start.Add(q.retryFor)
	}
	b.attempts++
	receipt, err := q.gateway.post(q.ctx, b, b.id)
	now := time.Now()
	if err == nil {
		if q.verbose {
			q.logger.Printf("sent %s, %d bytes, in %v", count(b.len()), len(b.body), now.Sub(start))
		}
		q.finish(b, b.rejected(receipt))
		q.well()
		return
	}
	again, retryAfter := judge(err)
	notEarly := q.hold(err, now, retryAfter)
	switch {
	case !again:
		q.answered()
		q.fail(b, err)
	case q.ctx.Err() != nil:
		q.fail(b, outOfTime(err))
	case now.Before(b.giveUp):
		q.postpone(b, err, now, notEarly)
	case b.attempts == 1:
		q.fail(b, err)
	default:
		q.fail(b, fmt.Errorf("given up after %d attempts: %w", b.attempts, err))
	}
}

// hold returns the time from which a batch may be tried again, according to the
// Retry-After of its answer. After a 429, all other batches wait until then
// too, because a rate limit applies to the source and not to a batch.
func (q *queue) hold(err error, now time.Time, retryAfter time.Duration) time.Time {
	if retryAfter == 0 {
		return now
	}
	// The jitter spreads the attempts of processes that were refused at the same
	// time.
	until := now.Add(retryAfter + rand.N(retryAfter/10+1))
	var status *StatusError
	if errors.As(err, &status) && status.StatusCode == http.StatusTooManyRequests {
		q.mu.Lock()
		defer q.mu.Unlock()
		if until.After(q.heldUntil) {
			q.heldUntil = until
		}
	}
	return until
}

// postpone makes a batch wait for its next attempt.
func (q *queue) postpone(b *batch, err error, now, notEarly time.Time) {
	q.mu.Lock()
	delete(q.sending, b)
	if b.settled { // Close has settled it
		q.mu.Unlock()
		return
	}
	b.last = err
	b.notEarly = notEarly
	b.due = now.Add(q.backOff(b.attempts))
	if b.notEarly.After(b.due) {
		b.due = b.notEarly
	}
	q.waiting = append(q.waiting, b)
	q.failures++
	q.trouble = err
	news := b.attempts > 1 && !q.told
	q.told = q.told || news
	attempts, wait := b.attempts, b.due.Sub(now)
	q.mu.Unlock() // from here on, another sender may have the batch
	if news {
		q.logger.Printf("can't deliver, trying on: %v", err)
	}
	if q.verbose {
		q.logger.Printf("attempt %d to send %s failed, next in %v: %v",
			attempts, count(b.len()), wait, err)
	}
}

// maxBackOffClosing is the longest wait between attempts after Close has begun.
const maxBackOffClosing = 500 * time.Millisecond

// backOff returns the wait after this number of attempts. The caller holds the
// lock.
func (q *queue) backOff(attempts int) time.Duration {
	wait := backOff(attempts)
	if q.closed {
		wait = min(wait, maxBackOffClosing)
	}
	return wait
}

// answered notes that the gateway has answered, so there is no outage.
func (q *queue) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failures = 0
}

// well notes that the gateway took a batch. It logs the end of an outage,
// unless batches still wait for another attempt.
func (q *queue) well() {
	q.mu.Lock()
	q.failures = 0
	news := q.told && len(q.waiting) == 0
	if len(q.waiting) == 0 {
		q.trouble = nil
		q.told = false
	}
	q.mu.Unlock()
	if news {
		q.logger.Printf("delivering again")
	}
}

// outOfTime returns the reason for a batch that wasn't sent before Close's
// deadline. last is the error of its last attempt, or nil if there was no
// attempt.
func outOfTime(last error) error {
	if last == nil {
		return ErrCloseTimeout
	}
	return fmt.Errorf("%w: %w", ErrCloseTimeout, last)
}

// fail ends a batch that can't be delivered.
func (q *queue) fail(b *batch, err error) {
	q.finish(b, []failure{{b.messages(), b.len(), err}})
}

// finish ends a batch, and reports those of its messages that weren't
// delivered.
func (q *queue) finish(b *batch, failures []failure) {
	if q.settle(b, failures) {
		for _, f := range failures {
			q.report(f)
		}
		q.release(b)
	}
}

// settle ends a batch. It returns false if the batch was settled before.
func (q *queue) settle(b *batch, failures []failure) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.settled {
		return false
	}
	b.settled = true
	q.bytes -= b.messageBytes()
	q.full.Store(false)
	for _, f := range failures {
		switch {
		case q.closed:
			q.unsent = append(q.unsent, f)
		case q.onFailure == nil:
			q.lost += f.count
			q.lostBy = f.err
		}
	}
	return true
}

// release ends the wait of the flushes that wait only for this batch. The batch
// was delivered or reported before.
func (q *queue) release(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.sending, b)
	for _, f := range b.flushes {
		if f.left--; f.left == 0 {
			close(f.done)
		}
	}
	b.flushes = nil
}

// flush sends all queued messages, and waits until they are delivered or
// reported.
func (q *queue) flush(ctx context.Context) error {
	f := &flush{done: make(chan struct{})}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.seal()
	for _, b := range q.unreleased() {
		b.flushes = append(b.flushes, f)
		f.left++
	}
	left := f.left
	q.mu.Unlock()
	if left == 0 {
		return nil
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		q.leave(f)
		return ctx.Err()
	}
}

// leave removes a flush that has given up from its batches. Otherwise the
// batches would keep all such flushes during a long outage.
func (q *queue) leave(f *flush) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.unreleased() {
		b.flushes = slices.DeleteFunc(b.flushes, func(one *flush) bool { return one == f })
	}
}

// unreleased returns all sealed batches that are neither delivered nor
// reported. Batches that are being reported are among them. The caller holds
// the lock.
func (q *queue) unreleased() []*batch {
	batches := slices.Clone(q.waiting)
	for b := range q.sending {
		batches = append(batches, b)
	}
	for b := q.head; b != nil; b = b.next {
		batches = append(batches, b)
	}
	return batches
}

// report passes failed messages to OnFailure, or logs them if there is none.
func (q *queue) report(f failure) {
	if q.onFailure == nil {
		q.log(f)
		return
	}
	q.reporting.Lock()
	defer q.reporting.Unlock()
	// The callback gets a separate goroutine, because it may end its goroutine, as
	// t.Fatal does. The sender has to go on.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.onFailure(f.messages, f.err)
	}()
	<-ended
}

func (q *queue) log(f failure) {
	q.logger.Printf("%s not delivered: %v", count(f.count), f.err)
}

const (
	// cutOffGrace is the time for senders to end after their requests were cut
	// off.
	cutOffGrace = 200 * time.Millisecond

	// reportGrace is how long Close waits for OnFailure, which may hang or call
	// Close.
	reportGrace = 5 * time.Second
)

func (q *queue) close(ctx context.Context) error {
	if !q.beginClose(ctx) {
		<-q.done
		return q.closeErr
	}
	select {
	case <-q.drained:
	case <-ctx.Done():
		q.cancel()
		ends(q.drained, cutOffGrace)
	}
	q.cancel()
	q.reportLeftovers()
	q.gateway.close()

	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waker != nil {
		q.waker.Stop()
	}
	q.closeErr = q.closeError()
	close(q.done)
	return q.closeErr
}

// beginClose closes the queue for calls. It makes the next attempt of each
// waiting batch due now, or at the batch's Retry-After. It returns false if the
// queue was closed before.
func (q *queue) beginClose(ctx context.Context) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	q.full.Store(false) // so that calls return ErrClosed
	q.deadline, _ = ctx.Deadline()
	q.failures = 0
	for _, b := range q.waiting {
		b.due = b.notEarly
	}
	q.seal()
	if q.timer != nil {
		q.timer.Stop()
	}
	q.startSender() // also if there is nothing to send, because the last sender closes drained
	return true
}

// reportLeftovers ends the batches that no sender took. It also ends the
// batches of senders that hang, because their http.Client ignores the end of a
// request's context. It returns when all failed messages are reported, or after
// reportGrace.
func (q *queue) reportLeftovers() {
	reports := &flush{done: make(chan struct{})}
	q.mu.Lock()
	left := q.unreleased()
	for _, b := range left {
		b.flushes = append(b.flushes, reports)
	}
	reports.left = len(left)
	trouble := q.trouble
	q.head, q.waiting = nil, nil
	q.mu.Unlock()
	if len(left) == 0 {
		return
	}
	var late failure
	var settled []*batch
	for _, b := range left {
		err := outOfTime(cmp.Or(b.last, trouble))
		f := failure{b.messages(), b.len(), err}
		if !q.settle(b, []failure{f}) {
			continue // its sender reports it
		}
		settled = append(settled, b)
		late.messages = append(late.messages, f.messages...)
		late.count += f.count
		if late.err == nil {
			late.err = err
		}
	}
	go func() {
		if late.count > 0 {
			q.report(late)
		}
		for _, b := range settled {
			q.release(b)
		}
	}()
	ends(reports.done, q.reportGrace)
}

// ends waits until the channel is closed, but at most for the timeout.
func ends(c <-chan struct{}, timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}

// closeError returns the error of Close. The caller holds the lock.
func (q *queue) closeError() error {
	if q.lost == 0 && len(q.unsent) == 0 {
		return nil
	}
	e := &CloseError{Lost: q.lost, Err: q.lostBy}
	for _, f := range q.unsent {
		e.Messages = append(e.Messages, f.messages...)
		e.Lost += f.count - len(f.messages)
	}
	if len(q.unsent) > 0 {
		e.Err = q.unsent[0].err
	}
	q.unsent = nil
	return e
}
