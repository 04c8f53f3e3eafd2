"""The first minute of somebody new: a Debian that holds what `sh deploy/install.sh build` installs and nothing else. The build
command and the commands of README.md, and those of deploy/TOUR.md pasted as one block, all as a user who is not root."""
import re
import unittest

import built
from chroot import ROOT, Chroot, skip_without_chroot

# Line numbers are of the block. bash goes on after a command that failed, as a terminal does.
PASTED = "trap 'echo \"exit $? of: $BASH_COMMAND\" >&3' ERR\n"


def commands(page, begin, end):
    """The indented lines of a page; with prompts, what follows them."""
    text = (ROOT / page).read_text()
    text = text[text.index(begin):text.index(end) if end else None]
    lines = re.findall(r"^    (.*)$", text, re.M)
    prompts = [line[2:] for line in lines if line.startswith("$ ")]
    return "\n".join(prompts or lines) + "\n"


class FirstMinute(unittest.TestCase):
    def setUp(self):
        self.c = Chroot.of(self, built.release())

    def paste(self, block):
        """Runs a block as if it were pasted into a terminal; what each command that failed exited with, and all output."""
        self.c.path("/tmp/block").write_text(PASTED + block)
        out = built.as_user(self.c, "exec 3>/tmp/failed; PATH=$PWD/build/release/bin:$PATH; timeout 300 bash /tmp/block", code=None)
        return self.c.path("/tmp/failed").read_text().splitlines(), out

    def test_commands_of_readme_run_as_one_block(self):
        self.assertIn("`%s`" % built.BUILD, (ROOT / "README.md").read_text())
        failed, out = self.paste("export BATON_STATE=/tmp/baton-tour\n" + commands("README.md", "## Six commands", "## Write an agent"))
        self.assertEqual(failed, [], out)
        self.assertRegex(out, r"(?m)^30$")
        self.assertIn("baton is down", out)

    def test_tour_runs_as_one_block(self):
        failed, out = self.paste(commands("deploy/TOUR.md", "## Every feature", None))
        self.assertEqual(failed, ["exit 4 of: baton run --plan deploy/examples/publish.yaml --key tour"], out)
        self.assertIn("HELLO, READER!", out)
        self.assertIn("baton is down", out)

    def test_command_of_deploy_readme_installs_without_packages(self):
        (line,) = [line.strip() for line in (ROOT / "deploy/README.md").read_text().splitlines() if "sudo cmake --install" in line]
        build, install = line.split(" && sudo ")
        self.assertEqual(build, built.BUILD)
        self.c.sh("cd %s && %s" % (built.TREE, install))
        self.assertIn("0.3.0", self.c.sh("/usr/local/bin/baton version"))
        self.assertIn("hello", self.c.sh("/usr/local/bin/baton init --list"))

    def test_quickstart_reports_on_its_small_log(self):
        out = built.as_user(self.c, "sh deploy/quickstart.sh deploy/examples/dpkg.log")
        self.assertIn("## Installed per day", out)


if __name__ == "__main__":
    skip_without_chroot()
    unittest.main(verbosity=2)
