"""A PostgreSQL server of the test's own: an unprivileged cluster in a directory, on a socket in it; and, when it is asked for, a
second one that has each commit before it is acknowledged."""
import ctypes
import fcntl
import os
import pathlib
import pwd
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

from harness import BIN, ROOT, until

NEWEST, OLDEST = 30, 15
LIBC = ctypes.CDLL(None, use_errno=True)


def programs():
    for version in range(NEWEST, OLDEST - 1, -1):
        at = pathlib.Path("/usr/lib/postgresql/%d/bin" % version)
        if (at / "initdb").exists() and (at / "postgres").exists() and (at / "psql").exists():
            return at
    return None


def why_not():
    """What is not there: PostgreSQL, or the store on it; "" = nothing."""
    if programs() is None:
        return "SKIPPED: there is no PostgreSQL server (Debian: postgresql-15)"
    says = subprocess.run([BIN / "baton", "fleet", "status", "postgresql:///none?host=/nowhere"], capture_output=True, text=True).stderr
    return "SKIPPED: this Baton was built without PostgreSQL: libpq was not there" if "without PostgreSQL" in says else ""


def need():
    """Skips all tests of a module where PostgreSQL or the store on it is not there."""
    if why_not():
        raise unittest.SkipTest(why_not())


def _as():
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        try:
            p = pwd.getpwnam(name)
        except KeyError:
            continue
        return ["setpriv", "--reuid=%d" % p.pw_uid, "--regid=%d" % p.pw_gid, "--clear-groups"]
    raise unittest.SkipTest("SKIPPED: there is no user who may run PostgreSQL")


def cluster():
    """A new cluster that no server has used: initdb takes a second of processor time, a copy of what it made does not."""
    name = "pg-%s-%d" % (programs().parent.name, os.getuid())
    cache = ROOT / "build"
    cache.mkdir(exist_ok=True)
    with open(cache / (name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / name).exists():
            part = pathlib.Path(tempfile.mkdtemp(prefix="baton-pg-"))
            Server.own(part)
            run("initdb", "-D", part / "data", "-A", "trust", "-U", "fleet", "--no-sync", "-E", "UTF8", "--locale=C")
            copy(part / "data", cache / (name + ".part"))
            shutil.rmtree(part)
            (cache / (name + ".part")).rename(cache / name)
    return cache / name


def copy(source, target):
    """With owners; a part of a copy that was cut off goes away."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


def run(name, *args):
    """A program of the server's, as its user; what it prints."""
    done = subprocess.run([*_as(), programs() / name, *map(str, args)], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def small_disk(test, path, mib):
    """Until the test ends. Skips it where nothing can be mounted."""
    if LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, b"size=%dm" % mib) != 0:
        test.skipTest("SKIPPED: no mounts: " + os.strerror(ctypes.get_errno()))
    test.addCleanup(LIBC.umount2, os.fsencode(path), 2)


class Clock:
    """What a program that runs with `env` takes for the time; see tests/support/shifted_clock.c."""

    def __init__(self, test):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="baton-clock-"))
        self.dir.chmod(0o755)
        test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        shutil.copy(BIN / "shifted_clock.so", self.dir)
        self.set()
        options = os.environ.get("ASAN_OPTIONS", "")
        self.env = {"LD_PRELOAD": str(self.dir / "shifted_clock.so"), "BATON_CLOCK": str(self.dir / "shifts"),
                    "ASAN_OPTIONS": (options + ":" if options else "") + "verify_asan_link_order=0"}

    def set(self, wall=0.0, boot=0.0):
        """Seconds that are added from now on, to the time of day and to the time since boot."""
        with open(os.open(self.dir / "shifts", os.O_RDWR | os.O_CREAT, 0o644), "r+b") as f:
            f.write(struct.pack("=qq", int(wall * 1e9), int(boot * 1e9)))


class Server:
    def __init__(self, test, listen="", env=None, disk=0, fsync="off"):
        """listen: an address beside the socket. env: more of the server's environment. disk: its own, of so many MiB."""
        self.listen, self.fsync, self.env = listen, fsync, {**os.environ, **(env or {})}
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="baton-pg-"))
        self.processes = {}
        if disk:
            test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
            small_disk(test, self.dir, disk)
        test.addCleanup(self.done)
        self.dir.chmod(0o755)
        self.own(self.dir)
        self.url = "postgresql:///postgres?host=%s&user=fleet" % self.dir
        copy(cluster(), self.dir / "data")
        with open(self.dir / "data" / "pg_hba.conf", "a") as hba:
            hba.write("host all all 192.0.2.0/24 trust\n" if listen else "")
        self.start()

    @staticmethod
    def own(path):
        """Gives it to the user of the server."""
        if os.getuid() == 0:
            shutil.chown(path, *[int(x.split("=")[1]) for x in _as()[1:3]])

    def start(self, name="data", port=5432):
        with open(self.dir / (name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                [*_as(), programs() / "postgres", "-D", self.dir / name, "-k", self.dir, "-p", str(port), "-c", "listen_addresses=" + self.listen,
                 "-c", "fsync=" + self.fsync, "-c", "shared_buffers=32MB",
                 "-c", "wal_retrieve_retry_interval=500ms"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env=self.env)
        until(lambda: self._answers(name, port), 20, "PostgreSQL starts")

    def _answers(self, name, port):
        if self.processes[name].poll() is not None:  # remains of one that was killed
            self.start(name, port)
        done = subprocess.run([programs() / "psql", "-h", self.dir, "-p", str(port), "-U", "fleet", "-d", "postgres", "-c", "SELECT 1"],
                              capture_output=True)
        return done.returncode == 0

    def sql(self, text):
        return run("psql", "-h", self.dir, "-U", "fleet", "-d", "postgres", "-At", "-q", "-c", text).strip()

    def copy(self):
        """A second server, which follows; nobody waits for it."""
        run("pg_basebackup", "-D", self.dir / "second", "-h", self.dir, "-U", "fleet", "-R", "-c", "fast", "--no-sync")
        self.start("second", 5433)

    def replicate(self):
        """A second server; from then on each commit waits for it."""
        self.copy()
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql("SELECT pg_reload_conf()")
        until(lambda: self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1", 20, "it is synchronous")

    def promote(self):
        """The second one takes the place of the first."""
        run("pg_ctl", "promote", "-D", self.dir / "second", "-w")

    def kill9(self, name="data"):
        """The whole server: its children end with it."""
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def done(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
