# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own samples (`op_db`) for the ops that the importer takes: what each computes and its gradients, in f64 (or in
integers or bools, where an op has only those) and of complex numbers, against PyTorch, on one rank or with tensors sharded at
random. Complex tensors are pairs outside of PyTorch. Many samples are one model. By hand:

    python test/e2e/op_samples.py                    # a few samples of each op
    python test/e2e/op_samples.py --all              # all of them
    python test/e2e/op_samples.py --only softmax --all
    python test/e2e/op_samples.py --mesh dp=2,tp=2   # sharded
    python test/e2e/op_samples.py --plain            # as torch.export leaves them, without decompositions
    python test/e2e/op_samples.py --every            # also ops of which the importer does not know the name

Prints how many pass, and each failure that op_sample_exclusions.txt explains, with its reason. What it does not explain, and
an explanation of something that does not fail any more, are errors."""
import argparse
import collections
import contextlib
import dataclasses
import io
import itertools
import json
import math
import pathlib
import random
import re
import sys
import tempfile
import traceback
import types
import unittest
import warnings

import torch
from safetensors.torch import load_file

# PyTorch's own tests need the package; the samples do not.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False))
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from conftest import ROOT, run, tool  # noqa: E402
from plans import places  # noqa: E402
from random_programs import placements  # noqa: E402
from wider_source import any_layout  # noqa: E402

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

F64, C128 = torch.float64, torch.complex128
TYPES = (F64, torch.int64, torch.bool)  # the first of them that an op has
MESHES = ("tp=2", "tp=3", "dp=2,tp=2")
FEW, BATCH, LINE = 3, 150, 7  # samples of an op, samples of a model, where the first of them stands in its text
TOLERANCE = 1e-9  # of the largest number, or of 1
# PyTorch's hardsigmoid multiplies by a sixth that is rounded to f32.
TOLERANCES = {"nn.functional.hardsigmoid": 1e-7}
RANDOM = {"bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential", "geometric", "log_normal",
          "multinomial", "new_empty", "new_empty_strided", "normal", "rand_like", "randint", "randint_like", "randn", "randn_like",
          "uniform", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
          "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
          "nn.functional.rrelu", "native_dropout_backward"}
EXCLUSIONS = pathlib.Path(__file__).with_name("op_sample_exclusions.txt")


def parts(t):
    """Of complex numbers the real and the imaginary part, along a last dim of 2."""
    return torch.view_as_real(t.resolve_conj()) if t.dtype.is_complex else t


def has_derivative(t):
    return t.dtype.is_floating_point or t.dtype.is_complex


@dataclasses.dataclass
class Sample:
    name: str
    number: int
    op: object
    leaves: list  # of the arguments
    tree: object
    outputs: list = ()
    cotangents: list = ()
    gradients: dict = ()  # by number of the leaf

    def call(self, leaves):
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        return [t for t in pytree.tree_leaves(self.op(*args, **kwargs)) if isinstance(t, torch.Tensor)]

    def answer(self):
        """PyTorch's. False where there is nothing to compare with: sparse tensors, no outputs."""
        tensors = [t for t in self.leaves if isinstance(t, torch.Tensor)]
        if any(t.layout != torch.strided or t.is_nested for t in tensors):
            return False
        leaves = [t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t for t in self.leaves]
        outputs = self.call(leaves)
        if not outputs or any(t.layout != torch.strided for t in outputs):
            return False
        self.outputs = [parts(t.detach().clone()) for t in outputs]
        floats = [parts(t) for t in outputs if has_derivative(t)]
        self.cotangents = [torch.randn(t.shape, dtype=t.dtype) for t in floats]
        pairs = [(t, c) for t, c in zip(floats, self.cotangents) if t.requires_grad]
        wanted = [i for i, t in enumerate(leaves) if isinstance(t, torch.Tensor) and t.requires_grad]
        self.gradients = {}
        if pairs and wanted:
            loss = sum((t * c).sum() for t, c in pairs)
            gradients = torch.autograd.grad(loss, [leaves[i] for i in wanted], allow_unused=True)
            self.gradients = dict(zip(wanted, [g if g is None else parts(g) for g in gradients]))
        return True

    def layouts(self, mesh):
        """Placements of its tensors, by number of the leaf: any for which each rank has a part of its own."""
        chosen = random.Random(f"{self.name} {self.number} {mesh}")
        return {i: placements(axes) for i, t in enumerate(self.leaves) if isinstance(t, torch.Tensor)
                and (axes := any_layout(list(t.shape), mesh, chosen))}

    def __str__(self):
        shapes = ", ".join(str(list(t.shape)) if isinstance(t, torch.Tensor) else repr(t) for t in self.leaves)
        return f"{self.name} #{self.number} ({shapes[:200]})"


