package analytics

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// A batch is the messages of one request, as they are sent. Its owner fills it;
// once sealed its bytes never change, so that a request that is still being
// written can't be disturbed by the next attempt.
type batch struct {
	body  []byte // batchHead, then the messages with commas between them
	ends  []int  // of each message in body
	since time.Time
	next  *batch // in the queue

	// Of the sender that has it, and of the queue while it waits.
	id       string    // the request's messageId, the same over all attempts
	attempts int       // made so far
	giveUp   time.Time // an attempt that fails after it is the last; set by the first
	due      time.Time // of the next attempt
	notEarly time.Time // a Retry-After of its own: due is never before
	last     error     // of the last attempt

	settled bool     // delivered or reported; guarded by the queue's lock
	flushes []*flush // that wait for it; guarded by the queue's lock
}

const batchHead = `{"batch":[`

// batchTailBytes is what appendBatchTail adds.
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

// fits tells whether a message of so many bytes keeps the request within its limit.
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

// messageBytes is what the messages count in the queue.
func (b *batch) messageBytes() int {
	return len(b.body) - len(batchHead) - (len(b.ends) - 1)
}

// messages are copies, for the caller.
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
		// A message given to Resend may have other types there: the names stay empty.
		_ = json.Unmarshal(text, &names)
		messages[i] = Message{Type: names.Type, MessageId: names.MessageId, JSON: text}
	}
	return messages
}

// rejected are the messages that the gateway left out, by its reasons.
func (b *batch) rejected(r receipt) []failure {
	total := max(r.RejectedCount, len(r.Rejected))
	if total == 0 {
		return nil
	}
	messages := b.messages()
	var failures []failure
	for _, rejection := range r.Rejected {
		if rejection.Index < 0 || rejection.Index >= len(messages) {
			continue // a message that isn't in the batch: counted with those that weren't named
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

// appendBatchTail closes the list of messages and the request.
func appendBatchTail(b []byte, messageId string, sentAt time.Time) []byte {
	b = append(b, `],"messageId":"`...)
	b = append(b, messageId...)
	b = append(b, `","sentAt":"`...)
	var c clock
	b = c.append(b, sentAt)
	return append(b, `","context":{"library":{"name":"`+libraryName+`","version":"`+Version+`"}}}`...)
}
