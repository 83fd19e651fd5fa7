# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks of a training that are killed at random moments, most of them in a step or while a checkpoint is written: the others end in time, the
last checkpoint is that of a training that nobody disturbed, and it goes on from there on another mesh with the same losses.

SHARDC_KILL_TRIALS=50 makes so many trials, SHARDC_FAULT_SEED=N others, and SHARDC_FAULT_ONLY=17 repeats the one of a seed."""
import json
import os
import signal
import time

import pytest
import torch
from safetensors.torch import load_file

import fault_checks
import fault_trials
from conftest import run, tool
from test_checkpoints import load_sharded
from test_training import BOTH, DP, TOWERS_TP, train, trainee  # noqa: F401

TRIALS = int(os.environ.get("SHARDC_KILL_TRIALS", 6))
SEED = int(os.environ.get("SHARDC_FAULT_SEED", 1))
ONLY = os.environ.get("SHARDC_FAULT_ONLY")
STEPS, KNOWN = 25, 400  # a rank is killed behind one of the first STEPS, and the losses of KNOWN steps are known
LINK = "100,1"  # steps take long enough for some to be hit
pytestmark = pytest.mark.xdist_group("overlap")


class KilledTraining(fault_trials.Trial):
    """Rank `victim` is killed some time behind a step, or all of them and who has started them, as when the power fails."""

    def __init__(self, world, seed, folder):
        super().__init__(world, "processes" if seed % 2 else "alone", "kill", seed, folder)
        self.sharded, self.everybody = seed % 4 >= 2, self.random.random() < 0.2
        self.step, self.delay = self.random.randrange(STEPS), self.random.uniform(0, 0.05)
        self.saved, self.log = folder / "saved", folder / "log"

    def arguments(self, rank):
        return [str(word) for word in [
            self.world["shard_run"], self.world["artifact"], "--weights", self.world["weights"], "--batches", self.world["batches"], "--lr", 1e-2,
            "--steps", 1000000, "--log", self.log, "--save-sharded" if self.sharded else "--save", self.saved, "--save-every", 1,
            "--timeout", self.deadline, "--threads", 1]]

    def environment(self, **more):
        return super().environment(**more) | {"SHARDRT_LINK": LINK}

    def until_moment(self):
        def there():
            self.find_ranks()
            return self.victim in self.pids
        self.wait_until(there, "the rank's process")
        self.wait_until(lambda: self.log.exists() and self.log.read_bytes().count(b"\n") >= self.step, f"step {self.step}")
        time.sleep(self.delay)

    def happen(self):
        self.until_moment()
        if any(command.poll() is not None for command in self.commands):
            raise fault_trials.Failed("it has ended before anybody was killed: " + self.text()[-2000:])
        self.begin_of_fault()
        for pid in list(self.processes()) if self.everybody else [self.pids[self.victim]]:
            self.signal(pid, signal.SIGKILL)

    def make(self):
        try:
            self.start()
            self.happen()
            self.follow()
            problems = []
            fault_checks.check_times(self, problems)
            statuses = [command.returncode for command in self.commands]
            if 0 in statuses:
                problems.append(f"somebody says that the training has succeeded: {statuses}")
            if not self.everybody and not (f"rank {self.victim}" in self.text()):
                problems.append("nobody says who was killed")
            return problems
        except fault_trials.Failed as failed:
            return [str(failed)]
        finally:
            for pid in self.processes():
                self.signal(pid, signal.SIGKILL)
            for command in self.commands:
                command.wait()


@pytest.fixture(scope="module")
def world(trainee, tmp_path_factory):  # noqa: F811
    """The training, one on another mesh, and what nobody disturbs: losses, and a checkpoint of each step."""
    one, folder = trainee("towers"), tmp_path_factory.mktemp("killed")
    artifact, other = folder / "a.so", folder / "b.so"
    one.compile(artifact, *BOTH, *TOWERS_TP, *train("loss=0", "optimizer=adamw", "zero=1"))
    one.compile(other, "--mesh", "dp=3", *DP, *train("loss=0", "optimizer=adamw", "zero=3"))
    run(tool("shard-run"), artifact, "--weights", one.source, "--batches", one.file, "--steps", KNOWN, "--lr", 1e-2, "--log", folder / "log", "--save",
        folder / "%s.safetensors", "--save-every", 1)
    losses = [json.loads(line)["loss"] for line in (folder / "log").read_text().splitlines()]
    return {"shard_run": tool("shard-run"), "artifact": artifact, "other": other, "weights": one.source, "batches": one.file, "full": folder,
            "losses": losses, "checkpoints": folder}


def check_resumed(world, trial):
    """Nothing of a checkpoint that was not complete is seen, and the training goes on."""
    losses = [json.loads(line)["loss"] for line in trial.log.read_text().splitlines(keepends=True) if line.endswith("\n")] if trial.log.exists() else []
    assert losses == world["losses"][:len(losses)]
    exists = (trial.saved / "index.json").exists() if trial.sharded else trial.saved.exists()
    begin = ["--weights", world["weights"]]
    step = 0
    if exists:
        got = load_sharded(trial.saved) if trial.sharded else load_file(trial.saved)
        step, begin = int(got["train.step"]), ["--resume", trial.saved]
        want = load_file(world["checkpoints"] / f"{step}.safetensors")
        assert got.keys() == want.keys() and all(torch.equal(got[k], want[k]) for k in want)
    # A step is in the log before it is saved.
    assert len(losses) - 1 <= step <= len(losses)
    run(tool("shard-run"), world["other"], *begin, "--batches", world["batches"], "--steps", step + 3, "--lr", 1e-2, "--log", trial.log,
        "--save-sharded" if trial.sharded else "--save", trial.saved)
    again = [json.loads(line)["loss"] for line in trial.log.read_text().splitlines()]
    assert again == pytest.approx(world["losses"][:step + 3], rel=1e-9)
    assert not trial.sharded or len(list(trial.saved.iterdir())) == 4, "three files and the index: what was left behind is gone"


def test_last_checkpoint_stays(world, tmp_path):
    seeds = [int(ONLY)] if ONLY else range(SEED, SEED + TRIALS)
    failures, torn = [], 0
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        trial = KilledTraining(world, seed, folder)
        problems = trial.make()
        if trial.sharded and trial.saved.exists():
            torn += len(list(trial.saved.iterdir())) != 5  # killed while a checkpoint was written
        if not problems:
            try:
                check_resumed(world, trial)
            except AssertionError as error:
                problems = [str(error)]
        if problems:
            failures.append(f"SHARDC_FAULT_ONLY={seed}: rank {'all' if trial.everybody else trial.victim} behind step {trial.step}, {trial.communicator}, "
                            f"{'sharded' if trial.sharded else 'one file'}: {problems}\n{trial.text()[-1500:]}")
    print(f"{len(seeds) - len(failures)} of {len(seeds)} trials passed; {torn} of the folders had an unfinished save in them")
    assert not failures, "\n\n".join(failures)
