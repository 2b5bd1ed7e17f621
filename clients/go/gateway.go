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

// A gateway is the server to which batches are sent.
type gateway struct {
	url     *url.URL
	header  http.Header // the headers of every request
	client  http.Client
	timeout time.Duration   // the timeout of a request; 0 if the client has its own
	own     *http.Transport // nil if the caller has given a client
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
	} else { // the program has replaced the default transport
		t = &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: 90 * time.Second}
	}
	t.MaxIdleConns = connections
	t.MaxIdleConnsPerHost = connections
	t.DisableCompression = true // answers are tiny
	return t
}

// close closes idle connections.
func (g *gateway) close() {
	if g.own != nil {
		g.own.CloseIdleConnections()
	}
}

// The numbers of bytes of an answer that are kept in an error, and that are
// read at most.
const (
	excerptBytes = 512
	answerBytes  = 1 << 20 // three times as much as the names of a whole batch take
)

// A receipt is the gateway's answer about a batch that it took.
type receipt struct {
	Success       bool        `json:"success"`
	Rejected      []rejection `json:"rejected"`
	RejectedCount int         `json:"rejectedCount"` // may be more than Rejected names
}

// A rejection names a message that the gateway left out.
type rejection struct {
	Index  int    `json:"index"` // the place of the message in the batch
	Reason string `json:"reason"`
}

// post makes one attempt to send a batch. If the gateway gave any answer except
// 200 with {"success":true}, the error is a *StatusError. Otherwise it is an
// error of the network.
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

// networkError returns the reason why there was no answer. If the certificate
// isn't trusted, the reason wraps ErrCertificate.
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
	// Each use gets a new reader, because a transport may still read the previous
	// one.
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

// judge decides whether to try again after a failed attempt. It also returns
// the wait that the gateway asked for.
func judge(err error) (again bool, wait time.Duration) {
	var status *StatusError
	if !errors.As(err, &status) {
		return !errors.Is(err, ErrCertificate), 0 // all other errors are those of the network
	}
	switch code := status.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return true, min(status.RetryAfter, maxRetryAfter)
	default:
		return false, 0
	}
}

// maxRetryAfter is the longest wait that an answer can impose on the client.
const maxRetryAfter = 5 * time.Minute

// answeredAt returns the time of an answer by the server's clock, because the
// server's Retry-After may be a date by this clock. If the answer has no date,
// it returns now.
func answeredAt(header http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return date
	}
	return now
}

// retryAfter reads the header, which is a number of seconds or a date. It
// returns 0 if there is no wait.
func retryAfter(header string, now time.Time) time.Duration {
	// If the number is out of range, ParseUint returns the largest one.
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

// backOff returns the wait after this number of attempts. It doubles with each
// attempt, and half of it is random.
func backOff(attempts int) time.Duration {
	wait := maxBackOff
	if attempts < 8 {
		wait = min(minBackOff<<(attempts-1), maxBackOff)
	}
	return wait/2 + rand.N(wait/2+1)
}
