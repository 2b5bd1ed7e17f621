"""A customer's receiver that has nothing but Python's standard library.

Started as `python3 receiver.py SECRET`. Prints its port, then one JSON line for each request: the id of the
message, and whether the signature fits the raw bytes and the body parsed and written again. Ends with its
standard input.
"""

import hashlib
import hmac
import http.server
import json
import os
import sys
import threading

SECRET = sys.argv[1].encode()


def verifies(body, signature):
    expected = hmac.new(SECRET, body, hashlib.sha1).hexdigest()
    return hmac.compare_digest(expected, signature)


def written_again(raw):
    text = json.dumps(json.loads(raw), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def say(line):
    # One write: requests come on threads of their own.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        signature = self.headers["X-Signature"] or ""
        report = {
            "messageId": json.loads(raw)["messageId"],
            "raw": verifies(raw, signature),
            "writtenAgain": verifies(written_again(raw), signature),
        }
        say(json.dumps(report))
        self.send_response(200 if report["raw"] else 401)
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
