"""Completion: bash's is run as bash runs it, those of zsh and fish are run where these shells are."""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import threading
import time

from harness import BIN, BatonTest, main, until
from probe import Probe, step, wait_up

BATON = str(BIN / "baton")


class Completion(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="", agents=False)

    def probe(self):
        p = Probe(self.d, "probe")
        self.addCleanup(p.close)
        wait_up(self.d, "probe")

    def plan(self, **more):
        plan = self.d.submit({"steps": [step("load"), step("report")], **more})
        self.d.wait_plan(plan)
        return plan

    def words(self, *words, state=None, env=None):
        """What bash has in COMPREPLY with the cursor at the end of the last word."""
        script = subprocess.run([BATON, "completion", "bash"], capture_output=True, text=True, check=True).stdout
        script += "\nCOMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))\n_baton\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
        done = subprocess.run(["bash", "-c", script, "bash", BATON, *words], capture_output=True, text=True, timeout=10,
                              env={**os.environ, "BATON_STATE": str(state or self.d.state), **(env or {})})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [w for w in done.stdout.splitlines() if w]

    def test_verbs_and_options_come_from_the_table(self):
        self.assertEqual(self.words("statu"), ["status"])
        self.assertIn("run", self.words(""))
        self.assertEqual(self.words("status", "--lim"), ["--limit"])
        self.assertEqual(self.words("--js"), ["--json"])
        self.assertEqual(self.words("--json", "-q", "statu"), ["status"])
        self.assertEqual(self.words("help", "statu"), ["status"])
        self.assertEqual(self.words("nonsense", ""), [])

    def test_values_of_options_are_completed(self):
        self.assertEqual(self.words("events", "--vocabulary", "ptc"), ["ptc-runner", "ptc-runner-telemetry"])
        self.assertEqual(self.words("-o", "j"), ["json", "jsonl"])
        self.assertEqual(self.words("status", "--output", "=", "y"), ["yaml"])  # bash splits a word at =
        self.assertEqual(self.words("status", "--status", "fa"), ["failed"])
        self.assertEqual(self.words("up", "--log-level", ""), ["err", "warn", "info", "debug"])
        self.assertEqual(self.words("decide", "x", "a"), ["approve"])

    def test_files_are_those_of_the_shell(self):
        (self.d.work / "a plan.yaml").write_text("")
        os.mkdir(self.d.work / "a dir")
        self.assertEqual(sorted(self.words("run", "-f", str(self.d.work / "a "))), [str(self.d.work / "a dir"), str(self.d.work / "a plan.yaml")])
        self.assertEqual(self.words("status", "--state", str(self.d.work / "a ")), [str(self.d.work / "a dir")])

    def test_ids_agents_and_steps_are_those_of_the_daemon(self):
        self.probe()
        first, plan = self.plan(), self.plan()
        self.assertEqual(self.words("cancel", ""), ["last", plan, first])
        self.assertEqual(self.words("cancel", plan, first[:35].lower()), [first] if first[:35] != plan[:35] else [plan, first])
        self.assertEqual(self.words("status", "--state", str(self.d.state), "la", state="/nonexistent"), ["last"])
        self.assertEqual(self.words("result", "last", "re"), ["report"])
        self.assertEqual(self.words("skip", plan, ""), ["load", "report"])
        self.assertEqual(self.words("logs", ""), ["last", plan, first, "probe"])
        self.assertEqual(self.words("logs", plan, "lo"), ["load"])
        self.assertEqual(self.words("agents", ""), ["probe", "start", "stop", "restart", "drain", "enable", "forget", "test", "logs", "try", "add"])
        self.assertEqual(self.words("agents", "drain", "p"), ["probe"])
        self.assertEqual(self.words("agents", "probe", ""), ["do"])
        self.assertEqual(self.words("agents", "try", "pr"), ["probe"])
        self.assertEqual(self.words("agents", "try", "probe", ""), ["do"])
        self.assertEqual(self.words("agents", "nobody", ""), [])
        self.d.cli_any("chat", "--session", "monday", "--new", stdin="hello\n")
        self.assertEqual(self.words("sessions", "m"), ["monday"])
        self.assertEqual(self.words("chat", "--session", ""), ["monday"])
        asked = self.d.submit({"steps": [step("pay", type="human_review", prompt="Is it right?")]})
        self.assertIn(asked + "/pay/r1", self.words("approve", asked))

    def test_the_newest_hundred_plans_are_offered_and_one_more_by_its_first_letters(self):
        def ended():
            plan = self.d.submit({"steps": [step("a", agentId=None, skill=None, wait={"forMs": 1})]})
            self.d.wait_plan(plan)
            return plan
        plans = [ended() for _ in range(100)]
        self.assertEqual(self.words("cancel", ""), ["last", *reversed(plans)])
        plans.append(ended())
        self.assertEqual(self.words("cancel", ""), ["last", *reversed(plans[1:])])
        self.assertIn(plans[0], self.words("cancel", plans[0]))

    def test_signals_are_those_that_the_plan_waits_for(self):
        plan = self.d.submit({"steps": [step("first", agentId=None, skill=None, wait={"signal": "paid"}, dependsOn=[]),
                                        step("then", agentId=None, skill=None, wait={"signal": "packed"}, dependsOn=["first"])]})
        until(lambda: self.words("signal", plan, "") == ["paid"], 10, "the first step waits")
        self.d.cli_any("signal", plan, "paid")
        until(lambda: self.words("signal", plan, "") == ["packed"], 10, "the second step waits")
        self.d.cli_any("signal", plan, "packed")
        self.d.wait_plan(plan)
        self.assertEqual(self.words("signal", plan, "pac"), ["packed"])  # it has ended: those of its document
        self.assertEqual(self.words("signal", "nothing", ""), [])

    def test_schedules_contexts_credentials_and_examples(self):
        (self.d.work / "plan.json").write_text(json.dumps({"steps": [step("a", agentId=None, skill=None, wait={"forMs": 1})]}))
        done = self.d.cli_any("schedule", "put", "nightly", "--cron", "0 3 * * *", "--plan", str(self.d.work / "plan.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.words("schedule", "pause", "n"), ["nightly"])
        self.assertEqual(self.words("schedule", "nex"), ["next"])
        self.assertEqual(self.d.cli_any("credential", "add", "ci", "--role", "observer").returncode, 0)
        self.assertEqual(self.words("credential", "rotate", ""), ["ci"])
        self.assertEqual(self.words("credential", "grant", "ci", "c"), ["ci"])
        self.assertEqual(self.words("credential", "gr"), ["grant"])
        self.d.cli("webhook", "put", "ops", "--url", "https://ops.example.com", "--from", "1")
        self.assertEqual(self.words("webhook", "rm", ""), ["ops"])
        config = {"XDG_CONFIG_HOME": str(self.d.work / "config")}
        os.makedirs(self.d.work / "config" / "baton", mode=0o700)
        (self.d.work / "config" / "baton" / "contexts").write_text(json.dumps({"contexts": {"hub": {"connect": "tls+tcp://10.0.0.5:7443"}}}))
        os.chmod(self.d.work / "config" / "baton" / "contexts", 0o600)
        self.assertEqual(self.words("context", "use", "", env=config), ["local", "hub"])
        self.assertEqual(self.words("context", "show", "h", env=config), ["hub"])
        self.assertEqual(self.words("--context", "h", env=config), ["hub"])
        self.assertEqual(self.words("init", "--example", "he"), ["hello"])
        self.assertGreaterEqual(len(self.words("init", "--example", "")), 14)
        self.assertEqual(self.words("events", "--type", "plan_comp"), ["plan_completed"])

    def test_recipes_are_those_of_the_users_folder(self):
        folder = self.d.work / "config" / "baton" / "recipes"
        os.makedirs(folder)
        (folder / "nightly.yaml").write_text("steps: []\n")
        self.assertEqual(self.words("run", "--recipe", "nig", env={"XDG_CONFIG_HOME": str(self.d.work / "config")}), ["nightly"])

    def test_without_a_daemon_it_is_silent_and_quick(self):
        began = time.monotonic()
        self.assertEqual(self.words("cancel", "", state="/nonexistent"), [])
        os.kill(self.d.process.pid, 19)  # SIGSTOP: it hangs
        self.addCleanup(os.kill, self.d.process.pid, 18)
        done = subprocess.run([BATON, "completion", "words", "--", "cancel", ""], capture_output=True, text=True, timeout=10,
                              env={**os.environ, "BATON_STATE": str(self.d.state)})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertLess(time.monotonic() - began, 3)

    def test_other_shells_are_refused_by_name(self):
        done = self.d.cli_any("completion", "tcsh")
        self.assertEqual((done.returncode, done.stderr), (2, "baton: completion: expected bash, zsh or fish, got 'tcsh'\n"))


class InShells(BatonTest):
    """The scripts in the shells themselves, as a person types."""

    def needs(self, shell):
        if shutil.which(shell) is None:
            self.skipTest("%s is not installed: its completion is NOT tested" % shell)
        done = subprocess.run([shell, "-n"], input=subprocess.run([BATON, "completion", shell], capture_output=True).stdout,
                              capture_output=True, timeout=20)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def typed(self, command, *dialogue):
        """An interactive shell on a terminal: each keys are typed, then the pattern must come."""
        master, slave = pty.openpty()
        shell = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                 env={"PATH": str(BIN) + ":" + os.environ["PATH"], "HOME": self.home, "TERM": "vt100", "BATON_STATE": "/nonexistent"})
        os.close(slave)
        self.addCleanup(os.close, master)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        for keys, pattern in dialogue:
            os.write(master, keys.encode())
            seen, deadline = "", time.monotonic() + 30
            while not re.search(pattern, seen):
                self.assertLess(time.monotonic(), deadline, (keys, seen))
                if select.select([master], [], [], 0.2)[0]:
                    seen += os.read(master, 65536).decode(errors="replace")

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="baton-home-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)


class Shells(InShells):
    def test_bash_completes_at_tab(self):
        self.needs("bash")
        self.typed(["bash", "--norc", "--noprofile", "-i"],
                   ("PS1='ready''> '\n", "ready> $"), ("source <(baton completion bash)\n", "ready> $"), ("baton statu\t", "status "))

    def test_zsh_completes_at_tab(self):
        self.needs("zsh")
        self.typed(["zsh", "-f", "-i"],
                   ("PS1='ready''> '; autoload -U compinit; compinit -u -D\n", "ready> "), ("source <(baton completion zsh)\n", "ready> "),
                   ("baton statu\t", "baton status"))

    def test_fish_completes_a_line(self):
        self.needs("fish")
        done = subprocess.run(["fish", "-N", "-c", "baton completion fish | source; complete -C 'baton statu'; complete -C 'baton -o js'"],
                              capture_output=True, text=True, timeout=20,
                              env={"PATH": str(BIN) + ":" + os.environ["PATH"], "HOME": self.home, "BATON_STATE": "/nonexistent"})
        self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], ["status", "json", "jsonl"], done.stderr)