def names_of_importer(dtype):
    schema = ROOT / "importers/torch_export/schema"
    complex_names = re.findall(r"^COMPLEX(?:_PARTS)?\((\w+)\.", (schema / "ComplexOverloads.def").read_text(), flags=re.M)
    if dtype == C128:
        return set(complex_names)
    text = (schema / "Overloads.def").read_text()
    # Numbers of another generator cannot be compared: test_dropout.py looks at them.
    text = re.sub(r"// Random numbers\n(.+\n)+", "", text)
    # Some make complex numbers of real ones.
    makers = [name for name in complex_names if "fft" in name or name in ("complex", "polar", "view_as_complex")]
    return {*re.findall(r"^ATEN(?:_SPECIAL)?\((\w+)\.", text, flags=re.M), *makers}


def samples(only, most, every_op=False, aliases=False):
    """Of every op that the importer has an overload of; also by other names of it, of which complex tensors have none."""
    names = {dtype: names_of_importer(dtype) for dtype in (F64, C128)}
    for is_complex, info in itertools.product((False, True), op_db):
        dtype = C128 if is_complex and C128 in info.dtypes else None if is_complex else next((t for t in TYPES if t in info.dtypes), None)
        known = names[C128 if is_complex else F64]
        bases = {text.split(".")[-1] for text in (info.name, info.aten_name) if text}
        bases |= {f"{base}_loss" for base in bases}  # cross_entropy
        if bases & {"interpolate", "upsample_bilinear", "upsample_nearest"}:
            bases.add("upsample_nearest2d")  # and its kin: the mode is an argument
        if "grid_sample" in bases:
            bases.add("grid_sampler")
        name = info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")
        calls = {name: info.op} if bases & known or every_op and not is_complex else {}
        if aliases:
            calls |= {alias.name: alias.op for alias in info.aliases if alias.name.replace(".", "_") in known}
        calls = {name + "@complex" * is_complex: call for name, call in calls.items() if re.search(only, name)}
        if not calls or not dtype or is_random(info) or aliases and is_complex:
            continue
        torch.manual_seed(7)
        try:
            every = list(info.sample_inputs("cpu", dtype, requires_grad=dtype in (F64, C128) and info.supports_autograd))
        except (RuntimeError, ImportError):
            continue
        # Evenly among them: the first are often all alike.
        count = len(every) if most is None else min(most, len(every))
        for k, (name, call) in itertools.product(range(count), calls.items()):
            number = k * len(every) // count
            sample = every[number]
            leaves, tree = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
            made = Sample(name, number, call, leaves, tree)
            with contextlib.suppress(RuntimeError, NotImplementedError, TypeError, AssertionError):
                if made.answer():
                    yield made


def is_random(info):
    """Numbers of another generator cannot be compared."""
    return info.name in RANDOM


