// Package analytics records what users do and sends it to Sluice's gateway.
//
// A [Client] queues every call in memory and sends batches in the background:
// after [Client.FlushAt] calls, or [Client.FlushAfter] after the first of them.
// A call never waits for the network or for room in the queue, and one Client
// serves any number of goroutines.
//
//	client := analytics.New("WRITE_KEY")
//	defer client.Close()
//
//	err := client.Track(&analytics.Track{
//		UserId:     "user-1",
//		Event:      "Order Completed",
//		Properties: map[string]interface{}{"total": 30},
//	})
//
// # What is promised
//
// Nothing is lost silently. A call either returns an error, and then nothing of
// it is sent, or returns nil, and then its message reaches the gateway or is
// reported: to [Client.OnFailure], to the log when there is no OnFailure, and
// in the error of [Client.Close]. The gateway has a message when it answered 200
// with {"success":true} and didn't name the message among those that it left out.
//
// A call is written as JSON before it returns, so its maps may be changed
// afterwards.
//
// A message may reach the gateway more than once when an answer is lost. It
// keeps its messageId over all attempts, by which the worker drops the repeat.
// Messages of different batches may overtake each other; their timestamps,
// taken at the call, tell the order.
package analytics
