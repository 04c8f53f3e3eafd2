"""Several daemons on one machine: two users, two state directories, a port that another program has."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import BIN, alive, main, until


class Neighbours(unittest.TestCase):
    """Daemons of `baton up` on the default configuration, each in a home of its own."""

    def home(self, user=None):
        home = pathlib.Path(tempfile.mkdtemp(prefix="baton-home-"))
        home.chmod(0o755)
        if user is not None:
            os.chown(home, user, user)
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        return home

    def baton(self, home, *args, user=None, code=0):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("BATON_", "XDG_"))}
        done = subprocess.run([BIN / "baton", *args], capture_output=True, text=True, timeout=60, env={**env, "HOME": str(home)},
                              user=user, group=user, extra_groups=[] if user is not None else None)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.strip()

    def up(self, home, user=None):
        self.addCleanup(self.end, home)
        self.baton(home, "up", user=user)
        return self.baton(home, "info", "--field", "control", user=user), self.baton(home, "info", "--field", "events", user=user)

    def end(self, home):
        subprocess.run([BIN / "baton", "down", "--state", home / ".local/state/baton"], capture_output=True, timeout=60)

    def test_two_daemons_on_the_default_configuration_do_not_collide(self):
        homes = [self.home(), self.home()]
        addresses = [self.up(home) for home in homes]
        self.assertEqual(len({a for pair in addresses for a in pair}), 4, addresses)
        for home in homes:
            self.assertIn(str(home), self.baton(home, "info", "--field", "state"))

    def test_daemon_that_starts_again_has_its_addresses(self):
        home = self.home()
        before = self.up(home)
        self.baton(home, "down")
        self.assertEqual(self.up(home), before)

    def test_killed_daemon_that_starts_again_has_its_addresses(self):
        home = self.home()
        before = self.up(home)
        pid = int(self.baton(home, "info", "--field", "pid"))
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), 10, "it is dead")
        self.assertEqual(self.up(home), before)

    def test_port_that_another_program_has_is_no_obstacle(self):
        home = self.home()
        before = self.up(home)
        self.baton(home, "down")
        taken = []
        for url in before:
            s = socket.socket()
            self.addCleanup(s.close)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", int(url.rsplit(":", 1)[1])))
            s.listen()
            taken.append(s)
        after = self.up(home)
        self.assertEqual(set(before) & set(after), set())

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be two users")
    def test_two_users_do_not_collide(self):
        homes = {None: self.home(), 65534: self.home(65534)}
        try:
            addresses = [self.up(home, user) for user, home in homes.items()]
        except PermissionError:
            self.skipTest("the programs are where the other user cannot read them")
        self.assertEqual(len({a for pair in addresses for a in pair}), 4)


if __name__ == "__main__":
    main()
