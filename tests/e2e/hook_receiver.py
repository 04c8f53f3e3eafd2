#!/usr/bin/env python3
"""A receiver of webhooks in a process of its own, to be killed: writes each event to a file, then answers.

usage: hook_receiver.py READY_FD PORT OUT STATUS_FILE       PORT 0: any; STATUS_FILE: what it answers ("503 2": with Retry-After)
"""
import http.server
import json
import os
import pathlib
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        line = json.dumps({"id": self.headers["webhook-id"], "signature": self.headers["webhook-signature"], "type": self.headers["Content-Type"],
                           "token": self.headers["X-A2A-Notification-Token"], "proof": self.headers["Authorization"], "body": json.loads(body)})
        os.write(out, line.encode() + b"\n")
        status, _, after = pathlib.Path(sys.argv[4]).read_text().partition(" ")
        self.send_response(int(status))
        self.send_header("Content-Length", "0")
        if after:
            self.send_header("Retry-After", after)
        self.end_headers()

    def log_message(self, *args):
        pass


out = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
os.write(int(sys.argv[1]), b"%d\n" % server.server_address[1])
server.serve_forever()
