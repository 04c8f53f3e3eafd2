"""A server of MCP over stdio, of the 2025-11-25 revision, that does what a test wants: argv[1] is a file with {"tools": [...], "log": PATH}.

The tool's name says what happens: see call()."""
import json
import os
import sys
import time

spec = json.load(open(sys.argv[1]))
log = open(spec["log"], "a", buffering=1)


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    log.write(line)
    return json.loads(line)


def text(id_, words, **more):
    send({"jsonrpc": "2.0", "id": id_, "result": {"content": [{"type": "text", "text": words}], **more}})


def call(m):
    id_, name, arguments = m["id"], m["params"]["name"], m["params"].get("arguments", {})
    if name == "progress":
        token = m["params"]["_meta"]["progressToken"]
        for i in (1, 2):
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": i, "total": 4, "message": "part %d" % i}})
            time.sleep(0.4)
        text(id_, "done")
    elif name == "crash":
        os._exit(3)
    elif name == "hang":
        return
    elif name == "garbage":
        sys.stdout.write("this is no json\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n")
        text(id_, "after garbage")
    elif name == "fails":
        text(id_, "it broke", isError=True)
    elif name == "error":
        send({"jsonrpc": "2.0", "id": id_, "error": {"code": -32602, "message": "wrong arguments"}})
    elif name == "samples":
        send({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {"messages": []}})
        text(id_, "the client said " + str(receive().get("error", {}).get("code")))
    elif name == "asks":
        send({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": {
            "message": "Which year?", "requestedSchema": {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}}})
        answer = receive()["result"]
        text(id_, "the year is %d" % answer["content"]["year"] if answer["action"] == "accept" else "no year")
    elif name == "image":
        send({"jsonrpc": "2.0", "id": id_, "result": {"content": [{"type": "text", "text": "look"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}})
    elif name == "changes":
        text(id_, "changed")
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    else:
        text(id_, json.dumps({"name": name, "arguments": arguments, "env": dict(os.environ)}))


while True:
    m = receive()
    method = m.get("method")
    if method == "initialize":
        send({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}})
    elif method == "tools/list":
        at = int(m["params"].get("cursor", 0))
        page = spec["tools"][at:at + 3]
        more = {"nextCursor": str(at + 3)} if at + 3 < len(spec["tools"]) else {}
        send({"jsonrpc": "2.0", "id": m["id"], "result": {"tools": page, **more, **spec.get("list", {})}})
    elif method == "tools/call":
        call(m)
    elif "id" in m and method:
        send({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no such method"}})
