# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long threads have waited for a processor, as Linux counts it. What a test says of the time that something takes holds on a machine that
is busy with other work too if the most that one of them waited is taken off: who is not let run cannot be in time."""
import os


def waited_by(pid):
    """Seconds by thread, of those that are there; nothing where Linux does not count."""
    found = {}
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                found[pid, thread] = int(file.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            pass
    return found


class Waiting:
    """Of the processes that it is shown again and again: threads that end keep what they had when they were last seen."""

    def __init__(self):
        self.threads, self.at_begin = {}, {}

    def see(self, pids):
        for pid in pids:
            self.threads |= waited_by(pid)

    def begin(self):
        """What was before does not count."""
        self.at_begin = dict(self.threads)

    def most(self):
        """Seconds since the beginning, of the thread that waited most."""
        return max((seconds - self.at_begin.get(thread, 0.0) for thread, seconds in self.threads.items()), default=0.0)


def all_processes():
    """Of this namespace."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
