#!/usr/bin/env python3
"""A2A at /a2a, as clients made with @a2a-js/sdk speak it, versions 1.0 and 0.3, by JSON-RPC and by HTTP with JSON."""
import concurrent.futures
import json
import socket
import subprocess
import sys

import gateway
import test_webhooks
from gateway import CALC, PLAN, Gateway
from harness import ROOT, BatonTest, main, until

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

APPROVAL = {"steps": [{**PLAN["steps"][0], "requiresApproval": True}]}
SLOW = {"steps": [{"stepId": "w", "wait": {"forMs": 500}}, {**PLAN["steps"][0], "dependsOn": ["w"]}]}
WAYS = [(version, binding) for version in ("1.0", "0.3") for binding in ("JSONRPC", "HTTP+JSON")]
WAITS = {"steps": [{"stepId": "w", "wait": {"forMs": 600000}}]}


def setUpModule():
    gateway.need()


class A2a(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d, *test_webhooks.NEAR)

    def client(self, version, *steps, binding="JSONRPC"):
        peers.need("@a2a-js/sdk")
        done = subprocess.run(["node", ROOT / "tests/peers/a2a_client.mjs", str(peers.DIR), version, self.g.url, self.d.token(), binding], input=json.dumps(steps),
                              capture_output=True, text=True, timeout=120)
        self.assertTrue(done.stdout.startswith("["), done.stdout[-2000:] + done.stderr[-3000:])
        return json.loads(done.stdout)

    def test_send_stream_questions_cancel_and_following_again(self):
        for version, binding in WAYS:
            out = self.client(version, {"do": "send", "data": PLAN, "context": "talk", "id": "m-" + version + binding},
                              {"do": "send", "data": PLAN, "context": "talk", "id": "m-" + version + binding},
                              {"do": "send", "text": "add 20 and 22"},
                              {"do": "stream", "data": SLOW},
                              {"do": "follow", "task": "LAST"},
                              {"do": "stream", "data": APPROVAL},
                              {"do": "send", "task": "LAST", "text": "what is this?"},
                              {"do": "get", "task": "LAST"},
                              {"do": "stream", "task": "LAST", "text": "approve, go on"},
                              {"do": "send", "data": APPROVAL},
                              {"do": "send", "task": "LAST", "text": "reject"},
                              {"do": "send", "data": WAITS, "now": True},
                              {"do": "cancel", "task": "LAST"},
                              {"do": "cancel", "task": "LAST"},
                              {"do": "get", "task": "nothing"}, binding=binding)
            (hello, sent, same, goal, stream, again, asks, unclear, still, goes_on, asks_too, rejected, now, cancelled, twice, nothing) = out
            where = (version, binding, json.dumps(out))
            self.assertEqual(hello["card"], {"name": "Baton", "skills": ["goal", "plan"], "version": version}, where)
            [task] = sent["events"]
            self.assertEqual((task["state"], task["text"], task["context"]), ("completed", "3", "talk"), where)
            self.assertEqual(same["events"][0]["task"], task["task"], where)
            self.assertEqual((goal["events"][0]["state"], goal["events"][0]["text"]), ("completed", "42"), where)
            self.assertEqual([(e["kind"], e.get("state")) for e in stream["events"]][::len(stream["events"]) - 1], [("task", "working"), ("statusUpdate", "completed")], where)
            self.assertEqual([e["text"][-1:] for e in stream["events"] if e["kind"] == "artifactUpdate"], ["3"], where)
            self.assertTrue({"a started", "a is over"} <= {e.get("says") for e in stream["events"]}, where)
            self.assertEqual((len(again["events"]), again["events"][0]["state"], again["events"][0]["text"][-1:]), (1, "completed", "3"), where)
            self.assertEqual(asks["events"][-1]["state"], "input_required", where)
            self.assertIn("expected a text that begins with approve", unclear["error"], where)
            self.assertEqual(still["events"][0]["state"], "input_required", where)
            self.assertEqual((goes_on["events"][-1]["state"], "".join(e["text"] for e in goes_on["events"])), ("completed", "3"), where)
            by = self.d.ask("plan.history", planId=goes_on["events"][0]["task"])["reviews"][0]
            self.assertEqual((by["decision"], by["comment"], by["by"]["id"]), ("approve", "go on", "local"))
            self.assertEqual((asks_too["events"][0]["state"], rejected["events"][0]["state"]), ("input_required", "failed"), where)
            self.assertEqual((now["events"][0]["state"], cancelled["events"][0]["state"]), ("working", "canceled"), where)
            self.assertTrue(twice.get("error") or twice["events"][0]["state"] == "canceled", where)
            self.assertIn("error", nothing, where)

    def pushes(self):
        return sorted(f.name for f in (self.d.state / "webhooks").glob("push-*"))

    def test_push_notifications_of_both_versions_over_both_bindings(self):
        r = test_webhooks.Receiver(self, self.d.work)
        proof = {"scheme": "Bearer", "credentials": "key"}
        for version, binding in WAYS:
            config = {"id": "c1", "url": r.url, "token": "t-%s-%s" % (version, binding)}
            _, sent, mine, gone, none, other, every, asks, made, approved = self.client(
                version, {"do": "send", "data": SLOW, "now": True, "push": config},
                {"do": "push", "op": "get", "task": "LAST", "config": {"id": "c1"}},
                {"do": "push", "op": "delete", "task": "LAST", "config": {"id": "c1"}},
                {"do": "push", "op": "get", "task": "LAST", "config": {"id": "c1"}},
                {"do": "push", "op": "create", "task": "LAST", "config": {**config, "id": "c2"}},
                {"do": "push", "op": "list", "task": "LAST"},
                {"do": "send", "data": APPROVAL, "now": True},
                {"do": "push", "op": "create", "task": "LAST", "config": {**config, "id": "c3", "authentication": proof}},
                {"do": "send", "task": "LAST", "text": "approve"}, binding=binding)
            where = (version, binding, sent, mine, other, every, made, approved)
            self.assertEqual([(c["id"], c["url"], c["token"]) for c in mine["configs"]], [("c1", r.url, config["token"])], where)
            self.assertEqual((gone.get("error"), "error" in none), (None, True), (gone, none))
            self.assertEqual([c["id"] for c in every["configs"]], ["c2"], where)
            task, waits = sent["events"][0]["task"], approved["events"][0]["task"]
            self.assertEqual(mine["configs"][0]["taskId"], task, where)

            def got(plan):
                bodies = [x for x in r.got() if x["token"] == config["token"] or x["proof"]]
                tasks = [x["body"].get("statusUpdate") or x["body"].get("task") or x["body"] for x in bodies]
                return [(x, t) for x, t in zip(bodies, tasks) if (t.get("taskId") or t.get("id")) == plan]

            def over(plan):
                return [t for _, t in got(plan) if t["status"]["state"] in ("TASK_STATE_COMPLETED", "completed")]
            [end] = until(lambda: over(task), 20, "the end; %s" % r.got())
            self.assertEqual((end["artifacts"][0]["parts"][0]["text"][-1:], end["contextId"], end.get("kind")), ("3", task, None if version == "1.0" else "task"), where)
            self.assertEqual({x["type"] for x, _ in got(task)}, {"application/a2a+json" if version == "1.0" else "application/json"})
            self.assertIn("a started", [t["status"]["message"]["parts"][0]["text"] for _, t in got(task) if "message" in t["status"]], where)
            until(lambda: over(waits), 20, "the end of the other")
            self.assertEqual({x["proof"] for x, _ in got(waits)}, {"Bearer key"}, where)
            self.assertNotIn("key", json.dumps(made), where)              # what was given as a secret is not shown again
            until(lambda: self.pushes() == [], 10, "the configurations go with their tasks")

    def test_push_notifications_come_at_least_once_over_kill_9(self):
        r = test_webhooks.Receiver(self, self.d.work)
        r.say("503 1")
        sent = self.g.ask("POST", "/a2a/message:send", {"message": {"messageId": "m", "parts": [{"data": SLOW}]}, "configuration": {
            "returnImmediately": True, "taskPushNotificationConfig": {"url": r.url, "token": "t"}}})
        task = sent.json["task"]["id"]
        self.d.wait_plan(task)
        until(r.got, 20, "a refused one")
        self.g.kill9()
        r.say("204")
        self.g.start()
        until(lambda: self.pushes() == [], 60, "the end; %s" % self.g.log())
        states = [(x["body"].get("statusUpdate") or x["body"]["task"])["status"]["state"] for x in r.got()]
        self.assertEqual((states[0], states[-1], states.count("TASK_STATE_COMPLETED")), ("TASK_STATE_WORKING", "TASK_STATE_COMPLETED", 1), states)
        late = self.g.ask("POST", "/a2a/tasks/%s/pushNotificationConfigs" % task, {"url": r.url, "token": "late"})   # it is over: its end still comes
        self.assertEqual((late.status, late.json["id"]), (200, task), late)
        self.assertEqual([x["body"]["task"]["status"]["state"] for x in until(lambda: [x for x in r.got() if x["token"] == "late"], 20, "it")], ["TASK_STATE_COMPLETED"])

    def test_a_deleted_push_notification_is_made_again_while_its_receiver_has_a_request(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            task = self.d.submit({"steps": [{"stepId": "a", "type": "human_review", "task": "Is it right?"}]})
            at = "/a2a/tasks/%s/pushNotificationConfigs" % task
            config = {"id": "c", "url": "http://127.0.0.1:%d/" % mute.getsockname()[1]}
            self.assertEqual(self.g.ask("POST", at, config).status, 200)
            self.d.ask("plan.cancel", planId=task)
            mute.settimeout(30)
            taken = mute.accept()[0]  # and not answered
            for _ in range(3):
                self.assertEqual(self.g.ask("DELETE", at + "/c").status, 200)
                answer = self.g.ask("POST", at, config)
                self.assertEqual(answer.status, 200, answer)
            taken.close()

    def test_what_is_no_push_notification_is_refused_and_they_have_a_bound(self):
        plan = self.d.submit(WAITS)
        at = "/a2a/tasks/%s/pushNotificationConfigs" % plan
        for config in ({}, {"url": "ftp://x"}, {"url": "http://x/\r\nA: b"}, {"url": "http://x", "token": "a\r\nb: c"}, {"url": "http://x", "token": "x" * 1025},
                       {"url": "http://x", "id": "x" * 65}, {"url": "http://" + "x" * 2042}, {"url": "http://x", "authentication": {"scheme": "a\nb", "credentials": "c"}}):
            answer = self.g.ask("POST", at, config)
            self.assertEqual((answer.status, answer.json["error"]["details"][0]["reason"]), (400, "REQUEST_MALFORMED"), (config, answer))
        sent = self.g.ask("POST", "/a2a/message:send", {"message": {"messageId": "m", "parts": [{"data": PLAN}]}, "configuration": {"taskPushNotificationConfig": {"url": "ftp://x"}}})
        self.assertEqual((sent.status, [p["planId"] for p in self.d.ask("plan.list")["plans"]]), (400, [plan]), sent)        # nothing was started
        self.assertEqual(self.pushes(), [])
        self.assertEqual(self.g.ask("POST", "/a2a/tasks/nothing/pushNotificationConfigs", {"url": "http://x"}).status, 404)
        self.assertEqual([self.g.ask(m, at + "/none").status for m in ("GET", "DELETE", "PUT")], [404, 404, 405])
        for i in range(256):
            self.assertEqual(self.g.ask("POST", at, {"url": "http://127.0.0.1:1/", "id": "c%d" % i}).status, 200, i)
        over = self.g.ask("POST", at, {"url": "http://127.0.0.1:1/", "id": "over"})
        self.assertEqual((over.status, over.json["error"]["details"][0]["reason"]), (400, "UNSUPPORTED_OPERATION"), over)
        self.assertEqual(len(self.g.ask("GET", at).json["configs"]), 256)
        self.assertEqual(self.g.ask("DELETE", at + "/c7").status, 200)
        until(lambda: self.g.ask("POST", at, {"url": "http://127.0.0.1:1/", "id": "over"}).status == 200, 10, "there is room again")
        self.d.cli("webhook", "put", "ops", "--url", "http://127.0.0.1:1/")                  # the operator's webhooks have places of their own
        self.d.submit(PLAN)
        until(lambda: (self.d.state / "webhooks" / "ops.at").exists(), 20, "it is tried")

    def test_a_message_whose_configuration_has_no_place_starts_and_decides_nothing(self):
        plan, asks = self.d.submit(WAITS), self.d.submit(APPROVAL)
        until(lambda: self.d.ask("plan.get", planId=asks)["status"] == "waiting", 20, "the review")
        at = "/a2a/tasks/%s/pushNotificationConfigs" % plan
        push = {"returnImmediately": True, "taskPushNotificationConfig": {"url": "http://127.0.0.1:1/", "id": "mine"}}

        def send(id_, **message):
            return self.g.ask("POST", "/a2a/message:send", {"message": {"messageId": id_, "parts": [{"data": WAITS}], **message}, "configuration": push})

        def plans():
            return len(self.d.ask("plan.list")["plans"])

        def configs():
            return len([f for f in self.pushes() if f.endswith(".json")])
        for i in range(255):
            self.assertEqual(self.g.ask("POST", at, {"url": "http://127.0.0.1:1/", "id": "c%d" % i}).status, 200, i)
        last = send("last")
        self.assertEqual((last.status, plans()), (200, 3), last)
        for refused in (send("over"), send("over", taskId=asks, parts=[{"text": "approve"}])):
            self.assertEqual((refused.status, refused.json["error"]["details"][0]["reason"]), (400, "UNSUPPORTED_OPERATION"), refused)
            self.assertIn("256", refused.json["error"]["message"])
        self.assertEqual((plans(), self.d.ask("plan.get", planId=asks)["status"], configs()), (3, "waiting", 256))
        self.assertEqual(self.g.ask("POST", at, {"url": "http://127.0.0.1:1/", "id": "c7", "token": "new"}).status, 200)    # takes the place of another one
        self.assertEqual(self.g.ask("DELETE", at + "/c7").status, 200)
        until(lambda: configs() == 255, 10, "it is gone")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:                               # all of them on their way at once: one has a place
            answers = list(pool.map(send, map(str, range(16))))
        self.assertEqual((sorted(a.status for a in answers), plans(), configs()), ([200] + [400] * 15, 4, 256), answers)
        self.assertEqual(self.g.ask("DELETE", at + "/c8").status, 200)
        until(lambda: configs() == 255, 10, "it is gone")
        answer = send("approve", taskId=asks, parts=[{"text": "approve"}])                    # with a place it counts, and its configuration is set
        self.assertEqual((answer.status, len(self.g.ask("GET", at.replace(plan, asks)).json["configs"])), (200, 1), answer)

    def test_tasks_are_listed_page_by_page(self):
        plans = []
        for _ in range(5):
            plans.append(self.d.submit(PLAN, sessionId="talk"))
            self.d.wait_plan(plans[-1])
        alone, waits = self.d.submit(PLAN), self.d.submit(APPROVAL)
        self.d.wait_plan(alone)
        until(lambda: self.d.ask("plan.get", planId=waits)["status"] == "waiting", 20, "the review")
        for binding in ("JSONRPC", "HTTP+JSON"):
            def ask(**params):
                return self.client("1.0", {"do": "list", **params}, binding=binding)[1]
            seen, token = [], ""
            while True:
                page = ask(contextId="talk", pageSize=2, pageToken=token)
                self.assertLessEqual(len(page["events"]), 2, page)
                seen += [e["task"] for e in page["events"]]
                token = page["next"]
                if not token:
                    break
            self.assertEqual(seen, plans[::-1], binding)
            every = ask()
            self.assertEqual(({e["task"] for e in every["events"]}, every["size"]), ({*plans, alone, waits}, 50), binding)
            self.assertEqual([(e["task"], e["state"]) for e in ask(status="TASK_STATE_INPUT_REQUIRED")["events"]], [(waits, "input_required")], binding)
            self.assertEqual([(e["task"], e["text"]) for e in ask(contextId=alone, includeArtifacts=True)["events"]], [(alone, "3")], binding)
            self.assertEqual([e["text"] for e in ask(contextId="talk")["events"]], [""] * 5, binding)
            self.assertEqual(ask(contextId="nothing")["events"], [], binding)
            self.assertEqual(ask(statusTimestampAfter="2999-01-01T00:00:00.000Z")["events"], [], binding)
            at = self.d.ask("plan.get", planId=alone, steps=False)["completedAt"]
            self.assertEqual([e["task"] for e in ask(statusTimestampAfter=at, status="TASK_STATE_COMPLETED")["events"]], [alone], binding)
            self.assertIn("statusTimestampAfter: expected", ask(statusTimestampAfter="5")["error"], binding)
            for size in (0, 101):
                self.assertIn("pageSize: expected a number from 1 to 100", ask(pageSize=size)["error"], binding)
            self.assertIn("error", ask(pageToken="nothing"), binding)

    def test_over_http_what_is_wrong_has_a_status_and_a_reason(self):
        message = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": WAITS}]}, "configuration": {"returnImmediately": True}}
        sent = self.g.ask("POST", "/a2a/message:send", message, Content_Type="application/a2a+json")
        self.assertEqual((sent.status, sent.json["task"]["status"]["state"]), (200, "TASK_STATE_WORKING"), sent)
        task = sent.json["task"]["id"]
        for method, path, body, status, reason in (
                ("GET", "/a2a/tasks/nothing", None, 404, "TASK_NOT_FOUND"), ("GET", "/a2a/tasks/01A20FC9-DD1B-70C5-9698-077211201167", None, 404, "TASK_NOT_FOUND"),
                ("POST", "/a2a/tasks/nothing:cancel", None, 404, "TASK_NOT_FOUND"), ("POST", "/a2a/tasks/nothing:subscribe", None, 404, "TASK_NOT_FOUND"),
                ("POST", "/a2a/message:send", {}, 400, "REQUEST_MALFORMED"), ("POST", "/a2a/message:send", "[]", 400, "REQUEST_MALFORMED"),
                ("POST", "/a2a/message:stream", "{", 400, "REQUEST_MALFORMED"), ("GET", "/a2a/tasks?pageSize=x", None, 400, "REQUEST_MALFORMED"),
                ("GET", "/a2a/tasks?status=working", None, 400, "REQUEST_MALFORMED"), ("GET", "/a2a/tasks/" + "x" * 65, None, 404, "TASK_NOT_FOUND")):
            answer = self.g.ask(method, path, body)
            error = answer.json.get("error", {})
            self.assertEqual((answer.status, error.get("code"), error.get("details", [{}])[0].get("reason")), (status, status, reason), (path, answer))
            legacy = self.g.ask(method, path.replace("/a2a/", "/a2a/v1/"), body)
            self.assertEqual((legacy.status, legacy.json["code"] < -32000, "message" in legacy.json), (status, True, True), (path, legacy))
        message["message"].update(contextId="talk", messageId="one")
        self.assertEqual(self.g.ask("POST", "/a2a/message:send", message).status, 200)
        message["message"].update(messageId="another", parts=[{"data": PLAN}])          # a session has one open plan
        answer = self.g.ask("POST", "/a2a/message:send", message)
        self.assertEqual((answer.status, answer.json.get("error", {}).get("details", [{"reason": answer}])[0]["reason"]), (400, "UNSUPPORTED_OPERATION"), answer)
        for method, path in (("GET", "/a2a/message:send"), ("POST", "/a2a/tasks"), ("POST", "/a2a/tasks/" + task), ("GET", "/a2a/tasks/" + task + ":cancel"), ("DELETE", "/a2a/tasks/" + task)):
            answer = self.g.ask(method, path)
            self.assertEqual((answer.status, bool(answer.headers["Allow"])), (405, True), (method, path, answer))
        self.assertEqual(self.g.ask("GET", "/a2a/tasks", Authorization=None).status, 401)
        self.assertEqual(self.g.ask("POST", "/a2a/message:send", "<x/>", Content_Type="text/xml").status, 415)
        self.assertEqual(self.g.ask("GET", "/a2a/nothing").status, 404)
        self.assertEqual(self.g.ask("POST", "/a2a/tasks/%s:cancel" % task, {}).json["status"]["state"], "TASK_STATE_CANCELED")
        self.assertEqual(self.g.ask("GET", "/a2a/v1/tasks/" + task).json["status"]["state"], "TASK_STATE_CANCELLED")

    def test_what_is_no_request_is_refused(self):
        call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
        self.assertEqual(self.g.ask("POST", "/a2a", call, Authorization=None).status, 401)
        self.assertEqual(self.g.ask("POST", "/a2a", call, bearer="0" * 64).status, 401)
        self.assertEqual(self.g.ask("GET", "/a2a").status, 405)
        for body, code in (("{", -32700), ("[]", -32600), ({**call, "id": None}, -32001), ({**call, "method": "Nothing"}, -32601), ({**call, "params": {}}, -32001),
                           ({**call, "method": "tasks/pushNotificationConfig/set"}, -32001), ({**call, "method": "SendMessage", "params": {"message": {"parts": []}}}, -32602),
                           ({**call, "method": "SendMessage", "params": 3}, -32602), ({**call, "method": "message/send", "params": {"message": {"parts": [{"text": "x" * 8193}]}}}, -32602),
                           ({**call, "method": "CancelTask", "params": {"id": "01A20FC9-DD1B-70C5-9698-077211201167"}}, -32001)):
            answer = self.g.ask("POST", "/a2a", body)
            self.assertEqual(answer.json.get("error", {}).get("code"), code, (body, answer))
        card = self.g.ask("GET", "/.well-known/agent-card.json", Authorization=None)
        self.assertEqual((card.status, card.json["url"]), (200, self.g.url + "/a2a"))
        self.assertEqual([(i["protocolBinding"], i["protocolVersion"]) for i in card.json["supportedInterfaces"]],
                         [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")])


if __name__ == "__main__":
    main()
