"""A receiver of webhooks, without packages:  WEBHOOK_SECRET=change-me PORT=3000 python3 receive.py"""
import hashlib
import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

secret = os.environ["WEBHOOK_SECRET"].encode()
seen = set()  # in production: a table with a unique key, because a restart forgets this


class Webhook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        expected = hmac.new(secret, body, hashlib.sha1).hexdigest()
        if not hmac.compare_digest(expected, self.headers.get("X-Signature", "")):
            return self.answer(401)
        message = json.loads(body)
        if message["messageId"] not in seen:
            seen.add(message["messageId"])
            print(message["type"], message["messageId"], flush=True)  # in production: put it into a queue
        self.answer(200)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Webhook).serve_forever()
