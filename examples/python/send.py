"""Sends a message to the gateway, without packages:  SLUICE_URL=http://127.0.0.1:8080 WRITE_KEY=shop-write-key python3 send.py"""
import base64
import json
import os
import urllib.request
import uuid

message = {
    "messageId": str(uuid.uuid4()),  # keep it if you send the message again: Sluice then drops the repeat
    "userId": "u1",
    "event": "Order Completed",
    "properties": {"orderId": "order-4711", "total": 30},
}
login = base64.b64encode(f"{os.environ['WRITE_KEY']}:".encode()).decode()
request = urllib.request.Request(
    f"{os.environ['SLUICE_URL']}/v1/track",
    data=json.dumps(message).encode(),
    headers={"Authorization": f"Basic {login}", "Content-Type": "application/json"},
)
# It raises HTTPError unless Kafka has the message. After 429, 5xx or no answer, send it again later.
urllib.request.urlopen(request, timeout=10).read()
print(message["messageId"])
