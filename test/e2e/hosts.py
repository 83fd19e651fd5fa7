# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several hosts on one machine: network namespaces that are joined by a switch in this process, which delays frames, loses some,
and can be cut. Tests call `run_hosts`; the module itself is the program that runs within a namespace of its own, so that nothing
is left of it whatever happens.

The kernel's own emulation (netem) is not everywhere, and needs no less rights than this: those of root in a new namespace."""
import collections
import ctypes
import fcntl
import functools
import heapq
import itertools
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import waiting

OFFLOADS = {"rx checksums": 0x15, "tx checksums": 0x17, "segmentation": 0x1F, "generic segmentation": 0x24, "generic receive": 0x2C}
SIOCETHTOOL = 0x8946
GUARD = 120  # seconds, for what takes a second or two unless it hangs


def address(host):
    return f"10.77.0.{host + 1}"


def on_host(host):
    """Words before a command that let it run on a host, which has a name of its own."""
    name = f"h{host}"
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"', name]


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@functools.cache
def reason_not():
    """Why this machine cannot play several hosts; empty if it can."""
    probe = ["unshare", "--net", "--mount", "--fork", sys.executable, __file__, "probe"]
    done = subprocess.run(probe, text=True, capture_output=True, timeout=4 * GUARD)
    return "" if done.returncode == 0 else "no network namespaces: " + (done.stderr.strip().splitlines() or ["?"])[-1]


def run_hosts(count, commands, timeout, **network):
    """Runs commands, each on a host: [{"host": 0, "command": [...], "env": {...}}, ...]. `network`: delay_ms of each way,
    loss (the part of frames that is lost), seed, and cut: {"host": 1, "seen": "a text", "times": 4, "after_s": 0.5} takes that host off
    the network so long after the commands have together written that text so often. Returns for each command its status, output, error and
    when it ended: in seconds after the cut (after the start without one), and with a cut `own_seconds`, which are without the most that
    a thread on the hosts waited for a processor. What still runs after `timeout` seconds is killed, and its status is None: a guard, which is
    far from what any command takes."""
    world = {"count": count, "commands": commands, "timeout": timeout, **network}
    done = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, "run"],
                          text=True, input=json.dumps(world, default=str), capture_output=True, timeout=timeout + 4 * GUARD)
    if done.returncode:
        raise AssertionError(f"the hosts ended with {done.returncode}: {done.stderr[-4000:]}")
    return [collections.namedtuple("Ended", result)(**result) for result in json.loads(done.stdout)]


