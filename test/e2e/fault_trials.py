# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random faults of ranks that a launcher has started, one trial for each seed: what is done to which rank and when. The module is also the
program that makes trials, in namespaces of its own where the machine allows them: then nothing but the trial is in its folder
/dev/shm, in its network and among its processes, so that what a trial leaves behind is seen, and is gone in any case afterwards."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid

import fault_checks
import waiting

WORLD = 4
DEADLINE = 4.0  # of the ranks, in seconds
LATE = 1.5  # the most that a rank is late without a fault
PATIENCE = 60.0  # the deadline of ranks that wait for one that is late: a busy machine may add to that
GUARD = 120.0  # for what comes within a second or two unless something hangs
MOMENTS = ("joining", "loading", "step", "end")
SECRET = "a secret of the ranks of these trials"
MARKER = "SHARDC_FAULT_TRIAL"  # a variable of all processes of a trial
# By which variable a process is known to be a rank.
RANK_VARIABLES = {"threads": None, "processes": "SHARDRT_RANK", "alone": "RANK", "gloo": "RANK", "openmpi": "OMPI_COMM_WORLD_RANK",
                  "mpich": "PMI_RANK"}

EVERYWHERE = ("kill", "stop and continue", "slow rank", "full disk", "interrupt a rank")
OF_PROCESSES = EVERYWHERE + ("stop",)
OF_EACH_RANK = ("wrong artifact", "another plan", "another world size")  # needs a command line for each rank
FAULTS = {
    "threads": EVERYWHERE + ("another world size",),
    "processes": OF_PROCESSES + ("interrupt the launcher", "another world size"),
    "alone": OF_PROCESSES + OF_EACH_RANK + ("never starts",),
    "gloo": OF_PROCESSES + OF_EACH_RANK + ("never starts",),
    "openmpi": OF_PROCESSES + OF_EACH_RANK + ("interrupt the launcher",),
    "mpich": OF_PROCESSES + OF_EACH_RANK + ("interrupt the launcher",),
}


def plan_trials(communicator, count, seed):
    """(communicator, fault, seed) of each trial: every fault in turn, in a random order."""
    order = random.Random(f"{communicator} {seed}")
    faults = []
    while len(faults) < count:
        faults += order.sample(FAULTS[communicator], len(FAULTS[communicator]))
    return [(communicator, fault, seed + index) for index, fault in enumerate(faults[:count])]


class Failed(Exception):
    """A trial that did not end as it must."""


