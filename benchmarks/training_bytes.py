# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that one training step's forward and gradients move, on each rank, for two models and the usual ways to place them: ours
beside the least possible (docs/benchmarks.md derives it) and beside what PyTorch and JAX move.

  python benchmarks/training_bytes.py                       ours, and PyTorch's: DTensor, DDP and FSDP2 run, in 4 processes
  python benchmarks/training_bytes.py --only llama-tp4      some rows
  python benchmarks/training_bytes.py --quote               peers are not run: what they moved when they were measured
  python benchmarks/training_bytes.py --jax /path/to/python an interpreter that has jax: XLA partitions too

Ours are counted in the program that `shardc explain` reports; PyTorch's collectives are counted as they are called; JAX's in the
compiled program. All by ring volumes. Where a peer has no program for a row, or is not run, the column quotes its figure, in
parentheses. The exit status is 1 if a row of ours moves more than the least possible.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS, WIDTH, VOCABULARY, BATCH, SEQUENCE = 4, 256, 1024, 4, 128
ELEMENT = 4

DATA = ["input:*=dp:S(0)"]
GPT = ["module:*.attn.{q,k,v}=colwise", "module:*.attn.o=rowwise", "module:*.h.*.up=colwise", "module:*.h.*.down=rowwise",
       "module:*.wte=embedding_rowwise", "module:*.head=colwise"]
LLAMA = ["module:*.attn.{q,k,v}=colwise", "module:*.attn.o=rowwise", "module:*.layers.*.{gate,up}=colwise",
         "module:*.layers.*.down=rowwise", "module:*.embed=embedding_rowwise", "module:*.head=colwise"]
SEQUENCE_PARALLEL = ["module:*.norm_1=sequence", "module:*.norm_2=sequence", "module:*model.norm=sequence"]

# Name: model, mesh, plan, and the figures of JAX 0.10.2 and of PyTorch 2.13.0 when they were measured, in MB.
CASES = {
    "gpt-tp4": ("gpt", "tp=4", GPT, 20.46, 20.46),
    "gpt-dp4": ("gpt", "dp=4", DATA, 22.30, 22.30),
    "gpt-dp2-tp2": ("gpt", "dp=2,tp=2", [*DATA, *GPT], 14.33, 14.33),
    "gpt-fully-sharded": ("gpt", "fs=4", ["input:*=fs:S(0)", "param:*=fs:S(0)"], 32.28, 31.78),
    "llama-tp4": ("llama", "tp=4", LLAMA, 23.60, 23.60),
    "llama-tp4-sequence": ("llama", "tp=4", [*LLAMA, *SEQUENCE_PARALLEL], 30.70, 14.18),
    "llama-dp2-tp2-sequence": ("llama", "dp=2,tp=2", [*DATA, *LLAMA, *SEQUENCE_PARALLEL], 15.22, 15.23),
    "llama-fully-sharded": ("llama", "fs=4", ["input:*=fs:S(0)", "param:*=fs:S(0)"], 31.88, 31.48),
    # fs behind tp: what tensor parallelism shards is sharded again for storage.
    "llama-dp2-tp2-fs2-sequence": ("llama", "dp=2,tp=2,fs=2", ["input:*=dp:S(0),fs:S(0)", "param:*=fs:S(0)", *LLAMA,
                                                               *SEQUENCE_PARALLEL], None, None),
}
# Weights gathered again for the backward instead of kept (--reshard-after-forward true); peers have no such row.
AGAIN = "-again"
CASES |= {case + AGAIN: (*CASES[case][:3], None, None) for case in ("gpt-fully-sharded", "llama-fully-sharded")}


def axes_of(mesh):
    sizes = {axis: int(size) for axis, size in (part.split("=") for part in mesh.split(","))}
    return {axis: sizes.get(axis, 1) for axis in ("dp", "tp", "fs")}


def all_reduce(size, n):
    return 2 * (n - 1) / n * size


def half(size, n):
    """An all-gather or a reduce-scatter; `size` is that of the whole."""
    return (n - 1) / n * size


def parameter_bytes(kind):
    """(Those that tensor parallelism shards, norm weights and biases, all others)."""
    if kind == "gpt":
        sharded = LAYERS * (12 * WIDTH * WIDTH + 7 * WIDTH) + 2 * VOCABULARY * WIDTH  # q, k, v and up have sharded biases
        norms = (2 * LAYERS + 1) * 2 * WIDTH
        others = LAYERS * 2 * WIDTH + SEQUENCE * WIDTH  # biases of o and down; positions
    else:
        # q and o; k and v have half the heads; gate, up and down are three times as wide.
        sharded = LAYERS * (3 * WIDTH * WIDTH + 9 * WIDTH * WIDTH) + 2 * VOCABULARY * WIDTH
        norms, others = (2 * LAYERS + 1) * WIDTH, 0
    return ELEMENT * sharded, ELEMENT * norms, ELEMENT * others


