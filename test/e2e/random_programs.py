# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random PyTorch programs (program_source.py), compiled with random shardings over several meshes, against PyTorch. Many
programs are one model, so that a program costs a fraction of a second. By hand:

    python test/e2e/random_programs.py --count 2000            # seeds 0 to 1999
    python test/e2e/random_programs.py --seed 1234 --count 1   # one program, alone
    python test/e2e/random_programs.py --seed 1234 --show      # its text, and how it is sharded
    python test/e2e/random_programs.py --wider                 # more kinds of lines, and blocks and sizes of shards
    python test/e2e/random_programs.py --broad                 # all kinds of lines (broad_source.py), exported in all forms
    python test/e2e/random_programs.py --gradients             # gradients as well (random_gradients.py)
    python test/e2e/random_programs.py --dynamic               # sizes that the program learns when it runs (random_sizes.py)
    python test/e2e/random_programs.py --shardings 5           # each program also with four other shardings, over meshes that are drawn too
    python test/e2e/random_programs.py --seed 1234 --count 1 --variant 3   # the third of the others
    python test/e2e/random_programs.py --json FILE             # keeps what was found; program_coverage.py adds such files up

A program that differs is made smaller before it is printed.
"""
import argparse
import copy
import dataclasses
import pathlib
import random
import sys
import tempfile

import torch

from conftest import run, tool
from plans import places
from broad_source import BROAD
from program_coverage import Record
from program_outcomes import REACHED, find_refused, outcome, refused, wrong_alone
from program_shrinking import shrink
from program_source import FLOAT, Source, evaluate, results_of, tensor, write_program
from wider_source import WIDER, any_layout

# Sizes are small and odd: many shards are uneven, and some ranks have none of a tensor.
MESHES = ("r=1", "tp=2", "tp=3", "dp=2,tp=2", "dp=2,tp=3", "tp=5")
TOLERANCE = 2e-4  # of the largest number of an output, or of 1
LIMIT = 300  # seconds that a command may take


@dataclasses.dataclass
class Program:
    """A source, its tensors, PyTorch's outputs, and where its inputs and weights are."""
    seed: int
    source: Source
    inputs: dict
    weights: dict
    wants: list
    shardings: dict  # by input or weight: {axis: dim or placement}

    def form(self):
        """The form that the batch is exported in."""
        return "composite"

    def dynamic(self, prefix):
        """Dims without a size, as the exporter's options."""
        return []

    def layouts(self, mesh, chosen):
        """Shardings of its inputs and weights that `chosen`, a generator, draws."""
        return {name: {axis: chosen.randrange(t.dim()) for axis in axes_of(mesh) if t.dim() and chosen.random() < 0.6}
                for name, t in {**self.inputs, **self.weights}.items()}

    def resharded(self, mesh, variant):
        """With other shardings. The first, variant 0, is that which it has."""
        return dataclasses.replace(self, shardings=self.layouts(mesh, random.Random(f"{self.seed} {variant}"))) if variant else self

    @staticmethod
    def rounds(programs):
        """The same programs with the inputs of each run."""
        return [programs]

    def place(self, prefix):
        kinds = dict.fromkeys(self.given(), "input") | dict.fromkeys(self.parameters(), "param")
        return places(*(f"{kinds[name]}:{prefix}{name}={placements(axes)}" for name, axes in self.shardings.items() if axes and name in kinds))

    def parameters(self):
        return {name: torch.nn.Parameter(value, requires_grad=False) for name, value in self.weights.items()}

    def given(self):
        """Inputs of the model."""
        return self.inputs

    def call(self, i):
        """An expression for the outputs in the batch's forward."""
        return f"Batch.program{i}({', '.join(['self', *(f'p{i}_{name}' for name in self.inputs)])})"

    @staticmethod
    def compile(programs, mesh, plan, folder):
        """Makes model.so of the exported batch, model.pt2."""
        return run(tool("shardc"), "compile", folder / "model.pt2", "--mesh", mesh, *plan, "-o", folder / "model.so", check=False, timeout=LIMIT)

    @staticmethod
    def more_inputs(programs, outputs):
        """By name, what the compiled batch takes besides `given`. `outputs`: names of its outputs."""
        return {}

    def computed(self):
        """With what PyTorch says now."""
        return dataclasses.replace(self, wants=execute(self.source, self.inputs, self.weights))

    def compare(self, outputs, named):
        """What is wrong with the values of its outputs, in order, or nothing. `named`: all that the program returned."""
        for number, (value, want) in enumerate(zip(outputs, self.wants, strict=True)):
            if value.dtype != want.dtype or not is_close(value, want):
                return f"output {number} ({self.source.returned[number]}):\n {both(value, want)}"
        return ""

    def text(self, mesh):
        declared = "\n".join(f"# {name}: {list(t.shape)} {t.dtype}  {self.shardings.get(name) or ''}"
                             for name, t in {**self.inputs, **self.weights}.items())
        return f"# seed {self.seed}, mesh {mesh}\n{declared}\n{self.source.text()}"


