"""A customer's program that uses segment-analytics-python; test/clients runs it."""

import json
import os
import sys
import threading
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from segment.analytics.client import Client

with open(os.path.join(os.path.dirname(__file__), "..", "content.json"), encoding="utf-8") as file:
    content = json.load(file)

failures = []
made = 0
client = Client(
    os.environ["CLIENT_WRITE_KEY"],
    host=os.environ["CLIENT_ENDPOINT"],
    gzip=True,
    on_error=lambda error, items: failures.extend(str(error) for _ in items),
)

large_text = "x" * 29_500 + "😀" * 200

of_this_language = {
    "float": 1.0,
    "whole": 10**15,
    "decimal": Decimal("12.50"),
    "date": date(2020, 2, 29),
    "time": datetime(2020, 2, 29, 23, 59, 59, 123456, timezone(timedelta(hours=5, minutes=30))),
    "tuple": (1, 2),
}

names = {
    "userId": "user_id",
    "anonymousId": "anonymous_id",
    "previousId": "previous_id",
    "groupId": "group_id",
    "messageId": "message_id",
}


def call(method, **arguments):
    global made
    made += 1
    queued, _ = getattr(client, method)(**arguments)
    if not queued:
        failures.append("the queue is full")


def call_of_content(own):
    arguments = {
        names.get(name, name): value for name, value in own.items() if name not in ("type", "isRich")
    }
    if "timestamp" in own:
        arguments["timestamp"] = datetime.fromisoformat(own["timestamp"].replace("Z", "+00:00"))
    if own.get("isRich"):
        data = {**content["everything"], "of this language": of_this_language}
        # It writes its library into the context that it is given.
        arguments.update(context=dict(content["context"]), integrations=content["integrations"])
        if own["type"] in ("identify", "group"):
            arguments["traits"] = data
        elif own["type"] != "alias":
            arguments["properties"] = data
    call(own["type"], **arguments)


def track(index):
    call(
        "track",
        user_id=f"user-{index % 50}",
        event="Product Viewed",
        properties={"index": index, "price": index / 4, "name": f"Produkt {index} 😀"},
    )


if os.environ["CLIENT_MODE"] == "once":
    for own in content["calls"]:
        call_of_content(own)
    call("track", user_id="u1", event="Own Id", message_id="an id of its own 😀")
    for index in range(int(os.environ["CLIENT_TRACKS"])):
        track(index)
    for index in range(int(os.environ["CLIENT_LARGE"])):
        call("track", user_id="u1", event="Large", properties={"index": index, "text": large_text})
else:
    told = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), told.set()), daemon=True).start()
    index = 0
    while not told.wait(int(os.environ["CLIENT_EVERY_MS"]) / 1000):
        track(index)
        index += 1

client.flush()
client.join()
print(json.dumps({"made": made, "succeeded": made - len(failures), "failures": failures}))
