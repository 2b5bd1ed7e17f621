package analytics

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// A batch holds the messages of one request, as they are sent. The queue fills
// it with messages and then seals it. After that, its bytes never change,
// because a request of an earlier attempt may still be reading them.
type batch struct {
	body  []byte // batchHead, then the messages with commas between them
	ends  []int  // the end of each message in body
	since time.Time
	next  *batch // the next batch in the queue

	// While a sender has the batch, these fields belong to the sender. While the
	// batch waits, they belong to the queue.
	id       string    // the request's messageId, the same over all attempts
	attempts int       // made so far
	giveUp   time.Time // after this time, a failed attempt is the last; set by the first attempt
	due      time.Time // of the next attempt
	notEarly time.Time // due is never before this, because of the batch's own Retry-After
	last     error     // the error of the last attempt

	settled bool     // delivered or reported; guarded by the queue's lock
	flushes []*flush // the flushes that wait for the batch; guarded by the queue's lock
}

const batchHead = `{"batch":[`

// batchTailBytes is the number of bytes that appendBatchTail adds.
var batchTailBytes = len(appendBatchTail(nil, "00000000-0000-4000-8000-000000000000", time.Time{}))

func newBatch(length, bytes int, since time.Time) *batch {
	b := &batch{
		body:  make([]byte, 0, bytes),
		ends:  make([]int, 0, length),
		since: since,
	}
	b.body = append(b.body, batchHead...)
	return b
}

// fits returns true if the request stays within its limit with one more message
// of this size.
func (b *batch) fits(bytes int) bool {
	return len(b.body)+len(",")+bytes+batchTailBytes <= maxBatchBytes
}

func (b *batch) add(message []byte) {
	if len(b.ends) > 0 {
		b.body = append(b.body, ',')
	}
	b.body = append(b.body, message...)
	b.ends = append(b.ends, len(b.body))
}

func (b *batch) len() int { return len(b.ends) }

// messageBytes returns the size of the messages, as it counts for QueueBytes.
func (b *batch) messageBytes() int {
	return len(b.body) - len(batchHead) - (len(b.ends) - 1)
}

// messages returns copies of the messages, for the caller.
func (b *batch) messages() []Message {
	body := bytes.Clone(b.body)
	messages := make([]Message, len(b.ends))
	start := len(batchHead)
	for i, end := range b.ends {
		text := body[start:end:end]
		start = end + len(",")
		var names struct {
			Type      string `json:"type"`
			MessageId string `json:"messageId"`
		}
		// A message given to Resend may have values of other types in these fields.
		// They then stay empty.
		_ = json.Unmarshal(text, &names)
		messages[i] = Message{Type: names.Type, MessageId: names.MessageId, JSON: text}
	}
	return messages
}

// rejected returns the messages that the gateway left out, grouped by the
// gateway's reasons.
func (b *batch) rejected(r receipt) []failure {
	total := max(r.RejectedCount, len(r.Rejected))
	if total == 0 {
		return nil
	}
	messages := b.messages()
	var failures []failure
	for _, rejection := range r.Rejected {
		if rejection.Index < 0 || rejection.Index >= len(messages) {
			continue // there is no such message, so it counts as one that wasn't named
		}
		total--
		at := slices.IndexFunc(failures, func(f failure) bool {
			return f.err.(*RejectedError).Reason == rejection.Reason
		})
		if at < 0 {
			at = len(failures)
			failures = append(failures, failure{err: &RejectedError{Reason: rejection.Reason}})
		}
		f := &failures[at]
		f.messages = append(f.messages, messages[rejection.Index])
		f.count++
		f.err.(*RejectedError).Count = f.count
	}
	if total > 0 {
		failures = append(failures, failure{count: total, err: &RejectedError{Count: total}})
	}
	return failures
}

// appendBatchTail ends the list of messages and the JSON of the request.
func appendBatchTail(b []byte, messageId string, sentAt time.Time) []byte {
	b = append(b, `],"messageId":"`...)
	b = append(b, messageId...)
	b = append(b, `","sentAt":"`...)
	var c clock
	b = c.append(b, sentAt)
	return append(b, `","context":{"library":{"name":"`+libraryName+`","version":"`+Version+`"}}}`...)
}
