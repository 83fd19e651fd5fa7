# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the emulated device says if something is missing. Of each program it leaves out in turn every barrier of a block or warp, every
commit and wait of asynchronous copies, a lane of every mask, every range check, every wait of a stream and every record of an event that a
stream waits for (CUDA_EMULATED_MUTANTS, docs/cuda-emulator.md), and every time the checks have to report it.

Sizes are such that everything matters: loops over tiles and chunks run twice at least, more than one warp takes part, and no thread happens
to read only what it has written itself."""
import collections
import os
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from conftest import BUILD, ROOT, run, tool
from cuda_scatter_cases import ids, put
from cuda_scatter_cases import values as amounts
from kernel_cases import A, BF16, F16, F32, F64, values
from kernels import Case
from kernels import Program as Kernels
from plans import DATA_PARALLEL, places
from test_attention import attention, described, directions

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

pytestmark = pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
STREAMS = ("wait", "record")

Mutant = collections.namedtuple("Mutant", "kind verdict owner place report")


def mutants_of(folder, *command, check=True, **environment):
    """Runs a program once; a list of all mutants of all its processes."""
    for path in folder.glob("mutants-*"):
        path.unlink()
    done = run(*command, check=False, timeout=300,
               env={**os.environ, **environment, "CUDA_EMULATED_MUTANTS": str(folder / "mutants-%p")})
    assert not check or (done.returncode == 0 and "cuda-emulated: " not in done.stderr), done.stderr
    paths = sorted(folder.glob("mutants-*"))
    assert paths, done.stderr
    mutants = [Mutant(*line.rstrip("\n").split("\t")) for path in paths for line in path.read_text().splitlines()]
    return mutants


def assert_reported(mutants, least, idle=()):
    """All that threads come to, but what a later wait of the same streams orders as well; and how many of each kind there are at least.
    `idle`: places of waits that order nothing the device sees."""
    silent = [m for m in mutants if m.verdict == "silent" and m.kind != "check" and not m.place.startswith(tuple(idle))]
    assert_none(silent, mutants)
    counts = collections.Counter(m.kind for m in mutants if m.verdict == "reported")
    assert all(counts[kind] >= n for kind, n in least.items()), counts


def assert_none(silent, mutants):
    assert not silent, f"{len(silent)} of {len(mutants)} can be left out:\n" + "\n".join(" ".join(m) for m in silent)


def without_last_wait(mutants):
    """Ranks that are threads are closed by one thread, one after the other, and it has waited for the work of those before. So the rank that
    is closed last need not have waited for the others' parts in its last collective, which have read what it then releases: the last wait of
    the stream of its collectives, and nothing else, may be left out by such a program. (Its caller may not: it may overwrite operands.)"""
    silent = [m for m in mutants if m.kind == "wait" and m.verdict == "silent"]
    assert_none(silent[1:], mutants)
    for m in silent:
        assert m is [o for o in mutants if o.kind == "wait" and o.owner == m.owner][-1], m
    return [m for m in mutants if not any(m is s for s in silent)]


# ---- Kernels ----

def multiply_adds():
    for one in [attention(2, 130, 130, 48, F32, batch=(1,), key_heads=1, causal=True), attention(1, 70, 70, 33, F64, batch=(1,))]:
        yield from directions(one, *described(one))


def matrix_units():
    for one in [attention(2, 140, 140, 64, BF16, batch=(1,), key_heads=1, causal=True), attention(1, 80, 140, 16, F16, batch=(1,), width=160)]:
        yield from directions(one, *described(one))


def reductions(*shapes, scans=(), types=(F32,)):
    for (shape, d), t in [(s, t) for s in shapes for t in types]:
        x = values(shape, t)
        yield Case([x], f"aten.sum {{0}} dim [{d}]", lambda a, k=d: torch.sum(a, [k]))
        yield Case([x], f"aten.var {{0}} dim [{d}] {{{{correction = 0.0}}}}", lambda a, k=d: A.var.correction(a, [k], correction=0.0))
        yield Case([x], f"aten.argmax {{0}} dim {d}", lambda a, k=d: A.argmax(a, k))
        yield Case([x], f"aten.softmax {{0}} dim {d}", lambda a, k=d: torch.softmax(a, k))
    for (shape, d), t in [(s, t) for s in scans for t in types]:
        yield Case([values(shape, t)], f"aten.cumsum {{0}} dim {d}", lambda a, k=d: torch.cumsum(a, k))


def rows():
    """In registers, in shared memory, in several passes and shared by blocks; scans of one chunk and of several."""
    yield from reductions(([5, 1030], 1), ([2, 5003], 1), ([1, 24001], 1), scans=[([3, 1500], 1), ([2, 9000], 1)])
    yield from reductions(([3, 2050], 1), types=(BF16, F64), scans=[([3, 5000], 1)])


def columns():
    yield from reductions(([300, 70], 0), ([3000, 64], 0), ([2, 700, 33], 1), types=(F32, BF16), scans=[([300, 40], 0)])


def transposes():
    for t in (F32, BF16, torch.int8, F64):
        x = values([65, 33], t)
        yield Case([x], "aten.clone {0}", torch.clone, strided="permuted")
        yield Case([x, x.flip(0)], "aten.add {0}, {1}", torch.add, strided="permuted")


def scatter_adds():
    for t in (F32, F64, BF16, torch.int8):
        yield Case([amounts((300, 3), t), ids(300, 2500), amounts((2500, 3), t)], "aten.index_put {0}[{1}] of {2} accumulate",
                   lambda x, i, v: put(x, [i], v))
    yield Case([amounts((70, 9), F32), ids(9, 70, 31), amounts((70, 31), F32)], "aten.scatter_add {0} dim 1 at {1} of {2}",
               lambda x, i, v: x.scatter_add(1, i, v))


KERNELS = {multiply_adds: {"barrier": 18, "copy-wait": 4, "copy-commit": 4, "warp-sync": 10, "mask": 100},
           matrix_units: {"barrier": 18, "copy-wait": 6, "copy-commit": 6, "mask": 20},
           rows: {"barrier": 30, "mask": 100}, columns: {"barrier": 10}, transposes: {"barrier": 8},
           scatter_adds: {"barrier": 60, "warp-sync": 10, "mask": 50}}


@pytest.mark.parametrize("family", KERNELS, ids=lambda family: family.__name__)
def test_kernels(tmp_path, family):
    torch.manual_seed(7)
    program = Kernels()
    for case in family():
        program.add(case, case.call(*case.operands))
    (tmp_path / "kernels.mlir").write_text(program.text())
    save_file({f"input_{i}": t.clone() for i, t in enumerate(program.arguments)}, tmp_path / "in")
    run(tool("shardc"), "compile", tmp_path / "kernels.mlir", "--mesh", "r=1", "--target=cuda:emulated", "-o", tmp_path / "kernels.so")
    mutants = mutants_of(tmp_path, tool("shard-run"), tmp_path / "kernels.so", "--device", "emulated", "--inputs", tmp_path / "in")
    assert_reported([m for m in mutants if m.kind not in STREAMS], KERNELS[family])


# ---- Models ----

class Lookups(nn.Module):
    def forward(self, table, column, ids):
        return table[ids], table.gather(1, column), F.embedding(ids, table)


class Reduced(nn.Module):
    """Products of shards, whose sums are waited for."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x.relu()) + x
        return x


