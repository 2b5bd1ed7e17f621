package analytics

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A queue holds messages from the call until they are delivered or reported.
// Calls add to the pending batch; a batch that is full, or old enough, is sealed
// and waits for one of the senders, goroutines that exist only while there is
// something to send.
type queue struct {
	settings

	mu       sync.Mutex
	pending  *batch // takes calls; nil when there are none
	lastSize int    // of the last batch sealed, bytes: how much to allocate for the next
	head     *batch // sealed, waits for a sender
	tail     *batch
	sending  map[*batch]struct{}
	bytes    int         // of all messages that aren't settled
	full     atomic.Bool // a call was refused, and nothing was settled since
	senders  int
	timer    *time.Timer // seals a batch that is old enough
	armed    bool        // timer runs

	heldUntil time.Time // a Retry-After: nothing is sent before
	trouble   error     // of the last attempt; nil when it succeeded
	told      bool      // the trouble was logged

	closed   bool
	deadline time.Time // of Close
	lost     int       // messages that failed before Close and were only logged
	lostBy   error
	unsent   []failure // since Close

	ctx      context.Context // of requests; ends at Close's deadline
	cancel   context.CancelFunc
	closing  chan struct{} // closed when Close begins
	drained  chan struct{} // closed when Close has begun and the last sender is gone
	done     chan struct{} // closed when Close has ended
	closeErr error         // valid after done

	reporting sync.Mutex // OnFailure runs once at a time
}

type failure struct {
	batch *batch
	err   error
}

func newQueue(s settings) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	return &queue{
		settings: s,
		lastSize: 4 << 10,
		sending:  make(map[*batch]struct{}),
		ctx:      ctx,
		cancel:   cancel,
		closing:  make(chan struct{}),
		drained:  make(chan struct{}),
		done:     make(chan struct{}),
	}
}

// add copies a message, made at a time, into the pending batch.
func (q *queue) add(message []byte, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if q.bytes+len(message) > q.queueBytes {
		q.full.Store(true) // some batch is, or is about to be, on its way, and its end clears this
		if q.senders == 0 {
			q.seal() // else room would come only after FlushAfter
		}
		return ErrQueueFull
	}
	if q.pending != nil && !q.pending.fits(len(message)) {
		q.seal()
	}
	if q.pending == nil {
		q.pending = newBatch(q.flushAt, q.lastSize+q.lastSize/8+len(message), now)
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

// seal lets the pending batch go. The caller holds the lock.
func (q *queue) seal() {
	b := q.pending
	if b == nil {
		return
	}
	q.pending = nil
	q.lastSize = len(b.body)
	if q.head == nil {
		q.head = b
	} else {
		q.tail.next = b
	}
	q.tail = b
	if q.senders < q.maxInFlight {
		q.senders++
		go q.send()
	}
}

// arm starts the timer. It isn't stopped when a batch goes: it then finds a
// younger one and starts again, which is cheaper than to stop and start it for
// each batch. The caller holds the lock.
func (q *queue) arm(wait time.Duration) {
	q.armed = true
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.ring)
	} else {
		q.timer.Reset(wait)
	}
}

// ring is what the timer does.
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

// send delivers batches until there are none.
func (q *queue) send() {
	for {
		b := q.next()
		if b == nil {
			return
		}
		if err := q.deliver(b); q.settle(b, err) && err != nil {
			q.report(failure{b, err})
		}
	}
}

// next takes the oldest sealed batch; nil ends the sender.
func (q *queue) next() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.head
	if b == nil || q.ctx.Err() != nil {
		q.senders--
		if q.closed && q.senders == 0 {
			close(q.drained)
		}
		return nil
	}
	q.head = b.next
	b.next = nil
	q.sending[b] = struct{}{}
	return b
}

// settle ends a batch; false when it was settled before. err is nil when it was
// delivered.
func (q *queue) settle(b *batch, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.sending, b)
	if b.settled {
		return false
	}
	b.settled = true
	q.bytes -= b.messageBytes()
	q.full.Store(false)
	switch {
	case err == nil:
	case q.closed:
		q.unsent = append(q.unsent, failure{b, err})
	case q.onFailure == nil:
		q.lost += b.len()
		q.lostBy = err
	}
	return true
}

// report tells the caller of messages that failed.
func (q *queue) report(batches ...failure) {
	if q.onFailure == nil {
		q.log(batches)
		return
	}
	q.reporting.Lock()
	defer q.reporting.Unlock()
	q.onFailure(messagesOf(batches), batches[0].err)
}

// reportUnlessBusy is report for Close, which must not wait for an OnFailure
// that hangs, or that called Close.
func (q *queue) reportUnlessBusy(batches ...failure) {
	switch {
	case q.onFailure == nil:
		q.log(batches)
	case q.reporting.TryLock():
		defer q.reporting.Unlock()
		q.onFailure(messagesOf(batches), batches[0].err)
	}
}

func (q *queue) log(batches []failure) {
	length := 0
	for _, f := range batches {
		length += f.batch.len()
	}
	q.logger.Printf("%s not delivered: %v", count(length), batches[0].err)
}

func messagesOf(batches []failure) []Message {
	var messages []Message
	for _, f := range batches {
		messages = append(messages, f.batch.messages()...)
	}
	return messages
}

// cutOffGrace is what senders get to end after their requests were cut off.
const cutOffGrace = 200 * time.Millisecond

