package analytics

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// A gateway is where batches go.
type gateway struct {
	url     *url.URL
	header  http.Header // of every request
	client  http.Client
	timeout time.Duration   // of a request; 0 when the client has one
	own     *http.Transport // not the caller's; nil when it is
	gzip    bool
}

func newGateway(endpoint *url.URL, writeKey string, client *http.Client, connections int, compress bool) *gateway {
	endpoint.User = nil // the write key is sent instead
	g := &gateway{
		url: endpoint,
		header: http.Header{
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(writeKey+":"))},
			"Content-Type":  {"application/json"},
			"User-Agent":    {libraryName + "/" + Version},
		},
		gzip: compress,
	}
	if compress {
		g.header.Set("Content-Encoding", "gzip")
	}
	if client == nil {
		g.own = ownTransport(connections)
		client = &http.Client{Transport: g.own}
	}
	g.client = *client
	if g.client.Timeout <= 0 {
		g.timeout = DefaultTimeout
	}
	follow := g.client.CheckRedirect
	g.client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case req.Method != http.MethodPost:
			return http.ErrUseLastResponse // an empty GET would look like a success
		case follow != nil:
			return follow(req, via)
		case len(via) >= 10:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return g
}

func ownTransport(connections int) *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		t = t.Clone()
	} else { // replaced by the program
		t = &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: 90 * time.Second}
	}
	t.MaxIdleConns = connections
	t.MaxIdleConnsPerHost = connections
	t.DisableCompression = true // answers are tiny
	return t
}

// close lets the connections go.
func (g *gateway) close() {
	if g.own != nil {
		g.own.CloseIdleConnections()
	}
}

// What is read of an answer.
const (
	excerptBytes = 512
	answerBytes  = 1 << 20 // the names of all that can be left out of a batch are a third
)

// A receipt is what the gateway says of a batch that it took.
type receipt struct {
	Success       bool        `json:"success"`
	Rejected      []rejection `json:"rejected"`
	RejectedCount int         `json:"rejectedCount"` // may be more than Rejected names
}

// A rejection is a message that was left out.
type rejection struct {
	Index  int    `json:"index"` // in the batch
	Reason string `json:"reason"`
}

// post makes one attempt to send a batch. The error is a *StatusError when the
// gateway answered anything but 200 with {"success":true}, else what the network
// said.
func (g *gateway) post(ctx context.Context, b *batch, messageId string) (receipt, error) {
	if g.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.timeout)
		defer cancel()
	}
	req, err := g.request(ctx, b, messageId)
	if err != nil {
		return receipt{}, err
	}
	res, err := g.client.Do(req)
	if err != nil {
		return receipt{}, networkError(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerBytes))
	if res.StatusCode == http.StatusOK {
		if err != nil {
			return receipt{}, fmt.Errorf("analytics: the answer was cut off: %w", err)
		}
		var r receipt
		if json.Unmarshal(body, &r) == nil && r.Success {
			return r, nil
		}
	}
	return receipt{}, &StatusError{
		StatusCode: res.StatusCode,
		Body:       string(body[:min(len(body), excerptBytes)]),
		RetryAfter: retryAfter(res.Header.Get("Retry-After"), answeredAt(res.Header, time.Now())),
	}
}

// networkError is why there was no answer. A certificate that isn't trusted is
// said to be that.
func networkError(err error) error {
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return fmt.Errorf("analytics: %w: %w", ErrCertificate, err)
	}
	return fmt.Errorf("analytics: %w", err)
}

func (g *gateway) request(ctx context.Context, b *batch, messageId string) (*http.Request, error) {
	tail := appendBatchTail(make([]byte, 0, batchTailBytes), messageId, time.Now())
	parts := net.Buffers{b.body, tail}
	if g.gzip {
		var err error
		if parts, err = compressed(parts); err != nil {
			return nil, err
		}
	}
	// A new reader for each use: a transport may still read the one before.
	body := func() (io.ReadCloser, error) {
		unread := slices.Clone(parts)
		return io.NopCloser(&unread), nil
	}
	to := *g.url
	req := &http.Request{
		Method:     http.MethodPost,
		URL:        &to,
		Host:       to.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     g.header.Clone(),
		GetBody:    body,
	}
	req.Body, _ = body()
	for _, part := range parts {
		req.ContentLength += int64(len(part))
	}
	return req.WithContext(ctx), nil
}

func compressed(parts net.Buffers) (net.Buffers, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for _, part := range parts {
		if _, err := z.Write(part); err != nil {
			return nil, fmt.Errorf("analytics: gzip: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("analytics: gzip: %w", err)
	}
	return net.Buffers{out.Bytes()}, nil
}

// judge tells whether a failed attempt is worth another one, and how long the
// gateway asked to wait before.
func judge(err error) (again bool, wait time.Duration) {
	var status *StatusError
	if !errors.As(err, &status) {
		return !errors.Is(err, ErrCertificate), 0 // else the network
	}
	switch code := status.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return true, min(status.RetryAfter, maxRetryAfter)
	default:
		return false, 0
	}
}

// maxRetryAfter bounds how long an answer can silence the client.
const maxRetryAfter = 5 * time.Minute

// answeredAt is the time of an answer by the clock of who answered, whose
// Retry-After may be a date. Without it, it is the time here.
func answeredAt(header http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return date
	}
	return now
}

// retryAfter reads the header: seconds, or a date. 0 when there is none.
func retryAfter(header string, now time.Time) time.Duration {
	// A number out of range is read as the largest one.
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}

const (
	minBackOff = 100 * time.Millisecond
	maxBackOff = 10 * time.Second
)

// backOff is the wait after so many attempts: it doubles each time, and half of
// it is random.
func backOff(attempts int) time.Duration {
	wait := maxBackOff
	if attempts < 8 {
		wait = min(minBackOff<<(attempts-1), maxBackOff)
	}
	return wait/2 + rand.N(wait/2+1)
}
