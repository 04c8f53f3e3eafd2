"""Limits of agents by the controllers of cgroup v2, in a kernel of their own (User Mode Linux), whatever this machine has mounted."""
import os
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, ROOT, main, sanitized

UML = shutil.which(os.environ.get("BATON_UML", "linux.uml"))


@unittest.skipUnless(UML, "SKIPPED: linux.uml is not installed (package user-mode-linux, or BATON_UML)")
@unittest.skipIf(sanitized(), "SKIPPED: the address space of a User Mode Linux is too small for sanitizers")
class CgroupV2(unittest.TestCase):
    def test_limits_hold_and_a_cgroup_with_processes_refuses_to_start(self):
        with tempfile.TemporaryDirectory(prefix="baton-uml-") as folder:
            done = subprocess.run([UML, "mem=1000M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null", "con0=null,fd:1",
                                   "bin=%s" % BIN, "init=%s" % (ROOT / "tests/support/cgroup_v2.sh")],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=400, env={**os.environ, "TMPDIR": folder})
        said = done.stdout + done.stderr
        if "the kernel runs" not in said:
            self.skipTest("SKIPPED: User Mode Linux does not start here: " + said[-300:])
        self.assertIn("in a cgroup with processes: exit 2", said)
        self.assertRegex(said, r"agents\.1\.limits\.memoryBytes: .*cgroup.*\"eats\"")
        self.assertRegex(said, r"exited name=forks#1 .*it had reached its limits\.processes")
        self.assertRegex(said, r"exited name=eats#1 .*killed by signal 9; it had reached its limits\.memoryBytes")
        self.assertRegex(said, r"/bin/sleep 50 : 67108864 5 20000 100000")


if __name__ == "__main__":
    main()
