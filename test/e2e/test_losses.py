# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of language models and other reads at positions that the model computes from its inputs, exported with
`shardc export` in both forms, replicated and sharded over the batch and over the vocabulary, against PyTorch."""
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, run_python, tool
from plans import places

BUILDER = '''
import torch
from torch import nn
from torch.nn import functional as F

class Loss(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.embed = nn.Embedding(13, 6)
        self.head = nn.Linear(6, 13, bias=kind != "nll")
        self.register_buffer("weight", torch.rand(13) + 0.5)

    def forward(self, ids, labels):
        logits = self.head(self.embed(ids)).flatten(0, 1)
        labels = labels.flatten()
        if self.kind == "nll":
            return F.nll_loss(logits.log_softmax(-1), labels)
        if self.kind == "cross_entropy":
            return F.cross_entropy(logits, labels)
        if self.kind == "each":
            return F.cross_entropy(logits, labels, reduction="none")
        if self.kind == "weighted":
            return F.cross_entropy(logits, labels, self.weight, label_smoothing=0.1)
        valid = labels != -100
        at = torch.where(valid, labels, 0).unsqueeze(1)
        return torch.where(valid, -logits.log_softmax(-1).gather(1, at).squeeze(1), 0.0)

def make(kind):
    torch.manual_seed(3)
    labels = torch.randint(0, 13, (3, 7))
    labels[0, 2] = labels[2, 6] = -100
    return Loss(kind).eval(), {"ids": torch.randint(0, 13, (3, 7)), "labels": labels}
'''
KINDS = ("nll", "cross_entropy", "each", "weighted", "gather_where")
PLANS = {
    "vocabulary": places("module:head=colwise"), "embedding": places("param:embed.weight=tp:S(0)"),
    "batch": places("input:*=tp:S(0)"), "sequence": places("input:*=tp:S(1)"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("losses")
    builds = "".join(f"def build_{k}():\n    m, x = make('{k}')\n    return m, (), x\n" for k in KINDS)
    (target / "losses.py").write_text(BUILDER + builds)
    sys.path.insert(0, str(target))
    import losses
    for kind in KINDS:
        module, inputs = losses.make(kind)
        with torch.no_grad():
            save_file({"want": module(**inputs)}, target / f"{kind}.want.safetensors")
        save_file(inputs, target / f"{kind}.in.safetensors")
        for form in ("composite", "core"):
            run_python(ROOT / "tools/export/shardc_export.py", f"{target}/losses.py:build_{kind}", "--form", form,
                       "-o", target / f"{kind}.{form}.pt2")
    sys.path.remove(str(target))
    return target


def compare(folder, tmp_path, kind, form, world, options):
    source, program, out = folder / f"{kind}.{form}.pt2", tmp_path / "m.so", tmp_path / "out.safetensors"
    run(tool("shardc"), "compile", source, "--mesh", f"tp={world}", *options, "--place", "output:*=R", "-o", program)
    run(tool("shard-run"), "-n", world, program, "--weights", source, "--inputs", folder / f"{kind}.in.safetensors",
        "--outputs", out)
    (got,), want = load_file(out).values(), load_file(folder / f"{kind}.want.safetensors")["want"]
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["composite", "core"])
@pytest.mark.parametrize("kind", KINDS)
def test_unsharded(folder, tmp_path, kind, form):
    compare(folder, tmp_path, kind, form, 1, [])


@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", KINDS)
def test_sharded(folder, tmp_path, kind, plan, world):
    compare(folder, tmp_path, kind, "composite", world, PLANS[plan])
