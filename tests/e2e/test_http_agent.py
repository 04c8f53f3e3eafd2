#!/usr/bin/env python3
"""baton-agent-http against a local service: values, pages, retries, rates, tokens, redirects, and a service that lies."""
import base64
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from harness import BIN, ROOT, BatonTest, main, read_yaml

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

SECRET = "s3cret-of-the-service"


class Service(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        self.seen = []
        self.script = {}  # path → list of answers that are given one after the other
        self.items = [{"id": i, "title": "t%d" % i, "big": 2**53 + i} for i in range(250)]
        self.tokens = []
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status=200, body=b"", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = [("Content-Type", "application/json"), *headers]
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body if self.command != "HEAD" else b"")
        except OSError:
            pass  # it did not want to read on

    def handle_any(self):
        s = self.server
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        s.seen.append({"method": self.command, "path": self.path, "headers": dict(self.headers.items()), "body": body, "at": time.monotonic()})
        if s.script.get(url.path):
            status, answer, headers = s.script[url.path].pop(0)
            if status == 0:  # cut the connection
                self.connection.shutdown(2)
                self.close_connection = True
                return
            return self.answer(status, answer, headers)
        if url.path == "/token":
            s.tokens.append("tok%d" % len(s.tokens))
            return self.answer(200, {"access_token": s.tokens[-1], "expires_in": 3600})
        if url.path == "/guarded":
            ok = s.tokens and self.headers.get("Authorization") == "Bearer " + s.tokens[-1]
            return self.answer(200 if ok else 401, {"ok": bool(ok)})
        if url.path == "/link":
            page = int(query.get("page", ["1"])[0])
            more = [("Link", '<%s/link?page=%d>; rel="prev", </link?page=%d>; rel="next"' % (s.url, page - 1, page + 1))] if page < 3 else []
            return self.answer(200, s.items[(page - 1) * 100:page * 100], more)
        if url.path == "/cursor":
            at = int(query.get("after", ["0"])[0])
            return self.answer(200, {"values": s.items[at:at + 100], "meta": {"next": str(at + 100) if at + 100 < 250 else None}})
        if url.path == "/offset":
            at = int(query.get("startAt", ["0"])[0])
            return self.answer(200, {"issues": s.items[at:at + 60]})
        if url.path == "/number":
            page = int(query.get("p", ["1"])[0])
            return self.answer(200, s.items[(page - 1) * 70:page * 70])
        if url.path == "/round":
            return self.answer(200, {"values": [1], "next": "/round"})
        if url.path == "/endless":
            return self.answer(200, {"values": [1], "next": "/endless?n=%d" % len(s.seen)})
        if url.path == "/drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            try:
                for _ in range(200):
                    self.wfile.write(b"x")
                    self.wfile.flush()
                    time.sleep(0.1)
            except OSError:
                pass
            return None
        if url.path == "/large":
            return self.answer(200, b"x" * (5 * 1024 * 1024), [("Content-Type", "text/csv")])
        if url.path == "/headers":
            return self.answer(200, b"x", [("X-Long", "y" * 70000)])
        if url.path == "/away":
            return self.answer(302, b"", [("Location", query["to"][0])])
        if url.path == "/post-away":
            return self.answer(307, b"", [("Location", "/echo")])
        return self.answer(200, {"method": self.command, "path": self.path, "body": body.decode("utf-8", "replace"),
                                 "headers": {k.lower(): v for k, v in self.headers.items()}})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_any


