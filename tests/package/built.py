"""What the tests of this folder share: this tree, built as README.md says in a Debian with nothing but what is needed for it,
and its packages. Both are kept until a file of the tree changes."""
import hashlib
import pathlib
import shutil
import tempfile

from chroot import CACHE, Chroot, copy, made, prepared, source_tree

USER = "newcomer"
TREE = "/srv/baton"
BUILD = "cmake --preset release && ninja -C build/release"  # README.md
PACKAGES = "cmake --preset package && ninja -C build/package && cpack --preset package"  # deploy/README.md


def as_user(c, command, **kwargs):
    """In the tree, as somebody who is not root."""
    env = {"HOME": "/home/" + USER, **kwargs.pop("env", {})}
    return c.sh("cd %s && %s" % (TREE, command), user=USER, env=env, **kwargs)


def kept(name, template, command):
    """A copy of the chroot `template` with this tree in it after the command of a user; older ones of the name are removed."""
    part = pathlib.Path(tempfile.mkdtemp(prefix="tree.part-", dir=CACHE))
    try:
        source_tree(part / "tree")
        told = hashlib.sha256((template.name + command).encode())
        parts = sorted(p for p in (part / "tree").rglob("*") if p.is_file() and p.relative_to(part).parts[1] != "tests")
        for path in parts:  # tests are neither built nor packed
            told.update(str(path.relative_to(part)).encode() + path.read_bytes())
        now = "%s-%s" % (name, told.hexdigest()[:12])

        def make(where):
            for old in CACHE.glob(name + "-*"):
                if old.is_dir() and old.name != where.name and ".part-" not in old.name:
                    shutil.rmtree(old)
            copy(template, where)
            with Chroot(where) as c:
                c.sh("useradd --create-home --shell /bin/bash %s" % USER)
                c.path(TREE).mkdir()
                copy(part / "tree", c.path(TREE))
                c.sh("chown -R %s: %s" % (USER, TREE))
                as_user(c, command, timeout=1800)

        return made(now, make)
    finally:
        shutil.rmtree(part)


def release():
    """The chroot of somebody who typed README.md's first build command after `sh deploy/install.sh build`."""
    return kept("release", prepared("build", "sh /tmp/install.sh build", "deploy/install.sh"), BUILD)


def packages():
    """The chroot with the .debs, in build/package/packages of the tree."""
    template = prepared("package", "sh /tmp/install.sh package", "deploy/install.sh")
    return kept("packages", template, PACKAGES)
