# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Backwards that compute again what they have no room to keep: gradients are PyTorch's, memory is what the runtime measures,
and bytes are those that the report counts."""
import json
import math
import re
import sys

import pytest
import torch
from safetensors.torch import load_file

from conftest import ROOT, run, tool
from model_gradients import Reference
from plans import places
from test_model_gradients import DATA, GPT2, LLAMA, folder, reference  # noqa: F401

PEER = f'''
import sys
sys.path.insert(0, "{ROOT}/benchmarks")
from torch import nn
from torch.nn import functional as F
import models

class Language(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def forward(self, ids):
        return F.cross_entropy(self.model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

def build_peer():
    model, _, inputs = models.gpt()
    return Language(model), (), inputs
'''
SHARDED = ["--mesh", "dp=4", *places(*DATA, "param:*=dp:S(0)")]


class Compiled:
    """The gradients of a model under some flags, from one run that counts its memory."""

    def __init__(self, model, path, flags, ranks=1):
        flags = flags if "--mesh" in flags else ["--mesh", f"r={ranks}", *flags]
        self.model, self.path = model, path
        run(tool("shardc"), "compile", model.source, *flags, "--gradients", "0", "-o", path)
        out = path.with_suffix(".safetensors")
        report = json.loads(run(tool("shard-run"), "-n", ranks, path, "--entry", "gradients", "--weights", model.source, "--inputs",
                                model.inputs, "--outputs", out, "--format", "json").stdout)
        memory = report["peak_memory_of_a_rank"]
        self.arena, self.parameters, self.outputs = memory["arena_bytes"], memory["parameter_bytes"], load_file(out)

    def check(self, other=None):
        """Against PyTorch, and against the same program without recomputation: kernels may be fused in another way."""
        self.model.check(self.outputs)
        for name, mine in (other.outputs if other else {}).items():
            torch.testing.assert_close(self.outputs[name], mine, rtol=1e-4, atol=1e-6 * float(mine.abs().max()) + 1e-8)


def refusal(model, flags):
    """What a limit of one byte is answered with: (bytes without recomputation, the least that was found, all of the text)."""
    done = run(tool("shardc"), "compile", model.source, *flags, "--gradients", "0", "--memory-limit", "1", "-o",
               model.source.with_suffix(".so"), check=False)
    assert done.returncode != 0
    without = re.search(r"without that 'gradients' needs (\d+) bytes", done.stderr)
    least = re.search(r"allow at least (\d+) bytes", done.stderr)
    return int(without[1]), int(least[1]), done.stderr


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_falling_limits(reference, tmp_path, kind):  # noqa: F811
    """From what the program takes down to the least that is offered; below that, the limit is refused."""
    model = reference(kind)
    plain = Compiled(model, tmp_path / "plain.so", [])
    without, least, text = refusal(model, ["--mesh", "r=1"])
    caller = max(int(bytes) for bytes in re.findall(r"inputs and outputs: (\d+) bytes", text))
    assert caller >= sum(g.numel() * g.element_size() for g in plain.outputs.values())
    assert f"parameters: {plain.parameters} bytes" in text and least < without
    arenas = []
    for part in (1, 0.7, 0.4, 0):
        limit = least + int((without - least) * part)
        program = Compiled(model, tmp_path / "limit.so", ["--memory-limit", limit])
        assert program.arena + program.parameters + caller <= limit
        program.check(plain)
        arenas.append(program.arena)
    assert arenas[0] == without - caller - plain.parameters
    assert arenas[-1] == min(arenas) == least - caller - plain.parameters < arenas[0]
    done = run(tool("shardc"), "compile", model.source, "--mesh", "r=1", "--gradients", "0", "--memory-limit", least - 1, "-o",
               tmp_path / "no.so", check=False)
    assert done.returncode != 0 and f"the limit is {least - 1} bytes" in done.stderr


def test_a_refusal_says_what_takes_the_memory(reference):  # noqa: F811
    _, _, text = refusal(reference("gpt2"), ["--mesh", "r=1"])
    assert "'gradients' needs" in text and "the limit is 1 bytes" in text
    assert re.search(r"slices of \d+ parameters: .*\n.*wte", text)
    assert re.search(r"arena of intermediate results: .*; most of it at once for\n  \d+ bytes.*: .*\(", text)
    assert "shard the model over more ranks, or run fewer samples at once" in text
    # The forward has nothing to compute again, and says nothing of it.
    assert text.count("this is the least that was found") == 1


@pytest.mark.parametrize("kind,mesh,plan,pattern", [
    ("gpt2", "r=1", [], "transformer.h.*"), ("llama", "tp=2", LLAMA, "layers.*.mlp"), ("gpt2", "tp=4", GPT2, "*.h.*")],
    ids=["gpt2", "llama-tp2", "gpt2-tp4"])
def test_modules(reference, tmp_path, kind, mesh, plan, pattern):  # noqa: F811
    model, ranks = reference(kind), int(mesh.split("=")[1])
    plain = Compiled(model, tmp_path / "plain.so", ["--mesh", mesh, *places(*plan)], ranks)
    (tmp_path / "plan.yaml").write_text(f'recompute: ["{pattern}"]\n')
    program = Compiled(model, tmp_path / "modules.so", ["--mesh", mesh, *places(*plan), "--plan", tmp_path / "plan.yaml"], ranks)
    program.check(plain)
    assert program.arena < plain.arena
    flag = Compiled(model, tmp_path / "flag.so", ["--mesh", mesh, *places(*plan), "--recompute", pattern], ranks)
    assert flag.arena == program.arena
    assert all(torch.equal(flag.outputs[name], value) for name, value in program.outputs.items())


def test_attention_alone_gives_the_same_bits(reference, tmp_path):  # noqa: F811
    """The kernels are those of the forward: nothing is fused with what is computed again."""
    model = reference("gpt2")
    plain = Compiled(model, tmp_path / "plain.so", [])
    program = Compiled(model, tmp_path / "attention.so", ["--recompute", "transformer.h.1.attn"])
    assert all(torch.equal(program.outputs[name], value) for name, value in plain.outputs.items())


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    target = tmp_path_factory.mktemp("peer")
    (target / "recompute_models.py").write_text(PEER)
    sys.path.insert(0, str(target))
    try:
        import recompute_models
        module, _, inputs = recompute_models.build_peer()
    finally:
        sys.path.remove(str(target))
    return Reference(target, "peer", f"{target}/recompute_models.py:build_peer", module, inputs)


def explain(model, *flags):
    return json.loads(run(tool("shardc"), "explain", model.source, *flags, "--format", "json").stdout)


def moved(report):
    return sum(kind["bytes_per_rank"] for kind in report["totals"].values())


def test_sharded_weights(peer, tmp_path):
    """Kept: each weight is gathered once, and its gradient is reduced and scattered. Gathered again: each weight that the backward
    reads once more. The least possible is 22.3 and 33.4 MB of a rank."""
    forward = moved(explain(peer, *SHARDED))
    gradients = {choice: explain(peer, *SHARDED, "--gradients", "0", "--reshard-after-forward", choice)
                 for choice in ("false", "true", "auto")}
    kept, again, left = (moved(gradients[choice]) - forward for choice in ("false", "true", "auto"))
    assert left == kept <= 22.31e6 and again <= 33.46e6
    # The weights of the linear layers but for biases; embeddings and norms' vectors on the way of the gradient.
    weights = [t for name, t in peer.wants.items() if t.dim() == 2 and "wte" not in name and "wpe" not in name]
    least = sum(t.numel() * 4 * 3 // 4 for t in weights)
    most = sum(t.numel() * 4 * 3 // 4 for t in peer.wants.values())
    assert least * 0.9 <= again - kept <= most
    recomputed = gradients["true"]["predicted"]["gradients"]["recomputed"]
    assert {choice["what"] for choice in recomputed["choices"]} == {"'dist.all_gather'"}
    assert recomputed["peak_bytes"] < recomputed["peak_before_bytes"]
    programs = [Compiled(peer, tmp_path / "m.so", [*SHARDED, "--reshard-after-forward", choice], 4) for choice in ("false", "true")]
    for program in programs:
        program.check(programs[0])
    assert programs[1].arena < 0.6 * programs[0].arena


def test_sharded_weights_under_a_limit(peer, tmp_path):
    """Less memory, more bytes, and all ranks agree."""
    without, least, _ = refusal(peer, SHARDED)
    limit = (without + least) // 2
    program = Compiled(peer, tmp_path / "limit.so", [*SHARDED, "--memory-limit", limit], 4)
    program.check()
    report = explain(peer, *SHARDED, "--gradients", "0", "--memory-limit", limit)["predicted"]["gradients"]["recomputed"]
    assert report["planned_bytes"] <= limit < report["planned_before_bytes"] == without
    caller = report["planned_bytes"] - program.arena - program.parameters
    assert 0 <= caller <= sum(math.prod(t.shape) * 4 for t in peer.wants.values())


def test_unknown_modules_and_wrong_plans(reference, tmp_path):  # noqa: F811
    model = reference("mse")
    (tmp_path / "plan.yaml").write_text('recompute: ["layers.*", "first"]\nreshard_after_forward: maybe\n')
    done = run(tool("shardc"), "compile", model.source, "--mesh", "r=1", "--plan", tmp_path / "plan.yaml", "--gradients", "0", "-o",
               tmp_path / "m.so", check=False)
    assert done.returncode and "reshard_after_forward is true, false or auto, not 'maybe'" in done.stderr
    assert "'layers.*' matches no module of the model" in done.stderr and "'first'" not in done.stderr.replace("nearest are", "")
    done = run(tool("shardc"), "compile", model.source, "--mesh", "r=1", "--recompute", "layers.*", "--gradients", "0", "-o",
               tmp_path / "m.so", check=False)
    assert done.returncode and "recompute: 'layers.*' matches no module of the model" in done.stderr
