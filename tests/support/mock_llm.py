"""A server of language models that behaves as badly as a test wants. Standard library only.

The first part of a URL's path is the script: /429:1,ok~name/v1/chat/completions answers the first request with 429 and
Retry-After 1, the second and all later ones well. What follows ~ only keeps tests apart. Dialects go by the end of the
path: /chat/completions, /messages, /api/chat. say:TEXT (percent-encoded) answers with that text.

    usage: mock_llm.py [--tls DIR]    prints its port, serves until its standard input closes; with TLS as localhost, and
                                      its own certificate in DIR/cert.pem
    GET /journal             what was asked: [{path, headers, body}]

In a test's own process: Mock(brain=lambda asked: "text"); asked = {system, messages, json, body, path}.
"""
import gzip
import http.server
import json
import ssl
import subprocess
import sys
import threading
import urllib.parse
import zlib

CHUNK = 4


def asked_of(path, body):
    """The request, whatever the dialect."""
    messages = [m for m in body.get("messages", []) if m["role"] != "system"]
    system = body.get("system") or "".join(m["content"] for m in body.get("messages", []) if m["role"] == "system")
    wants = any(k in body for k in ("response_format", "output_config", "format")) or "JSON" in system
    return {"system": system, "messages": messages, "json": wants, "body": body, "path": path}


def default_brain(asked):
    return '{"answer": 42}' if asked["json"] else "hello there"