class Http(BatonTest):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="baton-http-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.service = Service()
        self.addCleanup(self.service.server_close)
        self.addCleanup(self.service.shutdown)

    def settings(self, *actions, **more):
        return {"baseUrl": self.service.url, "allowPrivate": ["127.0.0.1"], "actions": [{"description": "Does it.", **a} for a in actions], **more}

    def run_agent(self, settings, *args, stdin="{}", env=None, timeout=40):
        path = self.dir / "settings.json"
        path.write_text(json.dumps(settings))
        return subprocess.run([BIN / "baton-agent-http", "--settings", path, *args], input=stdin, capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, "SERVICE_KEY": SECRET, **(env or {})})

    def once(self, settings, skill, parameters=None, **kwargs):
        done = self.run_agent(settings, "--once", skill, stdin=json.dumps({"task": "t", "parameters": parameters or {}}), **kwargs)
        self.assertTrue(done.stdout.strip(), done.stderr)
        return json.loads(done.stdout)

    def data(self, *args, **kwargs):
        reply = self.once(*args, **kwargs)
        self.assertEqual(reply["outcome"], "completed", reply)
        return reply["result"].get("data", reply["result"].get("text"))

    def failure(self, *args, **kwargs):
        reply = self.once(*args, **kwargs)
        self.assertEqual(reply["outcome"], "failed", reply)
        return reply["failure"]


class Requests(Http):
    def test_values_stand_in_path_query_header_and_body_with_their_types(self):
        s = self.settings({"id": "put", "method": "PUT", "path": "/a/{id}/b", "query": {"q": "{q}", "n": "{n}", "tag": "{tags}", "fixed": 7, "mixed": "x-{n}"},
                           "headers": {"X-Trace": "{trace}", "X-None": "{none}"},
                           "body": {"title": "About {id}", "n": "{n}", "list": ["{tags}", "{none}"], "none": "{none}", "brace": "{{x}", "deep": {"o": "{o}"}}})
        got = self.data(s, "put", {"id": "a/b ä?", "q": "1&2", "n": 2**53 - 1, "tags": ["x", "y z"], "trace": "t 1", "o": {"k": [1.5, None]}})
        self.assertEqual(got["path"], "/a/a%2Fb%20%C3%A4%3F/b?q=1%262&n=9007199254740991&tag=x&tag=y%20z&fixed=7&mixed=x-9007199254740991")
        self.assertEqual(json.loads(got["body"]), {"title": "About a/b ä?", "n": 2**53 - 1, "list": [["x", "y z"]], "brace": "{x}", "deep": {"o": {"k": [1.5, None]}}})
        self.assertEqual((got["headers"]["x-trace"], "x-none" in got["headers"], got["headers"]["content-type"]), ("t 1", False, "application/json"))

    def test_a_value_cannot_leave_its_place(self):
        s = self.settings({"id": "get", "path": "/safe/{id}/x", "headers": {"X-A": "{h}"}})
        for value in ("..", ".", ""):
            f = self.failure(s, "get", {"id": value})
            self.assertEqual((f["class"], "parameters.id" in f["message"]), ("VALIDATION_ERROR", True), f)
        f = self.failure(s, "get", {"id": "1", "h": "a\r\nX-Evil: 1"})
        self.assertIn("no line break", f["message"])
        self.assertEqual(self.data(s, "get", {"id": "../../etc"})["path"], "/safe/..%2F..%2Fetc/x")
        self.assertEqual(len(self.service.seen), 1)

    def test_forms_and_empty_bodies(self):
        s = self.settings({"id": "form", "method": "POST", "path": "/echo", "form": {"a": "{a}", "b": "{b}"}}, {"id": "empty", "method": "POST", "path": "/echo"})
        got = self.data(s, "form", {"a": "1 & 2"})
        self.assertEqual((got["body"], got["headers"]["content-type"]), ("a=1%20%26%202", "application/x-www-form-urlencoded"))
        self.assertEqual(self.data(s, "empty")["headers"]["content-length"], "0")

    def test_what_is_kept_of_an_answer(self):
        s = self.settings({"id": "map", "path": "/cursor", "result": {"first": "/values/0", "next": "/meta/next"}},
                          {"id": "list", "path": "/cursor", "result": "/values", "fields": {"n": "/id", "none": "/x"}},
                          {"id": "wrong", "path": "/cursor", "result": "/nothing"})
        self.assertEqual(self.data(s, "map"), {"first": self.service.items[0], "next": "100"})
        self.assertEqual(self.data(s, "list")[:2], [{"n": 0, "none": None}, {"n": 1, "none": None}])
        self.assertIn("no /nothing", self.failure(s, "wrong")["message"])

    def test_the_idempotency_key_goes_along(self):
        s = self.settings({"id": "pay", "method": "POST", "path": "/pay", "body": {}, "idempotencyHeader": "Idempotency-Key"})
        self.assertIn("idempotency-key", self.data(s, "pay")["headers"])

    def test_answers_that_are_no_json(self):
        self.service.script = {"/x": [(200, b"plain \xc3\xa4", [("Content-Type", "text/plain")]), (204, b"", []), (200, b"\xff\xfe", []), (200, b"{oops", [("Content-Type", "application/json")])]}
        s = self.settings({"id": "x", "path": "/x"})
        self.assertEqual(self.data(s, "x"), "plain ä")
        self.assertEqual(self.data(s, "x"), "done (status 204)")
        self.assertIn("output: artifact", self.failure(s, "x")["message"])
        self.assertIn("no JSON", self.failure(s, "x")["message"])