def placements(axes):
    return ",".join(f"{axis}:{where if isinstance(where, str) else f'S({where})'}" for axis, where in axes.items())


def axes_of(mesh):
    return [axis.split("=")[0] for axis in mesh.split(",")]


def mesh_of(seed, variant=0):
    """All programs of one batch have one mesh; alone, a program has that of its batch. Other shardings have a mesh of several ranks."""
    return random.Random(f"{seed // BATCH} {variant}").choice(MESHES[1:]) if variant else random.Random(seed // BATCH).choice(MESHES)


BATCH = 40


def values_of(source, inputs, weights):
    """What PyTorch computes, line by line: all variables."""
    variables = {**inputs, "self": type("Weights", (), weights)}
    for line in source.lines:
        for name, value in zip(line.names, results_of(evaluate(line.text, variables))):
            variables[name.rstrip(",")] = value
    return variables


def execute(source, inputs, weights):
    variables = values_of(source, inputs, weights)
    return [variables[name].detach().clone() for name in source.returned]


def both(got, want):
    return f"got  {got.flatten()[:8].tolist()}\n want {want.flatten()[:8].tolist()}"


def is_close(got, want, tolerance=TOLERANCE):
    if got.shape != want.shape:
        return False
    if not want.dtype.is_floating_point:
        return bool((got == want).all())
    scale = max(1.0, float(want.abs().max())) if want.numel() else 1.0
    return bool(((got.double() - want.double()).abs() <= tolerance * scale).all())


def is_steady(source, inputs, weights, wants):
    """Whether rounding decides nothing: in double precision, and with weights and inputs that are a little different, the
    answer is nearly the same. A comparison of what is equal but for rounding has no right answer."""
    torch.set_default_dtype(torch.float64)
    try:
        wide = [{n: t.double() if t.dtype == FLOAT else t for n, t in group.items()} for group in (inputs, weights)]
        try:
            exact = execute(source, *wide)
        except RuntimeError:
            return False
    finally:
        torch.set_default_dtype(torch.float32)
    return all(is_close(a.to(b.dtype), b) and (a.dtype == b.dtype or b.dtype == FLOAT) for a, b in zip(exact, wants))


def make(seed, mesh, **how):
    """The program of a seed, or nothing if its answer is not a steady one."""
    source = write_program(seed, **how)
    generator = torch.Generator().manual_seed(seed)
    inputs, weights = ({n: tensor(s, t, generator) for n, (s, t) in group.items()} for group in (source.inputs, source.weights))
    used = {name for line in source.lines for name in weights if f"self.{name}" in line.text}
    weights = {n: t for n, t in weights.items() if n in used}
    try:
        wants = execute(source, inputs, weights)
    except (RuntimeError, IndexError):  # other numbers than those it was written with
        return None
    if any(not bool(w.isfinite().all()) for w in wants if w.dtype.is_floating_point) or not any(w.numel() for w in wants):
        return None
    if not is_steady(source, inputs, weights, wants):
        return None
    program = Program(seed, source, inputs, weights, wants, {})
    return dataclasses.replace(program, shardings=program.layouts(mesh, random.Random(seed)))


class Wide(Program):
    """One whose tensors have layouts of every kind."""

    def layouts(self, mesh, chosen):
        return {name: any_layout(list(t.shape), mesh, chosen) for name, t in {**self.inputs, **self.weights}.items()}


def make_wider(seed, mesh, manners=WIDER):
    """The same with more kinds of lines and layouts."""
    program = make(seed, mesh, manners=manners)
    if not program:
        return None
    wide = Wide(**vars(program))
    return dataclasses.replace(wide, shardings=wide.layouts(mesh, random.Random(seed)))


class Broad(Wide):
    """One whose batch has any form."""

    def form(self):
        return random.Random(f"{self.seed // BATCH} form").choice(["composite", "composite", "composite", "training", "core", "core"])


def make_broad(seed, mesh):
    """The same with all kinds of lines."""
    program = make_wider(seed, mesh, BROAD)
    return program and Broad(**vars(program))


def check(seeds, folder, log=print, make=make, keep=lambda *found: None, variants=(0,)):
    """Runs the programs of these seeds, batch by batch. Returns how many ran, how many were refused, and the failures. `keep` gets
    of each batch how many seeds it has, its programs, and pairs of those that were refused or wrong and their problems. `variants`:
    numbers of the shardings that each program is run with; what fails with one of them is not run with the next."""
    ran, declined, failures = 0, [], []
    batches = {}
    for seed in seeds:
        batches.setdefault(seed // BATCH, []).append(seed)
    for number, batch in batches.items():
        programs, is_exported = [p for p in (make(seed, mesh_of(batch[0])) for seed in batch) if p], False
        for variant in variants:
            mesh = mesh_of(batch[0], variant)
            programs = [program.resharded(mesh, variant) for program in programs]
            now = outcome(programs, mesh, folder, is_exported) if programs else {}
            bad = find_refused(programs, mesh, folder, now[-1]) if -1 in now else [(programs[i], t) for i, t in now.items()]
            ran += len(programs)
            for program, problem in bad:
                log(f"seed {program.seed}: {problem.strip()[-600:]}")
                if refused(problem):
                    declined.append((program.seed, problem))
                    ran -= 1
                else:
                    failures.append((program, variant, problem))
            log(f"seeds {batch[0]} to {batch[-1]} on {mesh}: {len(programs)} programs, {len(bad)} refused or wrong")
            keep(len(batch) if variant == variants[0] else len(programs), programs, bad)
            worst = {program.seed for program, _ in bad}
            programs, is_exported = [program for program in programs if program.seed not in worst], not bad
    return ran, declined, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="seeds to try (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--shardings", type=int, default=1, help="how many shardings each program has, each over a mesh that is drawn (default 1)")
    parser.add_argument("--variant", type=int, help="the one of them to try")
    parser.add_argument("--gradients", action="store_true", help="differentiate each program as well")
    parser.add_argument("--wider", action="store_true", help="more kinds of lines, and layouts of every kind")
    parser.add_argument("--broad", action="store_true", help="all kinds of lines")
    parser.add_argument("--dynamic", action="store_true", help="sizes that the program learns when it runs")
    parser.add_argument("--json", type=pathlib.Path, help="where what is found goes as it comes")
    parser.add_argument("--show", action="store_true", help="print the program of --seed and do nothing else")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the files of the last batch")
    options = parser.parse_args()
    maker, more = make, ""
    if options.wider:
        maker, more = make_wider, " --wider"
    if options.broad:
        maker, more = make_broad, " --broad"
    if options.dynamic:
        from random_sizes import make_dynamic as maker
        more = " --dynamic"
    if options.gradients:
        from random_gradients import make_differentiated as maker
        more = " --gradients"
    variants = range(max(1, options.shardings)) if options.variant is None else (options.variant,)
    if options.show:
        program, mesh = maker(options.seed, mesh_of(options.seed)), mesh_of(options.seed, variants[0])
        return print(program.resharded(mesh, variants[0]).text(mesh) if program else "the answer of this program is not a steady one")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        ran, declined, failures = check(range(options.seed, options.seed + options.count), folder,
                                        lambda text: print(text, flush=True), maker, Record(options.json, more.strip(), refused, REACHED).keep, variants)
        for seed, problem in declined:
            print(f"seed {seed} was refused: {problem.strip()[-300:]}")
        for program, variant, problem in failures:
            mesh, other = mesh_of(program.seed, variant), f" --variant {variant}" * (variant > 0)
            program, problem = shrink(copy.deepcopy(program), problem, lambda candidate: wrong_alone(candidate, mesh, folder))
            print(f"\n{program.text(mesh)}# {problem}\n# again: python test/e2e/random_programs.py --seed {program.seed} --count 1{other}{more}")
    print(f"{ran} programs{' and shardings' * (len(variants) > 1)} agree with PyTorch, {len(declined)} were refused, {len(failures)} are wrong"
          if not failures else f"{len(failures)} of {ran} programs are wrong, {len(declined)} were refused")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
