"""A step that says on disk when it begins and when it ends: work.py LOG NAME SECONDS [WHERE]. The oracle of test_shard_agents.py."""
import os
import sys
import time


def say(log, what, name, where):
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, ("%d %s %s %s\n" % (time.clock_gettime_ns(time.CLOCK_MONOTONIC), what, name, where)).encode())
    os.fsync(fd)
    os.close(fd)


def work(log, name, seconds, where):
    say(log, "begin", name, where)
    time.sleep(float(seconds))
    say(log, "end", name, where)


if __name__ == "__main__":
    work(*sys.argv[1:4], os.environ.get("BATON_INSTANCE_ID", "-"))
    print(sys.argv[2])
