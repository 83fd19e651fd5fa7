# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The random programs of random_programs.py, differentiated: some of a program's inputs are parameters of the model, some
parameters have two names, and its outputs of floats make a loss, whose gradients are compared with PyTorch's. Of some
batches the outputs are given cotangents instead, and inputs are differentiated like parameters."""
import dataclasses
import random

import torch

from conftest import run, tool
from program_source import DIFFERENTIATED, FLOAT, with_loss
from random_programs import BATCH, Program, axes_of, both, execute, is_close, make, values_of

# Of a gradient's largest number, or of 1. A cotangent that is rounded to bf16 may be rounded the other way.
TOLERANCE, SHORT_TOLERANCE = 2e-4, 3e-2
LARGEST = 1e4  # of a gradient, so that rounding errors stay comparable


def way_of(seed):
    """How the batch of a seed is compiled: what is given, and what becomes of partial gradients."""
    chosen = random.Random(f"{seed // BATCH} ways")
    return chosen.choice(["loss", "loss", "loss", "cotangents"]), chosen.choice(["replicate", "cheapest", "off"])


@dataclasses.dataclass
class Differentiated(Program):
    """`owned`: inputs that are parameters. `ties`: a parameter's other name. `loss`: its kind. `gradients`: PyTorch's, by
    name; None where there is none."""
    owned: list
    ties: dict
    loss: str
    cotangents: list = ()
    gradients: dict = ()

    def given_way(self):
        return way_of(self.seed)[0]

    def parameters(self):
        made = {name: torch.nn.Parameter(value) for name, value in
                [*self.weights.items(), *((name, self.inputs[name]) for name in self.owned if name in self.inputs)]}
        return made | {name: made[first] for name, first in self.ties.items() if name in made and first in made}

    def given(self):
        kept = {name: value for name, value in self.inputs.items() if name not in self.owned}
        return kept | ({f"c{k}": value for k, value in enumerate(self.cotangents)} if self.given_way() == "loss" else {})

    def call(self, i):
        arguments = ", ".join(["self", *(f"{'self.' * (name in self.owned)}p{i}_{name}" for name in self.inputs)])
        result = f"Batch.program{i}({arguments})"
        if self.given_way() != "loss":
            return result
        weights = ", ".join(f"p{i}_c{k}" for k in range(len(self.cotangents)))
        return f"with_loss({result}, '{self.loss}', [{weights}])"

    def layouts(self, mesh, chosen):
        plain = super().layouts(mesh, chosen)
        return {name: axes for name, axes in plain.items() if name not in self.ties} | {  # their other names say theirs
            f"c{k}": {axis: chosen.randrange(c.dim()) for axis in axes_of(mesh) if c.dim() and chosen.random() < 0.4} for k, c in enumerate(self.cotangents)}

    @staticmethod
    def compile(programs, mesh, plan, folder):
        way, partial = way_of(programs[0].seed)
        command = (tool("shardc"), "compile", folder / "model.pt2", "--mesh", mesh, *plan, "-o", folder / "model.so")
        if way == "loss":
            numbers, at = [], 0
            for program in programs:
                at += len(program.wants)
                numbers += ["--gradients", at - 1]
            return run(*command, *numbers, "--partial-gradients", partial, check=False)
        done = run(*command, "--save-stages", folder, check=False)
        if done.returncode:
            return done
        floats = [w.dtype.is_floating_point for program in programs for w in program.wants]
        asked = ",".join(str(i) for i, is_float in enumerate(floats) if is_float)
        done = run(tool("shard-opt"), folder / "2-placed.mlir", f"--aten-differentiate=into=forward cotangents={asked} wrt=p*",
                   "--dist-propagate", "--dist-place", f"--dist-rewrite-partial-gradients=gradients={partial}", "-o",
                   folder / "backward.mlir", check=False)
        if done.returncode:
            return done
        return run(tool("shardc"), "compile", folder / "backward.mlir", "-o", folder / "model.so", check=False)

    @staticmethod
    def more_inputs(programs, outputs):
        if way_of(programs[0].seed)[0] == "loss":
            return {}
        names, inputs = iter(outputs), {}
        for program in programs:
            cotangents = iter(program.cotangents)
            for want in program.wants:
                name = next(names)
                if want.dtype.is_floating_point:
                    inputs[f"cotangent_{name.removeprefix('output_')}"] = next(cotangents)
        return inputs

    def differentiate(self, inputs, weights, cotangents):
        """PyTorch's gradients by name, without those of other names."""
        leaves = {name: value.clone().requires_grad_() for name, value in {**inputs, **weights}.items()
                  if value.dtype.is_floating_point and (name in weights or name in self.owned or self.given_way() != "loss")}
        for name, first in self.ties.items():
            if name in leaves:
                leaves[name] = leaves[first]
        variables = values_of(self.source, inputs | {n: t for n, t in leaves.items() if n in inputs},
                            weights | {n: t for n, t in leaves.items() if n in weights})
        outputs = [variables[name] for name in self.source.returned]
        if self.given_way() == "loss":
            loss = with_loss(outputs, self.loss, cotangents)[-1]
        else:
            loss = sum((o * c).sum() for o, c in zip([o for o in outputs if o.dtype.is_floating_point], cotangents))
        names = [n for n in leaves if n not in self.ties]
        if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
            return dict.fromkeys(names)
        return dict(zip(names, torch.autograd.grad(loss, [leaves[n] for n in names], allow_unused=True)))

    def computed(self):
        """With PyTorch's answers, or nothing where there are no steady ones."""
        inputs, weights = dict(self.inputs), dict(self.weights)
        for name, first in self.ties.items():
            if name in weights and first in weights:
                weights[name] = weights[first]
        ties = {n: f for n, f in self.ties.items() if n in weights and f in weights}
        wants = execute(self.source, inputs, weights)
        generator = torch.Generator().manual_seed(self.seed)
        cotangents = [torch.randn(w.shape, generator=generator).to(w.dtype) for w in wants if w.dtype.is_floating_point]
        program = dataclasses.replace(self, weights=weights, ties=ties, wants=wants, cotangents=cotangents)
        gradients = program.differentiate(inputs, weights, cotangents)
        if not any(g is not None for g in gradients.values()) or not program.is_steady(gradients):
            return None
        if self.given_way() == "loss":
            wants = [*wants, torch.zeros(())]  # the loss, which its gradients stand for
        return dataclasses.replace(program, wants=wants, gradients=gradients)

    def tolerance(self):
        return SHORT_TOLERANCE if "bfloat16" in self.source.body() else TOLERANCE

    def is_steady(self, gradients):
        torch.set_default_dtype(torch.float64)
        try:
            wide = [{n: t.double() if t.dtype == FLOAT else t for n, t in group.items()}
                    for group in (self.inputs, self.weights)]
            exact = self.differentiate(*wide, [c.double() for c in self.cotangents])
        finally:
            torch.set_default_dtype(torch.float32)
        return all(g is None or (bool(g.isfinite().all()) and bool((g.abs() <= LARGEST).all())
                                 and is_close(exact[n].float(), g, self.tolerance())) for n, g in gradients.items())

    def compare(self, outputs, named):
        kept = len(self.wants) - (self.given_way() == "loss")
        forward = Program(self.seed, self.source, self.inputs, self.weights, self.wants[:kept], self.shardings)
        if problem := forward.compare(outputs[:kept], named):
            return problem
        for name, want in self.gradients.items():
            got = named.get(name)
            if (got is None) != (want is None):
                return f"gradient of {name}: is {'missing' if got is None else 'there'}, PyTorch has {want}"
            if want is not None and (got.dtype != want.dtype or not is_close(got, want, self.tolerance())):
                return f"gradient of {name}:\n {both(got, want)}"
        return ""


def make_differentiated(seed, mesh):
    """The program of a seed, or nothing if it has no steady answer, or nothing to differentiate."""
    program = make(seed, mesh, manners=DIFFERENTIATED, most=6)
    if not program:
        return None
    chosen = random.Random(f"{seed} gradients")
    owned = [name for name, t in program.inputs.items() if t.dtype == FLOAT and chosen.random() < 0.6]
    same = [(a, b) for a in program.weights for b in program.weights
            if a < b and program.weights[a].shape == program.weights[b].shape]
    ties = dict([chosen.choice(same)[::-1]]) if same and chosen.random() < 0.5 else {}
    fields = {field.name: getattr(program, field.name) for field in dataclasses.fields(Program)}
    program = Differentiated(**fields, owned=owned, ties=ties, loss=chosen.choice(["product", "square", "mean"])).computed()
    return program and dataclasses.replace(program, shardings=program.layouts(mesh, random.Random(seed)))