def module_of(batch, folder):
    lines = "".join(f"        take(outputs, losses, {n}, SAMPLES[{n}].call(leaves(self, {n})))\n" for n in range(len(batch)))
    text = ("import torch\n\n\nclass Batch(torch.nn.Module):\n    def forward(self):\n        outputs, losses = [], []\n" + lines
            + "        return (*outputs, *losses)\n")
    (folder / "batch.py").write_text(text)

    def leaves(module, n):
        return [getattr(module, f"s{n}_{i}") if isinstance(t, torch.Tensor) else t for i, t in enumerate(batch[n].leaves)]

    def take(outputs, losses, n, results):
        floats = [parts(t) for t in results if has_derivative(t)]
        outputs += [t.resolve_conj() if t.dtype.is_complex else t for t in results]
        if batch[n].gradients:
            losses.append(sum((t * getattr(batch_module, f"s{n}_c{k}")).sum() for k, t in enumerate(floats)))

    space = {"SAMPLES": batch, "leaves": leaves, "take": take}
    exec(compile(text, str(folder / "batch.py"), "exec"), space)  # noqa: S102 (our own text)
    batch_module = space["Batch"]()
    for n, sample in enumerate(batch):
        for i, t in enumerate(sample.leaves):
            if isinstance(t, torch.Tensor) and i in sample.gradients:
                batch_module.register_parameter(f"s{n}_{i}", torch.nn.Parameter(t.detach().clone().resolve_conj().contiguous()))
            elif isinstance(t, torch.Tensor):
                batch_module.register_buffer(f"s{n}_{i}", t.detach().clone().resolve_conj().contiguous())
        for k, c in enumerate(sample.cotangents):
            batch_module.register_buffer(f"s{n}_c{k}", c)
    return batch_module


def differs(got, want, tolerance):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {list(got.shape)} {got.dtype}, not {list(want.shape)} {want.dtype}"
    if not want.dtype.is_floating_point:
        return "" if torch.equal(got, want) else "differs"
    finite = want.isfinite()
    scale = max(1.0, float(want[finite].abs().max()) if finite.any() else 1.0)
    near = ((got - want).abs() <= tolerance * scale) | (got == want) | (got.isnan() & want.isnan())
    if bool(near.all()):
        return ""
    error = (got - want).abs()[~near].max()
    return f"differs by {float(error):.3g} of {scale:.3g}" if bool(error.isfinite()) else "is not finite where PyTorch's is, or the other way"


def lines_in(text):
    return {int(line) - LINE for line in re.findall(r"batch\.py:(\d+)", text)}


def execute(batch, folder, mesh="r=1", form="composite"):
    """All of a batch have gradients, or none has. Problems by number of the sample. All in `None` where it cannot be said whose the problem is."""
    module = module_of(batch, folder)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            exported = shardc_export.export(module, (), form=form)
            torch.export.save(exported, folder / "model.pt2")
    except Exception as error:  # noqa: BLE001 (PyTorch's own, of any kind)
        frames = [f.lineno - LINE for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith("batch.py")]
        text = f"export: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
        return {n: text for n in frames[-1:] if 0 <= n < len(batch)} or {None: text}
    asked, at = [], sum(len(s.outputs) for s in batch)
    differentiates = bool(batch[0].gradients)
    for n in range(len(batch) if differentiates else 0):
        asked += ["--gradients", at + n]
    if mesh != "r=1":
        asked += places(*(f"param:s{n}_{i}={layout}" for n, s in enumerate(batch) for i, layout in s.layouts(mesh).items()))
    done = run(tool("shardc"), "compile", folder / "model.pt2", "--mesh", mesh, *asked, "-o", folder / "model.so", check=False)
    if done.returncode:
        problems = {}
        for line in re.split(r"\n(?=\S)|\n(?=  aten\.)", done.stderr):
            for n in lines_in(line):
                if 0 <= n < len(batch) and "remark:" not in line and "warning:" not in line:
                    problems.setdefault(n, "compile: " + " ".join(line.split())[:300])
        return problems or {None: "compile: " + done.stderr[-600:]}
    ranks = math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))
    done = run(tool("shard-run"), "-n", ranks, folder / "model.so", *(["--entry", "gradients"] if differentiates else []), "--weights",
               folder / "model.pt2", "--outputs", folder / "out.safetensors", check=False)
    if done.returncode:
        return {None: "run: " + done.stderr[-600:]}
    entry = json.loads(run(tool("shard-run"), folder / "model.so", "--manifest").stdout)["entries"][-1]
    names = iter([o["name"] for o in entry["outputs"] if o["kind"] == "user"])
    got, problems = load_file(folder / "out.safetensors"), {}
    for n, sample in enumerate(batch):
        limit = TOLERANCES.get(sample.name, TOLERANCE)
        found = [(f"output {k}", differs(got[next(names)], want, limit)) for k, want in enumerate(sample.outputs)]
        for i, want in sample.gradients.items():
            value = got.get(f"s{n}_{i}")
            if (value is None) != (want is None):
                found.append((f"gradient {i}", "is missing" if value is None else "is there, PyTorch has none"))
            elif want is not None:
                found.append((f"gradient {i}", differs(value, want, limit)))
        for what, wrong in found:
            if wrong:
                problems.setdefault(n, f"wrong: {what} {wrong}")
    return problems


