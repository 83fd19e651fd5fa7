# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What must hold at the end of a fault trial."""
import json
import os
import pathlib
import re
import signal
import subprocess

import numpy as np
from safetensors.numpy import load_file

SECONDS_MORE = 2  # after the deadline, by the clock of Trial.seconds
COLLECTIVE = re.compile(r"all_reduce\.\d+ \(down \(builders\.py:\d+\)\)")
OTHER_WAITS = re.compile(r"the barrier|the broadcast of an input|the scatter of an input|the gather of an output|the arguments of a run")
RIGHT = ("stop and continue", "slow rank")
MPI = ("openmpi", "mpich")
# Files in /dev/shm that MPI itself makes in MPI_Init and removes there: a process that is killed meanwhile leaves them, whatever it runs.
WHILE_MPI_BEGINS = ("mpich_shar_tmp", "ucx_shm_posix_", "vader_segment")


def resources():
    """What processes can leave to a system: files in memory, sockets with a name and sockets that listen."""
    sockets = {line.split()[7] for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:] if len(line.split()) > 7}
    listening = set()
    for table in ("tcp", "tcp6"):
        path = pathlib.Path("/proc/net") / table
        rows = [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []
        listening |= {f"{table} {row[1]}" for row in rows if row[3] == "0A"}
    return {"files in /dev/shm": set(os.listdir("/dev/shm")), "Unix sockets": {s for s in sockets if s.startswith("@")},
            "listening ports": listening}


def outcome(trial):
    """"right", "wrong" or "failed": outputs that are there are right in any case."""
    statuses = [command.returncode for command in trial.commands]
    if trial.outputs.exists():
        got, want = load_file(trial.outputs), load_file(trial.world["expected"])
        for name, value in want.items():
            if not np.allclose(got[name], value, rtol=1e-4, atol=1e-4 * np.abs(value).max()):
                return "wrong", statuses
    return ("right" if trial.outputs.exists() and not any(statuses) else "failed"), statuses


def check_left(trial, before, problems):
    left = trial.processes()
    problems += [f"process {pid} is left: {pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()[:200]}" for pid in left]
    now = resources()
    for kind, names in before.items():
        new = now[kind] - names
        # Other programs of this machine come and go, unless the trial is alone in its namespaces.
        if not trial.world["private"]:
            new = {name for name in new if "shardrt" in name}
        if trial.communicator in MPI and trial.moment == "joining":
            new = {name for name in new if not name.startswith(WHILE_MPI_BEGINS)}
        if new:
            problems.append(f"{kind} are left: {sorted(new)}")
    for folder in {trial.folder, trial.outputs.parent, trial.trace.parent, trial.records}:
        if folder.exists():
            problems += [f"a temporary file is left: {name}" for name in os.listdir(folder) if ".tmp" in name or name.startswith(".")]


def check_times(trial, problems):
    limit = trial.deadline + SECONDS_MORE
    for rank, pid in trial.survivors().items():
        if rank not in trial.ended:
            problems.append(f"rank {rank} did not end")
        elif trial.fault not in RIGHT and trial.fault_is_deadly() and trial.ended[rank] > limit:
            problems.append(f"rank {rank} ended {trial.ended[rank]:.2f} s after the fault, not within {limit}")
    problems += [f"the launcher {command.args[0]} did not end" for command in trial.commands if command.poll() is None]


def check_said(trial, problems):
    text, victim = trial.text(), trial.victim
    rank = f"rank {victim}"

    def says(pattern, why):
        if not re.search(pattern, text):
            problems.append(f"the messages do not say {pattern!r} ({why})")

    if broken := re.search(r".*\b(is is|is in in|was in not|was was|in in)\b.*", text):
        problems.append(f"a message that nobody can read: {broken[0]}")
    waited = trial.moment == "step"
    launcher_ends_all = trial.communicator in MPI  # with the first rank that is killed
    if trial.fault == "kill" and trial.communicator != "threads":
        if not launcher_ends_all:
            says(rf"\b{rank}\b", "who was killed")
            if waited:
                says(f"{COLLECTIVE.pattern}|{OTHER_WAITS.pattern}", "what was waited for")
        if trial.communicator == "processes":
            says(rf"{rank} \(pid \d+\) was killed by SIGKILL", "how it ended")
    elif trial.fault == "stop":
        says(rf"\b{rank}\b|missing ranks? (\d+(, | and ))*{victim}\b", "who was stopped")
        if waited:
            says(f"{COLLECTIVE.pattern}|{OTHER_WAITS.pattern}", "what was waited for")
            says("does not answer|was in|was last|last seen|is in|is not running", "where it was")
    elif trial.fault == "never starts":
        says(rf"ranks? {victim} did not come within|nobody listens|refused", "who is missing")
    elif trial.fault == "another world size":
        says("compiled for a world of|world size|world of", "what differs")
    elif trial.fault in ("wrong artifact", "another plan"):
        # If it is rank 0 that has another model, it finds that its inputs are not that model's.
        own = "|inputs of forward:" if victim == 0 else ""
        says(rf"\branks? (\d+(, | and ))*{victim}\b{own}", "which rank differs")
    elif trial.fault == "full disk" and trial.disk != "records":
        says("No space left on device", "why it failed")
        says(re.escape(str(trial.outputs if trial.disk == "outputs" else trial.trace)), "which file")
    elif trial.fault in ("interrupt a rank", "interrupt the launcher") and trial.communicator not in MPI:
        says("interrupted|SIGINT|terminated", "why it ended")


def check_records(trial, problems):
    """Each rank that waited in vain has left a record that names who is missing, and they are merged."""
    records = {int(p.stem.split("-")[1]): json.loads(p.read_text()) for p in sorted(trial.records.glob("rank-*.json"))}
    if trial.moment == "step" and trial.fault in ("kill", "stop") and trial.communicator not in (*MPI, "threads"):
        for rank in set(range(4)) - {trial.victim}:
            message = records.get(rank, {}).get("message", "")
            if not re.search(rf"rank {trial.victim}\b|ranks? (\d+(, | and ))*{trial.victim}\b", message):
                problems.append(f"the record of rank {rank} does not name rank {trial.victim}: {message!r}")
    if not records:
        return
    done = subprocess.run([trial.world["shard_run"], "--postmortem", trial.records], text=True, capture_output=True, timeout=120)
    if done.returncode or not all(f"rank {rank}" in done.stdout for rank in records):
        problems.append(f"shard-run --postmortem ended with {done.returncode}: {done.stdout[-1500:]} {done.stderr}")


def problems(trial, before):
    found = []
    result, statuses = outcome(trial)
    if result == "wrong":
        found.append("the outputs are wrong")
    check_times(trial, found)
    if trial.fault in RIGHT:
        if result != "right":
            found.append(f"a rank that was late, and not too late, has failed the run: {statuses}")
    elif result == "right":
        # A fault at the end may come after the end.
        if trial.fault_is_deadly() and trial.moment != "end":
            found.append("the run has succeeded")
    else:
        if not trial.fault_is_deadly():
            found.append(f"the run has failed: {statuses}")
        survivors = [c.returncode for c in trial.commands if c.returncode != -signal.SIGKILL]
        # MPICH's launcher may end with 0 when it is interrupted, whatever the statuses of its ranks are: these have said that they failed.
        is_lost = trial.communicator == "mpich" and trial.fault == "interrupt the launcher" and "shard-run: error: " in trial.text()
        if survivors and not any(survivors) and not is_lost and not (trial.moment == "end" and trial.outputs.exists()):
            found.append(f"no status says that the run has failed: {statuses}")
        if trial.moment != "end" or trial.fault not in ("kill", "stop"):
            if is_lost or not any(c.returncode == 0 for c in trial.commands):
                check_said(trial, found)
            elif trial.moment != "end":
                found.append(f"a survivor says that it has succeeded: {statuses}")
        check_records(trial, found)
    check_left(trial, before, found)
    return found