class Pages(Http):
    ALL = {"link": {"next": "link"}, "cursor": {"items": "/values", "cursor": "/meta/next", "param": "after"},
           "offset": {"items": "/issues", "offset": "startAt"}, "number": {"page": "p"}}

    def pages(self, **more):
        return self.settings(*[{"id": k, "path": "/" + k, "pages": v, **more} for k, v in self.ALL.items()])

    def test_all_items_of_all_pages_come_in_order_with_all_digits(self):
        for kind in self.ALL:
            self.assertEqual(self.data(self.pages(), kind), self.service.items, kind)
            self.assertEqual(self.data(self.pages(fields={"t": "/title"}), kind), [{"t": i["title"]} for i in self.service.items])

    def test_a_limit_cuts_with_a_mark_and_at_its_number_without(self):
        for kind in self.ALL:
            for limit, cut in ((1, True), (100, True), (249, True), (250, False), (251, False)):
                r = self.once(self.pages(), kind, {"limit": limit})["result"]
                self.assertEqual((len(r["data"]), r.get("truncated", False)), (min(limit, 250), cut), (kind, limit))

    def test_pages_that_never_end_fail_and_name_the_bound(self):
        s = self.settings({"id": "round", "path": "/round", "pages": {"items": "/values", "next": "/next"}},
                          {"id": "endless", "path": "/endless", "pages": {"items": "/values", "next": "/next", "max": 5}},
                          {"id": "none", "path": "/cursor", "pages": {"items": "/nothing", "next": "/next"}})
        self.assertIn("same page again", self.failure(s, "round")["message"])
        self.assertIn("pages.max", self.failure(s, "endless")["message"])
        self.assertEqual(len([x for x in self.service.seen if x["path"].startswith("/endless")]), 5)
        self.assertIn("no list at pages.items", self.failure(s, "none")["message"])

    def test_a_page_that_is_refused_for_a_moment_does_not_begin_again(self):
        self.service.script["/cursor"] = [(200, {"values": [1], "meta": {"next": "100"}}, []), (503, b"", [("Retry-After", "0")])]
        self.assertEqual(self.data(self.pages(), "cursor"), [1, *self.service.items[100:]])


