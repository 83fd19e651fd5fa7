# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random windows over sharded spatial dims: convolutions, transposed ones, pools, unfold and fold, interpolation, lookups at constants and pads,
whose kernels, strides, dilations, paddings and sizes are drawn, forward and gradients, against PyTorch in f64. Many cases are one model, so that a
case costs a fraction of a second. By hand:

    python test/e2e/window_cases.py --count 5000             # seeds 0 to 4999
    python test/e2e/window_cases.py --seed 1234 --count 1    # one case, alone
    python test/e2e/window_cases.py -- --split-windows all
    python test/e2e/window_cases.py --only masked -- --neighborhoods all
"""
import argparse
import contextlib
import dataclasses
import functools
import json
import pathlib
import random
import sys
import tempfile
import warnings
from typing import Callable

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

import masked_attention
import natten_ops
import window_compositions
from conftest import ROOT, run, tool
from plans import places

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

MESHES = ("tp=2", "tp=3", "tp=4", "dp=2,tp=2", "tp=5", "dp=2,tp=3")
BATCH = 25  # cases of a model, which have one mesh
TOLERANCE = 1e-9  # in f64, of the largest number, or of 1


@dataclasses.dataclass
class Case:
    seed: int
    text: str
    call: Callable  # of the image and the other parameters
    parameters: list  # the image first
    axes: dict = dataclasses.field(default_factory=dict)  # mesh axis: dim of the image
    shard_result: bool = False
    sizes: dict = dataclasses.field(default_factory=dict)  # mesh axis: what each rank has of the image; chunks otherwise
    result_sizes: dict = dataclasses.field(default_factory=dict)  # likewise of the result

    def layout(self, sizes):
        given = {axis: f", sizes = {sizes[axis]}" if axis in sizes else "" for axis in self.axes}
        return ",".join(f"{axis}:S({dim}{given[axis]})" for axis, dim in self.axes.items())


def draw(seed, mesh):
    """A case that PyTorch takes."""
    chosen = random.Random(seed)
    torch.manual_seed(seed)
    while True:
        with contextlib.suppress(RuntimeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = draw_any(chosen)
            result = case.call(*case.parameters)
            if result.numel() and result.numel() < 4000:
                break
    case.seed = seed
    spatial = case.parameters[0].dim() - 2
    for axis in mesh.split(","):
        if chosen.random() < 0.8:
            case.axes[axis.split("=")[0]] = 2 + chosen.randrange(spatial)
    case.shard_result = chosen.random() < 0.5 and result.dim() == spatial + 2
    if chosen.random() < 0.4:
        draw_sizes(chosen, case, mesh, result.shape)
    return case


def draw_sizes(chosen, case, mesh, shape):
    """Any sizes of shards, some of them 0, along dims that one axis splits."""
    def shares(total, ranks):
        borders = sorted(chosen.randrange(total + 1) for _ in range(ranks - 1))
        return [end - begin for begin, end in zip([0, *borders], [*borders, total])]

    ranks = {axis: int(count) for axis, count in (part.split("=") for part in mesh.split(","))}
    for axis, dim in case.axes.items():
        if list(case.axes.values()).count(dim) > 1:
            continue
        case.sizes[axis] = shares(case.parameters[0].shape[dim], ranks[axis])
        if case.shard_result and chosen.random() < 0.5:
            case.result_sizes[axis] = shares(shape[dim], ranks[axis])


def resize(chosen, image):
    sizes = image.shape[2:]
    linear = ("linear", "bilinear", "trilinear")[len(sizes) - 1]
    mode = chosen.choice(("nearest", "nearest-exact", linear, linear, *(("bicubic", "bicubic") if len(sizes) == 2 else ())))
    options = {"mode": mode} if mode.startswith("nearest") else {"mode": mode, "align_corners": chosen.random() < 0.5}
    if chosen.random() < 0.5:
        options["size"] = [chosen.choice((1, 2, size, 2 * size, chosen.randint(1, 23))) for size in sizes]
    else:
        # By other factors PyTorch's forward and backward do not always read the same elements where they read the nearest.
        factors = (0.5, 1.5, 2.0, 3.0) if mode.startswith("nearest") else (0.5, 0.7, 1.5, 2.0, 2.3, 3.0)
        options["scale_factor"] = [chosen.choice(factors) for _ in sizes]
    return Case(0, f"interpolate {tuple(sizes)} {options}", lambda x: F.interpolate(x, **options), [image])


def lookup(chosen, image):
    dim = 2 + chosen.randrange(image.dim() - 2)
    positions = [chosen.randrange(image.shape[dim]) for _ in range(chosen.randint(1, 25))]
    if chosen.random() < 0.7:
        positions.sort()

    def call(x):
        return torch.index_select(x, dim, torch.tensor(positions))
    return Case(0, f"index_select {tuple(image.shape[2:])} {dim} {positions}", call, [image])


def pad(chosen, image):
    sizes = image.shape[2:]
    mode = chosen.choice(("constant", "reflect", "replicate", "circular"))
    widths = []
    for size in reversed(sizes):
        most = size - 1 if mode == "reflect" else size if mode == "circular" else 4
        widths += [chosen.randint(0, min(most, 6)) for _ in range(2)]
    return Case(0, f"pad {tuple(sizes)} {widths} {mode}", lambda x: F.pad(x, widths, mode), [image])


def unfold(chosen, image):
    dim = 2 + chosen.randrange(image.dim() - 2)
    size, step = chosen.randint(1, 9), chosen.randint(1, 4)
    return Case(0, f"Tensor.unfold {tuple(image.shape[2:])} {dim} {size} {step}", lambda x: x.unfold(dim, size, step), [image])


def neighborhood(chosen, image):
    """A layer of neighborhood attention, of one or two heads."""
    sizes, channels = image.shape[2:], image.shape[1]
    heads, width = chosen.randint(1, 2), chosen.randint(1, 3)
    windows = []
    for size in sizes:
        kernel = chosen.randint(1, min(size, 5))
        windows.append((kernel, chosen.randint(1, kernel), chosen.randint(1, size // kernel), chosen.random() < 0.3))
    arguments = [list(one) for one in zip(*windows)]
    is_flat = chosen.random() < 0.3

    def call(x, weight):
        qkv = (x.movedim(1, -1) @ weight).unflatten(-1, (3, heads, width)).unbind(-3)
        return natten_ops.na(*qkv, *arguments, reference=is_flat)[0].flatten(-2).movedim(-1, 1)
    weight = torch.randn(channels, 3 * heads * width, dtype=torch.float64)
    return Case(0, f"neighborhood attention {tuple(sizes)} {arguments} {heads} {width} {is_flat}", call, [image, weight])


def masked(chosen, image):
    """A layer of attention over all positions with the mask of windows, at times of almost windows. For --neighborhoods all, as the fields are small."""
    sizes, channels = image.shape[2:], image.shape[1]
    heads, width = chosen.randint(1, 2), chosen.randint(1, 3)
    windows = []
    for size in sizes:
        kernel = chosen.randint(1, min(size, 5))
        dilation = chosen.randint(1, size // kernel)
        if chosen.random() < 0.5:
            windows.append((kernel, 1, dilation, False, chosen.randrange(kernel)))
        else:
            windows.append((kernel, chosen.randint(1, kernel), dilation, chosen.random() < 0.3))
    lines = [natten_ops.sees(size, *window).to(torch.uint8) for size, window in zip(sizes, windows)]
    mask = functools.reduce(torch.kron, lines).bool()
    if chosen.random() < 0.2:
        mask[chosen.randrange(len(mask)), chosen.randrange(len(mask))] = True
    attend = chosen.choice((masked_attention.one_op, masked_attention.added, masked_attention.filled, masked_attention.summed, masked_attention.batched))

    def call(x, weight):
        q, k, v = (x.flatten(2).transpose(1, 2) @ weight).unflatten(-1, (3, heads, width)).permute(2, 0, 3, 1, 4)
        return attend(q, k, v, mask).reshape(q.shape).transpose(2, 3).flatten(1, 2).unflatten(-1, sizes)
    weight = torch.randn(channels, 3 * heads * width, dtype=torch.float64)
    return Case(0, f"attention with the mask of windows {tuple(sizes)} {windows} {heads} {width} {attend.__name__}", call, [image, weight])


def composed(draw_call):
    """A case of one of the compositions."""
    def drawn(chosen, image):
        text, call, more = draw_call(chosen, image)
        return Case(0, text, call, [image, *more])
    return drawn


COMPOSED = {"chained": window_compositions.chained, "stencil": window_compositions.stencil, "scans": window_compositions.scans}
DRAWN = {**{name: composed(function) for name, function in COMPOSED.items()}, "masked": masked, "resize": resize, "lookup": lookup, "pad": pad, "windows": unfold, "neighborhood": neighborhood}


KNOWN = ("conv", "transposed", "max_pool", "avg_pool", "adaptive", "lp", "positions", "unfold", "fold")
KINDS = []  # all, where none is named


def draw_any(chosen):
    spatial = chosen.choice((1, 2, 2, 2, 3))

    def each(*choices):
        return [chosen.choice(choices) for _ in range(spatial)]
    kernel, stride, dilation = each(1, 2, 3, 3, 4, 5), each(1, 1, 2, 3), each(1, 1, 1, 2, 3)
    padding = [chosen.randrange(k * d) if chosen.random() < 0.6 else 0 for k, d in zip(kernel, dilation)]
    sizes = each(*((1, 3, 5, 8, 11, 13, 16, 17) if spatial < 3 else (2, 3, 4, 6, 7)))
    groups = chosen.choice((1, 1, 1, 2))
    inside, outside, batch = groups * chosen.randint(1, 3), groups * chosen.randint(1, 2), chosen.randint(1, 2)
    f64 = torch.float64
    image = torch.randn(batch, inside, *sizes, dtype=f64)
    kind = chosen.choice(KINDS or ("conv", "conv", "transposed", "max_pool", "avg_pool", "adaptive", "lp", "positions", "resize", "lookup", "pad", "windows", "neighborhood", "stencil", "scans", "chained",
                        *(("unfold", "fold") if spatial == 2 else ())))
    if kind in DRAWN:
        return DRAWN[kind](chosen, image)
    if kind == "conv":
        weight = torch.randn(outside, inside // groups, *kernel, dtype=f64)
        bias = [torch.randn(outside, dtype=f64)] if chosen.random() < 0.5 else []
        conv = (F.conv1d, F.conv2d, F.conv3d)[spatial - 1]
        return Case(0, f"{conv.__name__} {sizes} {kernel} {stride} {padding} {dilation} {groups}",
                    lambda x, w, b=None: conv(x, w, b, stride, padding, dilation, groups), [image, weight, *bias])
    if kind == "transposed":
        weight = torch.randn(inside, outside // groups, *kernel, dtype=f64)
        more = [chosen.randrange(max(s, d)) for s, d in zip(stride, dilation)]
        conv = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[spatial - 1]
        return Case(0, f"{conv.__name__} {sizes} {kernel} {stride} {padding} {more} {dilation} {groups}",
                    lambda x, w: conv(x, w, None, stride, padding, more, groups, dilation), [image, weight])
    if kind in ("unfold", "fold"):
        def unfold(x):
            return F.unfold(x, kernel, dilation, padding, stride)
        if kind == "unfold":
            return Case(0, f"unfold {sizes} {kernel} {stride} {padding} {dilation}", unfold, [image])
        return Case(0, f"unfold and fold {sizes} {kernel} {stride} {padding} {dilation}",
                    lambda x: F.fold(unfold(x) ** 2, sizes, kernel, dilation, padding, stride), [image])
    padding = [min(p, k * d // 2, k // 2) for p, k, d in zip(padding, kernel, dilation)]
    ceil = chosen.random() < 0.5
    if kind in ("max_pool", "positions"):
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[spatial - 1]
        name = f"{pool.__name__} {sizes} {kernel} {stride} {padding} {dilation} {ceil}"
        if pool(torch.zeros_like(image), kernel, stride, padding, dilation, ceil).isinf().any():
            raise RuntimeError("PyTorch's derivative writes outside of the image where a window covers nothing of it")
        if kind == "max_pool":
            return Case(0, name, lambda x: pool(x, kernel, stride, padding, dilation, ceil), [image])
        # Many equal elements, and some windows of nothing else than the lowest.
        image = torch.where(image < -1, -torch.inf, image.round())
        return Case(0, f"positions of {name}", lambda x: pool(x, kernel, stride, padding, dilation, ceil, return_indices=True)[1], [image])
    if kind == "adaptive":
        parts = [chosen.choice((1, 1, 2, 3, size)) for size in sizes]
        name = chosen.choice(("avg", "max"))
        pool = getattr(F, f"adaptive_{name}_pool{spatial}d")
        return Case(0, f"{pool.__name__} {sizes} {parts}", lambda x: pool(x, parts), [image])
    if kind == "lp":
        pool = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[spatial - 1]
        given = (kernel[0], stride[0]) if spatial == 1 else (kernel, stride)
        return Case(0, f"{pool.__name__} {sizes} {kernel} {stride} {ceil}", lambda x: pool(x, 2.0, *given, ceil), [image])
    pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[spatial - 1]
    count = chosen.random() < 0.5
    divisor = [chosen.choice((None, None, 3))] if spatial > 1 else []
    return Case(0, f"{pool.__name__} {sizes} {kernel} {stride} {padding} {ceil} {count} {divisor}",
                lambda x: pool(x, kernel, stride, padding, ceil, count, *divisor), [image])


class Model(nn.Module):
    def __init__(self, cases):
        super().__init__()
        self.cases = cases
        self.unit = nn.Parameter(torch.ones((), dtype=torch.float64))  # where no result has a derivative
        for n, case in enumerate(cases):
            for i, value in enumerate(case.parameters):
                self.register_parameter(f"p{n}_{i}", nn.Parameter(value))
            with torch.no_grad():
                self.register_buffer(f"c{n}", torch.randn(case.call(*case.parameters).shape, dtype=torch.float64))

    def parameters_of(self, n):
        return [getattr(self, f"p{n}_{i}") for i in range(len(self.cases[n].parameters))]

    def forward(self):
        results = [case.call(*self.parameters_of(n)) for n, case in enumerate(self.cases)]
        loss = sum(((result * getattr(self, f"c{n}")).sum() for n, result in enumerate(results) if result.is_floating_point()), self.unit)
        return loss, *results


def plan_of(cases):
    specs = []
    for n, case in enumerate(cases):
        if case.axes:
            specs.append(f"param:p{n}_0={case.layout(case.sizes)}")
            specs += [f"output:{n + 1}={case.layout(case.result_sizes)}"] if case.shard_result else []
    return places(*specs)


def problems_of(cases, mesh, folder, *options):
    """What is wrong with what `shardc compile` makes with these options, by case; of all of them under None."""
    model = Model(cases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(shardc_export.export(model, ()), folder / "model.pt2")
        loss, *wants = model()
    loss.backward()
    plan = ["--mesh", mesh, *plan_of(cases)]
    done = run(tool("shardc"), "compile", folder / "model.pt2", *plan, "--gradients", 0, *options, "-o", folder / "model.so", check=False)
    if done.returncode:
        return {None: done.stderr[-3000:]}
    save_file({}, folder / "in.safetensors")
    manifest = json.loads(run(tool("shard-run"), folder / "model.so", "--manifest").stdout)
    entry = manifest["entries"][-1]
    done = run(tool("shard-run"), folder / "model.so", "--entry", entry["name"], "--weights", folder / "model.pt2", "--inputs", folder / "in.safetensors",
               "--outputs", folder / "out.safetensors", "--timeout", 60, "--threads", 1, check=False)
    if done.returncode:
        return {None: done.stderr[-3000:]}
    got = load_file(folder / "out.safetensors")
    names = [o["name"] for o in entry["outputs"] if o["kind"] == "user"][1:len(cases) + 1]
    problems = {}
    for n, (case, name, want) in enumerate(zip(cases, names, wants, strict=True)):
        pairs = {"result": (got[name], want.detach())}
        for i, value in enumerate(model.parameters_of(n)):
            if value.grad is not None:
                pairs[f"gradient of parameter {i}"] = (got[f"p{n}_{i}"], value.grad)
        for what, (have, wanted) in pairs.items():
            scale = max(1.0, float(wanted.abs().max())) if wanted.is_floating_point() else 1.0
            if have.shape != wanted.shape or not bool(((have - wanted).abs() <= TOLERANCE * scale).all()):
                problems[n] = f"{case.text}: {what}\n got  {have.flatten()[:10].tolist()}\n want {wanted.flatten()[:10].tolist()}"
    return problems


def mesh_of(seed):
    return MESHES[seed // BATCH % len(MESHES)]


def search(seeds, *options):
    """Prints each case that differs, with its seed; how many ran and how many were wrong."""
    seeds, wrong = list(seeds), 0
    for start in range(0, len(seeds), BATCH):
        batch = seeds[start:start + BATCH]
        mesh = mesh_of(batch[0])
        cases = [draw(seed, mesh) for seed in batch]
        with tempfile.TemporaryDirectory() as folder:
            problems = problems_of(cases, mesh, pathlib.Path(folder), *options)
            if None in problems and len(cases) > 1:  # which of them is it?
                problems = {n: next(iter(p.values())) for n, case in enumerate(cases) if (p := problems_of([case], mesh, pathlib.Path(folder), *options))}
        wrong += len(problems)
        for n, problem in problems.items():
            case = cases[n or 0]
            print(f"seed {case.seed} on {mesh}, {case.axes}, result {'sharded' if case.shard_result else 'open'}: {case.text}\n{problem}\n", flush=True)
    return len(seeds), wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[*DRAWN, *KNOWN], help="draw cases of this kind alone")
    parser.add_argument("options", nargs="*", help="of shardc compile, behind --")
    options = parser.parse_args()
    if options.only:
        KINDS[:] = [options.only]
    ran, wrong = search(range(options.seed, options.seed + options.count), *options.options)
    print(f"{ran} cases, {wrong} wrong or refused")
    sys.exit(bool(wrong))
