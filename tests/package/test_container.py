"""deploy/Containerfile, step by step in chroots: no engine of containers is needed. With BATON_BUILD_TWICE (.ci/nightly) its first
stage is built, too: what is built in /src there has the same bytes as what built.py builds elsewhere as another user, and so the build
is reproducible. Without it the packages of the last stage are those of built.py."""
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import built
from chroot import PATH, ROOT, Chroot, base, copy, skip_without_chroot, source_tree

STATE = "/var/lib/baton"
TWICE = "BATON_BUILD_TWICE" in os.environ


def instructions():
    """[(word, rest)] of the Containerfile; the only words that it may use are those that this test understands."""
    text = re.sub(r"\\\n", " ", (ROOT / "deploy/Containerfile").read_text())
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line and not line.startswith("#")]


class Container(unittest.TestCase):
    def image(self):
        """Runs the steps; the tree of the first stage, the chroot of the last one, and what that is started with."""
        stages, names, settings = [], {}, {}
        for word, rest in instructions():
            if not TWICE and len(stages) == 1 and word != "FROM":
                continue  # the first stage only builds
            if word == "FROM":
                image, _, name = rest.partition(" AS ")
                self.assertEqual(image, "debian:12-slim")
                stages.append(Chroot.of(self, base()))
                names[name] = stages[-1]
                settings = {"USER": "root", "ENV": {}}
            elif word == "COPY":
                self.copy(rest.split(), stages[-1], names)
            elif word == "RUN":
                stages[-1].sh(rest, network=True, timeout=1800)
            elif word == "ENV":
                settings["ENV"].update(pair.split("=", 1) for pair in shlex.split(rest))
            elif word in ("USER", "VOLUME", "ENTRYPOINT"):
                settings[word] = rest
            else:
                self.fail("the test does not know what %s means" % word)
        return names["build"].path("/src") if TWICE else None, stages[-1], settings

    def copy(self, words, stage, names):
        if words[0].startswith("--from="):
            source = names[words.pop(0).split("=")[1]]
            tree = source.path("/src") if TWICE else built.packages() / built.TREE.lstrip("/")
            found = list(tree.glob(str(pathlib.Path(words[0]).relative_to("/src"))))
            self.assertNotEqual(found, [], words[0])
            for path in found:
                shutil.copy(path, stage.path(words[1]))
            return
        self.assertEqual(words[0], ".")
        tree = pathlib.Path(tempfile.mkdtemp(prefix="baton-context-"))
        self.addCleanup(shutil.rmtree, tree)
        source_tree(tree / "tree")
        stage.path(words[1]).mkdir()
        copy(tree / "tree", stage.path(words[1]))

    def test_steps_build_what_was_built_elsewhere_and_batond_runs_under_tini(self):
        elsewhere = built.packages()
        tree, c, settings = self.image()
        if TWICE:
            self.assertEqual(self.digests(tree), self.digests(elsewhere / built.TREE.lstrip("/")))

        entry = json.loads(settings["ENTRYPOINT"])
        self.assertEqual((entry[0], settings["USER"], settings["VOLUME"]), ("/usr/bin/tini", "baton", STATE))
        # tini is the first process of its own namespace, as in a container.
        command = ["nsenter", "-t", str(c.init), "-m", "-n", "-i", "unshare", "--pid", "--fork", "--kill-child",
                   "--mount-proc=%s/proc" % c.root, "chroot", "--userspec=baton:baton",
                   str(c.root), *entry]
        with open(c.path("/tmp/log"), "wb") as log:
            container = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": PATH, **settings["ENV"]})
        self.addCleanup(container.wait, 30)
        self.addCleanup(container.kill)
        ask = {"user": "baton", "env": settings["ENV"]}
        c.sh("for i in $(seq 600); do baton agents 2>/dev/null | grep -q calc && exit 0; sleep 0.1; done; cat /tmp/log; exit 1", **ask)
        self.assertRegex(c.sh("baton run --plan /usr/share/baton/examples/parallel.yaml --result quotient", **ask), r"(?m)^30$")

        child = pathlib.Path("/proc/%d/task/%d/children" % (container.pid, container.pid)).read_text().split()[0]
        status = pathlib.Path("/proc/%s/status" % child).read_text()
        self.assertRegex(status, r"Name:\s+tini\n")
        self.assertRegex(status, r"NSpid:\s+\d+\s+1\n")
        subprocess.run(["kill", "-TERM", child], check=True)
        self.assertEqual(container.wait(60), 0, c.path("/tmp/log").read_text())

    def digests(self, tree):
        names = sorted((tree / "build/package/packages").glob("*.deb")) + sorted(p for p in (tree / "build/package/bin").iterdir() if p.name.startswith("baton"))
        self.assertGreater(len(names), 10)
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in names}


if __name__ == "__main__":
    skip_without_chroot()
    unittest.main(verbosity=2)
