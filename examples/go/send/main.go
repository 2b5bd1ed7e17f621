// Sends a message to the gateway, without packages:  SLUICE_URL=http://127.0.0.1:8080 WRITE_KEY=shop-write-key go run ./send
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		log.Fatal(err)
	}
	messageID := hex.EncodeToString(id)
	message, err := json.Marshal(map[string]any{
		"messageId":  messageID, // keep it if you send the message again: Sluice then drops the repeat
		"userId":     "u1",
		"event":      "Order Completed",
		"properties": map[string]any{"orderId": "order-4711", "total": 30},
	})
	if err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequest("POST", os.Getenv("SLUICE_URL")+"/v1/track", bytes.NewReader(message))
	if err != nil {
		log.Fatal(err)
	}
	request.SetBasicAuth(os.Getenv("WRITE_KEY"), "")
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	// 200 means that Kafka has it. After 429, 5xx or no answer, send it again later.
	if response.StatusCode != 200 {
		log.Fatal("the gateway answers ", response.Status)
	}
	fmt.Println(messageID)
}