class Failures(Http):
    def test_each_status_has_its_class_and_the_services_own_words(self):
        cases = {400: ("VALIDATION_ERROR", False), 401: ("PERMISSION_DENIED", False), 404: ("RESOURCE_NOT_FOUND", False), 405: ("TOOL_NOT_FOUND", False),
                 409: ("VALIDATION_ERROR", False), 429: ("RATE_LIMITED", True), 500: ("SERVICE_UNAVAILABLE", True), 503: ("SERVICE_UNAVAILABLE", True)}
        s = self.settings({"id": "x", "path": "/x"}, retries=0)
        for status, expected in cases.items():
            self.service.script["/x"] = [(status, {"error": {"message": "because of %d" % status}}, [])]
            f = self.failure(s, "x")
            self.assertEqual((f["class"], f["retryable"]), expected, status)
            self.assertIn("status %d: because of %d" % (status, status), f["message"])

    def test_what_may_have_had_effects_is_not_sent_again(self):
        s = self.settings({"id": "unsafe", "method": "POST", "path": "/x", "body": {}}, {"id": "keyed", "method": "POST", "path": "/x", "body": {}, "idempotencyHeader": "K"},
                          {"id": "get", "path": "/x"}, {"id": "bare", "method": "POST", "path": "/x"},
                          {"id": "gone", "method": "DELETE", "path": "/x", "effects": "unsafe"})
        for skill, requests, retryable in (("unsafe", 1, False), ("keyed", 3, True), ("get", 3, True), ("bare", 1, False), ("gone", 1, False)):
            for answer in ((503, b"", [("Retry-After", "0")]), (0, b"", [])):
                del self.service.seen[:]
                self.service.script["/x"] = [answer] * 3
                f = self.failure(s, skill)
                self.assertEqual((len(self.service.seen), f["retryable"]), (requests, retryable), (skill, answer, f))
        self.service.script["/x"] = [(429, b"", [("Retry-After", "1")]), (200, {"ok": 1}, [])]
        self.assertEqual(self.data(s, "unsafe"), {"ok": 1})

    def test_a_long_pause_is_left_to_the_supervisor(self):
        self.service.script["/x"] = [(429, b"", [("Retry-After", "120")])]
        f = self.failure(self.settings({"id": "x", "path": "/x"}), "x")
        self.assertEqual((f["class"], f["retryAfterMs"], len(self.service.seen)), ("RATE_LIMITED", 120000, 1))

    def test_slow_large_and_lying_answers_are_bounded(self):
        s = self.settings({"id": "drip", "path": "/drip", "timeoutMs": 700}, {"id": "large", "path": "/large"}, {"id": "headers", "path": "/headers"},
                          {"id": "file", "path": "/large", "output": "artifact"}, maxBytes=1000000, retries=0)
        began = time.monotonic()
        self.assertEqual(self.failure(s, "drip")["class"], "TIMEOUT")
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn("more than 1000000 bytes", self.failure(s, "large")["message"])
        self.assertIn("headers of the answer", self.failure(s, "headers")["message"])

    def test_the_rate_holds(self):
        s = self.settings({"id": "offset", "path": "/offset", "pages": {"items": "/issues", "offset": "startAt"}}, rate={"n": 2, "perMs": 400})
        start = time.monotonic()
        self.data(s, "offset")
        at = [x["at"] for x in self.service.seen]
        self.assertEqual(len(at), 6)
        for n, t in enumerate(at):  # from the start: a busy machine may bring one of them late, never early
            self.assertGreaterEqual(t - start, n // 2 * 0.4)


class Reach(Http):
    def test_private_addresses_are_called_only_when_listed(self):
        s = self.settings({"id": "x", "path": "/x"})
        for private in ([], ["10.0.0.0/8"], ["127.0.0.2"]):
            self.assertIn("allowPrivate", self.failure({**s, "allowPrivate": private}, "x")["message"])
        self.assertEqual(self.service.seen, [])
        self.data({**s, "allowPrivate": ["127.0.0.0/8"]}, "x")

    def test_redirects_stay_within_the_list_and_take_no_secret_along(self):
        other = Service()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        s = self.settings({"id": "away", "path": "/away", "query": {"to": "{to}"}}, {"id": "post", "method": "POST", "path": "/post-away", "body": {"a": 1}},
                          auth={"bearer": {"env": "SERVICE_KEY"}})
        got = self.data(s, "away", {"to": "/echo?x=1"})
        self.assertEqual((got["path"], got["headers"]["authorization"]), ("/echo?x=1", "Bearer [redacted]"))
        self.assertIn("allowHosts", self.failure(s, "away", {"to": other.url + "/echo"})["message"])
        self.assertEqual(other.seen, [])
        s["allowHosts"] = [other.url[7:]]
        self.assertNotIn("authorization", self.data(s, "away", {"to": other.url + "/echo"})["headers"])
        for to in ("file:///etc/passwd", "gopher://127.0.0.1/", "http://user:pw@127.0.0.1/", "http://169.254.169.254/"):
            self.assertEqual(self.failure(s, "away", {"to": to})["class"], "VALIDATION_ERROR", to)
        self.assertEqual(json.loads(self.data(s, "post")["body"]), {"a": 1})

    def test_a_redirect_that_never_ends(self):
        self.service.script["/x"] = [(302, b"", [("Location", "/x")])] * 10
        self.assertIn("redirects", self.failure(self.settings({"id": "x", "path": "/x"}), "x")["message"])
        self.assertEqual(len(self.service.seen), 6)


class Auth(Http):
    def sent(self, auth, env=None):
        del self.service.seen[:]
        reply = self.once(self.settings({"id": "x", "path": "/echo"}, auth=auth), "x", env=env)
        self.assertNotIn(SECRET, json.dumps(reply))
        return self.service.seen[-1]["headers"]

    def test_secrets_come_from_environment_or_file_and_never_back(self):
        key = self.dir / "key"
        key.write_text(SECRET + "\n")
        key.chmod(0o600)
        self.assertEqual(self.sent({"bearer": {"env": "SERVICE_KEY"}})["Authorization"], "Bearer " + SECRET)
        self.assertEqual(self.sent({"bearer": {"file": str(key)}})["Authorization"], "Bearer " + SECRET)
        self.assertEqual(self.sent({"basic": {"user": "bot", "password": {"env": "SERVICE_KEY"}}})["Authorization"],
                         "Basic " + base64.b64encode(("bot:" + SECRET).encode()).decode())
        self.assertEqual(self.sent({"header": {"name": "X-Key", "prefix": "k ", "value": {"env": "SERVICE_KEY"}}})["X-Key"], "k " + SECRET)

    def test_a_token_is_asked_for_once_and_again_when_it_was_withdrawn(self):
        auth = {"oauth2": {"tokenUrl": self.service.url + "/token", "clientId": "me", "clientSecret": {"env": "SERVICE_KEY"}, "scope": "a b"}}
        s = self.settings({"id": "x", "path": "/guarded"}, {"id": "link", "path": "/link", "pages": {"next": "link"}}, auth=auth)
        self.assertEqual(self.data(s, "x"), {"ok": True})
        ask = self.service.seen[0]
        self.assertEqual((ask["body"], ask["headers"]["Authorization"]), (b"grant_type=client_credentials&scope=a%20b", "Basic " + base64.b64encode(("me:" + SECRET).encode()).decode()))
        del self.service.seen[:]
        self.data(s, "link")
        self.assertEqual([x["path"].split("?")[0] for x in self.service.seen], ["/token", "/link", "/link", "/link"])
        del self.service.seen[:]
        self.service.script["/guarded"] = [(401, b"", [])]
        self.assertEqual(self.data(s, "x"), {"ok": True})
        self.assertEqual([x["path"] for x in self.service.seen], ["/token", "/guarded", "/token", "/guarded"])
        self.service.script["/token"] = [(400, {"error": "invalid_client"}, [])]
        f = self.failure(s, "x")
        self.assertEqual((f["class"], "no token from" in f["message"], SECRET in f["message"]), ("PERMISSION_DENIED", True, False))


class Settings(Http):
    def refused(self, settings, said):
        done = self.run_agent(settings, "--card")
        self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)

    def test_mistakes_are_named_with_their_place(self):
        x = {"id": "x", "path": "/x"}
        for change, said in (({"actions": []}, "give actions"), ({"baseUrl": "ftp://x"}, "baseUrl"), ({"baseUrl": "http://example.org"}, "allowHttp"),
                             ({"actions": [{**x, "description": "d", "path": "x"}]}, "actions[0]: path: expected a path from /"),
                             ({"actions": [{**x, "description": "d", "metod": "PUT"}]}, "did you mean 'method'"),
                             ({"actions": [{**x, "description": "d", "path": "/{a b}"}]}, "expected {name}"),
                             ({"actions": [{**x, "description": "d", "body": {}}]}, "GET has none"),
                             ({"actions": [{**x, "description": "d", "result": "items"}]}, "expected a JSON pointer"),
                             ({"actions": [{**x, "description": "d", "headers": {"Host": "x"}}]}, "the header Host is the client's own"),
                             ({"actions": [{**x, "description": "d", "pages": {"items": "/a"}}]}, "give one of next"),
                             ({"auth": {"bearer": "in clear"}}, "a secret does not stand in settings"), ({"auth": {"bearer": {"env": "NOT_THERE_X"}}}, "NOT_THERE_X"),
                             ({"allowPrivate": ["10.0.0.0/33"]}, "allowPrivate[0]"), ({"rate": {"perMs": 5}}, "rate: n: is missing"), ({"timeoutMs": 0}, "timeoutMs")):
            self.refused({**self.settings(x), **change}, said)

    def test_the_card_says_what_a_step_may_give(self):
        s = self.settings({"id": "x", "path": "/x/{id}", "query": {"q": "{filter.text}"}, "pages": {"next": "link"}}, {"id": "y", "method": "POST", "path": "/y"})
        card = json.loads(self.run_agent({**s, "agentId": "desk"}, "--card").stdout)
        self.assertEqual(card["agentId"], "desk")
        self.assertEqual(json.loads(self.run_agent(s, "--card").stdout)["agentId"], "http")
        skills = {k["id"]: k for k in card["skills"]}
        schema = skills["x"]["inputSchema"]
        self.assertEqual((sorted(schema["properties"]), schema["required"], skills["x"]["effects"], skills["y"]["effects"]), (["filter", "id", "limit"], ["id"], "none", "unsafe"))


