# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles all-MiniLM-L6-v2 for a mesh dp=2,tp=2, runs it on four ranks and compares it with PyTorch."""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = pathlib.Path(__file__).resolve().parents[2]
MESH = "dp=2,tp=2"
PLAN = ROOT / "scripts/demo/minilm.yaml"
TOLERANCE = 1e-4  # on unit vectors
STEPS = 20


def run(*command):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nfailed:\n{done.stderr}")
    return done.stdout


def export(folder):
    """MiniLM as a .pt2 with its inputs and PyTorch's answer and step time; kept until the exporter changes."""
    sources = [ROOT / "test/models/builders.py", ROOT / "tools/export/shardc_export.py", pathlib.Path(__file__)]
    digest = hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()
    stamp = folder / "stamp.json"
    if stamp.exists() and json.loads(stamp.read_text()).get("digest") == digest:
        return json.loads(stamp.read_text())["eager_ms"]
    sys.path[:0] = [str(ROOT / "test/models"), str(ROOT / "tools/export")]
    import torch
    from safetensors.torch import save_file

    import builders
    import shardc_export

    folder.mkdir(parents=True, exist_ok=True)
    model, inputs = builders.minilm()
    torch.export.save(shardc_export.export(model, (), inputs), folder / "minilm.pt2")
    with torch.inference_mode():
        output = model(**inputs)
        times = []
        for _ in range(STEPS):
            begin = time.perf_counter()
            model(**inputs)
            times.append(time.perf_counter() - begin)
    save_file(dict(inputs), folder / "inputs.safetensors")
    save_file({"embedding": output}, folder / "expected.safetensors")
    eager_ms = sorted(times)[STEPS // 2] * 1e3
    stamp.write_text(json.dumps({"digest": digest, "eager_ms": eager_ms, "sentences": builders.SENTENCES}))
    return eager_ms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build
    folder = build / "demo"
    bin_ = build / "bin"

    print(f"Exporting all-MiniLM-L6-v2 with its trained weights (PyTorch) ...", flush=True)
    eager_ms = export(folder)

    print(f"Compiling for mesh {MESH} with {PLAN.relative_to(ROOT)} ...", flush=True)
    begin = time.perf_counter()
    run(bin_ / "shardc", "compile", folder / "minilm.pt2", "--mesh", MESH, "--plan", PLAN, "-o", folder / "minilm.so")
    compile_s = time.perf_counter() - begin
    explained = json.loads(run(bin_ / "shardc", "explain", folder / "minilm.pt2", "--mesh", MESH, "--plan", PLAN,
                               "--format", "json"))

    print("Running on 4 ranks of this process ...\n", flush=True)
    profile = folder / "trace.json"
    run(bin_ / "shard-run", "-n", 4, folder / "minilm.so", "--weights", folder / "minilm.pt2",
        "--inputs", folder / "inputs.safetensors", "--outputs", folder / "outputs.safetensors")
    timing = json.loads(run(bin_ / "shard-run", "-n", 4, folder / "minilm.so", "--weights", folder / "minilm.pt2",
                            "--inputs", folder / "inputs.safetensors", "--outputs", folder / "outputs.safetensors",
                            "--steps", STEPS, "--trace", profile, "--format", "json"))

    from safetensors.numpy import load_file
    import numpy as np

    (expected,) = load_file(folder / "expected.safetensors").values()
    (got,) = load_file(folder / "outputs.safetensors").values()
    sentences = json.loads((folder / "stamp.json").read_text())["sentences"]

    print("Similarity of the sentences (cosine, from the four ranks):")
    for i, text in enumerate(sentences):
        row = " ".join(f"{value:5.2f}" for value in got[i] @ got.T)
        print(f"  {i}  {text:<44} {row}")
    difference = float(np.abs(got - expected).max())
    print(f"\nLargest difference from PyTorch: {difference:.2e} (allowed {TOLERANCE:.0e})")
    print("Communicated in one step, bytes per rank:")
    for kind, total in explained["totals"].items():
        if total["count"]:
            print(f"  {total['count']:3d} {kind:<15} {total['bytes_per_rank']:>10,} bytes")
    step_ms = timing["step_ms"]["median"]
    print(f"Step: {step_ms:.2f} ms on 4 ranks, {eager_ms:.2f} ms in PyTorch eager, one process: "
          f"ratio {step_ms / eager_ms:.2f}  (compiled in {compile_s:.1f} s)")
    if not difference <= TOLERANCE:
        sys.exit("error: the result differs from PyTorch's")


if __name__ == "__main__":
    main()
