"""Debian in a directory: what a machine has that holds nothing but what is installed in it.

A chroot has its own processes, mounts and network. They end with the test, however it ends: everything in it is a child
of one process in a pid namespace. `debootstrap` makes the first one; others are copies of what it made.
Where that is not possible (no root, no namespaces, no mirror of Debian), `why_not` has the reason, and tests skip.
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("BATON_CHROOTS", ROOT / "build" / "chroots"))
SUITE = "bookworm"
MIRROR = os.environ.get("BATON_MIRROR")  # of Debian; else the one that debootstrap knows
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Failed(AssertionError):
    pass


def tool(*command, timeout=900, **kwargs):
    """Runs a program of this machine; its output."""
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, **kwargs)
    if done.returncode != 0:
        raise Failed("%s: exit %d\n%s" % (" ".join(map(str, command)), done.returncode, done.stdout[-6000:]))
    return done.stdout


def why_not():
    """The reason why no chroot can be made here, or None."""
    if os.geteuid() != 0:
        return "only root can make a chroot; run this test as root"
    for program in ("debootstrap", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return "%s is missing; `sh deploy/install.sh full` installs it" % program
    try:
        tool("unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "true")
    except Failed as error:
        return "no namespaces: %s" % error
    try:
        base()
    except Failed as error:
        return "debootstrap failed: %s" % error
    return None


def skip_without_chroot():
    """Called at the beginning of a module: prints why it is skipped, and skips it (ctest's code 77)."""
    reason = why_not()
    if reason is not None:
        print("SKIPPED: %s: %s" % (pathlib.Path(sys.argv[0]).name, reason), flush=True)
        sys.exit(77)


def made(name, make):
    """The directory `name` of the cache; `make` fills a new one, which appears under its name when it is whole."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / (name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        where = CACHE / name
        if not where.exists():
            part = pathlib.Path(tempfile.mkdtemp(prefix=name + ".part-", dir=CACHE))
            part.chmod(0o755)
            try:
                make(part)
                part.rename(where)
            except BaseException:
                shutil.rmtree(part)
                raise
        return where


def base():
    """Debian's smallest system, with the lists of its packages."""
    return made(SUITE, lambda where: tool("debootstrap", "--variant=minbase", SUITE, where, *filter(None, [MIRROR])))


def prepared(name, command, *sources):
    """`base` after `command`, which reads the files `sources` of the tree; made again when one of them changes."""
    base()
    told = hashlib.sha256(command.encode() + b"".join((ROOT / s).read_bytes() for s in sources)).hexdigest()[:12]

    def make(where):
        copy(base(), where)
        for source in sources:
            shutil.copy(ROOT / source, where / "tmp")
        with Chroot(where) as c:
            c.sh(command, network=True)

    return made("%s-%s" % (name, told), make)


def copy(source, target):
    tool("cp", "-a", "--reflink=auto", "%s/." % source, target)


def source_names():
    """The files of this tree: what version control has or would take; where it has nothing to say, all but what builds made."""
    git = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if git.returncode == 0 and git.stdout:
        return [name for name in git.stdout.decode().split("\0") if name]
    names = []
    for where, directories, files in os.walk(ROOT):
        directories[:] = [d for d in directories if d not in (".git", "build", "__pycache__")]
        names += [os.path.relpath(os.path.join(where, name), ROOT) for name in files]
    return sorted(names)


def source_tree(where):
    """This tree as it stands, without what builds made, copied to the directory `where`."""
    where.mkdir(parents=True)
    for name in source_names():
        if (ROOT / name).is_file():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, where / name)


class Chroot:
    """A system below `root`, running until the end of the `with`, or of the test (`of`)."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.init = None

    @classmethod
    def of(cls, test, template):
        """A copy of `template` for a test or a class of tests, removed at its end."""
        add = test.addClassCleanup if isinstance(test, type) else test.addCleanup
        root = pathlib.Path(tempfile.mkdtemp(prefix="baton-chroot-"))
        add(shutil.rmtree, root)
        root.chmod(0o755)
        copy(template, root)
        self = cls(root)
        self.__enter__()
        add(self.__exit__)
        return self

    def __enter__(self):
        self.holder = subprocess.Popen(["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child",
                                        sys.executable, "-B", __file__, str(self.root)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline().strip() != "ready":
            raise Failed("no namespaces for " + str(self.root))
        self.init = int(pathlib.Path("/proc/%d/task/%d/children" % (self.holder.pid, self.holder.pid)).read_text().split()[0])
        return self

    def __exit__(self, *_):
        self.holder.stdin.close()  # the first process of the namespace ends at this, and everything in it
        self.holder.wait(30)
        self.holder.stdout.close()

    def any(self, command, network=False, user=None, timeout=900, env=None):
        """Runs a command of the shell in the chroot. `network`: with the one of this machine, as apt needs it."""
        enter = ["nsenter", "-t", str(self.init), "-m", "-p", "-i"] + ([] if network else ["-n"])
        as_user = ["--userspec=" + user] if user else []
        environment = {"PATH": PATH, "HOME": "/", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **(env or {})}
        # A file and no pipe: what the command leaves running may keep it.
        with tempfile.TemporaryFile("w+") as out:
            code = subprocess.run([*enter, "chroot", *as_user, str(self.root), "sh", "-c", command], env=environment,
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=timeout).returncode
            out.seek(0)
            return code, out.read()

    def sh(self, command, code=0, **kwargs):
        """As `any`, and fails with another exit code than `code` (None: any); the output."""
        got, out = self.any(command, **kwargs)
        if code is not None and got != code:
            raise Failed("%s\nexit %d, not %d\n%s" % (command, got, code, out[-6000:]))
        return out

    def exists(self, path):
        return os.path.lexists(self.path(path))

    def path(self, path):
        return self.root / str(path).lstrip("/")


def main(root):
    """The first process of the namespaces: mounts, the loopback device, and every orphan's parent."""
    tool("mount", "--make-rprivate", "/")
    tool("mount", "-t", "proc", "proc", root + "/proc")
    tool("mount", "-t", "tmpfs", "tmpfs", root + "/run")
    pathlib.Path(root, "run/lock").mkdir()
    shutil.copy("/etc/resolv.conf", root + "/etc/resolv.conf")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    reader = os.fork()
    if reader == 0:
        print("ready", flush=True)
        sys.stdin.read()  # until the test closes it
        os._exit(0)
    while os.wait()[0] != reader:
        pass


if __name__ == "__main__":
    main(sys.argv[1])