class OpenApi(Http):
    SPEC = {"openapi": "3.0.3", "info": {"title": "Pets", "version": "1"}, "paths": {
        "/pets": {"get": {"operationId": "listPets", "summary": "Lists pets.", "parameters": [{"name": "tag[]", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}]},
                  "post": {"operationId": "addPet", "requestBody": {"$ref": "#/components/requestBodies/Pet"}}},
        "/pets/{pet.id}": {"parameters": [{"$ref": "#/components/parameters/Id"}], "get": {"description": "Gets one."}, "delete": {"operationId": "removePet"}}},
        "components": {"parameters": {"Id": {"name": "pet.id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}},
                       "requestBodies": {"Pet": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
                       "schemas": {"Pet": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "nullable": True, "example": "x"},
                                                                                                 "parent": {"$ref": "#/components/schemas/Pet"}}}}}}

    def spec(self, spec, **more):
        path = self.dir / "spec.json"
        path.write_text(json.dumps(spec))
        s = self.settings()
        return {**s, "openapi": {"file": str(path), **more}}

    def test_operations_become_skills_that_are_checked_and_called(self):
        s = self.spec(self.SPEC)
        skills = {k["id"]: k for k in json.loads(self.run_agent(s, "--card").stdout)["skills"]}
        self.assertEqual(sorted(skills), ["GET_pets__pet_id_", "addPet", "listPets", "removePet"])
        self.assertEqual({k: v["effects"] for k, v in skills.items()}, {"GET_pets__pet_id_": "none", "addPet": "unsafe", "listPets": "none", "removePet": "idempotent"})
        self.assertEqual(self.data(s, "listPets", {"tag__": ["a", "b"]})["path"], "/pets?tag%5B%5D=a&tag%5B%5D=b")
        self.assertEqual(self.data(s, "GET_pets__pet_id_", {"pet_id": 7})["path"], "/pets/7")
        self.assertEqual(json.loads(self.data(s, "addPet", {"body": {"name": None, "parent": {"name": "p"}}})["body"]), {"name": None, "parent": {"name": "p"}})
        for skill, bad in (("GET_pets__pet_id_", {"pet_id": 0}), ("GET_pets__pet_id_", {}), ("addPet", {"body": {}}), ("addPet", {"body": {"name": 5}}), ("addPet", {})):
            self.assertEqual(self.failure(s, skill, bad)["class"], "VALIDATION_ERROR", (skill, bad))

    def test_operations_are_chosen_and_too_many_are_named(self):
        ids = [k["id"] for k in json.loads(self.run_agent(self.spec(self.SPEC, operations=["list*", "DELETE /pets*"]), "--card").stdout)["skills"]]
        self.assertEqual(sorted(ids), ["listPets", "removePet"])
        many = {**self.SPEC, "paths": {"/p%d" % i: {"get": {"operationId": "op%d" % i}} for i in range(65)}}
        done = self.run_agent(self.spec(many), "--card")
        self.assertEqual((done.returncode, "operations: [" in done.stderr), (2, True), done.stderr)
        many["paths"].popitem()
        self.assertEqual(len(json.loads(self.run_agent(self.spec(many), "--card").stdout)["skills"]), 64)
        for spec, said in (({"swagger": "2.0"}, "OpenAPI 3"), ({"openapi": "3.1.0", "paths": {}}, "no operation"),
                           ({"openapi": "3.1.0", "paths": {"/x": {"get": {"parameters": [{"name": "a", "in": "query", "schema": {"$ref": "other.yaml#/A"}}]}}}}, "leads to nothing")):
            done = self.run_agent(self.spec(spec), "--card")
            self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)


