# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles all-MiniLM-L6-v2 for a mesh dp=2,tp=2, runs it on four ranks and compares it with PyTorch."""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/models"), str(ROOT / "tools/export")]
MESH, RANKS = "dp=2,tp=2", 4
PLAN = ROOT / "scripts/demo/minilm.yaml"
TOLERANCE = 1e-4  # on unit vectors
ROUNDS, STEPS = 5, 20


def run(*command):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nfailed:\n{done.stderr}")
    return done.stdout


class Clock:
    """Prints what is being done, and how long it took."""

    def __init__(self, text):
        print(f"{text:<62}", end="", flush=True)

    def __enter__(self):
        self.begin, self.note = time.perf_counter(), ""
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            print(f"{time.perf_counter() - self.begin:6.1f} s  {self.note}", flush=True)


def export(folder, model, inputs):
    """MiniLM as a .pt2 with its inputs; False if it is there already and what makes it has not changed since."""
    import shardc_export
    import torch
    from safetensors.torch import save_file

    sources = [ROOT / "test/models/builders.py", ROOT / "tools/export/shardc_export.py", pathlib.Path(__file__)]
    digest = hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()
    stamp = folder / "stamp"
    if stamp.exists() and stamp.read_text() == digest:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save(shardc_export.export(model, (), inputs), folder / "minilm.pt2")
    save_file(dict(inputs), folder / "inputs.safetensors")
    stamp.write_text(digest)
    return True


def eager_ms(model, inputs):
    times = []
    end = time.perf_counter() + 2
    while len(times) < STEPS and time.perf_counter() < end:
        begin = time.perf_counter()
        model(**inputs)
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def print_similarities(sentences, vectors):
    print("\nSimilarity of the sentences (cosine), from the outputs of the four ranks")
    print(" " * 46 + "".join(f"{i:>6}" for i in range(len(sentences))))
    for i, text in enumerate(sentences):
        print(f"  {i}  {text:<41}" + "".join(f"{value:6.2f}" for value in vectors[i] @ vectors.T))


def print_communication(explained):
    """Collectives of one step by kind and mesh axes."""
    print("\nCommunicated in one step")
    sums = collections.defaultdict(lambda: [0, 0])
    for entry in explained["collectives"]:
        row = sums[entry["kind"].replace("_", "-"), entry["group"]]
        row[0] += entry["count"]
        row[1] += entry["count"] * entry["bytes_per_rank"]
    for (kind, group), (count, bytes_) in sums.items():
        print(f"  {count:3d} {kind + ' over ' + group:<24}{bytes_:>12,} bytes per rank")


def spread(times):
    return f"{statistics.median(times):8.2f} ms   ({min(times):.2f} to {max(times):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    folder = build / "demo"
    artifact, weights = folder / "minilm.so", folder / "minilm.pt2"
    shardc, shard_run = build / "bin/shardc", build / "bin/shard-run"

    with Clock("Loading PyTorch and all-MiniLM-L6-v2, trained weights"):
        import builders
        import numpy as np
        import torch
        import transformers
        from safetensors.numpy import load_file

        transformers.utils.logging.disable_progress_bar()
        model, inputs = builders.minilm()
        torch.set_grad_enabled(False)
    with Clock("Exporting it with torch.export") as clock:
        if not export(folder, model, inputs):
            clock.note = "kept from the last time"
    with Clock(f"shardc compile --mesh {MESH} --plan {PLAN.relative_to(ROOT)}"):
        run(shardc, "compile", weights, "--mesh", MESH, "--plan", PLAN, "-o", artifact)
    explained = json.loads(run(shardc, "explain", weights, "--mesh", MESH, "--plan", PLAN, "--format", "json"))

    def run_ranks(*options):
        return json.loads(run(shard_run, "-n", RANKS, artifact, "--weights", weights, "--inputs",
                              folder / "inputs.safetensors", "--outputs", folder / "outputs.safetensors",
                              "--format", "json", *options))

    with Clock(f"shard-run -n {RANKS}, in turn with PyTorch eager"):
        expected = model(**inputs).numpy()
        ranks_ms, torch_ms = [], []
        for _ in range(ROUNDS):
            ranks_ms.append(run_ranks("--steps", STEPS)["step_ms"]["median"])
            torch_ms.append(eager_ms(model, inputs))
    (got,) = load_file(folder / "outputs.safetensors").values()

    print_similarities(builders.SENTENCES, got)
    print_communication(explained)
    shape = " x ".join(map(str, inputs["input_ids"].shape))
    print(f"\nTime of a step on {shape} tokens: median of {ROUNDS} rounds of {STEPS} steps (least to most)")
    if (load := os.getloadavg()[0]) > 2 * os.cpu_count():
        print(f"  (other work runs on this machine, load average {load:.0f}: these times say little)")
    print(f"  shardc, {RANKS} ranks on {os.cpu_count()} cores         {spread(ranks_ms)}")
    print(f"  PyTorch eager, 1 process, {torch.get_num_threads()} threads {spread(torch_ms)}")
    ratio = statistics.median(a / b for a, b in zip(ranks_ms, torch_ms))
    print(f"  shardc / PyTorch                    {ratio:8.2f}")
    difference = float(np.abs(got - expected).max())
    good = difference <= TOLERANCE  # false for NaN too
    print(f"\nLargest difference from PyTorch: {difference:.1e} on unit vectors, at most {TOLERANCE:.0e} allowed: "
          f"{'good' if good else 'WRONG'}")
    if not good:
        sys.exit("error: the result differs from PyTorch's")


if __name__ == "__main__":
    main()
