# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of random calls of every op, in every sharding that the op's rule allows, against PyTorch's.

    fuzz_gradients.py SHARD_OPT [--calls N] [--seed S] [--partial off|replicate|cheapest] [--show]

Each call (test/dialects/aten/Inputs) is placed once for each factor of its rule, over three ranks or over 2 x 2: that factor
is sharded, in chunks, by sizes or by granules, and what else the other axis does is drawn. Operands come in layouts of their
own, partial ones included, and results leave in others; so cotangents and gradients are in any layout. The placed
call is differentiated with a cotangent for each result, its backward is placed and made local, and run for
all ranks (interpreter.py)."""
import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import time

import torch

import program
from interpreter import InterpretationError, run_local
from layout import Mesh, difference, parse_layout
from placed_programs import Factor, Program, Spec

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "dialects/aten/Inputs"))
import mlir_text  # noqa: E402
from check_rules import as_list, values  # noqa: E402
from families import FAMILIES  # noqa: E402
from pytorch_cases import NAMES  # noqa: E402

MESHES = [[("a", 3)], [("a", 2), ("b", 2)]]
TOLERANCE = 1e-9  # of the largest number of a gradient, or of 1
# PyTorch's hardsigmoid multiplies by a sixth that is rounded to f32.
TOLERANCES = {"aten.hardsigmoid": 1e-7}
KINDS = {"parallel": "parallel", "reducing": "reduce", "cooperative": "together"}


class Call(Program):
    """One call with its operands, results, and PyTorch's answers for random cotangents."""

    def __init__(self, name, case, inputs, wants, rule, first, seed):
        super().__init__(seed)
        self.name, self.first = name, first
        self.mesh, self.float, self.symbols = Mesh(MESHES[seed % 2]), "f64", {}
        self.case, self.inputs, self.wants = case, inputs, wants
        # A factor behind another is split in chunks: where one rank has all of it, whole blocks could be what is split.
        inner = {f for dims in rule["operands"] + rule["results"] for dim in dims for f in dim[1:]}
        factors = {f"f{i}": Factor(f["size"], KINDS.get(f["kind"], "whole"), f["reduction"], plain=i in inner)
                   for i, f in enumerate(rule["factors"])}
        named = [[[f"f{i}" for i in dim] for dim in dims] for dims in rule["operands"] + rule["results"]]
        operands = [(self.arg(list(x.shape), NAMES[x.dtype], None), dims) for x, dims in zip(inputs, named)]
        results = [(list(w.shape), NAMES[w.dtype], dims) for w, dims in zip(wants, named[len(inputs):])]
        self.spec = Spec(case[0], operands, results, factors, linear=[set(s) for s in rule["linearIn"]],
                         additive=rule["additive"])

    def choose(self, spec):
        second = super().choose(spec)[1:]
        # Of two elements, two axes have one to split between them.
        return [self.first, *(None if c == self.first and spec.factors[c].size < 3 else c for c in second)]

    def write(self):
        """Whether the sharding can be said in layouts."""
        placed = self.place(self.spec)
        if not placed:
            return False
        moved = [self.redistribute(value, layout) for (value, _), layout in zip(self.spec.operands, placed[0])]
        types = [f"tensor<{''.join(f'{n}x' for n in s)}{t}, {l.text()}>" for (s, t, _), l in zip(self.spec.results, placed[1])]
        many = len(types) > 1 or self.case[0].startswith("aten.split")
        count = f":{len(types)}" if len(types) > 1 else ""
        op = self.case[0].format(*(v.name for v in moved))
        out = f"({', '.join(types)})" if many else types[0]
        self.lines.append(f'%r{count} = {op} : ({", ".join(v.type_text() for v in moved)}) -> {out} loc("{self.name}")')
        made = [type(self.args[0])(f"%r#{i}" if count else "%r", s, t, l)
                for i, ((s, t, _), l) in enumerate(zip(self.spec.results, placed[1]))]
        for value in made:
            layout = value.layout if self.rng.random() < 0.4 else self.random_layout(value.shape, value.dtype)
            self.returned.append(self.redistribute(value, layout))
        return True

    def text(self):
        args = ", ".join(f'{v.name}: {v.type_text()} {{dist.kind = "input", dist.name = "a{i}"}}' for i, v in enumerate(self.args))
        types = [v.type_text() for v in self.returned]
        results = ", ".join(f'{t} {{dist.kind = "output", dist.name = "y{i}"}}' for i, t in enumerate(types))
        body = "\n".join("  " + line for line in self.lines)
        return (f"func.func @{self.name}({args}) -> ({results}) {{\n{body}\n  return "
                f"{', '.join(v.name for v in self.returned)} : {', '.join(types)}\n}}\n")

    def passes(self, partial):
        floats = ",".join(str(i) for i, w in enumerate(self.wants) if w.dtype.is_floating_point)
        return f"--aten-differentiate=function={self.name} into={self.name} cotangents={floats} wrt=* outputs=false"

    def check(self, local, generator):
        """Why the gradients are wrong, or nothing."""
        cotangents = [torch.randn(w.shape, dtype=w.dtype, generator=generator) for w in self.wants if w.dtype.is_floating_point]
        leaves = [x.clone().requires_grad_() if x.dtype.is_floating_point else x for x in self.inputs]
        pairs = [(r, c) for r, c in zip([r for r in as_list(self.case[2](*leaves)) if r.dtype.is_floating_point], cotangents)
                 if r.requires_grad]
        asked = [i for i, x in enumerate(leaves) if x.dtype.is_floating_point]
        wants = torch.autograd.grad(sum((r * c).sum() for r, c in pairs), [leaves[i] for i in asked], allow_unused=True)
        layouts = [parse_layout(attrs["dist.layout"]["attr"]) for attrs in local.arg_attrs]
        shards = [layout.scatter(x, generator) for layout, x in zip(layouts, [*self.inputs, *cotangents], strict=True)]
        results = run_local(local, self.mesh, shards)
        got = {attrs["dist.name"]: (parse_layout(attrs["dist.layout"]["attr"]), value)
               for attrs, value in zip(local.result_attrs, results, strict=True)}
        for i, want in zip(asked, wants):
            if (want is None) != (f"a{i}" not in got):
                return f"gradient {i} is {'there' if want is None else 'missing'}"
            if want is None or not bool(want.isfinite().all()):
                continue
            layout, value = got[f"a{i}"]
            whole, spread = layout.gather(value, list(want.shape))
            scale = max(1.0, float(want.abs().max()) if want.numel() else 1.0)
            limit = TOLERANCES.get(self.case[0].split()[0], TOLERANCE)
            if not max(difference(whole, want), spread) / scale < limit:
                return f"gradient {i} ({layout.text().split(', ', 1)[1][:-1]}) is {difference(whole, want) / scale:.3g} off"
        return None