def environment_of(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(word.decode(errors="replace").split("=", 1) for word in words if b"=" in word)


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


class Trial:
    def __init__(self, world, communicator, fault, seed, folder):
        self.world, self.communicator, self.fault, self.seed, self.folder = world, communicator, fault, seed, folder
        self.random = random.Random(f"{communicator} {fault} {seed}")
        self.victim = self.random.randrange(WORLD)
        self.moment = self.random.choice(MOMENTS)
        self.delay = self.random.uniform(0, 0.06)
        self.steps, self.disk = 10, None
        self.deadline = PATIENCE if fault in fault_checks.RIGHT else DEADLINE
        if fault in ("kill", "stop", "interrupt a rank", "interrupt the launcher") and self.moment != "end":
            self.steps = 1000000  # it does not end by itself, before the fault comes or after it
        if fault == "full disk":
            self.disk = self.random.choice(["outputs", "trace", "records"])
            if self.disk == "records":
                self.moment, self.steps = "step", 1000000
        self.outputs = self.full("outputs") / "outputs.safetensors"
        self.trace = self.full("trace") / "trace.json"
        self.records = self.full("records") / "records"
        self.marker = uuid.uuid4().hex
        self.files, self.commands, self.pids, self.ended = [], [], {}, {}
        self.fault_time, self.waiting = None, waiting.Waiting()

    def full(self, what):
        """The folder for such files: the one without space if these are the trial's."""
        return self.world["full"] if self.disk == what else self.folder

    # Starting.

    def arguments(self, rank):
        artifact = self.world["artifacts"]["mlp"]
        if rank == self.victim and self.fault in OF_EACH_RANK:
            artifact = self.world["artifacts"][self.fault]
        weights = self.world["weights"]["wrong artifact" if rank == self.victim and self.fault == "wrong artifact" else "mlp"]
        words = [self.world["shard_run"], artifact, "--weights", weights, "--inputs", self.world["inputs"], "--outputs", self.outputs,
                 "--timeout", self.deadline, "--steps", self.steps, "--flight-record", self.records, "--progress", "--threads", 1]
        if self.disk == "trace" or (self.steps < 100 and self.random.random() < 0.5):
            words += ["--trace", self.trace]
        return [str(word) for word in words]

    def environment(self, **more):
        base = {name: value for name, value in os.environ.items() if not re.match("OMPI_|PMI|RANK$|WORLD_SIZE|SHARDRT_|MASTER_", name)}
        return base | {MARKER: self.marker, "SHARDRT_LINK": "20000,1", "TMPDIR": str(self.folder), **more}

    def spawn(self, command, **more):
        files = [open(self.folder / f"{len(self.commands)}.{name}", "w+b") for name in ("out", "err")]
        self.files.append(files)
        self.commands.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=files[0], stderr=files[1],
                                              start_new_session=True, env=self.environment(**more)))

    def start(self):
        state = self.random.getstate()
        ranks = []
        for rank in range(WORLD):  # all get the same choices
            self.random.setstate(state)
            ranks.append(self.arguments(rank))
        if self.communicator in ("alone", "gloo"):
            order = self.random.sample(range(WORLD), WORLD)
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            for rank in order:
                if self.fault == "never starts" and rank == self.victim:
                    continue
                if self.fault == "slow rank" and rank == self.victim:
                    time.sleep(self.random.uniform(0.2, LATE))
                size = WORLD - 1 if self.fault == "another world size" and rank == self.victim and rank < WORLD - 1 else WORLD
                more = {"SHARDRT_COMMUNICATOR": "gloo"} if self.communicator == "gloo" else {}
                self.spawn(ranks[rank], RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                           SHARDRT_SECRET=SECRET, **more)
                self.pids[rank] = self.commands[-1].pid
        elif self.communicator in ("openmpi", "mpich"):
            command = ["mpirun.openmpi", "--oversubscribe"] if self.communicator == "openmpi" else ["mpiexec.hydra"]
            for rank in range(WORLD):
                command += ([":"] if rank else []) + ["-n", "1", *ranks[rank]]
            self.spawn(command, SHARDRT_COMMUNICATOR="mpi", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        else:
            count = WORLD - 1 if self.fault == "another world size" else WORLD
            self.spawn([ranks[0][0], *(["--processes"] if self.communicator == "processes" else []), "-n", str(count), *ranks[0][1:]])
            if self.communicator == "threads":
                self.pids[0] = self.commands[0].pid
                self.victim = 0

    # What happens.

    def text(self):
        return "".join((self.folder / f"{index}.err").read_text(errors="replace") for index in range(len(self.commands)))

    def processes(self):
        """Of this trial: their variables by pid."""
        found = {int(name): environment_of(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()}
        return {pid: variables for pid, variables in found.items() if variables.get(MARKER) == self.marker and is_running(pid)}

    def find_ranks(self):
        variable = RANK_VARIABLES[self.communicator]
        if variable == "RANK" or not variable:
            return
        for pid, variables in self.processes().items():
            try:
                if variable in variables and os.path.samefile(f"/proc/{pid}/exe", self.world["shard_run"]):
                    self.pids[int(variables[variable])] = pid
            except OSError:
                pass

    def wait_until(self, happened, what):
        limit = time.monotonic() + GUARD
        while not happened():
            if all(command.poll() is not None for command in self.commands):
                return
            if time.monotonic() > limit:
                raise Failed(f"{what} did not come")
            time.sleep(0.002)

    def until_moment(self):
        def there():
            self.find_ranks()
            return self.victim in self.pids
        self.wait_until(there, "the rank's process")
        if self.victim not in self.pids:
            raise Failed("all has ended before the rank's process was seen")
        awaited = {"joining": "", "loading": "communicator:" if self.communicator != "threads" else "loading", "step": "step 3 of",
                   "end": f"step {self.steps} of"}[self.moment]
        self.wait_until(lambda: awaited in self.text(), awaited)
        time.sleep(self.delay)
        self.find_ranks()

    def signal(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def happen(self):
        """The fault, unless it lies in the commands already."""
        victim = lambda: self.pids.get(self.victim, -1 << 20)
        if self.fault in ("kill", "stop", "interrupt a rank", "stop and continue") or self.disk == "records" or (
                self.fault == "slow rank" and self.communicator not in ("alone", "gloo")) or self.fault == "interrupt the launcher":
            self.until_moment()
        self.begin_of_fault()
        if self.fault == "kill" or self.disk == "records":
            self.signal(victim(), signal.SIGKILL)
        elif self.fault == "stop":
            self.signal(victim(), signal.SIGSTOP)
        elif self.fault == "interrupt a rank":
            self.signal(victim(), signal.SIGINT)
        elif self.fault == "interrupt the launcher":
            self.signal(self.commands[0].pid, signal.SIGINT)
        elif self.fault == "stop and continue":
            self.signal(victim(), signal.SIGSTOP)
            time.sleep(self.random.uniform(0.1, LATE))
            self.signal(victim(), signal.SIGCONT)
        elif self.fault == "slow rank" and self.communicator not in ("alone", "gloo"):
            for _ in range(4):
                self.signal(victim(), signal.SIGSTOP)
                time.sleep(self.random.uniform(0.05, LATE / 6))
                self.signal(victim(), signal.SIGCONT)
                time.sleep(0.02)

    def survivors(self):
        stopped = {self.victim} if self.fault == "stop" else set()
        return {rank: pid for rank, pid in self.pids.items() if rank not in stopped}

    def fault_is_deadly(self):
        return self.fault not in ("stop and continue", "slow rank")

    def begin_of_fault(self):
        self.waiting.see([os.getpid(), *self.processes()])
        self.waiting.begin()
        self.fault_time = time.monotonic()

    def seconds(self):
        """Since the fault, without the time that the trial's processes, or this one, which looks at them, waited for a processor."""
        return time.monotonic() - self.fault_time - self.waiting.most()

    def follow(self):
        """Until all has ended, or it is far too late. A launcher may end before the ranks that it has killed have, and a rank that is
        ending has no variables any more, by which processes() knows it, while it still gives back what it has."""
        limit = time.monotonic() + GUARD
        stopped = self.fault == "stop" and self.communicator in ("alone", "gloo")
        while time.monotonic() < limit:
            self.find_ranks()
            left = self.processes()
            self.waiting.see([os.getpid(), *left])
            for rank, pid in self.pids.items():
                if rank not in self.ended and not is_running(pid):
                    self.ended[rank] = self.seconds()
            waits = {command.pid for command in self.commands if command.poll() is None}
            waits |= {pid for rank, pid in self.pids.items() if rank not in self.ended}
            # Behind the last collective nobody misses a rank that is stopped, but MPI's launcher, which waits for it as for any process.
            if self.waits_in_vain(waits):
                self.signal(self.pids[self.victim], signal.SIGCONT)
            if waits | set(left) <= ({self.pids[self.victim]} if stopped else set()):
                break
            time.sleep(0.005)
        if stopped:
            self.signal(self.pids[self.victim], signal.SIGKILL)
            next(c for c in self.commands if c.pid == self.pids[self.victim]).wait()
        for rank, pid in self.pids.items():
            if rank not in self.ended and not is_running(pid):
                self.ended[rank] = self.seconds()

    def waits_in_vain(self, waits):
        return (self.fault == "stop" and self.moment == "end" and self.communicator in fault_checks.MPI and self.outputs.exists()
                and waits == {self.commands[0].pid, self.pids.get(self.victim)})

    def make(self):
        before = fault_checks.resources()
        try:
            self.start()
            self.happen()
            self.follow()
            problems = fault_checks.problems(self, before)
        except Failed as failed:
            problems = [str(failed)]
        finally:
            for pid in self.processes():
                self.signal(pid, signal.SIGKILL)
            for command in self.commands:
                command.wait()
        return problems


def free_space(folder, rest):
    """Fills a small file system until so many bytes are left."""
    shutil.rmtree(folder / "records", ignore_errors=True)
    for file in folder.iterdir():
        file.unlink()
    with open(folder / "filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(512))
        except OSError:
            pass
        filler.truncate(max(0, filler.tell() - rest))


def main(world):
    for name in ("work", "full"):
        world[name] = pathlib.Path(world[name])
    if world["private"]:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", "/dev/shm"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", world["full"]], check=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell lets its background jobs ignore it, and all that they start
    results = []
    for communicator, fault, seed in world["trials"]:
        if fault == "full disk" and not world["private"]:
            continue
        folder = world["work"] / f"{communicator}-{fault}-{seed}".replace(" ", "-")
        folder.mkdir()
        if fault == "full disk":
            free_space(world["full"], 0)
        trial = Trial(world, communicator, fault, seed, folder)
        begin = time.monotonic()
        problems = trial.make()
        results.append({"communicator": communicator, "fault": fault, "seed": seed, "moment": trial.moment, "victim": trial.victim,
                        "problems": problems, "seconds": time.monotonic() - begin, "said": re.sub("shard-run: step .*\n", "", trial.text())[-6000:] if problems else ""})
        print(json.dumps(results[-1]), flush=True)
        if not problems:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main(json.load(sys.stdin))