class Services(Http):
    """The settings in deploy/examples/services, against a stand-in at their paths."""

    def load(self, name):
        text = (ROOT / "deploy/examples/services" / (name + ".yaml")).read_text()
        agent = read_yaml(text)["agents"][0]
        settings = json.loads(re.sub(r"https://[a-z.-]+", self.service.url, json.dumps(agent["settings"])))
        return {**settings, "allowPrivate": ["127.0.0.1"], "rate": {"n": 1000, "perMs": 1}}, {k: SECRET for k in agent["secrets"]}

    def test_each_of_them_asks_what_its_service_expects(self):
        self.assertEqual(sorted(p.stem for p in (ROOT / "deploy/examples/services").iterdir()), ["github", "jira", "salesforce", "servicenow", "slack"])
        for name, skill, parameters, path, answer, expected in (
                ("github", "issues", {"owner": "o", "repo": "r"}, "/repos/o/r/issues?state=open&per_page=100",
                 [{"number": 1, "title": "t", "user": {"login": "u"}, "created_at": "c"}], [{"number": 1, "title": "t", "user": "u", "created": "c"}]),
                ("github", "comment", {"owner": "o", "repo": "r", "number": 5, "text": "hi"}, "/repos/o/r/issues/5/comments", {"html_url": "u"}, {"url": "u"}),
                ("jira", "search", {"jql": "project = A"}, "/rest/api/3/search/jql?jql=project%20%3D%20A&fields=summary%2Cstatus&maxResults=100",
                 {"issues": [{"key": "A-1", "fields": {"summary": "s", "status": {"name": "Open"}}}]}, [{"key": "A-1", "summary": "s", "status": "Open"}]),
                ("jira", "create", {"project": "A", "type": "Bug", "summary": "s"}, "/rest/api/3/issue", {"key": "A-2"}, {"key": "A-2"}),
                ("servicenow", "update", {"sys_id": "1", "fields": {"state": 2}}, "/api/now/table/incident/1", {"result": {"number": "INC1", "state": "2"}}, {"number": "INC1", "state": "2"}),
                ("salesforce", "query", {"soql": "SELECT Id FROM Case"}, "/services/data/v60.0/query?q=SELECT%20Id%20FROM%20Case", {"records": [{"Id": "1"}]}, [{"Id": "1"}]),
                ("slack", "post", {"channel": "C", "text": "hi"}, "/api/chat.postMessage", {"ok": True, "ts": "1.2", "channel": "C"}, {"ts": "1.2", "channel": "C"})):
            settings, env = self.load(name)
            self.service.script = {path.split("?")[0]: [(200, answer, [])], "/oauth_token.do": [(200, {"access_token": "t", "expires_in": 1800}, [])],
                                   "/services/oauth2/token": [(200, {"access_token": "t"}, [])]}
            self.assertEqual(self.data(settings, skill, parameters, env=env), expected, (name, skill))
            self.assertEqual(self.service.seen[-1]["path"], path)
            self.assertIn("Authorization", self.service.seen[-1]["headers"])