def random_cases(count):
    """Calls that PyTorch can answer and differentiate."""
    cases = []
    while len(cases) < count:
        operands, op, call, *more = random.choice(FAMILIES)()
        bounds = more[0].get("bounds", {}) if more else {}
        if re.search(r" to (f16|bf16|f32)", op) or 0 in bounds.values():
            continue  # rounding
        # What attention's derivative is made of: the backward has no derivative, and neither has the log-sum-exp.
        if op.startswith("aten.scaled_dot_product_flash_attention"):
            continue
        kind = {True: torch.float64}
        operands = [(s, kind.get(t.is_floating_point, torch.bool if t == torch.bool else torch.int64)) for s, t in operands]
        inputs = [values(s, t, bounds.get(i)) for i, (s, t) in enumerate(operands)]
        # Of few digits, so that ties are the same on all replicas of a partial value.
        inputs = [x.mul(4096).round() / 4096 if x.dtype.is_floating_point else x for x in inputs]
        try:
            wants = as_list(call(*[x.requires_grad_() if x.dtype.is_floating_point else x for x in inputs]))
            differentiable = [w.sum() for w in wants if w.requires_grad]
            if differentiable:
                sum(differentiable).backward()
        except Exception:  # noqa: BLE001, S112 (PyTorch refuses it)
            continue
        if differentiable:
            cases.append(((op, operands, call), [x.detach() for x in inputs], [w.detach() for w in wants]))
    return cases