class Loss(nn.Module):
    """Its gradients go into buckets, and are summed up while others are computed."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x, target):
        for layer in self.layers:
            x = layer(x).relu() + x
        return F.mse_loss(x, target)


class Model:
    def __init__(self, folder, module, inputs, *options):
        torch.manual_seed(3)
        self.folder = folder
        program = shardc_export.export(module.eval(), inputs)
        torch.export.save(program, folder / "model.pt2")
        self.names = program.graph_signature.user_inputs
        self.give(*inputs)
        run(tool("shardc"), "compile", folder / "model.pt2", "--target=cuda:emulated", *options, "-o", folder / "model.so")

    def give(self, *inputs):
        save_file(dict(zip(self.names, inputs)), self.folder / "in")

    def command(self, *options):
        return (tool("shard-run"), self.folder / "model.so", "--device", "emulated", "--weights", self.folder / "model.pt2", "--inputs",
                self.folder / "in", "--outputs", self.folder / "out", "--timeout", 60, *options)


def test_range_checks(tmp_path):
    torch.manual_seed(1)
    ids, table, column = torch.randint(0, 50, (40,)), torch.randn(50, 8), torch.randint(0, 8, (50, 3))
    program = Model(tmp_path, Lookups(), (table, column, ids), "--mesh", "r=1")
    assert not [m for m in mutants_of(tmp_path, *program.command()) if m.kind == "check" and m.verdict == "reported"]
    # Beyond the memory of the tables, and in the range of the 32 bits that positions are computed in.
    program.give(table, column + (1 << 20), ids + (1 << 20))
    assert "out of range" in run(*program.command(), check=False).stderr
    checks = [m for m in mutants_of(tmp_path, *program.command(), check=False) if m.kind == "check"]
    assert not [m for m in checks if m.verdict == "silent"], checks
    assert len([m for m in checks if m.verdict == "reported"]) >= 3, checks


SHARDED = {
    "tensor-parallel": (Reduced, 1, ("--mesh", "tp=2", *places("param:*.weight=tp:S(1)")), ()),
    "buckets": (Loss, 2, ("--mesh", "dp=2", *DATA_PARALLEL, "--gradients", "0"), ("--entry", "gradients")),
    "sharded-weights": (Loss, 2, ("--mesh", "dp=2", *DATA_PARALLEL, *places("param:*=dp:S(0)"), "--gradients", "0"),
                        ("--entry", "gradients")),
}
# The first collective gathers weights, which nothing on the compute stream writes; the last ones sum up gradients that nobody but the caller
# reads: they are gathered on the group's own stream.
IDLE = {"sharded-weights": ["before ncclAllGather of 512 elements", "before copy of 8 bytes"]}


@pytest.mark.parametrize("name", SHARDED)
def test_streams(tmp_path, name):
    """Steps run one after the other, are captured, and are launched as a graph; ranks are threads, and processes."""
    make, inputs, plan, options = SHARDED[name]
    torch.manual_seed(3)
    program = Model(tmp_path, make(), tuple(torch.randn(12, 16) for _ in range(inputs)), *plan)
    # Threads have collectives over peer access, in which streams of one rank wait for events of others; processes have those of NCCL.
    for processes in [(), ("--processes",)] if name == "tensor-parallel" else [("--processes",)]:
        mutants = mutants_of(tmp_path, *program.command("--steps", 4, *options, *processes))
        assert_reported(mutants if processes else without_last_wait(mutants), {"wait": 12, "record": 12}, IDLE.get(name, ()))


def test_streams_of_the_caller(tmp_path):
    """What is on the caller's stream comes before the program."""
    mutants = mutants_of(tmp_path, BUILD / "test/unit/test_runtime_emulated", "--gtest_filter=*.TensorsAndStreamsOfTheCaller")
    assert_reported(mutants, {"wait": 8, "record": 8})


def test_what_is_left_out_in_a_copy_is_left_out_in_earnest(tmp_path):
    """Waits that are found needed, dropped in runs of their own (CUDA_EMULATED_DROP): the same checks report them."""
    program = Model(tmp_path, Reduced(), (torch.randn(12, 16),), "--mesh", "tp=2", *places("param:*.weight=tp:S(1)"))
    for what in ("wait:0", "wait:3"):
        done = run(*program.command(), check=False, env={**os.environ, "CUDA_EMULATED_DROP": what})
        assert done.returncode != 0 and "cuda-emulated: " in done.stderr, what
