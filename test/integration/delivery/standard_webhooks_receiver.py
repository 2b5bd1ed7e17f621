"""A customer's receiver that verifies with the published package of Standard Webhooks.

Started as `python3 standard_webhooks_receiver.py SECRET...`, with the package on PYTHONPATH. Prints its port, then
one JSON line for each request: the id of the message, and which of the secrets verify it. Ends with its standard
input.
"""

import http.server
import json
import os
import sys
import threading

from standardwebhooks import Webhook, WebhookVerificationError

WEBHOOKS = [Webhook(secret) for secret in sys.argv[1:]]


def verifies(webhook, body, headers):
    try:
        webhook.verify(body, headers)
        return True
    except WebhookVerificationError:
        return False


def say(line):
    # One write: requests come on threads of their own.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        headers = dict(self.headers.items())
        verified = [verifies(webhook, raw, headers) for webhook in WEBHOOKS]
        say(json.dumps({"messageId": json.loads(raw)["messageId"], "verified": verified}))
        self.send_response(200 if any(verified) else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments):
        pass


def end_with_standard_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_standard_input, daemon=True).start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
say(str(server.server_address[1]))
server.serve_forever()
