"""What the programs write where others may write, too: a process of another user that renames, links and replaces while they do."""
import ctypes
import os
import pathlib
import unittest

from harness import BatonTest, main

NOBODY = 65534
ROUNDS = 40
PLAN = "01A2132A-3B8E-7099-8994-3B51D43B4B84"
RENAME_EXCHANGE = 2
AT_FDCWD = -100
LIBC = ctypes.CDLL(None, use_errno=True)


def exchange(one, other):
    return LIBC.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: only root can make processes of another user")
class Shared(BatonTest):
    """A directory that everybody may write to, without the sticky bit."""

    def setUp(self):
        self.d = self.daemon(config="agents: []\n", agents=False)
        self.d.stop()
        self.shared = pathlib.Path(self.d.work, "shared")
        self.shared.mkdir()
        self.shared.chmod(0o777)
        self.d.work.chmod(0o755)

    def attack(self, once):
        """Another user's process that calls this until it returns True; ended by the test."""
        said, says = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                os.write(says, b".")
                while not once():
                    pass
                os.write(says, b"!")
            finally:
                os._exit(0)
        os.close(says)
        self.assertEqual(os.read(said, 1), b".")

        def end():
            os.set_blocking(said, False)
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            won = os.read(said, 1) == b"!"
            os.close(said)
            return won
        return end

    def test_a_copy_of_the_journal_is_written_into_no_file_of_another_user(self):
        won = 0
        for n in range(ROUNDS):
            copy, part, trap = (self.shared / (name % n) for name in ("copy%d.db", "copy%d.db.part", "trap%d"))
            trap.write_bytes(b"")
            os.chown(trap, NOBODY, NOBODY)
            trap.chmod(0o666)
            with open(trap, "rb") as watched:
                end = self.attack(lambda: exchange(trap, part))
                done = self.d.cli_any("backup", copy)
                won += end()
                self.assertEqual(watched.read(), b"", "the journal is in a file of another user: round %d" % n)
            if done.returncode == 0:
                self.assertEqual(copy.stat().st_uid, 0)
                self.d.cli("verify", copy)
            else:
                self.assertIn("cop", done.stderr)
                self.assertFalse(copy.exists())
        self.assertGreater(won, 0, "not one race was won: the test shows nothing")

    def test_files_of_results_go_into_no_directory_of_another_user(self):
        kept = self.d.state / "artifacts" / PLAN
        kept.mkdir(parents=True, exist_ok=True)
        for folder in (kept.parent, kept):
            folder.chmod(0o700)
        (kept / "secret").write_text("secret")
        for n in range(ROUNDS // 2):
            copy = self.shared / ("copy%d.db" % n)
            there = self.shared / ("there%d" % n)
            (self.shared / (copy.name + ".artifacts")).symlink_to(there)

            def once(path=os.fspath(there)):
                os.mkdir(path, 0o777)
                try:
                    os.rmdir(path)
                except OSError:
                    return True
                return False
            end = self.attack(once)
            done = self.d.cli_any("backup", copy)
            end()
            self.assertFalse(there.exists() and list(there.iterdir()), "the files are in a directory of another user: round %d" % n)
            self.assertNotEqual(done.returncode, 0)


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: only root can give directories away")
class Parents(BatonTest):
    def test_a_daemon_does_not_start_below_a_directory_that_others_may_change(self):
        d = self.daemon(config="agents: []\n", start=False)
        d.state.mkdir(mode=0o700, exist_ok=True)
        d.work.chmod(0o777)
        self.refused(d, "everybody may write to it")
        d.work.chmod(0o755)
        os.chown(d.work, NOBODY, NOBODY)
        self.refused(d, "belongs to user %d" % NOBODY)
        os.chown(d.work, 0, 0)
        d.start(agents=False)
        self.assertEqual(d.stop(), 0)

    def refused(self, d, why):
        with self.assertRaises(AssertionError):
            d.start(agents=False)
        self.assertIn(why, (d.work / "batond.log").read_text())


if __name__ == "__main__":
    main()
