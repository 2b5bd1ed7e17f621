// A customer's program that uses Sluice's own Go client; test/clients runs it.
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

	analytics "github.com/sluice/sluice/clients/go"
)

type content struct {
	Everything   map[string]interface{}
	Context      map[string]interface{}
	Integrations map[string]interface{}
	Calls        []givenCall
}

type givenCall struct {
	Type, UserId, AnonymousId, PreviousId, GroupId, Event, Category, Name, Timestamp string

	IsRich       bool
	Integrations map[string]interface{}
}

// outcome is what the test reads of the last line.
type outcome struct {
	mu        sync.Mutex
	Made      int      `json:"made"`
	Succeeded int      `json:"succeeded"`
	Failures  []string `json:"failures"`
}

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile(os.Getenv("CLIENT_CONTENT"))
	check(err)
	var given content
	check(json.Unmarshal(text, &given))

	result := &outcome{Failures: []string{}}
	client := analytics.New(os.Getenv("CLIENT_WRITE_KEY"))
	client.Endpoint = os.Getenv("CLIENT_ENDPOINT")
	client.Gzip = true
	client.OnFailure = func(messages []analytics.Message, err error) {
		result.mu.Lock()
		defer result.mu.Unlock()
		for range messages {
			result.Failures = append(result.Failures, err.Error())
		}
	}
	track := func(index int) {
		result.Made++
		check(client.Track(&analytics.Track{
			UserId: fmt.Sprintf("user-%d", index%50),
			Event:  "Product Viewed",
			Properties: map[string]interface{}{
				"index": index, "price": float64(index) / 4, "name": fmt.Sprintf("Produkt %d 😀", index),
			},
		}))
	}

	if os.Getenv("CLIENT_MODE") == "once" {
		for _, own := range given.Calls {
			result.Made++
			check(callOf(client, given, own))
		}
		result.Made++
		check(client.Track(&analytics.Track{UserId: "u1", Event: "Own Id", MessageId: "an id of its own 😀"}))
		for index := 0; index < number("CLIENT_TRACKS"); index++ {
			track(index)
		}
		large := strings.Repeat("x", 29_500) + strings.Repeat("😀", 200)
		for index := 0; index < number("CLIENT_LARGE"); index++ {
			result.Made++
			check(client.Track(&analytics.Track{
				UserId:     "u1",
				Event:      "Large",
				Properties: map[string]interface{}{"index": index, "text": large},
			}))
		}
	} else {
		steadily(track)
	}
	check(client.Close())
	result.Succeeded = result.Made - len(result.Failures)
	check(json.NewEncoder(os.Stdout).Encode(result))
}

func callOf(client *analytics.Client, given content, own givenCall) error {
	var data, context map[string]interface{}
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
		context = given.Context
		integrations = given.Integrations
	}
	switch own.Type {
	case "identify":
		return client.Identify(&analytics.Identify{
			UserId: own.UserId, AnonymousId: own.AnonymousId,
			Traits: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
		})
	case "track":
		return client.Track(&analytics.Track{
			UserId: own.UserId, AnonymousId: own.AnonymousId, Event: own.Event,
			Properties: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
		})
	case "page":
		return client.Page(&analytics.Page{
			UserId: own.UserId, AnonymousId: own.AnonymousId, Category: own.Category, Name: own.Name,
			Traits: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
		})
	case "screen":
		return client.Screen(&analytics.Screen{
			UserId: own.UserId, AnonymousId: own.AnonymousId, Category: own.Category, Name: own.Name,
			Properties: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
		})
	case "group":
		return client.Group(&analytics.Group{
			UserId: own.UserId, AnonymousId: own.AnonymousId, GroupId: own.GroupId,
			Traits: data, Context: context, Integrations: integrations, Timestamp: own.Timestamp,
		})
	case "alias":
		return client.Alias(&analytics.Alias{
			UserId: own.UserId, PreviousId: own.PreviousId,
			Context: context, Integrations: integrations, Timestamp: own.Timestamp,
		})
	default:
		return fmt.Errorf("there is no call %q", own.Type)
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