def check_all(batch, folder, *how):
    """Pairs of a sample and what is wrong with it, or nothing."""
    verdicts = []
    while batch:
        problems = execute(batch, folder, *how)
        if None in problems and len(batch) == 1:
            return [*verdicts, (batch[0], problems[None])]
        if None in problems:
            half = len(batch) // 2
            return verdicts + check_all(batch[:half], folder, *how) + check_all(batch[half:], folder, *how)
        wrong = [(batch[n], text) for n, text in problems.items()]
        if all(text.startswith("wrong:") for text in problems.values()):
            return verdicts + wrong + [(s, "") for n, s in enumerate(batch) if n not in problems]
        verdicts += wrong
        batch = [s for n, s in enumerate(batch) if n not in problems]
    return verdicts


def exclusions():
    """(op, part of the problem, reason) of each line `op | part or another | reason`; the op may end with *."""
    lines = [line for line in EXCLUSIONS.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(part.strip() for part in line.split("|")) for line in lines]


def matches(op, sample):
    return sample.name.startswith(op[:-1]) if op.endswith("*") else sample.name == op


def explains(entry, sample, problem):
    op, part, _ = entry
    return matches(op, sample) and any(text in problem for text in part.split(" or "))


def main_check(folder, only="", most=FEW, mesh="r=1", form="composite", every_op=False):
    """Counts, excused failures by reason, failures that nothing explains, and entries that explain none."""
    every, passed, excused, unexplained = list(samples(only, most, every_op, form == "training")), 0, collections.defaultdict(list), []
    entries, used = exclusions(), set()
    # Those that are known to fail do so by themselves, so that the others need not be tried again without them.
    listed = {}
    for sample in every:
        key = next((op for op, *_ in entries if matches(op, sample)), ""), bool(sample.gradients)
        listed.setdefault(key, []).append(sample)
    batches = [group[begin:begin + BATCH] for group in listed.values() for begin in range(0, len(group), BATCH)]
    for batch in batches:
        for sample, problem in check_all(batch, folder, mesh, form):
            entry = next((e for e in entries if problem and explains(e, sample, problem)), None)
            if not problem:
                passed += 1
            elif entry:
                used.add(entry)
                excused[entry].append(sample)
            else:
                unexplained.append((sample, problem))
    return len(every), len({s.name for s in every}), passed, excused, unexplained, [e for e in entries if e not in used]


def report(result, log=print):
    count, ops, passed, excused, unexplained, _ = result
    for (op, part, reason), found in sorted(excused.items()):
        log(f"{op}: {len(found)} samples ({part}): {reason}")
    for sample, problem in unexplained:
        log(f"FAILED {sample}: {problem}")
    log(f"{passed} of {count} samples of {ops} ops pass ({100 * passed / max(count, 1):.1f} %), "
        f"{sum(map(len, excused.values()))} are excluded, {len(unexplained)} fail")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="all samples")
    parser.add_argument("--only", default="", help="ops whose name this regular expression finds")
    parser.add_argument("--mesh", default="r=1", help="a mesh over which tensors are sharded at random")
    parser.add_argument("--plain", action="store_true", help="as torch.export leaves them, without decompositions")
    parser.add_argument("--every", action="store_true", help="also ops of which the importer does not know the name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = main_check(pathlib.Path(folder), options.only, None if options.all else FEW, options.mesh,
                            "training" if options.plain else "composite", options.every)
    report(result, lambda text: print(text, flush=True))
    is_whole = not options.only and options.mesh == "r=1" and not options.plain
    for entry in result[5] if is_whole else ():
        print("explains nothing any more: " + " | ".join(entry))
    return 1 if result[4] or is_whole and result[5] else 0


if __name__ == "__main__":
    sys.exit(main())
