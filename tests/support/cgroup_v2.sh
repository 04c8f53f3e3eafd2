#!/bin/sh
# The init of a User Mode Linux: cgroup v2 with all its controllers, which the machine of the tests may have in v1.
# $bin: the programs. What it prints is read by test_cgroup_v2.py. The machine ends with it.
echo "the kernel runs"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /mnt
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/unit/baton /sys/fs/cgroup/plain /mnt/w
echo "+cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt
cat > /mnt/w/baton.yaml <<C
listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}
durability: process
agents:
  - {agentId: forks, command: [/bin/sh, -c, 'for i in 1 2 3 4 5 6 7 8 9; do sleep 50 & done; wait'], limits: {processes: 5}, startMs: 60000}
  - {agentId: eats, command: [/usr/bin/perl, -e, 'my \$x = "y" x (120 * 1024 * 1024); sleep 50'], limits: {memoryBytes: 67108864}, startMs: 60000}
  - {agentId: waits, command: [/bin/sleep, "50"], limits: {memoryBytes: 67108864, processes: 5, cpuPercent: 20}, startMs: 60000}
C
echo $$ > /sys/fs/cgroup/plain/cgroup.procs
"$bin"/batond --state /mnt/w/refused --config /mnt/w/baton.yaml
echo "in a cgroup with processes: exit $?"
echo $$ > /sys/fs/cgroup/unit/baton/cgroup.procs
"$bin"/batond --state /mnt/w/state --config /mnt/w/baton.yaml > /mnt/w/log 2>&1 &
n=0
until [ $n = 60 ] || { grep -q "name=forks#1.*limits.processes" /mnt/w/log && grep -q "name=eats#1.*limits.memoryBytes" /mnt/w/log; }; do
    sleep 1
    n=$((n + 1))
done
grep "agent.process" /mnt/w/log
for group in /sys/fs/cgroup/unit/baton.*; do
    echo "$(tr '\0' ' ' < /proc/$(head -n 1 $group/cgroup.procs)/cmdline): $(cat $group/memory.max $group/pids.max $group/cpu.max | tr '\n' ' ')"
done
echo o > /proc/sysrq-trigger
sleep 60
