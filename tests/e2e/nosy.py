#!/usr/bin/env python3
"""A program that exec runs: what it can get at beyond its own parameters, as JSON. Arguments: what to look for."""
import glob
import json
import os
import sys

wanted = sys.argv[1].encode()


def tries(name):
    try:
        with open(name, "rb") as f:
            return f.read(1 << 20)
    except OSError:
        return b""


seen = {"environ": [], "mem": [], "fds": [], "own": sorted(k for k in os.environ if k.startswith("BATON_"))}
for process in glob.glob("/proc/[0-9]*"):
    pid = int(process[6:])
    if pid == os.getpid():
        continue
    if wanted in tries(process + "/environ"):
        seen["environ"].append(pid)
    try:
        os.close(os.open(process + "/mem", os.O_RDONLY))
        name = tries(process + "/comm").strip().decode()
        if name.startswith("baton"):
            seen["mem"].append(name)
    except OSError:
        pass
seen["fds"] = sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n))
print(json.dumps(seen))