def without_offloads(device):
    """Frames as they would be on a wire: none is larger than the device takes, and checksums are there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in OFFLOADS.values():
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


class Switch:
    """Forwards frames between hosts: each to where its target was last seen, or to all."""

    def __init__(self, count, delay_ms=0, loss=0, seed=0):
        os.makedirs("/run/netns", exist_ok=True)
        # Names of namespaces, and of shared memory, of which some are made of process ids: those of other such namespaces are the same.
        for folder in ("/run/netns", "/dev/shm"):
            subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
        self.delay, self.loss, self.random = delay_ms / 1e3, loss, random.Random(seed)
        self.ports, self.hosts_of, self.cut, self.late, self.order = [], {}, set(), [], itertools.count()
        for host in range(count):
            namespace = ["-n", f"h{host}"]
            ip("netns", "add", f"h{host}")
            ip("link", "add", f"p{host}", "type", "veth", "peer", "name", "eth0", "netns", f"h{host}")
            ip(*namespace, "addr", "add", f"{address(host)}/24", "dev", "eth0")
            subprocess.run(["ip", "netns", "exec", f"h{host}", sys.executable, __file__, "without-offloads", "eth0"], check=True)
            without_offloads(f"p{host}")
            for words in ([*namespace, "link", "set", "eth0", "up"], [*namespace, "link", "set", "lo", "up"],
                          ["link", "set", f"p{host}", "up"]):
                ip(*words)
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            port.bind((f"p{host}", 0))
            port.setblocking(False)
            self.ports.append(port)

    def forward(self, seconds):
        """For at most so long."""
        now = time.monotonic()
        if self.late:
            seconds = min(seconds, max(0, self.late[0][0] - now))
        for port in select.select(self.ports, [], [], seconds)[0]:
            host = self.ports.index(port)
            for _ in range(64):
                try:
                    frame, sender = port.recvfrom(1 << 16)
                except BlockingIOError:
                    break
                if sender[2] == socket.PACKET_OUTGOING:
                    continue
                self.hosts_of[frame[6:12]] = host
                if host not in self.cut and self.random.random() >= self.loss:
                    heapq.heappush(self.late, (time.monotonic() + self.delay, next(self.order), host, frame))
        while self.late and self.late[0][0] <= time.monotonic():
            _, _, host, frame = heapq.heappop(self.late)
            target = self.hosts_of.get(frame[:6])
            for to in range(len(self.ports)) if target is None else [target]:
                if to != host and to not in self.cut:
                    try:
                        self.ports[to].send(frame)
                    except (BlockingIOError, OSError):
                        pass  # a full queue loses frames, as a switch does


def main_run(count, commands, timeout, delay_ms=0, loss=0, seed=0, cut=None):
    switch = Switch(count, delay_ms, loss, seed)
    running, results = {}, [None] * len(commands)
    files = []
    for index, spec in enumerate(commands):
        out, err = (os.memfd_create(name) for name in ("out", "err"))
        files.append((out, err))
        command = [*on_host(spec["host"]), *spec["command"]]
        running[index] = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
                                          env={**os.environ, **{k: str(v) for k, v in spec.get("env", {}).items()}})
    try:  # a network takes no processor from hosts, and none from it
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except OSError:
        pass  # not everywhere may a process do so
    start = time.monotonic()
    origin = None if cut else start
    lost, next_look = waiting.Waiting(), start
    while running:
        now = time.monotonic()
        if cut and now >= next_look:
            lost.see(waiting.all_processes())
            next_look = now + 0.05
        if origin is None and sum(os.pread(fd, 1 << 24, 0).count(cut["seen"].encode()) for pair in files for fd in pair) >= cut["times"]:
            origin = now + cut["after_s"]
        if cut and origin is not None and now >= origin and not switch.cut:
            switch.cut.add(cut["host"])
            origin = now
            lost.begin()
        switch.forward(0.02)
        for index, process in list(running.items()):
            late = now > start + timeout
            if late:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if late or process.poll() is not None:
                out, err = (os.pread(fd, 1 << 24, 0).decode(errors="replace") for fd in files[index])
                seconds = time.monotonic() - (start if origin is None else origin)
                results[index] = {"status": None if late else process.returncode, "stdout": out, "stderr": err, "seconds": seconds,
                                  "own_seconds": seconds - lost.most()}
                del running[index]
    print(json.dumps(results))


def main_probe():
    """Two hosts that greet each other through the switch."""
    switch = Switch(2)
    code = ("import socket; s = socket.create_server(('{0}', 7000)); s.accept()[0].sendall(b'hello')",
            f"import socket, time\nfor _ in range({10 * GUARD}):\n try:\n  assert socket.create_connection(('{{0}}', 7000), 5).recv(9) == b'hello'; break\n"
            " except ConnectionError: time.sleep(0.1)\nelse: raise SystemExit('no connection')")
    processes = [subprocess.Popen(["ip", "netns", "exec", f"h{host}", sys.executable, "-c", code[host].format(address(0))])
                 for host in range(2)]
    end = time.monotonic() + GUARD
    while any(p.poll() is None for p in processes):
        if time.monotonic() > end:
            raise SystemExit("frames do not arrive")
        switch.forward(0.02)
    raise SystemExit(max(p.returncode for p in processes))


if __name__ == "__main__":
    if sys.argv[1] == "without-offloads":
        without_offloads(sys.argv[2])
    elif sys.argv[1] == "probe":
        main_probe()
    else:
        main_run(**json.load(sys.stdin))
