"""baton-gateway: every route of protocol/messages.def with every role, the token, and nothing that proves who asks."""
import re

import gateway
from gateway import Gateway
from harness import ROOT, BatonTest, main
from test_roles import BODIES as TAME, HAS, make, table

ID = "01A2132A-3B8E-7099-8994-3B51D43B4B84"
# What stands for the names in an address; nothing of it is there, so that an answer of 2xx comes from reads and checks alone.
NAMES = {"planId": ID, "reviewId": ID + "%2Fr1", "sessionId": "nobody", "name": "nothing", "blobId": "1", "agentId": "nobody", "instanceId": ID}
# What the gateway wants to see before it asks the daemon, which knows the roles.
BODIES = {"plan.prune": {"olderThanMs": 1000000}, "plan.signal": {"name": "go"}, "plan.modify": {"kind": "note"}, "plan.fork": {"fromStep": "a"},
          "session.say": {"text": "hello"}, "review.decide": {"decision": "approve"}, "journal.import": {"lines": ""},
          "agent.register": {"card": {"agentId": "calc", "skills": [{"id": "do", "description": "Does."}]}},
          "step.progress": {"key": "k", "attempt": 1}, "step.result": {"key": "k", "attempt": 1},
          "artifact.store": {"key": "k", "attempt": 1, "name": "n"},
          "schedule.backfill": {"from": "2026-01-01", "to": "2026-01-02"}}
# Places of the gateway that stand for no request (supervisor/gateway/places.c). OPEN: whoever asks is answered, or proves it in another way
# (a hook by its secret, a page by its log-in). PROVED: without a credential or the token nothing.
OPEN = {"/v1/openapi.json", "/", "/ui/{version}/{file}", "/ui/session", "/.well-known/agent-card.json", "/hooks/{name}"}
PROVED = {"/metrics": "GET", "/a2a": "POST", "/mcp": "POST", "/v1/instances/{instanceId}/poll": "POST"}


def setUpModule():
    gateway.need()


def routes():
    """[(method, path, wire type)] of messages.def."""
    text = (ROOT / "protocol" / "messages.def").read_text()
    wire = dict(re.findall(r'^MSG\((\w+), "([^"]*)"\)', text, re.M))
    return [(m, p, wire[name]) for name, m, p in re.findall(r'^HTTP(?:_ALSO)?\((\w+), (\w+), "([^"]+)"\)', text, re.M)]


class Matrix(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="agents: []\n", agents=False)
        self.g = Gateway(self, self.d)
        self.keys = {}
        for role in HAS:
            make(self.d, "the-" + role, role, **({"agents": ["calc*"]} if role == "agent" else {}))
            self.keys[role] = (self.d.state / "credentials" / ("the-" + role)).read_text()

    def bearer(self, role):
        key = re.search(r'"key":\s*"(\w+)"', self.keys[role]).group(1)
        return "the-%s:%s" % (role, key)

    def ask(self, method, path, request, tame=True, **headers):
        """tame: who may do it sends what neither stops the daemon nor reads a configuration."""
        place = re.sub(r"\{(\w+)\}", lambda found: NAMES[found.group(1)], path)
        if request == "artifact.read":
            place += "?uri=file://%s/artifacts/%s/nothing" % (self.d.state, ID)
        if request == "artifact.fetch":
            place += "?key=k&attempt=1&uri=file:///nothing"
        if request == "agent.deregister":
            place += "?epoch=1"
        body = (TAME.get(request) if tame else None) or BODIES.get(request, {})
        body = body if method in ("POST", "PUT") else None
        if request == "events.read":
            headers["Accept"] = "application/json"
        return self.g.ask(method, place, body, **headers)

    def test_every_route_with_every_role_the_token_and_a_stranger(self):
        needs = table()
        told = {}
        for method, path, request in routes():
            needed = needs[request]
            for role in HAS:
                with self.subTest(route=method + " " + path, role=role):
                    answer = self.ask(method, path, request, tame=needed in HAS[role], bearer=self.bearer(role))
                    if needed in HAS[role]:
                        self.assertNotIn(answer.status, (401, 403), answer)
                        self.assertLess(answer.status, 500, answer)
                        told[request] = answer.status
                    elif "{instanceId}" in path and answer.status == 404:
                        continue  # the gateway has no such instance of this sender
                    else:
                        self.assertEqual((answer.status, answer.json.get("details")), (403, {"role": needed, "has": role}), answer)
            with self.subTest(route=method + " " + path, role="token"):
                self.assertNotIn(self.ask(method, path, request).status, (401, 403, 500))
            with self.subTest(route=method + " " + path, role="stranger"):
                answer = self.ask(method, path, request, Authorization=None)
                self.assertEqual((answer.status, answer.headers["WWW-Authenticate"]), (401, 'Bearer realm="baton"'), answer)
        reads = {request for _, path, request in routes() if "{" not in path and request.split(".")[1] in ("list", "info", "stats")}
        self.assertEqual({r for r in reads if told[r] != 200}, set(), told)
        self.assertEqual(self.d.ask("supervisor.info")["pid"], self.d.process.pid)

    def test_a_refusal_of_what_is_asked_for_is_none_of_who_asks(self):
        for bearer in (self.bearer("observer"), None):
            for n in range(12):  # as many as make a sender that proves nothing wait
                answer = self.g.ask("GET", "/v1/artifacts?uri=file:///etc/passwd", bearer=bearer)
                self.assertEqual((answer.status, answer.json["code"]), (403, "UNAUTHORIZED"), (n, answer))
                self.assertIsNone(answer.headers["WWW-Authenticate"])
            self.assertEqual(self.g.ask("GET", "/v1/info", bearer=bearer).status, 200)

    def test_a_place_that_stands_for_no_request_is_open_or_wants_proof(self):
        text = (ROOT / "supervisor" / "gateway" / "places.c").read_text()
        places = dict(re.findall(r'^    \{"([^"]+)", [^,]+, (true|false),', text, re.M))
        self.assertEqual({p for p, is_open in places.items() if is_open == "true"}, OPEN)
        self.assertEqual({p for p, is_open in places.items() if is_open == "false"}, set(PROVED))
        for place, method in PROVED.items():
            path = place.replace("{instanceId}", ID)
            with self.subTest(place=place):
                self.assertEqual(self.g.ask(method, path, {} if method == "POST" else None, Authorization=None).status, 401)
                answer = self.g.ask(method, path, {} if method == "POST" else None, bearer=self.bearer("observer"))
                self.assertNotIn(answer.status, (401, 403), answer)


if __name__ == "__main__":
    main()
