"""Agents apart: what a program of one agent can get at that belongs to the supervisor or to another agent."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, BatonTest, Daemon, HERE, until

NOBODY = 65534


def as_nobody():
    """The beginning of a command line of another user than root, to whom /proc is open. [] when this user is none already."""
    if os.getuid() != 0:
        return []
    return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]


class Apart(BatonTest):
    def up(self, agents, env=None, prefix=()):
        prefix = list(prefix)
        d = Daemon(self, config=agents, prefix=prefix)
        d.env.update(env or {})
        if prefix:
            for path in [d.work, *d.work.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
        self.addCleanup(d.clean)
        return d.start()

    def run_step(self, d, agent, skill, parameters=None, wanted="completed"):
        plan = {"steps": [{"id": "s", "agentId": agent, "skill": skill, "task": "try it", "parameters": parameters or {}}]}
        view = d.wait_plan(d.submit(plan))
        self.assertEqual(view["status"], wanted, (view, d.log()))
        return d.ask("plan.result", planId=view["planId"])


    def own_directory(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-apart-"))
        self.addCleanup(shutil.rmtree, folder, True)
        return folder

    def tell(self, d, what):
        return json.loads(self.run_step(d, "probe", "do", what)["aggregatedResult"])

    def refused(self, d, key, why, agent="probe"):
        """The daemon does not start: line, key and agent are named, and nothing has been made."""
        self.addCleanup(d.clean)
        with self.assertRaisesRegex(AssertionError, "did not start"):
            d.start(agents=False)
        self.assertEqual(d.process.returncode, 2, d.log())
        line = [at for at in d.log().splitlines() if "agents.0.%s: " % key in at]
        self.assertEqual(len(line), 1, d.log())
        self.assertRegex(line[0], r"^%s:\d+:\d+: agents\.0\.%s: " % (re.escape(str(d.config)), key))
        self.assertIn(why, line[0])
        self.assertIn('"%s"' % agent, line[0])
        self.assertFalse((d.state / "token").exists())


def files_of_cgroup(pid, *names):
    """The files of these names of all cgroups of a process."""
    found = []
    for line in pathlib.Path("/proc/%d/cgroup" % pid).read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mounts = ["/sys/fs/cgroup/" + c for c in controllers.split(",") if c] or ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        found += [f for f in (pathlib.Path(m + path, n) for m in mounts for n in names) if f.exists()]
    return found


class Programs(Apart):
    def test_a_program_of_exec_reaches_no_secret_of_another_process(self):
        d = self.up("agents:\n"
                    "  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc'], env: [OTHERS_KEY]}\n"
                    "  - agentId: exec\n"
                    "    command: ['${BATON_BIN}/baton-agent-exec']\n"
                    "    env: [OTHERS_KEY]\n"
                    "    settings: {commands: [{id: nosy, argv: [python3, %(here)s/nosy.py, canary-of-apart], description: looks about, stdin: none}]}\n",
                    env={"OTHERS_KEY": "canary-of-apart"}, prefix=as_nobody())
        told = self.run_step(d, "exec", "nosy")
        seen = json.loads(told["aggregatedResult"])
        self.assertEqual(seen["environ"], [])
        self.assertEqual(seen["mem"], [])
        self.assertEqual(seen["fds"], [0, 1, 2])
        self.assertNotIn("BATON_STATE", seen["own"])
        self.assertFalse([k for k in seen["own"] if "TOKEN" in k or "SETTINGS" in k or "HANDOVER" in k])


class Secrets(Apart):
    def test_secrets_are_in_no_environment_and_reach_the_agent(self):
        folder = self.own_directory()
        key = folder / "key"
        key.write_text("canary-of-file\n")
        key.chmod(0o600)
        d = self.up("agents:\n"
                    "  - agentId: probe\n"
                    "    command: [/usr/bin/python3, -B, %%(here)s/apart_agent.py]\n"
                    "    secrets: [FIRST_KEY, 'SECOND_KEY=%s']\n" % key,
                    env={"FIRST_KEY": "canary-of-variable"})
        told = self.tell(d, {"do": "handover"})
        self.assertEqual(told["secret:FIRST_KEY"], "canary-of-variable")
        self.assertEqual(told["secret:SECOND_KEY"], "canary-of-file")
        pid = d.agent_pids()["probe"][0]
        with open("/proc/%d/environ" % pid, "rb") as f:
            self.assertNotIn(b"canary", f.read())
        self.assertNotIn("canary", d.cli("config", "show", "--config", d.config))

    def test_a_missing_secret_holds_its_agent_back_and_no_other(self):
        folder = self.own_directory()
        d = Daemon(self, config="agents:\n"
                   "  - {agentId: probe, command: [/usr/bin/python3, -B, %%(here)s/apart_agent.py], secrets: ['KEY=%s/missing']}\n"
                   "  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc']}\n" % folder)
        self.addCleanup(d.clean)
        d.start(agents=False)
        until(lambda: [a for a in d.ask("agents.list")["agents"] if a["state"] == "up"], 20, "calc is up")
        self.assertIn("agents.0.secrets", d.log())
        self.assertIn("missing", d.cli_any("agents").stdout + d.cli_any("doctor").stdout)


class Kept(Apart):
    """Each key of the configuration, tried from inside."""

    def probe(self, more, prefix=()):
        return self.up("agents:\n"
                       "  - agentId: probe\n"
                       "    command: [/usr/bin/python3, -B, %%(here)s/apart_agent.py]\n%s" % more, prefix=prefix)

    def test_paths_are_all_that_it_opens(self):
        folder = self.own_directory()
        for name in ("in", "out", "other"):
            (folder / name).mkdir()
            (folder / name / "file").write_text(name)
        d = self.probe("    paths: {read: ['%s', '%s'], write: ['%s']}\n" % (HERE.parent, folder / "in", folder / "out"))
        opened = self.tell(d, {"do": "open", "paths": [
            ["r", str(folder / "in" / "file")], ["w", str(folder / "in" / "file")], ["r", str(folder / "out" / "file")],
            ["w", str(folder / "out" / "new")], ["r", str(folder / "other" / "file")], ["w", str(folder / "other" / "new")],
            ["r", str(d.state / "token")], ["r", str(d.state / "endpoints.json")], ["w", str(d.state / "x")],
            ["r", "/etc/hostname"], ["r", "/usr/bin/env"]]})
        self.assertEqual(opened, ["ok", "EACCES", "ok", "ok", "EACCES", "EACCES", "EACCES", "EACCES", "EACCES", "EACCES", "ok"])
        self.assertEqual(self.tell(d, {"do": "read", "path": "/proc/%d/environ" % d.process.pid}), "")

    def test_a_path_above_the_state_directory_refuses_to_start(self):
        d = Daemon(self, config="agents:\n  - {agentId: probe, command: [/usr/bin/python3, -B, %(here)s/apart_agent.py], paths: {read: [%(here)s, '%(work)s']}}\n")
        d.state.mkdir(0o700)
        self.refused(d, "paths", "has to do with the state directory")

    def test_a_path_that_is_missing_keeps_its_agent_alone_from_starting(self):
        """It may come, with a mount: the daemon starts. The second net, at the agent's own start, names it."""
        d = Daemon(self, config="agents:\n  - {agentId: probe, command: [/usr/bin/python3, -B, %(here)s/apart_agent.py], paths: {read: [%(here)s, '%(work)s/later']}}\n")
        self.addCleanup(d.clean)
        d.start(agents=False)
        until(lambda: "not set apart: paths: " in d.log(), 20, "the agent is refused")
        self.assertIn("/later: No such file or directory", d.cli_any("agents", "probe").stdout)

    def test_without_network_there_is_the_supervisor_alone(self):
        d = self.probe("    network: none\n")
        told = self.tell(d, {"do": "network", "port": int(d.endpoints()["events"].rsplit(":", 1)[1])})
        self.assertEqual(told, {"udp": "EPERM", "raw": "EPERM", "unix": "EPERM", "netlink": "EPERM", "tcp": "EACCES", "mptcp": "EPERM", "listen": "ok"})

    def test_seccomp_refuses_what_serves_attacks(self):
        d = self.probe("    seccomp: default\n")
        told = self.tell(d, {"do": "calls"})
        self.assertEqual(set(told.values()), {"EPERM"}, told)
        self.assertEqual(self.tell(d, {"do": "program"}), "ran")

    def test_another_user_gets_no_file_of_the_state(self):
        if os.getuid() != 0:
            self.skipTest("only root starts agents of other users")
        d = self.probe("    user: nobody\n")
        told = self.tell(d, {"do": "who"})
        self.assertEqual(told, {"uid": [NOBODY] * 3, "gid": [NOBODY] * 3, "groups": [], "nnp": 1})
        self.assertEqual(self.tell(d, {"do": "open", "paths": [["r", str(d.state / "token")]]}), ["EACCES"])

    def test_what_is_not_available_refuses_to_start_and_says_why(self):
        if os.getuid() == 0:
            d = Daemon(self, config="agents:\n  - {agentId: probe, command: [/usr/bin/python3, -B, %(here)s/apart_agent.py], user: daemon}\n", prefix=as_nobody())
            for path in [d.work, *d.work.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
            self.refused(d, "user", "only a daemon of root starts agents of others")

    def test_limits_hold_or_the_agent_is_refused(self):
        """Each of them: the kernel has the number, or the agent does not start and its limit is named; nothing in between."""
        v1 = pathlib.Path("/sys/fs/cgroup/cpu/cpu.shares").exists()
        limits = {"processes": (17, ("pids.max",), "17"), "memoryBytes": (512 << 20, ("memory.max", "memory.limit_in_bytes"), str(512 << 20)),
                  "cpuPercent": (50, ("cpu.max", "cpu.cfs_quota_us"), "50000" if v1 else "50000 100000")}
        for name, (n, file, want) in limits.items():
            with self.subTest(name):
                d = Daemon(self, config="agents:\n  - {agentId: probe, command: [/usr/bin/python3, -B, %%(here)s/apart_agent.py], limits: {%s: %d}}\n" % (name, n))
                self.addCleanup(d.clean)
                try:
                    d.start()
                except AssertionError:
                    self.assertIn("agents.0.limits.%s: " % name, d.log())
                    self.assertEqual(d.process.returncode, 2, d.log())
                    continue
                self.assertEqual([f.read_text().strip() for f in files_of_cgroup(d.agent_pids()["probe"][0], *file)], [want])
                d.clean()

    def limited(self, limits):
        """A daemon whose agent has these limits; skips the test where the kernel has none to give: a controller of v1 is there for root."""
        d = Daemon(self, config="agents:\n  - agentId: probe\n    command: [/usr/bin/python3, -B, %%(here)s/apart_agent.py]\n"
                   "    limits: {%s}\n" % limits)
        self.addCleanup(d.clean)
        v1 = {"memoryBytes": "memory", "processes": "pids", "cpuPercent": "cpu"}[limits.split(":")[0]]
        try:
            return d.start()
        except AssertionError:
            if os.access("/sys/fs/cgroup/%s/cgroup.procs" % v1, os.W_OK) or "agents.0.limits" not in d.log():
                raise
            self.skipTest("SKIPPED: no cgroup here takes " + limits)

    def why(self, d, **what):
        """The error of a step during which the agent ends."""
        plan = {"steps": [{"id": "s", "agentId": "probe", "skill": "do", "task": "try it", "parameters": what}],
                "policy": {"maxRetries": 0, "onFailure": "abort"}}
        view = d.wait_plan(d.submit(plan))
        self.assertEqual(view["status"], "failed", (view, d.log()))
        return json.dumps(view)

    def test_the_kernel_stops_an_agent_at_its_memory_and_the_step_says_so(self):
        d = self.limited("memoryBytes: %d" % (96 << 20))
        self.assertEqual(self.tell(d, {"do": "memory", "mib": 16}), 16 << 20)
        self.assertIn("killed by signal 9; it had reached its limits.memoryBytes", self.why(d, do="memory", mib=256))
        d.wait_agents()
        self.assertEqual(self.tell(d, {"do": "memory", "mib": 16}), 16 << 20)

    def test_the_kernel_gives_an_agent_no_more_processes_and_the_step_says_so(self):
        d = self.limited("processes: 12")
        n, error = self.tell(d, {"do": "processes"})
        self.assertEqual(error, "EAGAIN")
        self.assertLess(n, 12)
        d = self.limited("processes: 12")
        self.assertIn("exit code 3; it had reached its limits.processes", self.why(d, do="processes", end=True))

    def test_the_kernel_gives_an_agent_its_share_of_a_processor(self):
        d = self.limited("cpuPercent: 20")
        self.assertLess(self.tell(d, {"do": "burn", "seconds": 2}), 0.4)

    def test_without_a_cgroup_limits_refuse_to_start(self):
        if os.getuid() != 0:
            self.skipTest("only root takes the mounts away")
        d = Daemon(self, config="agents:\n  - {agentId: probe, command: [/usr/bin/python3, -B, %(here)s/apart_agent.py], limits: {processes: 9}}\n",
                   prefix=["unshare", "-m", "sh", "-c", 'umount -R -l /sys/fs/cgroup && exec "$@"', "sh"])
        self.refused(d, "limits.processes", "there is no cgroup that the daemon may divide")

    def test_in_a_subgroup_of_systemd_agents_are_beside_the_daemon(self):
        """As with Delegate=yes, DelegateSubgroup=baton: a cgroup with processes of its own gives no controllers to those below."""
        mounts = [m for m in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(m + "/cgroup.procs")]
        if os.getuid() != 0 or not mounts or not os.access(mounts[0] + "/cgroup.procs", os.W_OK):
            self.skipTest("SKIPPED: only root makes cgroups (v2), where they are mounted")
        unit = pathlib.Path(mounts[0], "baton-test-%d" % os.getpid())
        (unit / "baton").mkdir(parents=True)
        self.addCleanup(unit.rmdir)
        self.addCleanup((unit / "baton").rmdir)
        d = Daemon(self, config="agents:\n  - {agentId: probe, command: [/usr/bin/python3, -B, %(here)s/apart_agent.py]}\n",
                   prefix=["sh", "-c", 'echo $$ > "$0/baton/cgroup.procs" && exec "$@"', str(unit)])
        self.addCleanup(d.clean)
        d.start()
        pid = d.agent_pids()["probe"][0]
        own = [line[3:] for line in pathlib.Path("/proc/%d/cgroup" % pid).read_text().splitlines() if line.startswith("0::")][0]
        self.assertEqual(pathlib.Path(own).parent.name, unit.name)
        controllers = (unit / "cgroup.controllers").read_text().split()
        if controllers:  # the kernel takes it, since no process is in the cgroup of the unit itself
            (unit / "cgroup.subtree_control").write_text("+" + controllers[0])
        d.stop()
        until(lambda: not (unit / "baton/cgroup.procs").read_text(), 20, "its processes are gone")

    def test_an_agent_of_the_sdk_works_with_all_of_it(self):
        d = self.up("agents:\n  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc'], paths: {}, network: none, seccomp: default%s}\n"
                    % (", user: nobody" if os.getuid() == 0 else ""))
        told = self.run_step(d, "calc", "evaluate", {"expression": "6*7"})
        self.assertIn("42", told["aggregatedResult"])
        d.kill9()
        d.start()  # adopted or started anew, whichever: it registers and works
        told = self.run_step(d, "calc", "evaluate", {"expression": "6*8"})
        self.assertIn("48", told["aggregatedResult"])

    def test_without_landlock_it_refuses_to_start(self):
        d = Daemon(self, config="agents:\n  - {agentId: probe, command: [/usr/bin/python3, -B, %(here)s/apart_agent.py], paths: {read: [%(here)s]}}\n",
                   prefix=["python3", "-B", HERE / "no_landlock.py"])
        self.refused(d, "paths", "this kernel has no Landlock")

        def baton(*args):
            return subprocess.run([*d.prefix, BIN / "baton", *args, "--state", d.state, "--config", d.config], capture_output=True, text=True, timeout=60)
        self.assertIn("a daemon of this shell would not start: probe: paths: this kernel has no Landlock", baton("doctor").stdout)
        up = baton("up")
        self.assertEqual(up.returncode, 2, up)
        self.assertIn("agents.0.paths: this kernel has no Landlock", up.stderr)

    def test_a_reload_refuses_such_an_entry_and_touches_nothing(self):
        plain = "  - {agentId: probe, command: [/usr/bin/python3, -B, %s/apart_agent.py]}\n" % HERE
        d = Daemon(self, config="agents:\n" + plain, prefix=["python3", "-B", HERE / "no_landlock.py"])
        self.addCleanup(d.clean)
        d.start()
        before = d.agent_pids()
        good = d.config.read_text()
        d.config.write_text(good.replace("apart_agent.py]", "apart_agent.py], graceMs: 999")
                            + plain.replace("probe", "boxed").replace("]}", "], network: none}"))
        for verb in (["reload", "--check"], ["reload"]):
            done = d.cli_any(*verb)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn('agents.1.network: this kernel has no Landlock', done.stderr)
            self.assertIn('"boxed"', done.stderr)
        self.assertEqual(d.agent_pids(), before)
        d.config.write_text(good + plain.replace("probe", "other"))
        d.cli("reload")
        d.wait_agents()
        self.assertEqual(d.agent_pids()["probe"], before["probe"])


if __name__ == "__main__":
    unittest.main()
