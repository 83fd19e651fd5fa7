# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fine-tunes a model for some steps on dp = 2, tp = 2 with shard-run, and in PyTorch on one device: the losses of both, step by step.

  python benchmarks/fine_tune.py minilm       the trained weights of all-MiniLM-L6-v2, on pairs of sentences
  python benchmarks/fine_tune.py gpt2_124m    GPT-2 124M, from random weights

The exit status is 1 if a loss differs by more than 1e-3 of itself.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools/export"), str(ROOT / "test/models")]
import builders  # noqa: E402
import shardc_export  # noqa: E402
import with_loss  # noqa: E402

TOLERANCE, BATCHES = 1e-3, 4
PLANS = {"minilm": ["module:*.attention.self.{query,key,value}=colwise", "module:*.attention.output.dense=rowwise",
                    "module:*.intermediate.dense=colwise", "module:*.layer.*.output.dense=rowwise"],
         "gpt2_124m": ["module:*.c_attn=colwise", "module:*.attn.c_proj=rowwise", "module:*.c_fc=colwise", "module:*.mlp.c_proj=rowwise"]}
RATES = {"minilm": 5e-5, "gpt2_124m": 1e-4}


def build(kind):
    if kind == "minilm":
        encoder, inputs = builders.minilm(batch=8)
        return with_loss.Pairs(encoder, shift=1, scale=5).eval(), inputs
    model, inputs = builders.gpt2_124m(batch=2, sequence=64)
    return with_loss.Language(model).eval(), inputs


def ours(folder, kind, module, inputs, batches, steps):
    source, program, log = folder / "model.pt2", folder / "step.so", folder / "log"
    torch.export.save(shardc_export.export(copy.deepcopy(module), (), inputs), source)
    save_file(batches, folder / "batches.safetensors")
    compile = [ROOT / "build/bin/shardc", "compile", source, "--mesh", "dp=2,tp=2", "--place", "input:*=dp:S(0)",
               *(word for place in PLANS[kind] for word in ("--place", place)), "--train", "loss=0", "--train", "optimizer=adamw", "--train", "zero=1",
               "-o", program]
    train = [ROOT / "build/bin/shard-run", program, "--weights", source, "--batches", folder / "batches.safetensors", "--steps", steps,
             "--lr", RATES[kind], "--log", log]
    for command in (compile, train):
        print("$", " ".join(str(word).replace(str(folder) + "/", "").replace(str(ROOT) + "/", "") for word in command))
        begin = time.monotonic()
        subprocess.run([str(word) for word in command], check=True)
        print(f"{time.monotonic() - begin:.1f} s")
    return [json.loads(line) for line in log.read_text().splitlines()]


def pytorch(kind, module, batches, steps):
    optimizer = torch.optim.AdamW(module.parameters(), lr=RATES[kind])
    for step in range(steps):
        begin = time.monotonic()
        optimizer.zero_grad()
        loss = module(**{name: value[step % BATCHES] for name, value in batches.items()})
        loss.backward()
        optimizer.step()
        yield float(loss.detach()), time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=PLANS)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    module, inputs = build(args.kind)
    # Batches have the same tokens in other places.
    batches = {name: torch.stack([value if "mask" in name else value.roll(k, -1) for k in range(BATCHES)]).contiguous() for name, value in inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        log = ours(pathlib.Path(folder), args.kind, module, inputs, batches, args.steps)
    worst = 0.0
    for line, (loss, seconds) in zip(log, pytorch(args.kind, module, batches, args.steps)):
        worst = max(worst, abs(line["loss"] - loss) / abs(loss))
        print(f"step {line['step']:3}: loss {line['loss']:.7f}, {line['seconds'] * 1e3:7.1f} ms; PyTorch {loss:.7f}, {seconds * 1e3:7.1f} ms")
    print(f"largest difference of a loss: {worst:.1e} of itself")
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
