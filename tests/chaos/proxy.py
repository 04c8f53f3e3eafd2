"""A TCP relay with faults: it can stall, cut all connections, refuse new ones, or end one in the middle of a frame."""
import random
import socket
import threading


class Proxy:
    def __init__(self, target, seed):
        """`target()` gives the port to go on to, or None when nobody listens."""
        self.target = target
        self.chance = random.Random(seed)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = "tcp://127.0.0.1:%d" % self.server.getsockname()[1]
        self.lock = threading.Lock()
        self.open = set()
        self.flowing = threading.Event()
        self.flowing.set()
        self.refusing = False
        self.half = None  # bytes that still pass before the next connection to send is ended
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.closed:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            try:
                port = None if self.refusing else self.target()
                if port is None:
                    raise OSError("nobody listens")
                far = socket.create_connection(("127.0.0.1", port), 5)
                far.settimeout(None)
            except (OSError, ValueError):
                near.close()
                continue
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.open |= {near, far}
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    def _pump(self, source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                self.flowing.wait()
                with self.lock:
                    half, self.half = self.half, None
                if half is not None:
                    sink.sendall(data[:min(half, len(data) - 1)])
                    break
                sink.sendall(data)
        except OSError:
            pass
        with self.lock:
            self.open -= {source, sink}
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def cut(self):
        with self.lock:
            for s in self.open:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def fault(self):
        """Begins a fault; its name. heal() ends it."""
        kind = self.chance.choice(("cut", "stall", "refuse", "half"))
        if kind == "stall":
            self.flowing.clear()
        elif kind == "half":
            with self.lock:
                self.half = self.chance.randrange(40)
        else:
            self.refusing = kind == "refuse"
            self.cut()
        return kind

    def heal(self):
        self.refusing = False
        with self.lock:
            self.half = None
        self.flowing.set()

    def close(self):
        self.closed = True
        self.heal()
        self.server.close()
        self.cut()