ZSH_CAPTURE = r"""
PS1='ready''> '
autoload -U compinit; compinit -u -D
source <(baton completion zsh)
compadd() {
    local -a hits
    if [[ ${@[1,(i)--]} == *(-O|-A|-D)* ]]; then builtin compadd "$@"; return; fi
    builtin compadd -A hits "$@"
    print -rl -- $hits >>$CAPTURED
    (( $#hits ))
}
capture() {
    _main_complete
    print -r -- END >>$CAPTURED
    compstate[insert]= compstate[list]=
}
zle -C capture complete-word capture
bindkey '^I' capture
"""


class Candidates(InShells):
    """What each shell would offer, by its own rules, for one table of lines: fish with `complete -C`, zsh by its completion system."""

    def setUp(self):
        super().setUp()
        self.d = self.daemon(config="", agents=False)
        probe = Probe(self.d, "probe")
        self.addCleanup(probe.close)
        wait_up(self.d, "probe")
        self.plan = self.d.submit({"steps": [step("load"), step("pay", agentId=None, skill=None, wait={"signal": "paid"})]})
        until(lambda: self.d.ask("plan.get", planId=self.plan)["steps"][1].get("waiting", {}).get("signal"), 10, "it waits")
        (self.d.work / "plan.json").write_text(json.dumps({"steps": [step("a")]}))
        self.d.cli("schedule", "put", "nightly", "--cron", "0 3 * * *", "--plan", str(self.d.work / "plan.json"))
        self.d.cli("credential", "add", "ci", "--role", "observer")
        config = self.d.work / "config" / "baton"
        (config / "recipes").mkdir(parents=True, mode=0o700)
        (config / "contexts").write_text(json.dumps({"contexts": {"hub": {"connect": "tls+tcp://10.0.0.5:7443"}}}))
        (config / "contexts").chmod(0o600)
        (config / "recipes" / "weekly.yaml").write_text("steps: []\n")
        (self.d.work / "a plan.yaml").write_text("steps: []\n")
        self.env = {"PATH": str(BIN) + ":" + os.environ["PATH"], "HOME": self.home, "TERM": "vt100", "LC_ALL": "C.UTF-8",
                    "BATON_STATE": str(self.d.state), "XDG_CONFIG_HOME": str(self.d.work / "config"), "XDG_DATA_HOME": self.home}

    def table(self):
        return {"baton statu": {"status"}, "baton help statu": {"status"}, "baton status --lim": {"--limit"}, "baton -o js": {"json", "jsonl"},
                "baton cancel ": {"last", self.plan}, "baton result last lo": {"load"}, "baton skip last ": {"load", "pay"}, "baton signal last ": {"paid"},
                "baton schedule pa": {"pause"}, "baton schedule pause ": {"nightly"}, "baton schedule put --overlap ": {"skip", "queue", "cancel", "allow"},
                "baton agents dr": {"drain"}, "baton agents drain ": {"probe"}, "baton agents try probe ": {"do"}, "baton agents probe ": {"do"},
                "baton credential gr": {"grant"}, "baton credential show ": {"ci"}, "baton context use ": {"local", "hub"},
                "baton --context h": {"hub"}, "baton init --example hel": {"hello"}, "baton run --recipe wee": {"weekly"},
                "baton events --type plan_comp": {"plan_completed"}, "baton run -f a": {"a plan.yaml"}}

    def test_fish_offers_the_words_of_the_table(self):
        self.needs("fish")
        for line, expected in self.table().items():
            done = subprocess.run(["fish", "-N", "-c", "baton completion fish | source; complete -C $argv[1]", line], capture_output=True, text=True,
                                  timeout=20, cwd=self.d.work, env=self.env)
            words = {w.split("\t")[0].replace("\\ ", " ") for w in done.stdout.splitlines()}
            self.assertEqual(words, expected, (line, done.stderr))

    def test_zsh_offers_the_words_of_the_table(self):
        self.needs("zsh")
        captured = self.d.work / "captured"
        (self.d.work / "capture.zsh").write_text(ZSH_CAPTURE)
        got = {}

        def complete(write, line):
            captured.write_text("")
            write(line + "\t")
            until(lambda: captured.read_text().endswith("END\n"), 20, line)
            got[line] = {w.replace("\\ ", " ") for w in captured.read_text().splitlines()} - {"END", ""}
            write("\x15")  # an empty line again

        master, slave = pty.openpty()
        shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd=self.d.work,
                                 env={**self.env, "CAPTURED": str(captured)})
        os.close(slave)
        self.addCleanup(os.close, master)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        drain = threading.Thread(target=self.drain, args=(master,), daemon=True)
        drain.start()
        os.write(master, b"source ./capture.zsh; print loaded >$CAPTURED\n")
        until(lambda: captured.exists() and captured.read_text() == "loaded\n", 20, "zsh is ready")
        for line in self.table():
            complete(lambda keys: os.write(master, keys.encode()), line)
        self.assertEqual(got, self.table())

    def drain(self, master):
        try:
            while os.read(master, 65536):
                pass
        except OSError:
            pass  # the shell has ended


if __name__ == "__main__":
    main()
