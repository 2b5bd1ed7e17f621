package analytics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Defaults and limits.
const (
	DefaultEndpoint     = "http://127.0.0.1:8080" // the local gateway
	DefaultFlushAt      = 20
	DefaultFlushAfter   = 5 * time.Second
	DefaultQueueBytes   = 64 << 20
	DefaultMaxInFlight  = 8
	DefaultRetryFor     = 10 * time.Minute
	DefaultCloseTimeout = 10 * time.Second
	DefaultTimeout      = 10 * time.Second // the timeout of one HTTP request

	maxMessageBytes = 32 << 10
	maxBatchBytes   = 500 << 10
	maxBatchLength  = 2500 // messages; the gateway takes no more
	maxIdLength     = 100
)

// Version is sent in the User-Agent and in every batch's context.library.
const Version = "0.1.0"

const libraryName = "sluice-analytics-go"

// A Logger takes the client's log lines. [log.Logger] is a Logger. A Logger
// must be safe for use by several goroutines.
type Logger interface {
	Printf(format string, args ...interface{})
}

// A Client queues calls and sends them in batches. Make a Client with [New],
// and set its fields before the first call. Later changes of the fields have no
// effect. Any number of goroutines may use the Client. End it with
// [Client.Close].
//
// # Selecting destinations
//
// By default every destination gets a message. The Integrations of a call map
// names of destinations to true or false. Names are case sensitive. If the key
// All is false, only destinations that are set to true get the message.
type Client struct {
	// Size is the number of queued messages that fill a batch. 1 sends every call
	// at once, for development. If Size is above 0, FlushAt has no effect.
	Size int

	// FlushAt is the number of queued messages that fill a batch. 0 means 20, and
	// 1 turns batching off. A batch never has more than 2,500 messages or 500 KB,
	// even if FlushAt is higher.
	FlushAt int

	// FlushAfter is the longest time that a message waits for its batch to fill. 0
	// means 5 seconds.
	FlushAfter time.Duration

	// Endpoint is the gateway's URL, with http or https. Empty means the local
	// gateway, [DefaultEndpoint]. A URL that ends with /v1/batch or /v1/import is
	// used as it is. The client appends /batch to a URL that ends with /v1. It
	// appends /v1/batch to any other URL, such as "https://events.example.com" or
	// "https://proxy.example.com/v1/segment".
	Endpoint string

	// Client sends the requests. nil means a new client with its own connections
	// and a timeout of 10 seconds. A Client whose Timeout is 0 gets this timeout
	// too, because a request without an end would hold its messages for ever.
	// Redirects that turn a POST into a GET aren't followed.
	Client *http.Client

	// Logger gets a line at the beginning and at the end of an outage. If there is
	// no OnFailure, it also gets a line about messages that failed. nil means a
	// logger on standard error.
	Logger Logger

	// Verbose logs every request. The environment variable DEBUG set to
	// analytics does the same. Neither keys nor messages are logged.
	Verbose bool

	// Gzip compresses requests.
	Gzip bool

	// OnFailure gets the messages that could not be delivered, and the reason.
	// Each failed message is reported once. The reasons are:
	//   - a [*StatusError] for an answer that isn't a success, for example 401 for
	//     a wrong write key
	//   - a [*RejectedError] if the gateway took a batch and left these messages
	//     out. There is one call for each of the gateway's reasons. The call has
	//     no messages if the gateway only counted them.
	//   - [ErrCertificate] if the gateway's certificate isn't trusted
	//   - [ErrCloseTimeout] if Close had no time to send the messages
	//   - otherwise an error of the network
	//
	// OnFailure runs in a goroutine of the client, and only one OnFailure runs at
	// a time. It may make calls. It must not call Close or Flush, and it should
	// return soon, because one sender of requests waits for it.
	OnFailure func(messages []Message, err error)

	// QueueBytes limits the size of all messages that wait or are being sent, in
	// bytes of JSON. 0 means 64 MiB, about 200,000 calls of 300 bytes. The limit
	// is at least 32 KB. A call that finds no room returns [ErrQueueFull].
	QueueBytes int

	// MaxInFlight limits the number of requests at the same time. 0 means 8.
	MaxInFlight int

	// RetryFor is how long a batch is tried again if the gateway can't be reached
	// or answers 408, 429 or 5xx. The time counts from the first attempt. 0 means
	// 10 minutes, and a negative value means only one attempt.
	//
	// Between two attempts, the batch waits up to 10 seconds, with jitter. If
	// Retry-After asks for a longer wait, the batch waits that long, but at most 5
	// minutes and the jitter. The last attempt may come later than RetryFor by one
	// wait.
	//
	// Other batches are sent while a batch waits. But after a 429, all batches
	// wait. If nothing succeeds any more, the other batches are tried one at a
	// time.
	RetryFor time.Duration

	// CloseTimeout is the time that Close has to send the queued messages. 0 means
	// 10 seconds.
	CloseTimeout time.Duration

	writeKey string
	running  atomic.Pointer[queue] // set by the first call
	starting sync.Mutex            // guards fault and the setting of running
	fault    error                 // the error in the fields, if there is one
}

