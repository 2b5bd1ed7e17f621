package analytics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	analytics "github.com/sluice/sluice/clients/go"
)

// exampleGateway takes the place of Sluice's gateway. It prints some fields of
// each message that it gets, or refuses the write key.
func exampleGateway(writeKey string, fields ...string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key, _, _ := r.BasicAuth(); key != writeKey {
			http.Error(w, "unknown write key", http.StatusUnauthorized)
			return
		}
		var request struct {
			Batch []map[string]interface{} `json:"batch"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, message := range request.Batch {
			shown := make(map[string]interface{})
			for _, field := range fields {
				if value, ok := message[field]; ok {
					shown[field] = value
				}
			}
			text, _ := json.Marshal(shown)
			fmt.Println(string(text))
		}
		fmt.Fprint(w, `{"success":true}`)
	}))
}

func Example() {
	gateway := exampleGateway("WRITE_KEY", "type", "userId", "event", "traits", "properties", "groupId")
	defer gateway.Close()

	client := analytics.New("WRITE_KEY")
	client.Endpoint = gateway.URL

	err := client.Identify(&analytics.Identify{
		UserId: "user-1",
		Traits: map[string]interface{}{"name": "Ada", "plan": "pro"},
	})
	if err != nil {
		log.Print(err)
	}
	err = client.Track(&analytics.Track{
		UserId:     "user-1",
		Event:      "Order Completed",
		Properties: map[string]interface{}{"orderId": "o-7", "total": 30.5},
	})
	if err != nil {
		log.Print(err)
	}
	err = client.Group(&analytics.Group{UserId: "user-1", GroupId: "team-5"})
	if err != nil {
		log.Print(err)
	}

	// Close sends the queued messages.
	if err := client.Close(); err != nil {
		log.Print(err)
	}
	// Output:
	// {"traits":{"name":"Ada","plan":"pro"},"type":"identify","userId":"user-1"}
	// {"event":"Order Completed","properties":{"orderId":"o-7","total":30.5},"type":"track","userId":"user-1"}
	// {"groupId":"team-5","type":"group","userId":"user-1"}
}

// Set the options, which are fields, before the first call.
func ExampleNew() {
	client := analytics.New("WRITE_KEY")
	client.Endpoint = "https://events.example.com"
	client.FlushAt = 100
	client.FlushAfter = time.Second
	client.Client = &http.Client{Timeout: 3 * time.Second}
	fmt.Println(client.Close())
	// Output: <nil>
}

// Size 1 sends every call at once, for development.
func ExampleClient_Track() {
	gateway := exampleGateway("WRITE_KEY", "event", "anonymousId")
	defer gateway.Close()

	client := analytics.New("WRITE_KEY")
	client.Endpoint = gateway.URL
	client.Size = 1
	defer client.Close()

	err := client.Track(&analytics.Track{AnonymousId: "visitor-9", Event: "Signed Up"})
	fmt.Println(err)
	fmt.Println(client.Close())
	// Output:
	// <nil>
	// {"anonymousId":"visitor-9","event":"Signed Up"}
	// <nil>
}

// A call that lacks a required field is refused at once.
func ExampleClient_Alias() {
	client := analytics.New("WRITE_KEY")
	defer client.Close()

	err := client.Alias(&analytics.Alias{UserId: "user-1"})
	fmt.Println(err)
	fmt.Println(errors.Is(err, analytics.ErrNoPreviousId))
	// Output:
	// You must pass a 'previousId'.
	// true
}

// Traits of a page are sent as its properties.
func ExampleClient_Page() {
	gateway := exampleGateway("WRITE_KEY", "type", "category", "name", "properties")
	defer gateway.Close()

	client := analytics.New("WRITE_KEY")
	client.Endpoint = gateway.URL

	err := client.Page(&analytics.Page{
		UserId:   "user-1",
		Category: "Docs",
		Name:     "Go library",
		Traits: map[string]interface{}{
			"url":      "https://example.com/docs/go",
			"title":    "Go library",
			"referrer": "https://example.com/docs",
			"path":     "/docs/go",
		},
	})
	fmt.Println(err, client.Close())
	// Output:
	// {"category":"Docs","name":"Go library","properties":{"path":"/docs/go","referrer":"https://example.com/docs","title":"Go library","url":"https://example.com/docs/go"},"type":"page"}
	// <nil> <nil>
}

// To import past data, pass a Timestamp.
func ExampleClient_historicalImport() {
	gateway := exampleGateway("WRITE_KEY", "event", "timestamp")
	defer gateway.Close()

	client := analytics.New("WRITE_KEY")
	client.Endpoint = gateway.URL

	completed := time.Date(2019, time.March, 8, 17, 5, 30, 250e6, time.FixedZone("CET", 3600))
	err := client.Track(&analytics.Track{
		UserId:    "user-1",
		Event:     "Order Completed",
		Timestamp: completed.UTC().Format(time.RFC3339Nano),
	})
	fmt.Println(err, client.Close())
	// Output:
	// {"event":"Order Completed","timestamp":"2019-03-08T16:05:30.25Z"}
	// <nil> <nil>
}

// Integrations select destinations. Here, all destinations except Webhooks are
// off.
func ExampleClient_selectingDestinations() {
	gateway := exampleGateway("WRITE_KEY", "event", "integrations")
	defer gateway.Close()

	client := analytics.New("WRITE_KEY")
	client.Endpoint = gateway.URL

	err := client.Track(&analytics.Track{
		UserId:       "user-1",
		Event:        "Order Completed",
		Integrations: map[string]interface{}{"All": false, "Webhooks": true},
	})
	fmt.Println(err, client.Close())
	// Output:
	// {"event":"Order Completed","integrations":{"All":false,"Webhooks":true}}
	// <nil> <nil>
}

// OnFailure gets the messages that could not be delivered, and the reason.
func ExampleClient_failures() {
	gateway := exampleGateway("WRITE_KEY")
	defer gateway.Close()

	client := analytics.New("A_WRONG_KEY")
	client.Endpoint = gateway.URL
	client.OnFailure = func(messages []analytics.Message, err error) {
		var status *analytics.StatusError
		if errors.As(err, &status) {
			fmt.Println("status:", status.StatusCode)
		}
		for _, message := range messages {
			fmt.Println("not delivered:", message.Type, message.MessageId)
		}
	}

	err := client.Track(&analytics.Track{UserId: "user-1", Event: "Signed Up", MessageId: "signup-1"})
	fmt.Println(err)
	_ = client.Close()
	// Output:
	// <nil>
	// status: 401
	// not delivered: track signup-1
}

// Close returns an error with the messages that it couldn't send.
func ExampleClient_Close() {
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()

	client := analytics.New("WRITE_KEY")
	client.Endpoint = hangs.URL
	client.CloseTimeout = 50 * time.Millisecond
	client.OnFailure = func([]analytics.Message, error) {}

	err := client.Track(&analytics.Track{UserId: "user-1", Event: "Signed Up", MessageId: "signup-1"})
	fmt.Println(err)

	err = client.Close()
	var unsent *analytics.CloseError
	if errors.As(err, &unsent) {
		fmt.Println("out of time:", errors.Is(err, analytics.ErrCloseTimeout))
		for _, message := range unsent.Messages {
			fmt.Println("not sent:", message.Type, message.MessageId)
		}
	}
	// Output:
	// <nil>
	// out of time: true
	// not sent: track signup-1
}

// NewWithConfig checks the settings at once.
func ExampleNewWithConfig() {
	_, err := analytics.NewWithConfig("WRITE_KEY", analytics.Config{Endpoint: "events.example.com", FlushAt: 5000})
	fmt.Println(err)
	// Output:
	// analytics: FlushAt is 5000, it must be 1 to 2500
	// analytics: Endpoint "events.example.com" is no http or https URL
}

// Flush waits until all queued messages are delivered or reported.
func ExampleClient_Flush() {
	gateway := exampleGateway("WRITE_KEY", "event")
	defer gateway.Close()

	client := analytics.New("WRITE_KEY")
	client.Endpoint = gateway.URL
	defer client.Close()

	err := client.Track(&analytics.Track{UserId: "user-1", Event: "Signed Up"})
	fmt.Println(err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(client.Flush(ctx))
	// Output:
	// <nil>
	// {"event":"Signed Up"}
	// <nil>
}
