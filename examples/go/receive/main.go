// A receiver of webhooks, without packages:  WEBHOOK_SECRET=change-me PORT=3000 go run ./receive
package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

var (
	secret = []byte(os.Getenv("WEBHOOK_SECRET"))
	seen   sync.Map // in production: a table with a unique key, because a restart forgets this
)

func main() {
	http.HandleFunc("/", receive)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
	if err != nil {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	mac := hmac.New(sha1.New, secret)
	mac.Write(body)
	given, _ := hex.DecodeString(request.Header.Get("X-Signature"))
	if !hmac.Equal(given, mac.Sum(nil)) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	var message struct{ Type, MessageID string }
	if err := json.Unmarshal(body, &message); err != nil {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, repeated := seen.LoadOrStore(message.MessageID, true); !repeated {
		fmt.Println(message.Type, message.MessageID) // in production: put it into a queue, and work there
	}
}
