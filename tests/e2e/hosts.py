"""Two hosts on one machine: this process and its children move into a network namespace of their own, `HERE`; programs that
Other.run starts are in another one, `THERE`. Between them is tests/support/wire.py. Nothing leaves the two."""
import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
HERE, THERE = "192.0.2.1", "192.0.2.2"
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def move():
    """Into a namespace of our own; why not, or None. Once a process: it does not come back."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if libc.unshare(flags) != 0:
        return "no network namespace may be made: " + os.strerror(ctypes.get_errno())
    if uid != 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text("0 %d 1" % uid)
        pathlib.Path("/proc/self/gid_map").write_text("0 %d 1" % gid)
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except (OSError, subprocess.CalledProcessError) as why:
        return "no TUN device may be made: %s" % why
    return None


def _setns(file):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Other:
    """The other host and the line to it."""

    def __init__(self):
        self.init = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo up; exec cat"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        assert self.init.stdout.readline() == "up\n"
        self.wire = subprocess.Popen([sys.executable, SUPPORT / "wire.py", str(self.init.pid)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        assert self.wire.stdout.readline() == "ok\n", "the line was not made"

    def line(self, *words):
        self.wire.stdin.write(" ".join(map(str, words)) + "\n")
        self.wire.stdin.flush()
        assert self.wire.stdout.readline() == "ok\n"

    @contextlib.contextmanager
    def sockets(self):
        """This thread makes its sockets on the other host: they reach it also when the line is down."""
        with open("/proc/thread-self/ns/net") as here, open("/proc/%d/ns/net" % self.init.pid) as there:
            _setns(there)
            try:
                yield
            finally:
                _setns(here)

    def inside(self, *command):
        return ["nsenter", "-t", str(self.init.pid), "-n", *map(str, command)]

    def run(self, *command, **kwargs):
        return subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=120, **kwargs)

    def start(self, *command, **kwargs):
        return subprocess.Popen(self.inside(*command), **kwargs)

    def end(self):
        for process in (self.wire, self.init):
            process.stdin.close()
            process.stdout.close()
            process.wait(20)