def least(case):
    """The terms of the least possible, {what: bytes}; docs/benchmarks.md says why each is needed."""
    kind, mesh, _, _, _ = CASES[case]
    n = axes_of(mesh)
    dp, tp, fs = n["dp"], n["tp"], n["fs"]
    tokens = BATCH * SEQUENCE / (dp * fs)
    sharded, norms, others = parameter_bytes(kind)
    sharded /= tp
    terms = {"activations": 2 * (2 * LAYERS + 1) * all_reduce(tokens * WIDTH * ELEMENT, tp),
             "loss": 2 * all_reduce(tokens * ELEMENT, tp) + all_reduce(ELEMENT, dp * tp * fs)}
    if dp * fs > 1:
        terms["number of tokens"] = all_reduce(4, dp * fs)
    terms["weights to compute with"] = half(sharded + norms + others, fs) * (2 if case.endswith(AGAIN) else 1)
    # Norms under sequence parallelism are partial over tp as well.
    over = dp * tp if case.endswith("sequence") else dp
    terms["gradients"] = half(sharded + norms + others, fs) + all_reduce((sharded + others) / fs, dp) + all_reduce(norms / fs, over)
    return {what: size for what, size in terms.items() if size}


def least_of_step(case, zero, entry="train_step"):
    """The same of an entry of a training with ZeRO of this level over dp: {what: bytes}. An all-reduce is a reduce-scatter and an all-gather, so
    it moves as much whether the update is computed on whole parameters behind the one, or on shards between the two."""
    kind, mesh, _, _, _ = CASES[case]
    n = axes_of(mesh)
    terms = least(case)
    gradients = terms.pop("gradients", 0)
    parts = {}
    if entry == "train_step":
        parts["gradients and parameters"] = gradients
    elif n["dp"] > 1:
        # A sum that each rank keeps of its own costs nothing; one that is sharded is scattered, and parameters that are sharded are gathered.
        parts["gradients"] = gradients / 2 if zero >= 2 else 0
        parts["parameters"] = gradients / 2 if zero >= 3 else 0
    return terms | {what: size for what, size in parts.items() if size}


def export(folder):
    for kind in ("gpt", "llama"):
        subprocess.run([sys.executable, ROOT / "tools/export/shardc_export.py", f"{ROOT}/benchmarks/models.py:training_{kind}",
                        "-o", folder / f"{kind}.pt2"], check=True, stdout=subprocess.DEVNULL)


def options(case):
    _, mesh, plan, _, _ = CASES[case]
    again = ["--reshard-after-forward", "true"] if case.endswith(AGAIN) else []
    return ["--mesh", mesh, "--gradients", "0", *again, *(text for spec in plan for text in ("--place", spec))]


def step_options(case, *settings):
    _, mesh, plan, _, _ = CASES[case]
    return ["--mesh", mesh, *(text for spec in plan for text in ("--place", spec)), *(text for one in settings for text in ("--train", one))]


def ours(shardc, source, case, more=()):
    """Collectives of the entry `gradients`, as `shardc explain` reports them."""
    return [c for c in explained(shardc, source, case, [*options(case), *more]) if c["entry"] == "gradients"]


def explained(shardc, source, case, options):
    command = [shardc, "explain", source, *options, "--format", "json"]
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{case}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)["collectives"]


def moved(collectives):
    return sum(c["bytes_per_rank"] for c in collectives)


def pytorch(cases):
    """{case: bytes}; one launch of four processes for all."""
    run = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "--master-port", "0",
                          "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", ROOT / "benchmarks/training_peers.py", *cases],
                         text=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if run.returncode:
        sys.exit("PyTorch: " + run.stderr[-3000:])
    return json.loads(run.stdout.strip().splitlines()[-1])


def jax(python, cases):
    run = subprocess.run([python, ROOT / "benchmarks/training_jax.py", *cases], text=True, capture_output=True)
    if run.returncode:
        sys.exit("jax: " + run.stderr[-3000:])
    return json.loads(run.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shardc", default=ROOT / "build/bin/shardc")
    parser.add_argument("--only", help="names of rows, separated by commas: " + ", ".join(CASES))
    parser.add_argument("--quote", action="store_true", help="do not run PyTorch: quote its figures")
    parser.add_argument("--jax", help="a Python interpreter that has jax")
    args = parser.parse_args()
    cases = args.only.split(",") if args.only else list(CASES)
    four = [case for case in cases if CASES[case][4] is not None]
    ran = {"torch": {} if args.quote else pytorch(four), "jax": jax(args.jax, four) if args.jax else {}}

    def peer(name, case, quoted):
        size = ran[name].get(case)
        return f"{size / 1e6:.2f}" if size is not None else f"({quoted:.2f})" if quoted else ""

    more = 0
    print("MB on each rank; in parentheses: quoted, not run")
    print(f"{'row':27} | least possible | shardc | collectives | PyTorch |     JAX")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        export(folder)
        for case in cases:
            kind, _, _, quoted_jax, quoted_torch = CASES[case]
            bound, collectives = sum(least(case).values()), ours(args.shardc, folder / f"{kind}.pt2", case)
            more += moved(collectives) > bound + len(collectives)
            print(f"{case:27} | {bound / 1e6:14.3f} | {moved(collectives) / 1e6:6.3f} | {len(collectives):11} | "
                  f"{peer('torch', case, quoted_torch):>7} | {peer('jax', case, quoted_jax):>7}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
