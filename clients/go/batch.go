package analytics

import (
	"bytes"
	"encoding/json"
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

	settled bool // delivered or reported; guarded by the queue's lock
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

// appendBatchTail closes the list of messages and the request.
func appendBatchTail(b []byte, messageId string, sentAt time.Time) []byte {
	b = append(b, `],"messageId":"`...)
	b = append(b, messageId...)
	b = append(b, `","sentAt":"`...)
	var c clock
	b = c.append(b, sentAt)
	return append(b, `","context":{"library":{"name":"`+libraryName+`","version":"`+Version+`"}}}`...)
}
