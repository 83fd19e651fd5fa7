# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows over sharded spatial dims of symbolic size, the height or both, drawn at random, forward and gradients, against PyTorch in f64. A program
is compiled once and run with several sizes, of which the smallest leave ranks with nothing. By hand:

    python test/e2e/symbolic_windows.py --count 100            # seeds 0 to 99
    python test/e2e/symbolic_windows.py --seed 12 --count 1 --only pool
"""
import argparse
import pathlib
import random
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from conftest import ROOT, run, tool
from exported import Function

sys.path.insert(0, str(ROOT / "tools/export"))
import shardc_export  # noqa: E402

CHANNELS, WIDTH, LEAST = 4, 9, 12  # PyTorch guards that a dim has not the one position of some windows
HEIGHTS = (64, 12, 13, 17, 23)  # the largest first: later runs must not read what earlier ones left behind
LAYOUTS = (("h=2", "h:S(2)"), ("h=3", "h:S(2)"), ("h=4", "h:S(2)"), ("h=5", "h:S(2)"), ("h=2,w=2", "h:S(2),w:S(3)"),
           ("a=2,b=2", "a:S(2),b:S(2)"), ("a=2,b=2", "b:S(2),a:S(2)"), ("dp=2,h=2", "dp:S(0),h:S(2)"))
CASES = 8  # of a model


def convolution(chosen):
    kernel, groups = (chosen.randint(1, 5), chosen.randint(1, 3)), chosen.choice((1, 1, 2, 4))
    options = {"stride": chosen.randint(1, 3), "padding": (chosen.randint(0, 3), chosen.randint(0, 1)), "dilation": (chosen.choice((1, 1, 2)), 1),
               "groups": groups}
    while options["dilation"][0] * (kernel[0] - 1) + 1 > LEAST + 2 * options["padding"][0]:
        options["padding"] = (options["padding"][0] + 1, options["padding"][1])
    return f"conv2d {kernel} {options}", nn.Conv2d(CHANNELS, 4, kernel, **options)


def transposed(chosen):
    stride = (chosen.randint(1, 3), 1)
    kernel = (chosen.randint(1, 5), chosen.randint(1, 3))
    options = {"stride": stride, "padding": (chosen.randint(0, (kernel[0] - 1) // 2), 0), "output_padding": (chosen.randrange(stride[0]), 0)}
    return f"conv_transpose2d {kernel} {options}", nn.ConvTranspose2d(CHANNELS, 2, kernel, **options)


def pool(chosen):
    kernel, stride = chosen.randint(1, 4), chosen.randint(1, 3)
    padding = chosen.randint(0, kernel // 2)
    if chosen.random() < 0.5:
        dilation = chosen.choice((1, 1, 2)) if kernel < 4 else 1
        padding = min(padding, (dilation * (kernel - 1) + 1) // 2)
        return f"max_pool2d {kernel} {stride} {padding} {dilation}", nn.MaxPool2d(kernel, stride, padding, dilation)
    options = {"count_include_pad": chosen.random() < 0.5, "divisor_override": chosen.choice((None, None, 3))}
    return f"avg_pool2d {kernel} {stride} {padding} {options}", nn.AvgPool2d(kernel, stride, padding, **options)


def pad(chosen):
    widths = [chosen.randint(0, 2), chosen.randint(0, 2), chosen.randint(-2, 4), chosen.randint(-2, 4)]
    value = chosen.choice((0, 1.5))
    return f"pad {widths} {value}", Function(lambda x: F.pad(x, widths, value=value))


def padded(chosen):
    mode = chosen.choice(("circular", "reflect", "replicate"))
    widths = [chosen.randint(0, 3) for _ in range(4)]
    return f"pad {mode} {widths}", Function(lambda x: F.pad(x, widths, mode=mode))


def resampled(chosen):
    """By a factor, of which some are no floats when they are inverted, or to a size that is computed."""
    mode = chosen.choice(("nearest", "nearest-exact", "bilinear", "bilinear", "bicubic"))
    options = {"mode": mode, **({"align_corners": chosen.random() < 0.4} if mode.startswith("bi") else {})}
    if chosen.random() < 0.3:
        times, more = chosen.choice((1, 2, 3)), chosen.randint(-3, 3)
        return f"interpolate {options} to {times} h + {more}", Function(
            lambda x: resized(x, False, size=(times * x.shape[2] + more, x.shape[3]), **options))
    factors = (chosen.choice((2.0, 2.0, 3.0, 4.0, 0.5, 1.5, 2.5, 0.75, 0.25)), chosen.choice((1.0, 2.0)))
    is_exact = factors[0] in (0.25, 0.5, 2.0, 4.0)
    return f"interpolate {options} by {factors}", Function(lambda x: resized(x, is_exact, scale_factor=factors, **options))


def resized(x, is_exact, **options):
    """Where the scale is rounded, PyTorch's gradient of the nearest element may be one of the element beside it (64 rows of f64 to 194): it is not
    compared."""
    if is_exact or not options["mode"].startswith("nearest"):
        return F.interpolate(x, **options)
    return F.interpolate(x.detach(), **options) + 0 * x.mean()


def part(chosen):
    kind = chosen.choice(("front", "back", "both", "last", "step"))
    begin, end, step = chosen.randint(1, 4), chosen.randint(1, 4), chosen.randint(2, 3)
    if kind == "front":
        return f"x[{begin}:]", Function(lambda x: x[:, :, begin:])
    if kind == "back":
        return f"x[:-{end}]", Function(lambda x: x[:, :, :-end])
    if kind == "both":
        begin, end = min(begin, 2), min(end, 2)
        return f"x[{begin}:-{end}]", Function(lambda x: x[:, :, begin:-end])
    if kind == "last":
        return f"x[-{end}:]", Function(lambda x: x[:, :, -end:])
    return f"x[{begin}::{step}]", Function(lambda x: x[:, :, begin::step])


def difference(chosen):
    if chosen.random() < 0.5:
        return "first difference", Function(lambda x: x[:, :, 1:] - x[:, :, :-1])
    return "second difference", Function(lambda x: x[:, :, 2:] - 2 * x[:, :, 1:-1] + x[:, :, :-2])


def moved(chosen):
    if chosen.random() < 0.4:
        return "flip", Function(lambda x: x.flip(2))
    by = chosen.randint(-4, 4)
    return f"roll {by}", Function(lambda x: torch.roll(x, by, 2))


def joined(chosen):
    begin = chosen.randint(1, 3)
    return f"cat {begin}", Function(lambda x: torch.cat((x[:, :, begin:], x, x[:, :, :begin]), 2))


def adaptive(chosen):
    """To fewer parts than there are elements, and to more."""
    parts = (chosen.choice((2, 3, 5, 7, 12, 30)), chosen.choice((1, 2, 4)))
    if chosen.random() < 0.25:
        return f"adaptive_max_pool2d {parts}", nn.AdaptiveMaxPool2d(parts)
    return f"adaptive_avg_pool2d {parts}", nn.AdaptiveAvgPool2d(parts)


def cut(chosen):
    first, last = chosen.randint(1, 5), chosen.randint(1, 5)

    def parts(x):
        front, middle, back = torch.split(x, [first, x.shape[2] - first - last, last], 2)
        return torch.cat((back, middle * 2, front * 3), 2)
    return f"split {first} ... {last}", Function(parts)


def halves(chosen):
    """PyTorch exports them of a dim that is a multiple of a symbol."""
    way = chosen.choice((lambda x: x.chunk(2, 2), lambda x: torch.split(x, x.shape[2] // 2, 2), lambda x: x.tensor_split(2, 2),
                         lambda x: torch.split(x, [x.shape[2] // 2 - 1, x.shape[2] // 2 + 1], 2)))

    def joined_again(x):
        front, back = way(x)
        return torch.cat((back.flip(2), front * 2), 2)
    return "halves", Function(joined_again)


KINDS = {f.__name__: f for f in (convolution, transposed, pool, pad, padded, resampled, part, difference, moved, joined, adaptive, cut)}
EVEN_KINDS = {"halves": halves}  # of heights that are even


class Windows(nn.Module):
    """Each op on the image times numbers of its own, so that the image has a gradient in each."""

    def __init__(self, ops, width):
        super().__init__()
        self.ops = nn.ModuleList(ops)
        self.scale = nn.ParameterList(torch.rand(CHANNELS, 1, width) + 0.5 for _ in ops)

    def forward(self, x):
        results = [op(x * scale) for op, scale in zip(self.ops, self.scale)]
        loss = sum((y * torch.arange(1, y.shape[3] + 1, dtype=y.dtype)).sin().sum() for y in results)
        return loss, *results


def check(folder, seed, only=None, options=(), count=CASES):
    """Compiles a model of these cases, and runs it at all heights; returns what is wrong, and what the cases are. Symbols of half of the seeds have
    no largest value."""
    chosen = random.Random(seed)
    torch.manual_seed(seed)
    drawn = [(KINDS | EVEN_KINDS)[only or chosen.choice(list(KINDS))](chosen) for _ in range(count)]
    times = 2 if only in EVEN_KINDS else 1
    mesh, layout = chosen.choice(LAYOUTS)
    both = chosen.random() < 0.5  # dims are symbolic
    module = Windows([op for _, op in drawn], 1 if both else WIDTH).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example = {"x": torch.randn(2, CHANNELS, 19 * times, 16 if both else WIDTH, dtype=torch.float64)}
        most = chosen.choice((":4096", ""))
        dynamic = (f"x:2={times}*height:{LEAST // times}{most}", *([f"x:3=width:{LEAST}{most}"] if both else []))
        program = shardc_export.export(module, (), example, dynamic)
        torch.export.save(program, folder / "m.pt2")
    run(tool("shardc"), "compile", folder / "m.pt2", "--mesh", mesh, "--place", f"input:x={layout}", "--gradients", 0, *options, "-o", folder / "m.so")
    wrong = []
    for height in (height - height % times for height in HEIGHTS):
        x = torch.randn(2, CHANNELS, height, LEAST + height % 9 if both else WIDTH, dtype=torch.float64)
        save_file({"x": x}, folder / "in.safetensors")
        loss, *results = module(x)
        grads = dict(zip(dict(module.named_parameters()), torch.autograd.grad(loss, list(module.parameters()))))
        run(tool("shard-run"), folder / "m.so", "--entry", "gradients", "--weights", folder / "m.pt2", "--inputs", folder / "in.safetensors",
            "--outputs", folder / "out.safetensors", "--timeout", 60)
        got = load_file(folder / "out.safetensors")
        outputs = [got[name] for name in list(program.graph_signature.user_outputs)]
        wanted = [*((f"output {i} ({drawn[i - 1][0] if i else 'loss'})", o, w) for i, (o, w) in enumerate(zip(outputs, (loss, *results), strict=True))),
                  *((f"gradient of {name}", got[name], w) for name, w in grads.items())]
        wrong += [f"{what} at height {height} on {mesh} {layout}: {tuple(o.shape)} {tuple(w.shape)}" for what, o, w in wanted
                  if o.shape != w.shape or not torch.allclose(o, w.detach(), rtol=1e-9, atol=1e-9)]
    return wrong, [text for text, _ in drawn]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--only", choices=KINDS | EVEN_KINDS)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    failed = 0
    for seed in range(given.seed, given.seed + given.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong, _ = check(pathlib.Path(folder), seed, given.only, given.options, given.cases)
            except (AssertionError, RuntimeError) as error:
                wrong = [str(error)]
        failed += bool(wrong)
        for line in wrong:
            print(f"seed {seed}: {line}", flush=True)
    print(f"{given.count - failed} right, {failed} wrong")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
