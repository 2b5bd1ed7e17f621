// Package analytics records what users do and sends it to Sluice's gateway.
//
// A [Client] queues every call in memory and sends batches in the background. A
// batch is sent when it has [Client.FlushAt] calls, or when its first call has
// waited for [Client.FlushAfter]. A call never waits for the network or for
// room in the queue. One Client serves any number of goroutines.
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
// Nothing is lost silently. If a call returns an error, nothing of it is sent.
// If a call returns nil, its message reaches the gateway or is reported as
// failed. A failed message is reported to [Client.OnFailure], or to the log if
// there is no OnFailure. [Client.Close] also returns it in its error. A message
// has reached the gateway if the gateway answered 200 with {"success":true} and
// didn't name the message among those that it left out.
//
// A call is written as JSON before it returns, so its maps may be changed
// afterwards.
//
// If an answer is lost, a message may reach the gateway more than once. All
// attempts have the same messageId, so the worker recognizes and drops the
// repeat. Messages of different batches may overtake each other. Their
// timestamps are taken at the calls, and so show the order.
package analytics
