# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of models in PyTorch, and of their compiled programs by shard-run."""
import copy
import json
import sys

import torch
from safetensors.torch import load_file, save_file

from conftest import ROOT, run, tool

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def batches_of(inputs, count):
    """Batches that differ: whole numbers change places, others grow. Masks stay."""
    def batch(name, value, k):
        if "mask" in name:
            return value
        return value + 0.1 * k if value.is_floating_point() else value.roll(k, -1)
    return {name: torch.stack([batch(name, value, k) for k in range(count)]) for name, value in inputs.items()}


class Trainee:
    """A module whose forward returns a loss first, exported once, with batches in a file."""

    def __init__(self, folder, name, module, inputs, count=8, train=False):
        self.module, self.inputs = module, inputs
        self.source, self.file = folder / f"{name}.pt2", folder / f"{name}.batches.safetensors"
        self.batches = batches_of(inputs, count)
        save_file({k: v.contiguous() for k, v in self.batches.items()}, self.file)
        torch.export.save(shardc_export.export(copy.deepcopy(module), (), inputs, train=train), self.source)

    def pytorch(self, optimizer, steps=5, micro_batches=1, mean=True, clip=None, clip_value=None, lr=1e-2, rate=None, groups=None, **numbers):
        """The module and optimizer after some steps, and the loss of each."""
        module = copy.deepcopy(self.module)
        named = dict(module.named_parameters())
        chosen = groups(named) if groups else list(named.values())
        torch_optimizer = OPTIMIZERS[optimizer](chosen, lr=lr, **numbers)
        losses, norms = [], []
        count = len(next(iter(self.batches.values())))
        for step in range(steps):
            if rate:
                for group in torch_optimizer.param_groups:
                    group["lr"] = rate(step)
            torch_optimizer.zero_grad()
            total = 0.0
            for micro in range(micro_batches):
                result = module(**{k: v[(step * micro_batches + micro) % count] for k, v in self.batches.items()})
                loss = result[0] if isinstance(result, tuple) else result
                (loss / micro_batches if mean else loss).backward()
                total += float(loss.detach()) / micro_batches
            if clip_value:
                torch.nn.utils.clip_grad_value_(module.parameters(), clip_value)
            if clip:
                norms.append(float(torch.nn.utils.clip_grad_norm_(module.parameters(), clip)))
            torch_optimizer.step()
            losses.append(total)
        return module, torch_optimizer, losses, norms

    def compile(self, program, *options):
        run(tool("shardc"), "compile", self.source, *options, "-o", program)

    def train(self, program, *options, steps=5, lr=1e-2, weights=True, check=True, file=True, **kwargs):
        """What is logged of each step, and the tensors of the checkpoint."""
        log, saved = program.with_suffix(".log"), program.with_suffix(".checkpoint.safetensors")
        log.unlink(missing_ok=True)
        done = run(tool("shard-run"), program, *(["--batches", self.file] if file else []), "--steps", steps, "--lr", lr, "--log", log, "--save", saved,
                   *(["--weights", self.source] if weights else []), *options, check=check, **kwargs)
        if not check:
            return done
        return [json.loads(line) for line in log.read_text().splitlines()], load_file(saved)


def difference(got, want):
    """Of two tensors, relative to the largest of what is wanted."""
    got, want = got.double(), want.detach().double()
    assert got.shape == want.shape
    return float((got - want).abs().max() / want.abs().max().clamp_min(1e-12)) if want.numel() else 0.0


def rounding_of_norms(one, reference, monkeypatch, keywords):
    """Llama's norms are in f32 even in a module in f64, and the first steps of AdamW divide what they round by itself: how far that takes PyTorch's
    own parameters from those with norms in f64."""
    def exact(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    with monkeypatch.context() as patch:
        patch.setattr("transformers.models.llama.modeling_llama.LlamaRMSNorm.forward", exact)
        wanted = one.pytorch("adamw", lr=1e-3, **keywords)[0].named_parameters()
    return max(difference(dict(reference[0].named_parameters())[name], parameter) for name, parameter in wanted)
