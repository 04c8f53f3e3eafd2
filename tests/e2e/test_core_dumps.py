"""Processes that hold secrets leave no core file, whatever their limit allows: its reader would have the keys."""
import os
import pathlib
import shutil
import signal
import tempfile
import unittest

import gateway
from harness import BatonTest, Daemon, alive, children_of, main, until

CALC = "agents:\n  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc']}\n"
PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()


def program(pid):
    return os.path.basename(os.readlink("/proc/%d/exe" % pid))


@unittest.skipIf(PATTERN[:1] in "|/", "SKIPPED: core files of this machine go elsewhere: " + PATTERN)
class CoreDumps(BatonTest):
    def up(self, **env):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-core-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        d = Daemon(self, config=CALC, prefix=["prlimit", "--core=unlimited", "env", "-C", str(self.folder)])
        # The sanitizers of a test build would turn core files off by themselves.
        d.env.update(env, ASAN_OPTIONS="disable_coredump=0:detect_leaks=0")
        self.addCleanup(d.clean)
        return d.start()

    def abort(self, pid):
        """Ends the process as a crash would. Returns the core files that are there then."""
        where = {pathlib.Path(os.readlink("/proc/%d/cwd" % pid)), self.folder}
        before = {p for w in where for p in w.glob("core*")}
        os.kill(pid, signal.SIGABRT)
        until(lambda: not alive(pid), 60, "the end of %d" % pid)
        return [str(p) for w in where for p in w.glob("core*") if p not in before]

    def test_daemon_spawner_and_agent_leave_none(self):
        d = self.up()
        spawner = next(p for p in children_of(d.process.pid) if program(p) == "batond")
        agent = next(p for p in children_of(spawner) + children_of(d.process.pid) if program(p) == "baton-agent-calc")
        for pid in (agent, spawner, d.process.pid):
            if alive(pid):
                self.assertEqual(self.abort(pid), [], pid)

    def test_a_gateway_leaves_none(self):
        gateway.need()
        d = self.up()
        g = gateway.Gateway(self, d, prefix=["prlimit", "--core=unlimited", "env", "-C", str(self.folder),
                                             "ASAN_OPTIONS=disable_coredump=0:detect_leaks=0"])
        self.assertEqual(self.abort(g.process.pid), [])

    def test_where_it_is_asked_for_there_is_one(self):
        d = self.up(BATON_DUMPABLE="1")
        self.assertNotEqual(self.abort(d.process.pid), [], "without it the tests above show nothing")


if __name__ == "__main__":
    main()
