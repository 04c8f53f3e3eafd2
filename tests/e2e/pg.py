"""A PostgreSQL server of the test's own: an unprivileged cluster in a directory, on a socket in it; and, when it is asked for, a
second one that has each commit before it is acknowledged."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BIN, until

NEWEST, OLDEST = 30, 15


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


class Server:
    def __init__(self, test, listen=""):
        """listen: an address beside the socket."""
        self.listen = listen
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="baton-pg-"))
        self.dir.chmod(0o755)
        self.processes = {}
        test.addCleanup(self.done)
        if os.getuid() == 0:
            shutil.chown(self.dir, *[int(x.split("=")[1]) for x in _as()[1:3]])
        self.url = "postgresql:///postgres?host=%s&user=fleet" % self.dir
        self._run("initdb", "-D", self.dir / "data", "-A", "trust", "-U", "fleet", "--no-sync", "-E", "UTF8", "--locale=C")
        with open(self.dir / "data" / "pg_hba.conf", "a") as hba:
            hba.write("host all all 192.0.2.0/24 trust\n" if listen else "")
        self.start()

    def _run(self, name, *args):
        done = subprocess.run([*_as(), programs() / name, *map(str, args)], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name="data", port=5432):
        with open(self.dir / (name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                [*_as(), programs() / "postgres", "-D", self.dir / name, "-k", self.dir, "-p", str(port), "-c", "listen_addresses=" + self.listen,
                 "-c", "fsync=off", "-c", "shared_buffers=32MB"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        until(lambda: self._answers(name, port), 20, "PostgreSQL starts")

    def _answers(self, name, port):
        if self.processes[name].poll() is not None:  # remains of one that was killed
            self.start(name, port)
        done = subprocess.run([programs() / "psql", "-h", self.dir, "-p", str(port), "-U", "fleet", "-d", "postgres", "-c", "SELECT 1"],
                              capture_output=True)
        return done.returncode == 0

    def sql(self, text):
        return self._run("psql", "-h", self.dir, "-U", "fleet", "-d", "postgres", "-At", "-q", "-c", text).strip()

    def copy(self):
        """A second server, which follows; nobody waits for it."""
        self._run("pg_basebackup", "-D", self.dir / "second", "-h", self.dir, "-U", "fleet", "-R", "-c", "fast", "--no-sync")
        self.start("second", 5433)

    def replicate(self):
        """A second server; from then on each commit waits for it."""
        self.copy()
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql("SELECT pg_reload_conf()")
        until(lambda: self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1", 20, "it is synchronous")

    def promote(self):
        """The second one takes the place of the first."""
        self._run("pg_ctl", "promote", "-D", self.dir / "second", "-w")

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
