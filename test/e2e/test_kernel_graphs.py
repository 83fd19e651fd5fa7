# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose results fold, repeat, are constants, other names or nobody's, against PyTorch; and none of them reads or
returns memory that it has not written. By hand, with more graphs than in the tests:

    python test/e2e/test_kernel_graphs.py --count 2000 --seed 5
"""
import argparse
import pathlib
import tempfile

from safetensors.torch import load_file

from kernel_graphs import function, graph
from kernels import SUMS, compile_and_run, difference


def check(seeds, folder, tools={}):
    """Fails with the graphs that are wrong, each as a program of its own. A device looks after its memory itself."""
    graphs = [graph(label, seed) for label, seed in enumerate(seeds)]
    text, arguments, results = function(graphs)
    done = compile_and_run(text, arguments, folder, *([] if tools else ["--check"]), tools=tools)
    assert done.returncode == 0, done.stderr[-4000:]
    got, problems = load_file(folder / "outputs.safetensors"), {}
    for i, (name, want, made) in enumerate(results):
        if wrong := difference(got[f"output_{i}"], want, [], 4 * SUMS):
            problems.setdefault(made.label, []).append(f"{name}: {wrong}")
    report = "\n".join(f"seed {seeds[label]}: {'; '.join(lines)}\n{function([graphs[label]])[0]}"
                       for label, lines in problems.items())
    assert not problems, f"{len(problems)} of {len(graphs)} graphs are wrong:\n{report[:8000]}"


def test_graphs_with_awkward_results(tmp_path):
    check(range(150), tmp_path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="graphs to try")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; each graph has one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for first in range(options.seed, options.seed + options.count, 200):
            check(range(first, min(first + 200, options.seed + options.count)), pathlib.Path(folder))
            print(f"seeds {first} to {min(first + 200, options.seed + options.count) - 1} agree", flush=True)
