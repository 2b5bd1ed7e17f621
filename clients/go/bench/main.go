// Command bench compares a Track call of this library with an Enqueue call of
// analytics-go v3.3.0. Both send the same message in batches of the same size.
// The transport answers 200 at once. With -http, a real server answers instead.
//
//	go run . [-rounds 7] [-batch 20] [-http] [-limit 0.7]
//
// Each round measures the libraries one after the other, and the medians of the
// rounds count. "call" is the time of the calls alone. "delivered" is the time
// until the last message was answered and the client was closed, so it shows
// the throughput. Bytes and allocations are those of the whole process,
// including the libraries' background work and, with -http, the server. The
// command exits with 1 if one of these ratios is above the limit, or if a
// message was not delivered.
//
// "bursts" is the time of a call if the background work of earlier calls is
// done. It has no limit, because Enqueue leaves more work to the background
// than Track. Enqueue puts the call into a channel, and the background writes
// the JSON. Track writes the JSON before it returns. So Track can refuse a
// value that has no JSON, and the caller may change its maps afterwards.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	segment "github.com/segmentio/analytics-go/v3"
	sluice "github.com/sluice/sluice/clients/go"
)

// A side is one of the two libraries with a client at work.
type side interface {
	call()        // one call, until the library has taken it
	close() error // until all is delivered
	failed() int64
}

// An at says where and how a side sends.
type at struct {
	url       string
	transport http.RoundTripper
	batch     int
}

type ours struct {
	client *sluice.Client
	lost   atomic.Int64
}

func newOurs(to at) side {
	s := &ours{client: sluice.New("WRITE_KEY")}
	s.client.Endpoint = to.url
	s.client.FlushAt = to.batch
	s.client.Client = &http.Client{Transport: to.transport, Timeout: 10 * time.Second}
	s.client.CloseTimeout = time.Minute
	s.client.OnFailure = func(messages []sluice.Message, _ error) { s.lost.Add(int64(len(messages))) }
	return s
}

func (s *ours) call() {
	for {
		err := s.client.Track(&sluice.Track{
			UserId: "user-84c1",
			Event:  "Order Completed",
			Properties: map[string]interface{}{
				"orderId": "o-1093", "total": 129.95, "currency": "EUR", "items": 3, "express": true,
			},
		})
		if err == nil {
			return
		}
		if !errors.Is(err, sluice.ErrQueueFull) {
			log.Fatal(err)
		}
		runtime.Gosched() // Enqueue also waits if its channel is full
	}
}

func (s *ours) close() error  { return s.client.Close() }
func (s *ours) failed() int64 { return s.lost.Load() }

type theirs struct {
	client segment.Client
	lost   atomic.Int64
}

func newTheirs(to at) side {
	s := &theirs{}
	client, err := segment.NewWithConfig("WRITE_KEY", segment.Config{
		Endpoint:  to.url,
		Transport: to.transport,
		BatchSize: to.batch,
		Logger:    segment.StdLogger(log.New(io.Discard, "", 0)),
		Callback:  s,
	})
	if err != nil {
		log.Fatal(err)
	}
	s.client = client
	return s
}

func (s *theirs) Success(segment.Message)        {}
func (s *theirs) Failure(segment.Message, error) { s.lost.Add(1) }

