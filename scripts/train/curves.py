# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a Transformer of characters without PyTorch on four ranks, and compares its losses with PyTorch's."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/export"), str(ROOT / "scripts"), str(ROOT / "scripts/train"), str(ROOT / "runtime/examples")]
from clock import Clock  # noqa: E402
TEXT = "/usr/share/common-licenses/GPL-3"
DROPOUT, SEED = 0.1, 7
RANKS = {"r=1": 1, "dp=2": 2, "dp=2,tp=2": 4}  # that train with dropout
STEPS, RATE, WARMUP, FINAL, TOLERANCE = 300, 3e-3, 20, 3e-4, 1e-3
MESHES = {"dp=2,tp=2": 1, "dp=4": 3}  # and the ZeRO stage of each
LOOP = ["--steps", STEPS, "--lr", RATE, "--schedule", "cosine", "--warmup", WARMUP, "--final-lr", FINAL]


def run(*command):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nfailed:\n{done.stderr}")
    return done.stdout


def pytorch_losses(module, batches):
    """The same training in PyTorch, on one device."""
    import torch
    optimizer = torch.optim.AdamW(module.parameters(), lr=RATE)
    losses = []
    for step in range(STEPS):
        part = max(step - WARMUP, 0) / (STEPS - WARMUP)
        rate = FINAL + (RATE - FINAL) * (1 + math.cos(math.pi * part)) / 2
        optimizer.param_groups[0]["lr"] = RATE * (step + 1) / WARMUP if step < WARMUP else rate
        optimizer.zero_grad()
        loss, _ = module(**{name: value[step] for name, value in batches.items()})
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def dropout_curves(bin_, folder):
    """The losses of the same training with dropout on 1, 2 and 4 ranks, which drop the same elements."""
    import character
    import shardc_export
    import torch
    module, _, inputs = character.build(dropout=DROPOUT)
    torch.export.save(shardc_export.export(module, (), inputs, train=True), folder / "dropout.pt2")
    curves = []
    for mesh, ranks in RANKS.items():
        with Clock(f"training {STEPS} steps with dropout on the mesh {mesh}"):
            plan = [part for spec in character.PLAN[1::2] if all(axis in mesh for axis in spec_axes(spec)) for part in ("--place", spec)]
            program, log = folder / f"dropout_{ranks}.so", folder / f"dropout_{ranks}.log"
            run(bin_ / "shardc", "compile", folder / "dropout.pt2", "--mesh", mesh, *plan, "--train", "loss=0", "--train", "optimizer=adamw",
                "--train", "clip_norm=1", "-o", program)
            log.unlink(missing_ok=True)
            run(bin_ / "shard-run", program, "--weights", folder / "dropout.pt2", "--batches", folder / "batches.safetensors", *LOOP, "--seed", SEED,
                "--log", log)
            curves.append([json.loads(line)["loss"] for line in log.read_text().splitlines()])
    return curves


def spec_axes(spec):
    """The mesh axes that a placement needs."""
    return ("dp",) if spec.startswith("input:") else ("tp",)