class Published(Http):
    """Documents that others publish, from npm: each is read, or refused with a reason; one is called."""

    def documents(self):
        peers.need("@readme/oas-examples")
        root = peers.DIR / "node_modules"
        return {str(f.relative_to(root)): f for f in [*sorted(root.glob("@readme/oas-examples/3.*/json/*.json")), root / "@scalar/galaxy/dist/latest.json"]}

    def test_published_documents_become_skills(self):
        refused = {}
        for name, path in self.documents().items():
            done = self.run_agent({**self.settings(), "openapi": {"file": str(path)}}, "--card")
            if done.returncode != 0:
                refused[name.rsplit("/", 1)[1]] = done.stderr
        self.assertEqual(sorted(refused), ["http-status-codes.json", "star-trek.json", "webhooks.json"], refused)
        for name in ("http-status-codes.json", "star-trek.json"):
            self.assertIn("more than 64 operations", refused[name])

    def test_operations_of_three_published_documents_are_called(self):
        documents = self.documents()
        for name, operation, parameters, path in (
                ("@readme/oas-examples/3.0/json/petstore.json", "findPetsByStatus", {"status": ["available", "sold"]}, "/pet/findByStatus?status=available&status=sold"),
                ("@readme/oas-examples/3.1/json/train-travel.json", "get-booking", {"bookingId": "6fdd1cdc-4a8d-43fa-9d78-9a0c4f1a0e3d"}, "/bookings/6fdd1cdc-4a8d-43fa-9d78-9a0c4f1a0e3d"),
                ("@scalar/galaxy/dist/latest.json", "getPlanet", {"planetId": 3}, "/planets/3")):
            settings = {**self.settings(), "openapi": {"file": str(documents[name]), "operations": [operation]}}
            self.assertEqual(self.data(settings, operation, parameters)["path"], path, name)


