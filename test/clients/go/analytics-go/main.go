// A customer's program that uses analytics-go v3; test/clients runs it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/analytics-go/v3"
)

type content struct {
	Everything   map[string]interface{}
	Context      map[string]interface{}
	Integrations map[string]interface{}
	Calls        []struct {
		Type, UserId, AnonymousId, PreviousId, GroupId, Event, Name string

		Timestamp    time.Time
		IsRich       bool
		Integrations map[string]interface{}
	}
}

// outcome is what the test reads of the last line.
type outcome struct {
	mu        sync.Mutex
	Made      int      `json:"made"`
	Succeeded int      `json:"succeeded"`
	Failures  []string `json:"failures"`
}

func (o *outcome) Success(analytics.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Succeeded++
}

func (o *outcome) Failure(_ analytics.Message, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Failures = append(o.Failures, err.Error())
}

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile(os.Getenv("CLIENT_CONTENT"))
	check(err)
	var given content
	check(json.Unmarshal(text, &given))

	result := &outcome{Failures: []string{}}
	client, err := analytics.NewWithConfig(os.Getenv("CLIENT_WRITE_KEY"), analytics.Config{
		Endpoint: os.Getenv("CLIENT_ENDPOINT"),
		Callback: result,
	})
	check(err)
	call := func(message analytics.Message) {
		result.Made++
		check(client.Enqueue(message))
	}
	track := func(index int) {
		call(analytics.Track{
			UserId: fmt.Sprintf("user-%d", index%50),
			Event:  "Product Viewed",
			Properties: analytics.Properties{
				"index": index, "price": float64(index) / 4, "name": fmt.Sprintf("Produkt %d 😀", index),
			},
		})
	}

	if os.Getenv("CLIENT_MODE") == "once" {
		callContent(given, call)
		call(analytics.Track{UserId: "u1", Event: "Own Id", MessageId: "an id of its own 😀"})
		call(analytics.Track{
			UserId:       "u1",
			Event:        "Integrations",
			Integrations: analytics.NewIntegrations().EnableAll().Disable("Salesforce"),
		})
		for index := 0; index < number("CLIENT_TRACKS"); index++ {
			track(index)
		}
		large := strings.Repeat("x", 29_500) + strings.Repeat("😀", 200)
		for index := 0; index < number("CLIENT_LARGE"); index++ {
			call(analytics.Track{
				UserId:     "u1",
				Event:      "Large",
				Properties: analytics.Properties{"index": index, "text": large},
			})
		}
	} else {
		steadily(track)
	}
	check(client.Close())
	check(json.NewEncoder(os.Stdout).Encode(result))
}

func callContent(given content, call func(analytics.Message)) {
	for _, own := range given.Calls {
		var data map[string]interface{}
		var context *analytics.Context
		integrations := own.Integrations
		if own.IsRich {
			data = make(map[string]interface{})
			for key, value := range given.Everything {
				data[key] = value
			}
			data["of this language"] = map[string]interface{}{
				"time":  time.Date(2020, 2, 29, 23, 59, 59, 123456789, time.FixedZone("", 5*3600+1800)),
				"whole": int64(9007199254740993),
				"float": 1.0,
				"bytes": []byte("\x00\xff"),
			}
			context = &analytics.Context{Extra: given.Context}
			integrations = given.Integrations
		}
		switch own.Type {
		case "identify":
			call(analytics.Identify{
				UserId: own.UserId, AnonymousId: own.AnonymousId,
				Traits: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
			})
		case "track":
			call(analytics.Track{
				UserId: own.UserId, AnonymousId: own.AnonymousId, Event: own.Event,
				Properties: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
			})
		case "page":
			call(analytics.Page{
				UserId: own.UserId, AnonymousId: own.AnonymousId, Name: own.Name,
				Properties: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
			})
		case "screen":
			call(analytics.Screen{
				UserId: own.UserId, AnonymousId: own.AnonymousId, Name: own.Name,
				Properties: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
			})
		case "group":
			call(analytics.Group{
				UserId: own.UserId, AnonymousId: own.AnonymousId, GroupId: own.GroupId,
				Traits: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
			})
		case "alias":
			call(analytics.Alias{
				UserId: own.UserId, PreviousId: own.PreviousId,
				Context: context, Integrations: integrations, Timestamp: own.Timestamp,
			})
		default:
			log.Fatalf("there is no call %q", own.Type)
		}
	}
}

// steadily calls send until the standard input ends.
func steadily(send func(index int)) {
	told := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(told)
	}()
	ticker := time.NewTicker(time.Duration(number("CLIENT_EVERY_MS")) * time.Millisecond)
	defer ticker.Stop()
	for index := 0; ; index++ {
		select {
		case <-ticker.C:
			send(index)
		case <-told:
			return
		}
	}
}

func number(variable string) int {
	value, err := strconv.Atoi(os.Getenv(variable))
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
