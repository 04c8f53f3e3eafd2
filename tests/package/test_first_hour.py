"""The first hour of somebody new, in a Debian that holds nothing but its smallest system and the package: the transcript in
deploy/TOUR.md is what its commands print here. After a change: `python3 tests/package/test_first_hour.py --write`, as root, and read
the difference."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import built
from chroot import PATH, ROOT, Chroot, base, skip_without_chroot
from test_packages import NEWER, debs, newer

sys.path.insert(0, str(ROOT / "tests" / "support"))
from transcript import Page  # noqa: E402  (the path is set just above)

PAGE = ROOT / "deploy" / "TOUR.md"
DEBS = "/srv/debs"
HOME = "/srv/" + built.USER
# What a step of the page waits for at most.
COMMAND_SECONDS = 300


class Shell:
    """One bash of a user in the chroot for all of its commands: directories and variables stay as on a terminal."""

    def __init__(self, test, c, user, home):
        self.out = c.path("/tmp/out-of-" + user)
        self.out.touch()
        self.out.chmod(0o666)
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(c.init), "-m", "-p", "-i", *([] if user == "root" else ["-n"]), "chroot", "--userspec=" + user, str(c.root), "bash"],
            env={"PATH": PATH, "HOME": home, "USER": user, "LC_ALL": "C.UTF-8", "TZ": "UTC", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        test.addCleanup(self.end)
        self.name = "/tmp/out-of-" + user
        self("cd " + home)

    def __call__(self, command):
        """Its exit code and output. What it leaves running may keep the file."""
        self.out.write_text("")
        self.process.stdin.write("{ %s\n} >>%s 2>&1 </dev/null\necho $?\n" % (command, self.name))
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer.isdigit():
            raise AssertionError("%s: the shell said %r\n%s" % (command, answer, self.out.read_text()))
        return int(answer), self.out.read_text()

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class FirstHour(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.c = Chroot.of(self, base())
        self.c.sh("apt-get update -q", network=True)
        self.c.sh("useradd --create-home --home-dir %s --shell /bin/bash %s" % (HOME, built.USER))
        where = self.c.path(DEBS)
        (where / "newer").mkdir(parents=True)
        shutil.copy(debs()["baton"], where)
        with tempfile.TemporaryDirectory() as part:
            shutil.copy(newer(debs()["baton"], pathlib.Path(part)), where / "newer")

    def test_page_shows_what_its_commands_print(self):
        page = Page(PAGE)
        self.assertGreater(len(page.commands), 25)
        shells = {True: Shell(self, self.c, "root", DEBS), False: Shell(self, self.c, built.USER, HOME)}
        difference = page.run(shells)
        if WRITE:
            PAGE.write_text(page.text())
        self.assertEqual(difference, "", "deploy/TOUR.md is not what its commands print")
        self.assertIn(NEWER, "".join(line for c in page.commands for line in c.shown), "the upgrade is on the page")


WRITE = "--write" in sys.argv
if __name__ == "__main__":
    skip_without_chroot()
    unittest.main(argv=[a for a in sys.argv if a != "--write"], verbosity=2)
