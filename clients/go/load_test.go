package analytics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gatewayVariable is an environment variable. It makes TestAThousandGoroutines…
// use a real gateway instead of the test's receiver. Its value is the URL with
// a write key as the user, http://WRITE_KEY@127.0.0.1:8080. The test then
// proves that every call was taken and delivered without a failure. It can't
// check that each message arrived behind the gateway. To check this, another
// program has to look for the messageIds of loadId.
const gatewayVariable = "SLUICE_TEST_GATEWAY"

// Each goroutine makes loadCalls calls: 1000, and with the race detector 200,
// because a call then takes several times as long.
const loadGoroutines = 1000

// loadId returns the messageId of a call, load-GOROUTINE-NUMBER. Both numbers
// begin with 0.
func loadId(goroutine, number int) string {
	b := append(make([]byte, 0, 20), "load-"...)
	b = strconv.AppendInt(b, int64(goroutine), 10)
	b = append(b, '-')
	return string(strconv.AppendInt(b, int64(number), 10))
}

// A tally counts how often each message of the load arrives.
type tally struct {
	times    [loadGoroutines * loadCalls]atomic.Uint32
	received atomic.Int64
	faults   atomic.Int64
}

var loadMark = []byte(`"messageId":"load-`)

// ServeHTTP finds the messageIds without a JSON parser, because a parser would
// take most of the test's time.
func (c *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	for {
		at := bytes.Index(body, loadMark)
		if at < 0 {
			break
		}
		body = body[at+len(loadMark):]
		id := body[:bytes.IndexByte(body, '"')]
		dash := bytes.IndexByte(id, '-')
		goroutine, err1 := strconv.Atoi(string(id[:dash]))
		number, err2 := strconv.Atoi(string(id[dash+1:]))
		if err1 != nil || err2 != nil {
			c.faults.Add(1)
			continue
		}
		c.times[goroutine*loadCalls+number].Add(1)
		c.received.Add(1)
	}
	fmt.Fprint(w, `{"success":true}`)
}

// load makes the calls. It repeats each call until the queue takes it.
func load(t *testing.T, c *Client, made *atomic.Int64) {
	t.Helper()
	var wg sync.WaitGroup
	for g := 0; g < loadGoroutines; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			m := &Track{
				UserId:     "user-" + strconv.Itoa(g),
				Event:      "Load Tested",
				Properties: map[string]interface{}{"number": 0, "kind": "load"},
			}
			for i := 0; i < loadCalls; i++ {
				m.MessageId = loadId(g, i)
				m.Properties["number"] = i
				for {
					err := c.Track(m)
					if err == nil {
						made.Add(1)
						break
					}
					if !errors.Is(err, ErrQueueFull) {
						t.Errorf("%s: %v", m.MessageId, err)
						return
					}
					time.Sleep(20 * time.Millisecond) // a caller might wait like this
				}
			}
		}()
	}
	wg.Wait()
}

func loadClient(endpoint string) *observed {
	c := newObserved(endpoint)
	c.Size = 250
	c.CloseTimeout = 60 * time.Second
	return c
}

func TestAThousandGoroutinesWithAThousandCallsLoseNothing(t *testing.T) {
	var made atomic.Int64
	if text := os.Getenv(gatewayVariable); text != "" {
		u, err := url.Parse(text)
		noError(t, err)
		c := loadClient(text)
		c.writeKey = u.User.Username()
		start := time.Now()
		load(t, c.Client, &made)
		noError(t, c.Close())
		took := time.Since(start)
		if failed := c.reported(); len(failed) != 0 {
			t.Fatalf("%d failures, the first: %v", len(failed), failed[0].err)
		}
		t.Logf("%d calls delivered in %v; messageIds from %s to %s", made.Load(), took,
			loadId(0, 0), loadId(loadGoroutines-1, loadCalls-1))
		return
	}
	counts := new(tally)
	server := newServer(t, "127.0.0.1:0", counts)
	c := loadClient(server.url)
	load(t, c.Client, &made)
	noError(t, c.Close())
	server.stop()
	for i := range counts.times {
		if n := counts.times[i].Load(); n != 1 {
			t.Fatalf("%s arrived %d times", loadId(i/loadCalls, i%loadCalls), n)
		}
	}
	if made.Load() != loadGoroutines*loadCalls || counts.faults.Load() != 0 || len(c.reported()) != 0 {
		t.Fatalf("%d calls, %d faults, reported %v", made.Load(), counts.faults.Load(), c.reported())
	}
	noGoroutines(t)
}

func TestAServerKilledAndRestartedUnderAThousandGoroutinesLosesNothing(t *testing.T) {
	var made atomic.Int64
	counts := new(tally)
	server := newServer(t, "127.0.0.1:0", counts)
	c := loadClient(server.url)
	c.QueueBytes = 8 << 20 // fills up meanwhile
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		load(t, c.Client, &made)
	}()
	for kill := int64(1); kill <= 3; kill++ {
		until(t, "a part has arrived", func() bool { return counts.received.Load() > kill*loadGoroutines*loadCalls/5 })
		server.stop()
		stopped := time.Now()
		until(t, "it was down for a while", func() bool { return time.Since(stopped) > 300*time.Millisecond })
		server = newServer(t, server.address, counts)
	}
	<-finished
	noError(t, c.Close())
	server.stop()
	twice := 0
	for i := range counts.times {
		switch n := counts.times[i].Load(); n {
		case 0:
			t.Fatalf("%s was lost", loadId(i/loadCalls, i%loadCalls))
		case 1:
		default:
			twice++
		}
	}
	if made.Load() != loadGoroutines*loadCalls || len(c.reported()) != 0 {
		t.Fatalf("%d calls, reported %v", made.Load(), c.reported())
	}
	// Each kill loses the answers of at most 8 requests in flight, with 250
	// messages each.
	if twice > 3*8*250 {
		t.Errorf("%d arrived more than once", twice)
	}
	t.Logf("%d arrived more than once", twice)
	noGoroutines(t)
}

// A server can be killed together with its connections, and started again at
// the same address.
type server struct {
	http    *http.Server
	address string
	url     string
	ended   chan struct{}
}

func newServer(t *testing.T, address string, handler http.Handler) *server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	noError(t, err)
	s := &server{
		http:    &http.Server{Handler: handler},
		address: listener.Addr().String(),
		url:     "http://" + listener.Addr().String(),
		ended:   make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener)
	}()
	t.Cleanup(s.stop)
	return s
}

func (s *server) stop() {
	s.http.Close()
	<-s.ended
}
