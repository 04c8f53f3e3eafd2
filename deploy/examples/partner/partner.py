"""An agent of somebody else, as A2A 1.0 has it: it translates numbers into words, and asks for the language when it is not
told. JSON-RPC over HTTP on 127.0.0.1; writes its port into the file that it is given. Python's own library only."""
import http.server
import json
import os
import sys
import uuid

WORDS = {"english": "zero one two three four five six seven eight nine".split(),
         "german": "null eins zwei drei vier f\u00fcnf sechs sieben acht neun".split()}
TASKS = {}


def card(port):
    return {"name": "Number words", "description": "Writes digits as words.", "version": "1.0.0", "capabilities": {"streaming": False},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "supportedInterfaces": [{"url": "http://127.0.0.1:%d/rpc" % port, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "skills": [{"id": "spell", "name": "Spell a number", "description": "Writes the digits of a number as words, in English or German.",
                        "tags": ["spell", "number", "words"], "examples": ["spell 42 in german"]}]}


def work(message):
    """The task after a message: done, or waiting for the language."""
    text = " ".join(p.get("text", "") for p in message["parts"])
    task = TASKS.setdefault(message.get("taskId") or str(uuid.uuid4()), {"text": ""})
    task["text"] += " " + text
    task_id = next(k for k, v in TASKS.items() if v is task)
    language = next((w for w in WORDS if w in task["text"].lower()), None)
    if language is None:
        status = {"state": "TASK_STATE_INPUT_REQUIRED", "message": {"messageId": str(uuid.uuid4()), "role": "ROLE_AGENT",
                                                                   "parts": [{"text": "English or German?"}]}}
        return {"id": task_id, "contextId": "c", "status": status}
    words = [WORDS[language][int(c)] for c in task["text"] if c.isdigit()]
    return {"id": task_id, "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "words", "name": "words", "parts": [{"text": " ".join(words)}, {"data": {"words": words, "language": language}}]}]}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        found = self.path == "/.well-known/agent-card.json"
        self.answer(200 if found else 404, card(self.server.server_port) if found else {})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request["method"] == "SendMessage":
            self.answer(200, {"jsonrpc": "2.0", "id": request["id"], "result": {"task": work(request["params"]["message"])}})
        else:
            self.answer(200, {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
