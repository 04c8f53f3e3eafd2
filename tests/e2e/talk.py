"""`baton chat` on a pseudo terminal: keys in, and what stands on the screen.

    t = Talk(self, state_dir)               # or Talk(self, state_dir, "--session", "s")
    t.type("hello\\r")
    t.until("> $")                          # the screen, once the pattern is on it
"""
import fcntl
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time

from harness import BIN


def render(data, columns):
    """The lines of a terminal that got these bytes: what chat uses of one. Lines are wrapped as a terminal does."""
    lines, at, row = [[]], 0, 0
    text = data.decode(errors="replace")
    i = 0
    while i < len(text):
        c = text[i]
        mode = re.match(r"\x1b\[\?\d+[hl]", text[i:i + 12])
        if mode:
            i += mode.end()
            continue
        if text.startswith("\x1b[K", i):
            del lines[row][at:]
            i += 3
            continue
        if c == "\r":
            at = 0
        elif c == "\n":
            lines.append([])
            row += 1
        else:
            if at == columns:
                lines.append([])
                row, at = row + 1, 0
            line = lines[row]
            line += " " * (at - len(line))
            line[at:at + 1] = [c]
            at += 1
        i += 1
    return ["".join(line) for line in lines]


class Talk:
    def __init__(self, test, state, *args, columns=100, env=None):
        self.columns = columns
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen([BIN / "baton", "chat", *map(str, args), "--state", str(state)], stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, env={**os.environ, "TERM": "xterm", **(env or {})}, process_group=0)
        self.bytes = b""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        test.addCleanup(self.close)

    def read(self):
        while True:
            try:
                part = os.read(self.master, 65536)
            except OSError:
                return
            self.bytes += part
            if b"\0end\0" in part:
                return

    def screen(self):
        return "\n".join(render(self.bytes, self.columns))

    def until(self, pattern, seconds=15):
        """The screen, when the pattern is on it."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.screen()):
            if time.monotonic() > deadline or (self.process.poll() is not None and not re.search(pattern, self.screen())):
                raise AssertionError("%r did not come; the screen:\n%s" % (pattern, self.screen()))
            time.sleep(0.01)
        return self.screen()

    def type(self, keys):
        os.write(self.master, keys.encode())

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds=15):
        """-> exit code"""
        return self.process.wait(seconds)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.reader.is_alive():
            os.write(self.slave, b"\0end\0")  # wakes the reader
            self.reader.join(10)
        for fd in (self.master, self.slave):
            os.close(fd)


class Tmux:
    """`baton chat` in a window of tmux, a terminal that others wrote."""

    def __init__(self, test, state, *args):
        self.work = tempfile.mkdtemp(prefix="baton-tmux-")
        test.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        test.addCleanup(self.close)
        self.socket = os.path.join(self.work, "tmux")
        command = shlex.join([str(BIN / "baton"), "chat", *map(str, args), "--state", str(state)])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "60", command + "; echo left with $?; cat")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], capture_output=True, text=True, timeout=20, check=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "screen"}).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-S", "-").rstrip("\n")

    def until(self, pattern, seconds=25):
        deadline = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if re.search(pattern, screen):
                return screen
            if time.monotonic() > deadline:
                raise AssertionError("%r did not come; the screen:\n%s" % (pattern, screen))
            time.sleep(0.05)

    def type(self, text, *keys):
        self.tmux("send-keys", "-l", text)
        if keys:
            self.tmux("send-keys", *keys)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=20)
