package analytics

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An InputError says what a call lacks. Nothing of such a call is sent. Compare
// with [errors.Is].
type InputError string

// Error is the sentence that tells what to pass.
func (e InputError) Error() string { return string(e) }

// What a call may lack.
const (
	ErrNoWriteKey   InputError = "You must pass a write key."
	ErrNoMessage    InputError = "You must pass a message."
	ErrNoUserId     InputError = "You must pass a 'userId'."
	ErrNoIdentity   InputError = "You must pass either an 'anonymousId' or 'userId'."
	ErrNoEvent      InputError = "You must pass 'event'."
	ErrNoGroupId    InputError = "You must pass a 'groupId'."
	ErrNoPreviousId InputError = "You must pass a 'previousId'."
	ErrTimestamp    InputError = "You must pass 'timestamp' as ISO 8601, like 2009-11-10T23:00:00Z, or leave it out."
)

var (
	// ErrQueueFull is returned by a call that found [Client.QueueBytes] waiting.
	// Nothing of the call was queued: try again later, or drop it.
	ErrQueueFull = errors.New("analytics: the queue is full")

	// ErrTooLarge is wrapped by the error of a call whose message is over 32 KB
	// (32,768 bytes) as JSON.
	ErrTooLarge = errors.New("analytics: the message is over 32 KB")

	// ErrClosed is returned by calls after [Client.Close].
	ErrClosed = errors.New("analytics: the client is closed")

	// ErrCloseTimeout is wrapped by the reason of messages for which
	// [Client.CloseTimeout] left no time.
	ErrCloseTimeout = errors.New("analytics: no time left to send before Close's deadline")

	// ErrCertificate is wrapped by the reason of messages that weren't sent,
	// since the certificate of the gateway isn't trusted: it is of another name,
	// over, or of an authority that the Client doesn't know. Nothing is tried
	// again: only the gateway or the Client's settings can mend it.
	ErrCertificate = errors.New("the gateway's certificate is not trusted")
)

// A RejectedError is the reason of messages that the gateway left out of a batch
// whose other messages it took.
type RejectedError struct {
	// Reason is a word of the gateway's, like "bad_timestamp"; empty for
	// messages that it counted and didn't name.
	Reason string

	// Count is how many messages were left out for it. For those that weren't
	// named there is no [Message] beside it.
	Count int
}

// Error tells how many messages were left out, and why.
func (e *RejectedError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("analytics: the gateway left out %s, and didn't name which", count(e.Count))
	}
	return fmt.Sprintf("analytics: the gateway left out %s: %s", count(e.Count), e.Reason)
}

// A StatusError is an answer that isn't a success: of the gateway that is 200 with
// {"success":true}, and nothing else.
type StatusError struct {
	StatusCode int           // the HTTP status
	Body       string        // the first bytes of the answer, 512 at most
	RetryAfter time.Duration // how long the gateway asked to wait; 0 when it didn't
}

// Error tells the status and the answer's first bytes.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("analytics: the gateway answered %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if e.StatusCode == http.StatusUnauthorized {
		text += " (is the write key right?)"
	}
	if e.StatusCode >= 200 && e.StatusCode <= 299 {
		text += ", and not as Sluice's gateway does (is Endpoint right?)"
	}
	if body := strings.TrimSpace(e.Body); body != "" {
		text += ": " + body
	}
	return text
}

// A CloseError is what [Client.Close] returns when not everything was sent.
type CloseError struct {
	// Messages failed or were still waiting when Close ended. A message that was
	// cut off in mid-request may have arrived all the same.
	Messages []Message

	// Lost counts the messages that failed before Close while there was no
	// OnFailure to tell. They were logged, and aren't in Messages.
	Lost int

	// Err is the reason: of the first of Messages, else of the last one lost.
	Err error
}

// Error tells how many messages weren't sent, and why.
func (e *CloseError) Error() string {
	switch {
	case e.Lost == 0:
		return fmt.Sprintf("analytics: %s not sent: %v", count(len(e.Messages)), e.Err)
	case len(e.Messages) == 0:
		return fmt.Sprintf("analytics: %s failed before Close: %v", count(e.Lost), e.Err)
	default:
		return fmt.Sprintf("analytics: %s not sent, and %s failed before Close: %v",
			count(len(e.Messages)), count(e.Lost), e.Err)
	}
}

// Unwrap gives the reason.
func (e *CloseError) Unwrap() error { return e.Err }

func count(messages int) string {
	if messages == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", messages)
}