class Dialect:
    """Bodies and streams of one answer."""

    def __init__(self, path):
        self.kind = "anthropic" if path.endswith("/messages") else "ollama" if path.endswith("/api/chat") else "openai"

    def whole(self, text, finish="stop", tool=None, refusal=None, usage=True):
        if self.kind == "anthropic":
            content = [{"type": "text", "text": text}] if text else []
            if tool:
                content.append({"type": "tool_use", "id": "t", "name": "answer", "input": json.loads(tool)})
            stop = {"stop": "end_turn", "length": "max_tokens"}.get(finish, "refusal" if refusal else finish)
            return {"type": "message", "model": "mock-1", "content": content, "stop_reason": stop,
                    **({"usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 2}} if usage else {})}
        if self.kind == "ollama":
            message = {"role": "assistant", "content": text}
            if tool:
                message["tool_calls"] = [{"function": {"name": "answer", "arguments": json.loads(tool)}}]
            return {"model": "mock-1", "message": message, "done": True, "done_reason": finish,
                    **({"prompt_eval_count": 12, "eval_count": 5} if usage else {})}
        message = {"role": "assistant", "content": text or None, "refusal": refusal}
        if tool:
            message["tool_calls"] = [{"id": "t", "function": {"name": "answer", "arguments": tool}}]
        return {"object": "chat.completion", "model": "mock-1",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                **({"usage": {"prompt_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}}
                   if usage else {})}

    def pieces(self, text, finish="stop", usage=True):
        """The stream, as a list of byte strings."""
        cuts = [text[i:i + CHUNK] for i in range(0, len(text), CHUNK)]
        if self.kind == "ollama":
            lines = [{"model": "mock-1", "message": {"role": "assistant", "content": c}, "done": False} for c in cuts]
            lines.append(self.whole("", finish, usage=usage))
            return [json.dumps(v).encode() + b"\n" for v in lines]
        if self.kind == "anthropic":
            start = {"type": "message_start", "message": {"model": "mock-1", "content": [], "usage": {
                "input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 1}}}
            events = [start, {"type": "ping"}, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
            events += [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": c}} for c in cuts]
            stop = {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish)
            events += [{"type": "content_block_stop", "index": 0},
                       {"type": "message_delta", "delta": {"stop_reason": stop}, **({"usage": {"output_tokens": 5}} if usage else {})},
                       {"type": "message_stop"}]
            return [("event: %s\ndata: %s\n\n" % (e["type"], json.dumps(e))).encode() for e in events]
        chunks = [{"model": "mock-1", "choices": [{"index": 0, "delta": {"content": c}, "finish_reason": None}]} for c in cuts]
        chunks.append({"model": "mock-1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if usage:
            chunks.append({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5,
                                                    "prompt_tokens_details": {"cached_tokens": 2}}})
        return [b": keep-alive\n\n"] + [b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks] + [b"data: [DONE]\n\n"]


class Handler(http.server.BaseHTTPRequestHandler):
    disable_nagle_algorithm = True  # head and body are two writes: the second must not wait for an acknowledgement
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.body(200, json.dumps(self.server.mock.journal).encode() if self.path == "/journal" else b"[]")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(raw)
        mock = self.server.mock
        script = self.path.split("/")[1]
        steps = script.split("~")[0].split(",")
        with mock.lock:
            n = mock.counts.get(script, 0)
            mock.counts[script] = n + 1
            mock.journal.append({"path": self.path, "headers": dict(self.headers), "body": body})
        name, _, value = steps[min(n, len(steps) - 1)].partition(":")
        try:
            self.act(name, value, asked_of(self.path, body), Dialect(self.path))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    # ---- answers ----

    def body(self, status, data, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-request-id", "req-1")
        for k, v in headers:
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(data)

    def json(self, status, value, headers=()):
        self.body(status, json.dumps(value).encode(), headers)

    def raw(self, headers=()):
        """A body that ends with the connection."""
        self.close_connection = True
        self.send_response(200)
        for k, v in (("Content-Type", "text/event-stream"), ("Connection", "close"), *headers):
            self.send_header(k, v)
        self.end_headers()

    def good(self, asked, dialect, text, **more):
        if not asked["body"].get("stream"):
            return self.json(200, dialect.whole(text, **more))
        self.raw()
        for piece in dialect.pieces(text, **more):
            self.wfile.write(piece)

    def waiting(self):
        """Until the mock closes: nobody can hang longer than the tests."""
        self.server.mock.closing.wait(60)

    def act(self, name, value, asked, dialect):
        text = self.server.mock.brain(asked)
        body = asked["body"]
        error = {"error": {"message": "the server is unwell", "type": "t"}}
        if name.isdigit():
            headers = [("Retry-After", urllib.parse.unquote(value))] if value else []
            return self.json(int(name), error, headers)
        if name == "noretry":
            return self.json(503, error, [("x-should-retry", "false")])
        if name == "doretry":
            return self.json(400, error, [("x-should-retry", "true")])
        if name == "ok":
            return self.good(asked, dialect, text)
        if name == "say":
            return self.good(asked, dialect, urllib.parse.unquote(value))
        if name == "noformat" and any(k in body for k in ("response_format", "output_config", "format")):
            return self.json(400, {"error": {"message": "'response_format' of this type is not supported"}})
        if name == "noschema" and "schema" in json.dumps([body.get(k) for k in ("response_format", "output_config", "format")]):
            return self.json(400, {"error": {"message": "json_schema is not supported"}})
        if name == "nooptions" and "stream_options" in body:
            return self.json(400, {"detail": "unknown field stream_options"})
        if name == "newtokens" and "max_tokens" in body:
            return self.json(400, {"error": {"message": "use 'max_completion_tokens' for max_tokens"}})
        if name in ("noformat", "noschema", "nooptions", "newtokens"):
            return self.good(asked, dialect, text)
        return getattr(self, "do_" + name)(asked, dialect, text)

    def do_drop(self, asked, dialect, text):
        self.raw([("Transfer-Encoding", "chunked")])
        for piece in dialect.pieces(text)[:3]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def do_ends(self, asked, dialect, text):
        """Ends early, and in good order."""
        self.raw()
        self.wfile.write(b"".join(dialect.pieces(text)[:3]))

    def do_miderror(self, asked, dialect, text):
        self.raw()
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        if dialect.kind == "ollama":
            self.wfile.write(dialect.pieces(text)[0] + b'{"error":"Overloaded"}\n')
        else:
            self.wfile.write(b"".join(dialect.pieces(text)[:2]) + b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n")

    def do_malformed(self, asked, dialect, text):
        self.body(200, b'{"choices": [{"message": {"content": "x"')

    def do_html(self, asked, dialect, text):
        self.body(200, b"<html><body>captive portal</body></html>")

    def do_drip(self, asked, dialect, text):
        """One byte a second."""
        self.raw()
        for byte in b"".join(dialect.pieces(text)):
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.mock.closing.wait(1):
                return

    def do_hang(self, asked, dialect, text):
        self.raw()
        self.wfile.write(dialect.pieces(text)[0])
        self.wfile.flush()
        self.waiting()

    def do_breaks(self, asked, dialect, text):
        """Says half of it, which is heard, and breaks off."""
        self.raw()
        pieces = dialect.pieces(text)
        self.wfile.write(b"".join(pieces[:max(2, len(pieces) - 4)]))
        self.wfile.flush()
        self.server.mock.closing.wait(0.3)

    def do_halts(self, asked, dialect, text):
        """Says all of it, and never ends."""
        self.raw()
        self.wfile.write(b"".join(dialect.pieces(text)[:-3]))
        self.wfile.flush()
        self.waiting()

    def do_mute(self, asked, dialect, text):
        self.close_connection = True
        self.waiting()

    def do_endless(self, asked, dialect, text):
        self.raw()
        while not self.server.mock.closing.is_set():
            self.wfile.write(b"".join(dialect.pieces("x" * 4000)[1:-4]))

    def do_endlessline(self, asked, dialect, text):
        self.raw()
        self.wfile.write(b"data: ")
        while not self.server.mock.closing.is_set():
            self.wfile.write(b"x" * 65536)

    def do_endlessheader(self, asked, dialect, text):
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.server.mock.closing.is_set():
            self.wfile.write(b"X-A: " + b"a" * 4000 + b"\r\n")

    def do_endless100(self, asked, dialect, text):
        """Always about to answer."""
        self.close_connection = True
        while not self.server.mock.closing.is_set():
            self.wfile.write(b"HTTP/1.1 100 Continue\r\nX-A: " + b"a" * 900 + b"\r\n\r\n")

    def do_short(self, asked, dialect, text):
        """Fewer bytes than were announced."""
        self.close_connection = True
        data = json.dumps(dialect.whole(text)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data) + 1000))
        self.end_headers()
        self.wfile.write(data[:-20])

    def do_noise(self, asked, dialect, text):
        """What is no HTTP at all."""
        self.close_connection = True
        self.wfile.write(b"\x16\x03\x01SSH-2.0-OpenSSH\r\n\x00\xff" * 10)

    def do_deep(self, asked, dialect, text):
        self.body(200, b'{"a":' * 100000)

    def do_bomb(self, asked, dialect, text):
        """A kilobyte that becomes 100 MiB."""
        pack = zlib.compressobj(9, zlib.DEFLATED, 31)
        data = b"".join(pack.compress(b" " * 1048576) for _ in range(100)) + pack.flush()
        self.body(200, data, [("Content-Encoding", "gzip")])

    def do_gzip(self, asked, dialect, text):
        self.body(200, gzip.compress(json.dumps(dialect.whole(text)).encode()), [("Content-Encoding", "gzip")])

    def do_redirect(self, asked, dialect, text):
        self.json(302, {}, [("Location", "http://127.0.0.1:%d/ok/v1/chat/completions" % self.server.server_address[1])])

    def do_redirectgopher(self, asked, dialect, text):
        self.json(301, {}, [("Location", "gopher://127.0.0.1:%d/_x" % self.server.server_address[1])])

    def do_redirectfile(self, asked, dialect, text):
        self.json(307, {}, [("Location", "file:///etc/passwd")])

    def do_echo(self, asked, dialect, text):
        key = self.headers.get("Authorization", "").replace("Bearer ", "") or self.headers.get("x-api-key", "")
        self.json(401, {"error": {"message": "Incorrect API key provided: %s. You sent %s." % (key, key)}},
                  [("x-request-id", key)])

    def do_echoanswer(self, asked, dialect, text):
        key = self.headers.get("Authorization", "").replace("Bearer ", "") or self.headers.get("x-api-key", "")
        self.good(asked, dialect, "your key is " + key)

    def do_echowhole(self, asked, dialect, text):
        """Written so that nobody who only looks at the bytes finds it."""
        key = self.headers.get("Authorization", "").replace("Bearer ", "")
        answer = json.dumps(dialect.whole("HERE")).replace("HERE", "".join("\\u%04x" % ord(c) for c in key))
        self.body(200, answer.encode())

    def do_wrong(self, asked, dialect, text):
        self.good(asked, dialect, '{"answer": "forty-two"}')

    def do_array(self, asked, dialect, text):
        self.good(asked, dialect, "[1, 2]")

    def do_two(self, asked, dialect, text):
        self.good(asked, dialect, '{"answer": 1} or {"answer": 2}')

    def do_prose(self, asked, dialect, text):
        self.good(asked, dialect, "Sure! Here it is:\n```json\n%s\n```\nAnything else?" % text)

    def do_think(self, asked, dialect, text):
        self.good(asked, dialect, "<think>hm, {\"answer\": 1}?</think>\n" + text)

    def do_empty(self, asked, dialect, text):
        self.good(asked, dialect, "")

    def do_length(self, asked, dialect, text):
        self.good(asked, dialect, text[:8], finish="length")

    def do_refusal(self, asked, dialect, text):
        self.json(200, dialect.whole("", finish="content_filter" if dialect.kind != "anthropic" else "refusal",
                                     refusal="I cannot help with that."))

    def do_tool(self, asked, dialect, text):
        self.json(200, dialect.whole("", finish="tool_use" if dialect.kind == "anthropic" else "tool_calls", tool=text))

    def do_nousage(self, asked, dialect, text):
        self.good(asked, dialect, text, usage=False)

    def do_madusage(self, asked, dialect, text):
        answer = json.dumps(dialect.whole(text)).replace(": 12", ": -5").replace(": 5", ": 18446744073709551615")
        self.body(200, answer.encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that hangs up is what the tests are about."""


class Mock:
    def __init__(self, brain=None, tls=None):
        self.brain = brain or default_brain
        self.journal, self.counts = [], {}
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.mock = self
        self.port = self.server.server_address[1]
        if tls:
            self.wrap(tls)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def wrap(self, folder):
        """As localhost with cert.pem; as expired.localhost with expired.pem, whose time is over."""
        def certificate(name, file, days):
            key, request, cert = ("%s/%s" % (folder, file + end) for end in (".key", ".csr", ".pem"))
            names = folder + "/names.cnf"
            with open(names, "w") as f:
                f.write("subjectAltName=DNS:%s\n" % name)
            for args in (["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
                          "-keyout", key, "-out", request],
                         ["x509", "-req", "-in", request, "-signkey", key, "-days", str(days), "-extfile", names, "-out", cert]):
                subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
            return context
        context, expired = certificate("localhost", "cert", 2), certificate("expired.localhost", "expired", -1)
        def by_name(connection, name, _):
            if name == "expired.localhost":
                connection.context = expired
        context.sni_callback = by_name
        # The handshake belongs to the connection's thread, not to the one that accepts.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)

    def url(self, script, rest="/v1"):
        return "http://127.0.0.1:%d/%s%s" % (self.port, script, rest)

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def main():
    mock = Mock(tls=sys.argv[2] if sys.argv[1:2] == ["--tls"] else None)
    print(mock.port, flush=True)
    sys.stdin.read()
    mock.close()


if __name__ == "__main__":
    main()
