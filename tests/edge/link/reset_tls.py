"""Clients that go away in the middle of the handshake: python3 reset_tls.py PORT CERT_AND_KEY_PEM N SEED

Each sends all that a client has to send, waits 0 to 30 ms, and resets its connection while the server works on it: a server
that begins to read after that reads from a closed connection (N33)."""
import random
import socket
import ssl
import struct
import sys
import time


def client(port, pem, wait):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(pem)
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, to_send)
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        for _ in range(2):  # ClientHello; certificate to Finished
            while not to_send.pending:
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    pass
                if not to_send.pending:
                    received.write(s.recv(65536))
            s.sendall(to_send.read())
        time.sleep(wait)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def main():
    port, pem, n, seed = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    rng = random.Random(seed)
    done = 0
    for _ in range(n):
        try:
            client(port, pem, rng.random() * 0.03)
            done += 1
        except OSError:  # refused while the listener is replaced
            time.sleep(0.05)
    print(done)


main()
