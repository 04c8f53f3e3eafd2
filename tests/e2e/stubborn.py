"""An agent process that never lets go: each step spins for ever, in a thread and in a process of its own. SIGTERM does not
end it, a cancel changes nothing; yet it beats, and answers all but the steps. The daemon starts it (see spawn/README.md)."""
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time

from agent import Supervisor, answer, handshake, receive, send

SPIN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n    pass\n"


def serve(sock, key):
    while True:
        message = receive(sock)
        end = 4
        while not message[end - 4] & 0x80:
            end += 4
        request = json.loads(message[end:])
        if request["type"] == "step.execute" and request["skill"] == "spin":
            subprocess.Popen([sys.executable, "-c", SPIN], start_new_session=True)
            while True:
                pass
        if request["type"] == "step.execute":
            until = time.monotonic() + request["parameters"]["seconds"]
            while time.monotonic() < until:
                time.sleep(0.01)
        send(sock, message[:end] + json.dumps(answer(request, key)).encode())


def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    supervisor = Supervisor(os.environ["BATON_STATE"])
    server = socket.create_server(("127.0.0.1", 0))
    me = {"instanceId": os.environ["BATON_INSTANCE_ID"], "sessionKey": secrets.token_hex(16)}
    card = {"agentId": os.environ["BATON_AGENT_ID"], "skills": [{"id": "spin"}, {"id": "rest"}]}
    ok = supervisor.ask("agent.register", card=card, capacity=int(os.environ.get("BATON_CAPACITY", "1")), pid=os.getpid(), protocol=[1],
                        endpoint="tcp://127.0.0.1:%d" % server.getsockname()[1], **me)

    def accept():
        while True:
            threading.Thread(target=serve, args=(handshake(server.accept()[0], "rep"), me["sessionKey"]), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    while True:
        time.sleep(ok["heartbeatMs"] / 1000)
        supervisor.ask("agent.heartbeat", instanceId=me["instanceId"], epoch=ok["epoch"])


if __name__ == "__main__":
    main()