func (q *queue) close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		<-q.done
		return q.closeErr
	}
	q.closed = true
	q.full.Store(false) // calls now learn of the Close
	q.deadline = time.Now().Add(q.closeTimeout)
	q.seal()
	if q.timer != nil {
		q.timer.Stop()
	}
	if q.senders == 0 {
		close(q.drained)
	}
	q.mu.Unlock()
	close(q.closing)

	if !ends(q.drained, q.closeTimeout) {
		q.cancel()
		ends(q.drained, cutOffGrace)
	}
	q.cancel()
	var late []failure
	for _, b := range q.leftovers() {
		if err := q.outOfTime(nil); q.settle(b, err) {
			late = append(late, failure{b, err})
		}
	}
	if len(late) > 0 {
		q.reportUnlessBusy(late...)
	}
	q.gateway.close()

	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeErr = q.closeError()
	close(q.done)
	return q.closeErr
}

// ends waits until the channel is closed, false when it takes too long.
func ends(c <-chan struct{}, timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

// leftovers are the batches that no sender took, and those of senders that
// don't end (a Client that ignores the end of a request's context, an OnFailure
// that doesn't return).
func (q *queue) leftovers() []*batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	var left []*batch
	for b := range q.sending {
		left = append(left, b)
	}
	for b := q.head; b != nil; b = b.next {
		left = append(left, b)
	}
	q.head = nil
	return left
}

// closeError is what Close returns. The caller holds the lock.
func (q *queue) closeError() error {
	if q.lost == 0 && len(q.unsent) == 0 {
		return nil
	}
	e := &CloseError{Messages: messagesOf(q.unsent), Lost: q.lost, Err: q.lostBy}
	if len(q.unsent) > 0 {
		e.Err = q.unsent[0].err
	}
	q.unsent = nil
	return e
}

// deliver sends a batch until the gateway has it, or there is no hope.
func (q *queue) deliver(b *batch) error {
	id, err := randomId()
	if err != nil {
		return fmt.Errorf("analytics: messageId: %w", err)
	}
	var last error // of the attempt before
	var giveUp time.Time
	due := time.Now()
	closing := q.closingUnlessBegun()
	for attempt := 1; ; attempt++ {
		if !q.rest(due, &closing) {
			return q.outOfTime(last)
		}
		start := time.Now()
		if attempt == 1 {
			giveUp = start.Add(q.retryFor)
		}
		err := q.gateway.post(q.ctx, b, id)
		now := time.Now()
		if err == nil {
			q.well()
			if q.verbose {
				q.logger.Printf("sent %s, %d bytes, in %v", count(b.len()), len(b.body), now.Sub(start))
			}
			return nil
		}
		again, retryAfter := judge(err)
		switch {
		case !again:
			return err
		case q.ctx.Err() != nil:
			return q.outOfTime(err)
		case !now.Before(giveUp):
			if attempt == 1 {
				return err
			}
			return fmt.Errorf("given up after %d attempts: %w", attempt, err)
		}
		if retryAfter > 0 {
			// Jitter, since every process that was turned away at once would return at once.
			q.hold(now.Add(retryAfter + rand.N(retryAfter/10+1)))
		}
		wait := backOff(attempt)
		due = now.Add(wait)
		last = err
		q.unwell(err, attempt)
		if q.verbose {
			q.logger.Printf("attempt %d to send %s failed, next in %v: %v",
				attempt, count(b.len()), max(wait, retryAfter), err)
		}
	}
}

// closingUnlessBegun is the channel that Close closes; nil when it has.
func (q *queue) closingUnlessBegun() <-chan struct{} {
	select {
	case <-q.closing:
		return nil
	default:
		return q.closing
	}
}

// maxBackOffClosing is the longest wait between attempts after Close has begun.
const maxBackOffClosing = 500 * time.Millisecond

// rest waits until due, and until no Retry-After holds. closing tells of Close
// once, and is nil then: Close ends a back-off, for an attempt at once, and makes
// later ones short, but never a Retry-After. False: Close's deadline comes first.
func (q *queue) rest(due time.Time, closing *<-chan struct{}) bool {
	if soon := time.Now().Add(maxBackOffClosing); *closing == nil && due.After(soon) {
		due = soon
	}
	for {
		q.mu.Lock()
		held, deadline := q.heldUntil, q.deadline
		q.mu.Unlock()
		until := due
		if held.After(until) {
			until = held
		}
		wait := time.Until(until)
		if wait <= 0 {
			return q.ctx.Err() == nil
		}
		if *closing == nil && until.After(deadline) {
			return false
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-*closing:
			*closing = nil
			due = time.Now()
		case <-q.ctx.Done():
		}
		timer.Stop()
		if q.ctx.Err() != nil {
			return false
		}
	}
}

// hold keeps all senders from sending: a rate limit is the source's, not a batch's.
func (q *queue) hold(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if until.After(q.heldUntil) {
		q.heldUntil = until
	}
}

// outOfTime is why a batch wasn't sent before Close's deadline. last is the
// error of its last attempt, nil when there was none.
func (q *queue) outOfTime(last error) error {
	if last == nil {
		q.mu.Lock()
		last = q.trouble
		q.mu.Unlock()
	}
	if last == nil {
		return ErrCloseTimeout
	}
	return fmt.Errorf("%w: %w", ErrCloseTimeout, last)
}

// unwell and well log the begin and the end of an outage, which begins when a
// batch fails twice.
func (q *queue) unwell(err error, attempt int) {
	q.mu.Lock()
	news := attempt > 1 && !q.told
	q.trouble = err
	q.told = q.told || news
	q.mu.Unlock()
	if news {
		q.logger.Printf("can't deliver, trying on: %v", err)
	}
}

func (q *queue) well() {
	q.mu.Lock()
	news := q.told
	q.trouble = nil
	q.told = false
	q.mu.Unlock()
	if news {
		q.logger.Printf("delivering again")
	}
}
