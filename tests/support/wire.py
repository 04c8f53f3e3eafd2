"""A line between two network namespaces, packet by packet: the kernels of test machines need no netem.

    wire.py PID      run in one namespace; the other end goes to the namespace of process PID

Two TUN devices, 192.0.2.1 here and 192.0.2.2 there. Commands on stdin, one a line, each answered with "ok":

    loss PERCENT     of the packets, at random from a fixed seed
    delay MS         each way
    down | up        nothing passes, and nobody is told: the peers keep half-open connections
    reset            until `up`: each packet of TCP is turned into resets, one for each end
"""
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def tun(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def ip(*args, inside=None):
    prefix = [] if inside is None else ["nsenter", "-t", inside, "-n"]
    subprocess.run([*prefix, "ip", *args], check=True)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def reset(packet, back):
    """What a firewall sends that rejects this segment: on to its receiver, or back to its sender. Of other packets, None."""
    head = (packet[0] & 15) * 4
    if packet[0] >> 4 != 4 or packet[9] != 6 or packet[head + 13] & 0x02 or (back and packet[head + 13] & 0x04):
        return None
    tcp, ip4 = bytearray(packet[head:head + 20]), bytearray(packet[:20])
    if back:
        ip4[12:16], ip4[16:20] = packet[16:20], packet[12:16]
        tcp[0:2], tcp[2:4], tcp[4:8] = tcp[2:4], tcp[0:2], tcp[8:12]
    tcp[12], tcp[13], tcp[16], tcp[17] = 0x50, 0x04 if back else 0x14, 0, 0  # 5 words; RST, and ACK
    pseudo = ip4[12:20] + struct.pack("!BBH", 0, 6, 20)
    tcp[16:18] = struct.pack("!H", checksum(pseudo + bytes(tcp)))
    ip4[0], ip4[2:4], ip4[10:12] = 0x45, struct.pack("!H", 40), b"\0\0"
    ip4[10:12] = struct.pack("!H", checksum(bytes(ip4)))
    return bytes(ip4) + bytes(tcp)


def main():
    other = sys.argv[1]
    near, far = tun("wire0"), tun("wire1")
    ip("link", "set", "wire1", "netns", other)
    ip("addr", "add", "192.0.2.1/24", "dev", "wire0")
    ip("link", "set", "wire0", "up")
    ip("addr", "add", "192.0.2.2/24", "dev", "wire1", inside=other)
    ip("link", "set", "wire1", "up", inside=other)
    ip("link", "set", "lo", "up", inside=other)
    print("ok", flush=True)
    dice = random.Random(7)
    loss, delay, mode, waiting, n = 0.0, 0.0, "up", [], 0
    os.set_blocking(0, False)
    while True:
        rest = None if not waiting else max(0, waiting[0][0] - time.monotonic())
        ready = select.select([near, far, 0], [], [], rest)[0]
        for fd in ready:
            if fd == 0:
                text = os.read(0, 4096).decode()
                if not text:
                    return
                for line in text.splitlines():
                    word, *value = line.split()
                    loss = float(value[0]) / 100 if word == "loss" else loss
                    delay = float(value[0]) / 1000 if word == "delay" else delay
                    mode = word if word in ("up", "down", "reset") else mode
                    print("ok", flush=True)
                continue
            try:
                packet = os.read(fd, 65536)
            except BlockingIOError:
                continue
            if mode == "down" or dice.random() < loss:
                continue
            on, back = (far, near) if fd == near else (near, far)
            for to, out in [(on, packet)] if mode != "reset" else [(on, reset(packet, False)), (back, reset(packet, True))]:
                if out is not None:
                    n += 1
                    heapq.heappush(waiting, (time.monotonic() + delay, n, to, out))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(waiting)
            try:
                os.write(to, packet)
            except OSError:
                pass  # the end is down, or its queue is full: as on a line


main()
