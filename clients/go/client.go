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
	DefaultTimeout      = 10 * time.Second // of one HTTP request

	maxMessageBytes = 32 << 10
	maxBatchBytes   = 500 << 10
	maxBatchLength  = 2500 // messages; the gateway takes no more
	maxIdLength     = 100
)

// Version is sent in the User-Agent and in every batch's context.library.
const Version = "0.1.0"

const libraryName = "sluice-analytics-go"

// A Logger takes what the client has to say; [log.Logger] is one. It must be
// safe for use by several goroutines.
type Logger interface {
	Printf(format string, args ...interface{})
}

// A Client queues calls and sends them in batches. Make one with [New], set its
// fields before the first call (later changes have no effect), use it from any
// number of goroutines, and end it with [Client.Close].
//
// # Selecting destinations
//
// By default every destination gets a message. The Integrations of a call map
// names of destinations to true or false. Names are case sensitive. The key All
// set to false turns off every destination that isn't set to true.
type Client struct {
	// Size is the number of messages queued before they are sent. 1 sends every
	// call at once, for development. Above 0 it wins over FlushAt.
	Size int

	// FlushAt is the number of messages queued before they are sent, and so the
	// most a batch holds; 0 means 20. 1 turns batching off. A batch never has
	// more than 2,500 messages or 500 KB, whatever is set.
	FlushAt int

	// FlushAfter is the longest that a message waits for its batch to fill;
	// 0 means 5 seconds.
	FlushAfter time.Duration

	// Endpoint is the gateway's URL, http or https; empty means the local
	// gateway, [DefaultEndpoint]. A base, with or without a path of its own
	// ("https://events.example.com", "https://proxy.example.com/v1/segment"), gets
	// /v1/batch appended, where it doesn't end with /v1 already. A URL that ends
	// with /v1/batch or /v1/import is used as it is.
	Endpoint string

	// Client sends the requests; nil means a client with connections of its own
	// and a timeout of 10 seconds. A Client whose Timeout is 0 gets that timeout
	// too: a request without an end would hold its messages for ever. Redirects
	// that turn a POST into a GET aren't followed.
	Client *http.Client

	// Logger takes messages that failed when there is no OnFailure, and word of
	// an outage; nil means the standard error.
	Logger Logger

	// Verbose logs every request. The environment variable DEBUG set to
	// analytics does the same. Neither keys nor messages are logged.
	Verbose bool

	// Gzip compresses requests.
	Gzip bool

	// OnFailure is told of messages that could not be delivered, and why: a
	// [*StatusError] for an answer (401 for a bad write key); a [*RejectedError]
	// for what the gateway left out of a batch that it took, once for each of its
	// reasons, and without messages where it only counted them; [ErrCertificate]
	// for a gateway that isn't trusted; else what the network said;
	// [ErrCloseTimeout] for what Close had no time to send. Each failed message is
	// reported once. OnFailure runs in a goroutine of the client,
	// never twice at a time. It may make calls, but while it runs, a request
	// waits: it should return soon, and must not call Close or Flush.
	OnFailure func(messages []Message, err error)

	// QueueBytes bounds the messages that are waiting or being sent, in bytes as
	// JSON; 0 means 64 MiB, about 200,000 calls of 300 bytes. A call that finds
	// no room returns [ErrQueueFull]. At least 32 KB.
	QueueBytes int

	// MaxInFlight bounds the requests sent at the same time; 0 means 8.
	MaxInFlight int

	// RetryFor is how long a batch is tried again, from its first attempt, while
	// the gateway can't be reached or answers 408, 429 or 5xx; 0 means 10
	// minutes, below 0 means one attempt. Between attempts it waits up to 10
	// seconds, with jitter, and at least what Retry-After asks for (5 minutes at
	// most), so the last attempt may come that much later; with 429 all batches
	// wait. A batch that waits holds up no other; when
	// nothing succeeds any more, the others are tried one at a time.
	RetryFor time.Duration

	// CloseTimeout is how long Close may take to send what is queued; 0 means 10
	// seconds.
	CloseTimeout time.Duration

	writeKey string
	running  atomic.Pointer[queue] // set by the first call
	starting sync.Mutex            // guards fault and the setting of running
	fault    error                 // what is wrong with the fields
}

// New makes a client that sends to the source with this write key. What is wrong
// with its fields is the error of each call; [NewWithConfig] tells at once.
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

// Track queues a track call. It returns an [InputError] when a required field is
// missing or Timestamp is no ISO 8601, [ErrTooLarge] (wrapped) for a message over 32 KB, [ErrQueueFull],
// [ErrClosed], and an error for a value that has no JSON (a channel, NaN) or for
// an Endpoint that is no URL. After an error nothing of the call is sent.
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

// Resend queues a message that was reported as failed, unchanged, so that its
// messageId and timestamp stay. Called from OnFailure without a condition it
// would never end.
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

// Close sends what is queued and ends the client; later calls return
// [ErrClosed]. It waits no longer than CloseTimeout, then cuts off requests in
// flight, and waits up to 5 seconds until OnFailure has returned. When everything
// was sent it returns nil, else a [*CloseError] with the messages that weren't.
// Further Closes wait for the first, and return the same.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), or(c.CloseTimeout, DefaultCloseTimeout))
	defer cancel()
	return c.CloseContext(ctx)
}

// CloseContext is [Client.Close] that waits until the context is done instead of
// for CloseTimeout: for as long as it takes when the context has no end.
func (c *Client) CloseContext(ctx context.Context) error {
	q, err := c.start()
	if err != nil {
		return nil // every call returned this error: nothing was queued
	}
	return q.close(ctx)
}

// Flush sends what is queued, without waiting for batches to fill, and waits
// until each of those messages is delivered or reported. Calls made meanwhile
// are queued as always. It returns the context's error when that is done before
// (the messages stay queued, and are sent all the same), [ErrClosed] after Close,
// and an error for fields that are wrong. OnFailure must not call it.
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
		return ErrQueueFull // before the work of encoding
	}
	if err := checkTimestamp(m.timestamp); err != nil {
		return err
	}
	now := time.Now()
	e := encoders.Get().(*encoder)
	// Without a deferred Put: an encoder that failed, or whose caller's
	// MarshalJSON panicked, is left to the garbage collector.
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

// start reads the fields, once.
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

// settings are the fields with their defaults.
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

// or is the value when it is above 0, else the default.
func or[N int | time.Duration](value, otherwise N) N {
	if value > 0 {
		return value
	}
	return otherwise
}

// debugs tells whether the DEBUG variable names this package; several names
// are separated by commas or spaces.
func debugs(variable string) bool {
	for _, name := range strings.FieldsFunc(variable, func(r rune) bool { return r == ',' || r == ' ' }) {
		if name == "analytics" || name == "*" {
			return true
		}
	}
	return false
}

// noURL is the error for an Endpoint that is no URL. One that may have a login isn't
// shown: what net/url takes for the password of such a text may not be the password.
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

// batchURL is where batches go for an Endpoint.
func batchURL(endpoint string) (*url.URL, error) {
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, noURL(endpoint, err)
	}
	if u.Path == "" {
		u.Path = "/" // else JoinPath makes a relative path
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