func (s *theirs) call() {
	err := s.client.Enqueue(segment.Track{
		UserId: "user-84c1",
		Event:  "Order Completed",
		Properties: segment.Properties{
			"orderId": "o-1093", "total": 129.95, "currency": "EUR", "items": 3, "express": true,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
}

func (s *theirs) close() error  { return s.client.Close() }
func (s *theirs) failed() int64 { return s.lost.Load() }

// A figure holds the costs of one call.
type figure struct{ callNs, deliveredNs, burstNs, bytes, allocs float64 }

// burstPart is the index of burstNs in the list that parts returns.
const burstPart = 2

func (f figure) parts() []float64 {
	return []float64{f.callNs, f.deliveredNs, f.burstNs, f.bytes, f.allocs}
}

func measure(start func(at) side, to at, calls, goroutines int) (figure, error) {
	s := start(to)
	s.call() // the first call starts the library's background work
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	var wg sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < calls/goroutines; i++ {
				s.call()
			}
		}()
	}
	wg.Wait()
	called := time.Since(begin)
	err := s.close()
	delivered := time.Since(begin)
	runtime.ReadMemStats(&after)
	if err != nil {
		return figure{}, err
	}
	if lost := s.failed(); lost > 0 {
		return figure{}, fmt.Errorf("%d messages failed", lost)
	}
	made := float64(calls / goroutines * goroutines)
	return figure{
		callNs:      float64(called.Nanoseconds()) / made,
		deliveredNs: float64(delivered.Nanoseconds()) / made,
		bytes:       float64(after.TotalAlloc-before.TotalAlloc) / made,
		allocs:      float64(after.Mallocs-before.Mallocs) / made,
	}, nil
}

// burst returns the time of a call in short bursts of calls with pauses between
// them. In a pause, the background can finish its work, so no call waits for
// it.
func burst(start func(at) side, to at, rounds int) (float64, error) {
	const calls = 10
	s := start(to)
	s.call()
	times := make([]float64, rounds)
	for i := range times {
		time.Sleep(time.Millisecond)
		begin := time.Now()
		for j := 0; j < calls; j++ {
			s.call()
		}
		times[i] = float64(time.Since(begin).Nanoseconds()) / calls
	}
	slices.Sort(times)
	return times[len(times)/2], s.close()
}

// success is the gateway's answer to a batch that it has taken.
const success = `{"success":true}`

// instant is a transport that reads the request and answers as the gateway does.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	r.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(success)), Request: r,
	}, nil
}

func main() {
	rounds := flag.Int("rounds", 7, "rounds; the median counts")
	batch := flag.Int("batch", 20, "messages a batch")
	calls := flag.Int("calls", 200_000, "calls a round")
	goroutines := flag.Int("goroutines", 1, "goroutines that make the calls")
	overHTTP := flag.Bool("http", false, "send to a real server in this process")
	limit := flag.Float64("limit", 0.7, "the highest ratio allowed")
	flag.Parse()

	to := at{url: "http://127.0.0.1:1", transport: instant{}, batch: *batch}
	if *overHTTP {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, success)
		}))
		defer server.Close()
		to.url = server.URL
		to.transport = &http.Transport{MaxIdleConnsPerHost: 100}
	}

	sides := []func(at) side{newOurs, newTheirs}
	figures := make([][]figure, len(sides))
	for round := -1; round < *rounds; round++ { // -1 warms up
		for i, start := range sides {
			f, err := measure(start, to, *calls, *goroutines)
			if err != nil {
				log.Fatal(err)
			}
			if f.burstNs, err = burst(start, to, 500); err != nil {
				log.Fatal(err)
			}
			if round >= 0 {
				figures[i] = append(figures[i], f)
			}
		}
	}
	mine, other := median(figures[0]), median(figures[1])

	fmt.Printf("%s, %d CPUs; %d rounds of %d calls by %d goroutines, batches of %d\n",
		runtime.Version(), runtime.GOMAXPROCS(0), *rounds, *calls, *goroutines, *batch)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tns/op (call)\tns/op (delivered)\tns/op (bursts)\tB/op\tallocs/op\t")
	row := func(name string, values []float64, format string) {
		fmt.Fprintf(w, "%s\t", name)
		for _, v := range values {
			fmt.Fprintf(w, format+"\t", v)
		}
		fmt.Fprintln(w)
	}
	row("Sluice Track", mine.parts(), "%.1f")
	row("analytics-go v3.3.0 Enqueue", other.parts(), "%.1f")
	ratios := make([]float64, 5)
	failed := false
	for i := range ratios {
		ratios[i] = mine.parts()[i] / other.parts()[i]
		failed = failed || i != burstPart && ratios[i] > *limit
	}
	row("ratio", ratios, "%.3f")
	w.Flush()
	if failed {
		fmt.Printf("a ratio is above %.2f\n", *limit)
		os.Exit(1)
	}
}

func median(figures []figure) figure {
	at := func(part int) float64 {
		values := make([]float64, len(figures))
		for i, f := range figures {
			values[i] = f.parts()[part]
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figure{callNs: at(0), deliveredNs: at(1), burstNs: at(2), bytes: at(3), allocs: at(4)}
}
