# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the emulated device says if a range check is missing: each of a program's is left out in turn, and each time that a thread comes
to where it was, the access that it would have prevented is reported."""
import os
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from conftest import BUILD, ROOT, run, tool

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

pytestmark = pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")


class Lookups(nn.Module):
    def forward(self, table, column, ids):
        return table[ids], table.gather(1, column), F.embedding(ids, table)


class Program:
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

    def run(self, *options, **environment):
        return run(tool("shard-run"), self.folder / "model.so", "--device", "emulated", "--weights", self.folder / "model.pt2", "--inputs",
                   self.folder / "in", "--outputs", self.folder / "out", "--timeout", 30, *options, check=False,
                   env={**os.environ, **environment})

    def counts(self, *options, **environment):
        """The run and, by kind, what the process with most of them counted."""
        for path in self.folder.glob("counts-*"):
            path.unlink()
        done = self.run(*options, CUDA_EMULATED_COUNTS=self.folder / "counts-%p", **environment)
        every = [dict(line.split() for line in path.read_text().splitlines()) for path in self.folder.glob("counts-*")]
        return done, {kind: max(int(counts[kind]) for counts in every) for kind in every[0]}


def test_range_checks(tmp_path):
    torch.manual_seed(1)
    ids, table, column = torch.randint(0, 50, (40,)), torch.randn(50, 8), torch.randint(0, 8, (50, 3))
    program = Program(tmp_path, Lookups(), (table, column, ids), "--mesh", "r=1")
    done, counts = program.counts()
    assert done.returncode == 0, done.stderr
    program.give(table, column + (1 << 40), ids + (1 << 40))
    assert "out of range" in program.run().stderr
    missed = 0
    for n in range(counts["check"]):
        done, seen = program.counts(CUDA_EMULATED_DROP=f"check:{n}")
        missed += seen["reached"]
        assert not seen["reached"] or "cuda-emulated: " in done.stderr, f"check {n} can be left out"
    assert missed >= 3
