# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a U-Net on a field that is too large for the memory of one rank, on four ranks with a part of the field each."""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/export"), str(ROOT / "scripts"), str(ROOT / "scripts/domain")]
from clock import Clock  # noqa: E402
PLAN, PARTS = ROOT / "scripts/domain/unet.yaml", (2, 2)
MESHES = {1: "h=1,w=1", 2: "h=2,w=1", 4: "h=2,w=2", 8: "h=4,w=2"}  # by their numbers of ranks
SAMPLES, RATE, WARMUP = 16, 3e-3, 5
TOLERANCE = 1e-4  # of a concentration, which is between 0 and 1
SCALE = 0.2  # the difference that has the strongest color
WHAT = {"all_to_all": ": rows and columns beside its part", "all_reduce": ": sums for norms, the loss and the weights' gradients"}


def run(*command, check=True):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nfailed:\n{done.stderr}")
    return done


def mebibytes(count):
    return f"{count / 2**20:.1f} MiB"


def refusal(done):
    """The errors of a refused program, and the notes that say what would do, without the lists of what takes the memory."""
    if not done.returncode:
        sys.exit("error: the program of one rank fits, so that this shows nothing: choose a smaller --limit")
    return [line for line in done.stderr.splitlines() if re.match("error: |note: this is the least", line)]


def memory_of_step(bin_, program):
    """What the training step needs on the rank that needs most."""
    manifest = json.loads(run(bin_ / "shard-run", program, "--manifest").stdout)
    (entry,) = (e for e in manifest["entries"] if e["name"] == "train_step")
    return max(sum(rank.values()) for rank in entry["memory"])


def print_memories(bin_, model, folder):
    """What a rank needs without a limit, on the mesh of each number of ranks."""
    def memory(mesh):
        program = folder / f"unlimited-{mesh}.so"
        run(bin_ / "shardc", "compile", model, "--plan", PLAN, "--mesh", mesh, "-o", program)
        return memory_of_step(bin_, program)

    with Clock("compiling for 1, 2, 4 and 8 ranks without a limit"), ThreadPoolExecutor(2) as pool:
        needs = list(pool.map(memory, MESHES.values()))
    for (ranks, mesh), need in zip(MESHES.items(), needs):
        print(f"  {ranks} rank{'s' if ranks > 1 else ' '}  {mesh}  {mebibytes(need):>10} on each rank, {need / needs[0]:.3f} of what one rank needs")


def sent_in_step(report):
    """Bytes that a rank sends in a training step, by kinds of collectives."""
    sent = collections.Counter()
    for collective in report["collectives"]:
        if collective["entry"] == "train_step":
            sent[collective["kind"]] += collective["count"] * collective["bytes_per_rank"]
    return sent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, help="where files are written (default: domain/ in the build)")
    parser.add_argument("--picture", type=pathlib.Path, help="the picture to draw (default: domain.png in the folder)")
    parser.add_argument("--size", type=int, default=512, help="cells along each side of the field (default 512)")
    parser.add_argument("--steps", type=int, default=60, help="steps of the training (default 60)")
    parser.add_argument("--limit", default="80MiB", help="the most memory of a rank (default 80MiB)")
    parser.add_argument("--no-table", action="store_true", help="leave out what memory other numbers of ranks need")
    options = parser.parse_args()
    folder, bin_ = options.folder or options.build / "domain", options.build / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    path, size = options.picture or folder / "domain.png", options.size
    model, program, checkpoint, log = (folder / name for name in ("unet.pt2", "step.so", "checkpoint.safetensors", "losses.log"))

    with Clock("loading PyTorch"):
        import fields
        import picture
        import shardc_export
        import torch
        import unet
        from safetensors.torch import load_file, save_file
    with Clock(f"solving the equation for {SAMPLES + 1} fields of {size} x {size} cells"):
        save_file(fields.samples(SAMPLES, size, seed=0), folder / "batches.safetensors")
        unseen = {name: value[0] for name, value in fields.samples(1, size, seed=1).items()}
        save_file(unseen, folder / "unseen.safetensors")
    with Clock("exporting a U-Net from PyTorch"):
        module, _, inputs = unet.build(size)
        torch.export.save(shardc_export.export(module, (), inputs), model)

    if not options.no_table:
        print_memories(bin_, model, folder)
    limited = ["--plan", PLAN, "--memory-limit", options.limit]
    with Clock(f"compiling for one rank, --memory-limit {options.limit}"):
        refused = run(bin_ / "shardc", "compile", model, "--mesh", MESHES[1], *limited, "-o", folder / "refused.so", check=False)
    print("refused:", *refusal(refused), sep="\n  ")
    with Clock(f"compiling for four ranks, --memory-limit {options.limit}"):
        run(bin_ / "shardc", "compile", model, *limited, "-o", program)
    report = json.loads(run(bin_ / "shardc", "explain", model, *limited, "--format", "json").stdout)
    print(f"  a rank needs {mebibytes(memory_of_step(bin_, program))}; in a step it sends")
    for kind, count in sent_in_step(report).items():
        print(f"  {count:>10,} bytes by {kind}{WHAT.get(kind, '')}")

    log.unlink(missing_ok=True)
    with Clock(f"training {options.steps} steps on four ranks"):
        run(bin_ / "shard-run", program, "--weights", model, "--batches", folder / "batches.safetensors", "--steps", options.steps, "--lr", RATE,
            "--schedule", "cosine", "--warmup", WARMUP, "--log", log, "--save", checkpoint)
    losses = [json.loads(line)["loss"] for line in log.read_text().splitlines()]
    for step in sorted({1, *range(10, options.steps, 10), options.steps}):
        print(f"  step {step:>3}  loss {losses[step - 1]:.6f}")
    with Clock("predicting a field that the training has not seen, on four ranks"):
        run(bin_ / "shard-run", program, "--entry", "forward", "--weights", checkpoint, "--inputs", folder / "unseen.safetensors", "--outputs",
            folder / "predicted.safetensors")
    with Clock("the same in PyTorch on one device, with the checkpoint"), torch.no_grad():
        missing, _ = module.load_state_dict(load_file(checkpoint), strict=False)
        _, wanted = module(**unseen)
    outputs = load_file(folder / "predicted.safetensors")
    (got,) = (value for value in outputs.values() if value.dim() == 4)
    before, after = unseen["x"][0, 0], unseen["target"][0, 0]
    apart, error = float((got - wanted).abs().max()), got[0, 0] - after
    guess = float((before - after).square().mean())
    picture.draw(path, [f.numpy() for f in (before, after, got[0, 0])], error.numpy(), PARTS, SCALE)
    print(f"\nmean squared error: {float(error.square().mean()):.6f}, and {guess:.6f} of the measurement")
    print(f"largest difference of the prediction from PyTorch's: {apart:.2g}")
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    print(f"{shown}: the measured concentration, what it is later, the prediction of that, and their difference (from -{SCALE} to {SCALE})")
    if missing or not apart <= TOLERANCE:
        sys.exit(f"error: the prediction differs from PyTorch's by more than {TOLERANCE}")
    if not losses[-1] < losses[0]:
        sys.exit("error: the loss has not fallen")


if __name__ == "__main__":
    main()
