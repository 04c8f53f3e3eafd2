"""An agent over HTTP, with nothing but the standard library: URL, TOKEN and optionally ID in the environment."""
import json
import os
import time
import urllib.error
import urllib.request

CARD = {"agentId": os.environ.get("ID", "polling"), "name": "Polling", "version": "1",
        "skills": [{"id": "shout", "description": "Converts a text to capitals.", "effects": "none"}]}
instance = {"card": CARD}


def ask(method, path, body=None):
    request = urllib.request.Request(os.environ["URL"] + path, json.dumps(body or {}).encode(), method=method, headers={
        "Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code == 404 and path != "/v1/instances":  # the gateway does not know this instance: it was restarted
                instance.update(instanceId=ask("POST", "/v1/instances", instance)["instanceId"])
            elif e.code < 500 and e.code != 429:
                raise SystemExit("%s: %s" % (path, e.read().decode()))
        except OSError:
            pass  # the gateway is away
        time.sleep(0.2)


instance.update(instanceId=ask("POST", "/v1/instances", instance)["instanceId"])
while True:
    for step in ask("POST", "/v1/instances/%s/poll" % instance["instanceId"])["steps"]:
        ask("POST", "/v1/instances/%s/result" % instance["instanceId"], {
            "key": step["key"], "attempt": step["attempt"], "result": {"text": step["parameters"]["text"].upper()}})
