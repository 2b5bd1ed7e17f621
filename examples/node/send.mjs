// Sends a message to the gateway, without packages:  SLUICE_URL=http://127.0.0.1:8080 WRITE_KEY=shop-write-key node send.mjs
import { randomUUID } from 'node:crypto'

const message = {
  messageId: randomUUID(), // keep it if you send the message again: Sluice then drops the repeat
  userId: 'u1',
  event: 'Order Completed',
  properties: { orderId: 'order-4711', total: 30 },
}
const response = await fetch(`${process.env.SLUICE_URL}/v1/track`, {
  method: 'POST',
  headers: {
    authorization: `Basic ${btoa(`${process.env.WRITE_KEY}:`)}`,
    'content-type': 'application/json',
  },
  body: JSON.stringify(message),
})
// 200 means that Kafka has it. After 429, 5xx or no answer, send it again later.
if (!response.ok) throw new Error(`the gateway answers ${response.status}: ${await response.text()}`)
console.log(message.messageId)