// New makes a client that sends to the source with this write key. If a field
// of the client is wrong, each call returns an error that says so.
// [NewWithConfig] returns such an error at once.
func New(writeKey string) *Client {
	return &Client{
		FlushAt:    DefaultFlushAt,
		FlushAfter: DefaultFlushAfter,
		Endpoint:   DefaultEndpoint,
		writeKey:   writeKey,
	}
}

// Identify queues an identify call. Its errors are those of [Client.Track].
func (c *Client) Identify(msg *Identify) error {
	switch {
	case msg == nil:
		return ErrNoMessage
	case msg.UserId == "" && msg.AnonymousId == "":
		return ErrNoIdentity
	}
	return c.enqueue(&call{
		kind:         "identify",
		messageId:    msg.MessageId,
		timestamp:    msg.Timestamp,
		userId:       msg.UserId,
		anonymousId:  msg.AnonymousId,
		traits:       msg.Traits,
		context:      msg.Context,
		integrations: msg.Integrations,
	})
}

// Track queues a track call. If it returns an error, nothing of the call is
// sent. The errors are:
//   - an [InputError] if a required field is missing, or if Timestamp isn't ISO
//     8601
//   - an error that wraps [ErrTooLarge] if the message is over 32 KB
//   - [ErrQueueFull] if the queue has no room
//   - [ErrClosed] after [Client.Close]
//   - another error if a value can't be written as JSON, such as a channel or
//     NaN, or if Endpoint isn't a URL
func (c *Client) Track(msg *Track) error {
	switch {
	case msg == nil:
		return ErrNoMessage
	case msg.Event == "":
		return ErrNoEvent
	case msg.UserId == "" && msg.AnonymousId == "":
		return ErrNoIdentity
	}
	return c.enqueue(&call{
		kind:         "track",
		messageId:    msg.MessageId,
		timestamp:    msg.Timestamp,
		userId:       msg.UserId,
		anonymousId:  msg.AnonymousId,
		event:        msg.Event,
		properties:   msg.Properties,
		context:      msg.Context,
		integrations: msg.Integrations,
	})
}

// Page queues a page call. Its errors are those of [Client.Track].
func (c *Client) Page(msg *Page) error {
	switch {
	case msg == nil:
		return ErrNoMessage
	case msg.UserId == "" && msg.AnonymousId == "":
		return ErrNoIdentity
	}
	return c.enqueue(&call{
		kind:         "page",
		messageId:    msg.MessageId,
		timestamp:    msg.Timestamp,
		userId:       msg.UserId,
		anonymousId:  msg.AnonymousId,
		category:     msg.Category,
		name:         msg.Name,
		properties:   msg.Traits,
		context:      msg.Context,
		integrations: msg.Integrations,
	})
}

// Screen queues a screen call. Its errors are those of [Client.Track].
func (c *Client) Screen(msg *Screen) error {
	switch {
	case msg == nil:
		return ErrNoMessage
	case msg.UserId == "" && msg.AnonymousId == "":
		return ErrNoIdentity
	}
	return c.enqueue(&call{
		kind:         "screen",
		messageId:    msg.MessageId,
		timestamp:    msg.Timestamp,
		userId:       msg.UserId,
		anonymousId:  msg.AnonymousId,
		category:     msg.Category,
		name:         msg.Name,
		properties:   msg.Properties,
		context:      msg.Context,
		integrations: msg.Integrations,
	})
}