class Plans(Http):
    CONFIG = """
agents:
  - agentId: desk
    command: ["%s/baton-agent-http"]
    secrets: ['SERVICE_KEY=%s']
    settings:
      baseUrl: %s
      allowPrivate: ["127.0.0.1"]
      auth: {bearer: {env: SERVICE_KEY}}
      actions:
        - {id: list, description: Lists the issues., path: /cursor, pages: {items: /values, cursor: /meta/next, param: after}, fields: {id: /id}}
        - {id: csv, description: Downloads the table., path: /large, output: artifact}
        - {id: open, description: Opens a ticket., method: POST, path: /echo, body: {title: "{title}", issues: "{issues}"}}
"""

    def test_a_plan_reads_pages_downloads_a_file_and_posts_what_it_read(self):
        key = self.dir / "key"
        key.write_text(SECRET)
        key.chmod(0o600)
        d = self.daemon(config=self.CONFIG % (BIN, key, self.service.url))
        plan = d.submit({"steps": [{"stepId": "list", "agentId": "desk", "skill": "list", "task": "List"}, {"stepId": "csv", "agentId": "desk", "skill": "csv", "task": "Load"},
                                   {"stepId": "open", "agentId": "desk", "skill": "open", "task": "Open", "dependsOn": ["list"],
                                    "parameters": {"title": "All", "issues": "{{results.list}}"}}]})
        view = d.wait_plan(plan)
        self.assertEqual((view["status"], view.get("outcome")), ("completed", "success"), d.log())
        posted = [x for x in self.service.seen if x["method"] == "POST"]
        self.assertEqual([len(json.loads(p["body"])["issues"]) for p in posted], [250])
        self.assertEqual(posted[0]["headers"]["Authorization"], "Bearer " + SECRET)
        self.assertEqual(len(d.cli("result", plan, "csv", "--artifact", "answer.csv")), 5 * 1024 * 1024)
        self.assertNotIn(SECRET, d.log())


if __name__ == "__main__":
    main()