def draw(path, curves):
    """The curves as a picture (SVG); each is (name, color, first step, losses)."""
    width, height, left, bottom, top = 720, 360, 50, 40, 4.9

    def x(step):
        return left + (width - left - 10) * step / STEPS

    def y(loss):
        return (height - bottom) * (1 - loss / top) + 5
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for loss in range(5):
        lines.append(f'<path d="M{left} {y(loss):.1f}H{width - 10}" stroke="#ddd"/><text x="{left - 8}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss}</text>')
    for step in range(0, STEPS + 1, 50):
        lines.append(f'<text x="{x(step):.1f}" y="{height - 18}" text-anchor="middle">{step}</text>')
    lines.append(f'<text x="{width / 2}" y="{height - 2}" text-anchor="middle">step</text><text x="4" y="14">loss</text>')
    for k, (name, color, first, losses) in enumerate(curves):
        points = " ".join(f"{x(first + i):.1f},{y(loss):.1f}" for i, loss in enumerate(losses))
        style = f'stroke="{color}" stroke-width="{5 - 2 * k}"'
        lines.append(f'<polyline points="{points}" fill="none" {style} stroke-opacity="0.8"/>')
        lines.append(f'<path d="M{width - 330} {30 + 20 * k}h30" {style}/><text x="{width - 290}" y="{34 + 20 * k}">{name}</text>')
    path.write_text("\n".join([*lines, "</svg>\n"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--picture", type=pathlib.Path, help="draw the curves in this file (SVG)")
    options = parser.parse_args()
    folder, bin_ = options.build / "train", options.build / "bin"
    folder.mkdir(exist_ok=True)
    os.environ["SHARDRT"] = str(options.build / "lib/libshardrt.so")

    import character
    import shardc_export
    import torch
    from safetensors.torch import save_file
    module, _, inputs = character.build()
    batches = character.batches_of(TEXT, STEPS)
    with Clock("exporting a Transformer of characters from PyTorch"):
        torch.export.save(shardc_export.export(module, (), inputs), folder / "character.pt2")
        save_file(batches, folder / "batches.safetensors")
    for mesh, zero in MESHES.items():
        with Clock(f"compiling its training step for the mesh {mesh}, ZeRO {zero}"):
            plan = character.PLAN if "tp" in mesh else character.PLAN[:2]
            run(bin_ / "shardc", "compile", folder / "character.pt2", "--mesh", mesh, *plan, "--train", "loss=0", "--train", "optimizer=adamw",
                "--train", f"zero={zero}", "--train", "clip_norm=1", "-o", folder / f"{mesh}.so")
    first, second = (folder / f"{mesh}.so" for mesh in MESHES)
    checkpoint = folder / "checkpoint-%s.safetensors"

    def train(program, log, *more):
        run(bin_ / "shard-run", program, "--batches", folder / "batches.safetensors", *LOOP, "--log", log, "--save", checkpoint, *more)
        return [json.loads(line)["loss"] for line in log.read_text().splitlines()]
    with Clock(f"training {STEPS} steps on the mesh {list(MESHES)[0]}, in C++"):
        losses = train(first, folder / "whole.log", "--weights", folder / "character.pt2", "--save-every", STEPS // 2)
    half = str(checkpoint).replace("%s", str(STEPS // 2))
    (folder / "rest.log").unlink(missing_ok=True)
    with Clock(f"going on from step {STEPS // 2} on the mesh {list(MESHES)[1]}"):
        rest = train(second, folder / "rest.log", "--resume", half)
    with Clock(f"training {STEPS} steps in PyTorch"):
        wanted = pytorch_losses(module, batches)
    with_dropout = dropout_curves(bin_, folder)
    with Clock("writing"):
        import train as example
        world = example.World(str(first), str(checkpoint).replace("%s", str(STEPS)))
        sample = example.sample(world, "The ", 160)
        world.close()
    print(f"\n{sample}\n")
    worst = max(abs(a - b) for a, b in zip(losses, wanted, strict=True))
    worst_rest = max(abs(a - b) for a, b in zip(rest, wanted[STEPS // 2:], strict=True))
    print(f"loss {losses[0]:.4f} at step 1, {losses[-1]:.4f} at step {STEPS}; PyTorch's: {wanted[0]:.4f}, {wanted[-1]:.4f}")
    print(f"largest difference of a step's loss from PyTorch's: {worst:.2g}, and {worst_rest:.2g} after going on on the other mesh")
    apart = max(abs(a - b) for curve in with_dropout[1:] for a, b in zip(curve, with_dropout[0], strict=True))
    print(f"with dropout {DROPOUT}: loss {with_dropout[0][0]:.4f} at step 1, {with_dropout[0][-1]:.4f} at step {STEPS}; "
          f"largest difference between 1, 2 and 4 ranks: {apart:.2g}")
    if options.picture:
        draw(options.picture, [("PyTorch, one device", "#bbbbbb", 1, wanted), ("shardc, dp=2 tp=2", "#1f77b4", 1, losses),
                               ("going on with dp=4", "#d62728", STEPS // 2 + 1, rest),
                               ("dp=2 tp=2, with dropout", "#2ca02c", 1, with_dropout[-1])])
    if max(worst, worst_rest, apart) > TOLERANCE:
        sys.exit(f"the losses differ by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