// Group queues a group call. Its errors are those of [Client.Track].
func (c *Client) Group(msg *Group) error {
	switch {
	case msg == nil:
		return ErrNoMessage
	case msg.GroupId == "":
		return ErrNoGroupId
	case msg.UserId == "" && msg.AnonymousId == "":
		return ErrNoIdentity
	}
	return c.enqueue(&call{
		kind:         "group",
		messageId:    msg.MessageId,
		timestamp:    msg.Timestamp,
		userId:       msg.UserId,
		anonymousId:  msg.AnonymousId,
		groupId:      msg.GroupId,
		traits:       msg.Traits,
		context:      msg.Context,
		integrations: msg.Integrations,
	})
}

// Alias queues an alias call. Its errors are those of [Client.Track].
func (c *Client) Alias(msg *Alias) error {
	switch {
	case msg == nil:
		return ErrNoMessage
	case msg.UserId == "":
		return ErrNoUserId
	case msg.PreviousId == "":
		return ErrNoPreviousId
	}
	return c.enqueue(&call{
		kind:         "alias",
		messageId:    msg.MessageId,
		timestamp:    msg.Timestamp,
		userId:       msg.UserId,
		previousId:   msg.PreviousId,
		context:      msg.Context,
		integrations: msg.Integrations,
	})
}

// Resend queues a message again that was reported as failed. The message stays
// the same, including its messageId and timestamp. If OnFailure called Resend
// for every message, a message that always fails would be sent for ever.
func (c *Client) Resend(msg Message) error {
	q, err := c.start()
	if err != nil {
		return err
	}
	if len(msg.JSON) == 0 {
		return ErrNoMessage
	}
	if !json.Valid(msg.JSON) || !utf8.Valid(msg.JSON) {
		return errors.New("analytics: the message to resend is no JSON")
	}
	if len(msg.JSON) > maxMessageBytes {
		return tooLarge(len(msg.JSON))
	}
	return q.add(msg.JSON, time.Now())
}

// Close sends the queued messages and ends the client. Later calls return
// [ErrClosed]. After CloseTimeout, Close cuts off the requests in flight. Then
// it waits up to 5 seconds until OnFailure has returned. If everything was
// sent, Close returns nil. Otherwise it returns a [*CloseError] with the
// messages that were not sent. Further calls of Close wait for the first one,
// and return the same.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), or(c.CloseTimeout, DefaultCloseTimeout))
	defer cancel()
	return c.CloseContext(ctx)
}

// CloseContext does the same as [Client.Close], but its time ends when the
// context is done. CloseTimeout has no effect. If the context never ends,
// CloseContext takes as long as it needs.
func (c *Client) CloseContext(ctx context.Context) error {
	q, err := c.start()
	if err != nil {
		return nil // every call returned this error, so nothing was queued
	}
	return q.close(ctx)
}

// Flush sends the queued messages at once, even if their batch isn't full. It
// waits until each of these messages is delivered or reported. Calls that are
// made meanwhile are queued as always. If the context is done first, Flush
// returns the context's error, and the messages are still sent. It returns
// [ErrClosed] after Close, and an error if a field of the client is wrong.
// OnFailure must not call Flush.
func (c *Client) Flush(ctx context.Context) error {
	q, err := c.start()
	if err != nil {
		return err
	}
	return q.flush(ctx)
}

// enqueue writes the call as JSON and queues it.
func (c *Client) enqueue(m *call) error {
	q := c.running.Load()
	if q == nil {
		var err error
		if q, err = c.start(); err != nil {
			return err
		}
	}
	if q.full.Load() {
		return ErrQueueFull // saves the work of encoding
	}
	if err := checkTimestamp(m.timestamp); err != nil {
		return err
	}
	now := time.Now()
	e := encoders.Get().(*encoder)
	// There is no deferred Put, because an encoder must not be used again after an
	// error, or after a panic in a MarshalJSON of the caller. The garbage
	// collector removes it.
	if err := e.encode(m, now); err != nil {
		return err
	}
	if len(e.buf) > maxMessageBytes {
		return tooLarge(len(e.buf))
	}
	err := q.add(e.buf, now)
	e.release()
	return err
}