def calls_text(cases):
    return "".join(mlir_text.function(f"c{i}", [mlir_text.mlir_type(x.shape, x.dtype) for x in inputs], case[0],
                                      [mlir_text.mlir_type(w.shape, w.dtype) for w in wants])
                   for i, (case, inputs, wants) in enumerate(cases))


def placements(shard_opt, count, seed):
    cases = random_cases(count)
    done = subprocess.run([shard_opt, "--test-print-sharding-rules=json", "-o", "/dev/null", "-"], input=calls_text(cases),
                          text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr[:4000])
    calls = []
    for line, (case, inputs, wants) in zip(done.stdout.splitlines(), cases, strict=True):
        rule = json.loads(line)["rules"][0]
        for i, factor in enumerate(rule["factors"]):
            if factor["kind"] not in KINDS or factor["size"] < 2:
                continue
            call = Call(f"c{len(calls)}", case, inputs, wants, rule, f"f{i}", seed + len(calls))
            if call.write():
                calls.append(call)
    return calls


def run_batch(shard_opt, batch, partial, problems):
    """Local functions by name. What cannot be compiled is a problem, and left out."""
    while batch:
        mesh = batch[0].mesh.text()
        source = f"module attributes {{dist.mesh = {mesh}}} {{\n{''.join(c.text() for c in batch)}}}\n"
        local, why = program.load(shard_opt, source, *(c.passes(partial) for c in batch), "--dist-propagate", "--dist-place",
                                  f"--dist-rewrite-partial-gradients=gradients={partial}", "--dist-verify-stage=placed",
                                  "--dist-plan-redistributions=latency=0", "--shardc-localize")
        if local is not None:
            return batch, local
        errors = [line for line in why.splitlines() if "error: " in line]
        named = {n: line for line in errors for n in re.findall(r"\b(c\d+)\b", line)}
        if not named and len(batch) > 1:  # a crash
            half = len(batch) // 2
            first, one = run_batch(shard_opt, batch[:half], partial, problems)
            second, other = run_batch(shard_opt, batch[half:], partial, problems)
            return first + second, one | other
        if not named:
            named = {batch[0].name: why[-1500:]}
        problems += [(c, named[c.name]) for c in batch if c.name in named]
        batch = [c for c in batch if c.name not in named]
    return [], {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard_opt", type=pathlib.Path)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--partial", default="replicate")
    parser.add_argument("--show", action="store_true", help="print programs that fail")
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    began, problems, ops, ran = time.time(), [], collections.Counter(), 0
    calls = placements(args.shard_opt, args.calls, args.seed)
    by_mesh = {}
    for call in calls:
        by_mesh.setdefault(call.mesh.text(), []).append(call)
    for group in by_mesh.values():
        for begin in range(0, len(group), 100):
            batch, local = run_batch(args.shard_opt, group[begin:begin + 100], args.partial, problems)
            for call in batch:
                try:
                    problem = call.check(local[call.name], torch.Generator().manual_seed(1))
                except (InterpretationError, ValueError, RuntimeError) as error:
                    problem = str(error)
                ran += 1
                ops[call.case[0].split()[0]] += 1
                if problem:
                    problems.append((call, problem))
    for call, problem in problems:
        print(f"{call.case[0]} of {[list(x.shape) for x in call.inputs]}: {problem}" + f"\n{call.text()}" * args.show)
    print(f"{ran} shardings of {len(ops)} ops, {len(problems)} failures, {time.time() - began:.0f} s")
    return 1 if problems or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
