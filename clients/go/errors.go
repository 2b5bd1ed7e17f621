package analytics

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An InputError says which field of a call is missing or wrong. Nothing of such
// a call is sent. Compare it with [errors.Is].
type InputError string

// Error returns a sentence that says what to pass.
func (e InputError) Error() string { return string(e) }

// The fields that may be missing or wrong.
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
	// ErrQueueFull is returned by a call if the queue already holds
	// [Client.QueueBytes]. Nothing of the call was queued. Make the call again
	// later, or drop it.
	ErrQueueFull = errors.New("analytics: the queue is full")

	// ErrTooLarge is wrapped by the error of a call whose message is over 32 KB
	// (32,768 bytes) as JSON.
	ErrTooLarge = errors.New("analytics: the message is over 32 KB")

	// ErrClosed is returned by calls after [Client.Close].
	ErrClosed = errors.New("analytics: the client is closed")

	// ErrCloseTimeout is wrapped by the reason of messages that could not be sent
	// within [Client.CloseTimeout].
	ErrCloseTimeout = errors.New("analytics: no time left to send before Close's deadline")

	// ErrCertificate is wrapped by the reason of messages that weren't sent
	// because the gateway's certificate isn't trusted. The certificate is for
	// another name, has expired, or comes from an authority that the Client
	// doesn't know. Such messages aren't tried again, because only a change of the
	// gateway or of the Client's settings can help.
	ErrCertificate = errors.New("the gateway's certificate is not trusted")
)

// A RejectedError is the reason of messages that the gateway left out when it
// took the rest of their batch.
type RejectedError struct {
	// Reason is the gateway's reason, such as "bad_timestamp". It is empty for
	// messages that the gateway counted and didn't name.
	Reason string

	// Count is the number of messages that were left out for this reason. If the
	// gateway didn't name the messages, OnFailure gets no [Message] with this
	// error.
	Count int
}

// Error says how many messages were left out, and why.
func (e *RejectedError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("analytics: the gateway left out %s, and didn't name which", count(e.Count))
	}
	return fmt.Sprintf("analytics: the gateway left out %s: %s", count(e.Count), e.Reason)
}

// A StatusError is an answer that isn't a success. The only success is the
// status 200 with {"success":true}, as the gateway sends it.
type StatusError struct {
	StatusCode int           // the HTTP status
	Body       string        // the first bytes of the answer, 512 at most
	RetryAfter time.Duration // the wait that the gateway asked for; 0 if it asked for none
}

// Error returns the status and the first bytes of the answer.
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

// A CloseError is the error that [Client.Close] returns if not everything was
// sent.
type CloseError struct {
	// Messages holds the messages that failed after Close had begun, or that still
	// waited when it ended. If the request of a message was cut off, the message
	// may still have arrived.
	Messages []Message

	// Lost is the number of failed messages that aren't in Messages. They failed
	// before Close and were only logged because there was no OnFailure, or the
	// gateway left them out without naming them.
	Lost int

	// Err is the reason of the first failure since Close began. If there is none,
	// it is the reason of the last lost message.
	Err error
}

// Error says how many messages weren't sent, and why.
func (e *CloseError) Error() string {
	switch {
	case e.Lost == 0:
		return fmt.Sprintf("analytics: %s not sent: %v", count(len(e.Messages)), e.Err)
	case len(e.Messages) == 0:
		return fmt.Sprintf("analytics: %s lost: %v", count(e.Lost), e.Err)
	default:
		return fmt.Sprintf("analytics: %s not sent, and %s lost: %v",
			count(len(e.Messages)), count(e.Lost), e.Err)
	}
}

// Unwrap returns the reason.
func (e *CloseError) Unwrap() error { return e.Err }

func count(messages int) string {
	if messages == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", messages)
}
