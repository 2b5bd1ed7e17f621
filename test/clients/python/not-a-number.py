"""A customer's program that sends a NaN, which is no JSON, among other messages; test/clients runs it."""

import json
import os

from segment.analytics.client import Client

failures = []
made = 0

for gzip in (False, True):
    client = Client(
        os.environ["CLIENT_WRITE_KEY"],
        host=os.environ["CLIENT_ENDPOINT"],
        gzip=gzip,
        # Long enough that all of them are in one batch.
        upload_interval=2,
        on_error=lambda error, items: failures.extend(str(error) for _ in items),
    )
    for name, price in (("before", 1.5), ("not a number", float("nan")), ("infinite", float("inf")), ("after", 2.5)):
        client.track(
            "u1", "Product Viewed", {"price": price, "text": "NaN"}, message_id=f"{name}, gzip {gzip}"
        )
        made += 1
    client.flush()
    client.join()

print(json.dumps({"made": made, "succeeded": made - len(failures), "failures": failures}))
