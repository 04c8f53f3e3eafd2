"""An agent process that tries from inside what its configuration keeps it from. The daemon starts it; "do" names the attempt."""
import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import threading
import time

from agent import answer, handshake, receive, send

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import sealed  # noqa: E402  (the path is set just above)

NUMBERS = {"ptrace": 101, "process_vm_readv": 310, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "mount": 165, "unshare": 272,
           "add_key": 248, "keyctl": 250, "kexec_load": 246, "init_module": 175, "io_uring_setup": 425, "pidfd_getfd": 438, "setns": 308}
if os.uname().machine == "aarch64":
    NUMBERS = {"ptrace": 117, "process_vm_readv": 270, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "mount": 40, "unshare": 97,
               "add_key": 217, "keyctl": 219, "kexec_load": 104, "init_module": 105, "io_uring_setup": 425, "pidfd_getfd": 438, "setns": 268}


def handed_over():
    """NAME=value, each with a zero after it; see agents/sdk/handover.h."""
    number = os.environ.pop("BATON_HANDOVER", None)
    if number is None:
        return {}
    with open(int(number), "rb") as f:
        return dict(e.split("=", 1) for e in f.read().decode().split("\0") if e)


GIVEN = handed_over()


class Told:
    """The supervisor, by the credential of this process."""

    def __init__(self):
        control = GIVEN.get("control")
        if control is None:
            with open(os.path.join(os.environ["BATON_STATE"], "endpoints.json")) as f:
                control = json.load(f)["control"]
        self.session = sealed.Session(control, GIVEN["credential"], bytes.fromhex(GIVEN["key"]))
        self.lock = threading.Lock()

    def raw(self, type_, **fields):
        with self.lock:
            return self.session.ask(type_, **fields)

    def ask(self, type_, **fields):
        answer = self.raw(type_, **fields)
        if not answer["ok"]:
            raise SystemExit("%s: %s" % (type_, answer["error"]["message"]))
        return answer


def outcome(run):
    try:
        run()
        return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))


def open_one(how, path):
    return outcome(lambda: os.close(os.open(path, os.O_RDONLY if how == "r" else os.O_WRONLY | os.O_CREAT, 0o600)))


def network(port):
    def listen():
        socket.create_server(("127.0.0.1", 0)).close()
    return {"udp": outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()),
            "raw": outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()),
            "unix": outcome(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close()),
            "netlink": outcome(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()),
            "tcp": outcome(lambda: socket.create_connection(("127.0.0.1", port), 5).close()),
            "mptcp": outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close()), "listen": outcome(listen)}


def calls():
    libc = ctypes.CDLL(None, use_errno=True)
    told = {}
    for name, number in NUMBERS.items():
        ctypes.set_errno(0)
        done = libc.syscall(number, -1, 0, 0, 0, 0, 0)
        told[name] = errno.errorcode.get(ctypes.get_errno(), "0") if done == -1 else "done"
    return told


def who():
    with open("/proc/self/status") as f:
        nnp = [int(line.split()[1]) for line in f if line.startswith("NoNewPrivs")][0]
    return {"uid": list(os.getresuid()), "gid": list(os.getresgid()), "groups": os.getgroups(), "nnp": nnp}


def fork_until_it_fails():
    """Children that wait for the end of this process. How many there were, and why there is not one more."""
    alive = os.pipe()
    for n in range(1000):
        try:
            if os.fork() == 0:
                os.close(alive[1])
                os.read(alive[0], 1)
                os._exit(0)
        except OSError as e:
            return [n, errno.errorcode[e.errno]]
    return [1000, "ok"]


def burn(seconds):
    """The share of a processor that a loop gets."""
    end = time.monotonic() + seconds
    began = time.process_time()
    while time.monotonic() < end:
        pass
    return (time.process_time() - began) / seconds


def do(p):
    if p["do"] == "memory":
        return len(bytearray(os.urandom(1 << 20) * p["mib"]))
    if p["do"] == "processes":
        found = fork_until_it_fails()
        if p.get("end"):
            os._exit(3)
        return found
    if p["do"] == "burn":
        return burn(p["seconds"])
    if p["do"] == "handover":
        return GIVEN
    if p["do"] == "inherited":  # what a program finds that an agent starts which closes nothing
        look = 'for f in /proc/self/fd/* /proc/$PPID/fd/*; do case "$(readlink "$f")" in *baton-handover*) echo found; cat "$f";; esac; done'
        return subprocess.run(["/bin/sh", "-c", look], close_fds=False, capture_output=True, text=True).stdout
    if p["do"] == "ask":
        return [SUPERVISOR[0].raw(*a, **f).get("error", {}).get("code", "OK") for *a, f in p["asks"]]
    if p["do"] == "open":
        return [open_one(*one) for one in p["paths"]]
    if p["do"] == "read":
        try:
            with open(p["path"], "rb") as f:
                return f.read(64).decode(errors="replace")
        except OSError:
            return ""
    if p["do"] == "network":
        return network(p["port"])
    if p["do"] == "calls":
        return calls()
    if p["do"] == "program":
        return subprocess.run(["/bin/echo", "ran"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return who()


def serve(sock, key):
    while True:
        message = receive(sock)
        end = 4
        while not message[end - 4] & 0x80:
            end += 4
        request = json.loads(message[end:])
        reply = answer(request, key)
        if request["type"] == "step.execute":
            try:
                reply["result"] = {"text": json.dumps(do(request["parameters"]))}
            except Exception as e:  # whatever it was: the test shows it
                reply["result"] = {"text": json.dumps(repr(e))}
        send(sock, message[:end] + json.dumps(reply).encode())


SUPERVISOR = []


def main():
    supervisor = Told()
    SUPERVISOR.append(supervisor)
    server = socket.create_server(("127.0.0.1", 0))
    me = {"instanceId": os.environ["BATON_INSTANCE_ID"], "sessionKey": os.urandom(16).hex()}
    ok = supervisor.ask("agent.register", card={"agentId": os.environ["BATON_AGENT_ID"], "skills": [{"id": "do"}]}, capacity=1,
                        pid=os.getpid(), protocol=[1], endpoint="tcp://127.0.0.1:%d" % server.getsockname()[1], **me)

    def accept():
        while True:
            threading.Thread(target=serve, args=(handshake(server.accept()[0], "rep"), me["sessionKey"]), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    while True:
        time.sleep(ok["heartbeatMs"] / 1000)
        supervisor.ask("agent.heartbeat", instanceId=me["instanceId"], epoch=ok["epoch"])


if __name__ == "__main__":
    sys.exit(main())
