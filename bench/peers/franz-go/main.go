// Command franz-go is a naive program that posts the value of each record of a
// topic to the URL of the record's destination. It fetches records, posts all
// of them at the same time, and waits for the last answer. Then it marks the
// records for the next commit, and fetches again. It tries a failed request
// again after a second, for ever. It doesn't parse, sign or log anything.
//
//	franz-go BROKERS TOPIC GROUP URLS IN_FLIGHT TIMEOUT_MS
//
// URLS is a file with one URL on each line. The header source-id of a record is
// "source-N". Its URL is on line N, counted from 0.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// The program is suspended while others have their turns. The session is
	// longer than that, as for the worker.
	sessionTimeout = 2 * time.Minute
	retryDelay     = time.Second
	sourcePrefix   = "source-"
)

func main() {
	if len(os.Args) != 7 {
		log.Fatal("usage: franz-go BROKERS TOPIC GROUP URLS IN_FLIGHT TIMEOUT_MS")
	}
	brokers, topic, group, urlsFile := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	inFlight, timeoutMs := number(os.Args[5]), number(os.Args[6])
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(brokers, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(sessionTimeout),
		kgo.AutoCommitMarks(),
	)
	if err != nil {
		log.Fatal(err)
	}
	sender := newSender(readLines(urlsFile), inFlight, time.Duration(timeoutMs)*time.Millisecond)
	for {
		fetches := consumer.PollFetches(context.Background())
		for _, failed := range fetches.Errors() {
			log.Printf("partition %d: %v", failed.Partition, failed.Err)
		}
		records := fetches.Records()
		sender.sendAll(records)
		consumer.MarkCommitRecords(records...)
	}
}

// A sender posts records, with a limit on the requests in flight.
type sender struct {
	urls   []string
	client *http.Client
	slots  chan struct{}
}

func newSender(urls []string, inFlight int, timeout time.Duration) *sender {
	// Go's default transport keeps only two idle connections for each host. It
	// would open a new connection for most requests.
	transport := &http.Transport{MaxIdleConnsPerHost: inFlight}
	return &sender{
		urls:   urls,
		client: &http.Client{Timeout: timeout, Transport: transport},
		slots:  make(chan struct{}, inFlight),
	}
}

// sendAll posts all records. It returns when all are accepted.
func (s *sender) sendAll(records []*kgo.Record) {
	var open sync.WaitGroup
	for _, record := range records {
		s.slots <- struct{}{}
		open.Go(func() {
			defer func() { <-s.slots }()
			for s.send(record) != nil {
				time.Sleep(retryDelay)
			}
		})
	}
	open.Wait()
}

func (s *sender) send(record *kgo.Record) error {
	request, err := http.NewRequest(http.MethodPost, s.urls[destinationOf(record)], bytes.NewReader(record.Value))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answered %d", response.StatusCode)
	}
	return nil
}

func destinationOf(record *kgo.Record) int {
	for _, header := range record.Headers {
		if header.Key == "source-id" {
			return number(strings.TrimPrefix(string(header.Value), sourcePrefix))
		}
	}
	log.Fatalf("the record at offset %d names no source", record.Offset)
	return -1
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func readLines(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return strings.Fields(string(text))
}