func tooLarge(bytes int) error {
	return fmt.Errorf("%w: %d bytes", ErrTooLarge, bytes)
}

// start reads the fields and makes the queue. It does so only once.
func (c *Client) start() (*queue, error) {
	c.starting.Lock()
	defer c.starting.Unlock()
	if q := c.running.Load(); q != nil || c.fault != nil {
		return q, c.fault
	}
	s, err := c.settings()
	if err != nil {
		c.fault = err
		return nil, err
	}
	q := newQueue(s)
	c.running.Store(q)
	return q, nil
}

// settings holds the values of the client's fields, with defaults for missing
// values.
type settings struct {
	flushAt     int
	flushAfter  time.Duration
	queueBytes  int
	maxInFlight int
	retryFor    time.Duration
	onFailure   func([]Message, error)
	reportGrace time.Duration
	logger      Logger
	verbose     bool
	gateway     *gateway
}

func (c *Client) settings() (settings, error) {
	if c.writeKey == "" {
		return settings{}, ErrNoWriteKey
	}
	s := settings{
		flushAt:     or(c.FlushAt, DefaultFlushAt),
		flushAfter:  or(c.FlushAfter, DefaultFlushAfter),
		queueBytes:  max(or(c.QueueBytes, DefaultQueueBytes), maxMessageBytes),
		maxInFlight: or(c.MaxInFlight, DefaultMaxInFlight),
		retryFor:    c.RetryFor,
		onFailure:   c.OnFailure,
		reportGrace: reportGrace,
		logger:      c.Logger,
		verbose:     c.Verbose || debugs(os.Getenv("DEBUG")),
	}
	s.flushAt = min(or(c.Size, s.flushAt), maxBatchLength)
	if s.retryFor == 0 {
		s.retryFor = DefaultRetryFor
	}
	if s.logger == nil {
		s.logger = log.New(os.Stderr, "analytics: ", log.LstdFlags)
	}
	endpoint, err := batchURL(c.Endpoint)
	if err != nil {
		return settings{}, err
	}
	s.gateway = newGateway(endpoint, c.writeKey, c.Client, s.maxInFlight, c.Gzip)
	return s, nil
}

// or returns the value if it is above 0, and otherwise the default.
func or[N int | time.Duration](value, otherwise N) N {
	if value > 0 {
		return value
	}
	return otherwise
}

// debugs returns true if the variable DEBUG names this package. DEBUG may have
// several names, separated by commas or spaces.
func debugs(variable string) bool {
	for _, name := range strings.FieldsFunc(variable, func(r rune) bool { return r == ',' || r == ' ' }) {
		if name == "analytics" || name == "*" {
			return true
		}
	}
	return false
}

// noURL returns the error for an Endpoint that isn't a URL. The error doesn't
// show an Endpoint that may contain a login, because net/url may not find the
// password in a malformed URL.
func noURL(endpoint string, err error) error {
	switch {
	case strings.ContainsAny(endpoint, "@?"):
		return errors.New("analytics: Endpoint is no http or https URL (not shown, it may have a login)")
	case err != nil:
		return fmt.Errorf("analytics: Endpoint: %w", err)
	default:
		return fmt.Errorf("analytics: Endpoint %q is no http or https URL", endpoint)
	}
}

// batchURL returns the URL to which batches are sent for an Endpoint.
func batchURL(endpoint string) (*url.URL, error) {
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, noURL(endpoint, err)
	}
	if u.Path == "" {
		u.Path = "/" // otherwise JoinPath makes a relative path
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	switch {
	case strings.HasSuffix(path, "/v1/batch"), strings.HasSuffix(path, "/v1/import"):
		return u, nil
	case strings.HasSuffix(path, "/v1"):
		return u.JoinPath("batch"), nil
	default:
		return u.JoinPath("v1", "batch"), nil
	}
}
