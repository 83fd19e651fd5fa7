# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of which the host chooses a variant for 32 or for 64 bits when it runs. Memory of more than 2^31 elements is too large for a
test: the limit is lowered in the saved program, so that the same artifact launches one variant for small sizes, and the other
for large ones. A message of their own says which of them a run launched."""
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from kernels import EMULATED

LIMIT = 50_000
PROGRAM = """
func.func @forward(%w: tensor<?x64xf32> {dist.name = "w", dist.sizes = [#dist.size<rows>, #dist.size<64>]},
                   %i: tensor<?xi64> {dist.name = "i", dist.sizes = [#dist.size<n>]})
    -> (tensor<?x64xf32> {dist.name = "looked_up", dist.sizes = [#dist.size<n>, #dist.size<64>]},
        tensor<?x64xf32> {dist.name = "weights", dist.sizes = [#dist.size<rows>, #dist.size<64>]})
    attributes {dist.symbols = [#dist.symbol<rows in [0, ?]>, #dist.symbol<n in [0, ?]>]} {
  %l = aten.embedding %w at %i : (tensor<?x64xf32>, tensor<?xi64>) -> tensor<?x64xf32>
  %s = aten.softmax %w dim 1 : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %l, %s : tensor<?x64xf32>, tensor<?x64xf32>
}
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("narrow")
    (folder / "p.mlir").write_text(PROGRAM)
    run(tool("shardc"), "compile", folder / "p.mlir", "--mesh", "r=1", "--save-stages", folder / "stages", "-o", folder / "p.so",
        *EMULATED["compile"])
    saved, = (folder / "stages").glob("*-lowered.mlir")
    host, device = re.split(r"(?=^  gpu\.module)", saved.read_text(), flags=re.M)
    # The guards, and the checks of grids, which have the same limit: no grid here comes near the lower one.
    limit = "llvm.mlir.constant(2147483647 : index)"
    assert limit in host and '"ule"' in host
    host = host.replace(limit, f"llvm.mlir.constant({LIMIT} : index)")

    def marked(match):
        word = "narrow" if match["name"].endswith("_narrow") else "wide"
        return match[0].replace("index out of range", f"{word} index out of range")

    device, count = re.subn(r"llvm\.func @(?P<name>\w+)\(.*exec\.messages = \[\"index out of range.*", marked, device)
    assert count == 2, device
    assert len(re.findall(r"llvm\.func @\w+_narrow\(.*nvvm\.kernel", device)) == 2, "both kernels have two variants"
    (folder / "edited.mlir").write_text(host + device)
    run(tool("shardc"), "compile", folder / "edited.mlir", "-o", folder / "edited.so")
    return folder / "edited.so"


# Elements of the table and of what is looked up, below and above the limit.
@pytest.mark.parametrize("rows, positions, variant", [(300, 500, "narrow"), (300, 1000, "wide"), (1000, 500, "wide")])
def test_both_variants(rows, positions, variant, artifact, tmp_path):
    table, at = torch.randn(rows, 64), torch.randint(rows, [positions])

    def result_of(at):
        save_file({"w": table, "i": at}, tmp_path / "in.safetensors")
        return run(tool("shard-run"), artifact, "--inputs", tmp_path / "in.safetensors", "--outputs", tmp_path / "out.safetensors",
                   *EMULATED["run"], check=False)

    done = result_of(at)
    assert done.returncode == 0, done.stderr
    got = load_file(tmp_path / "out.safetensors")
    assert torch.equal(got["looked_up"], table[at])
    torch.testing.assert_close(got["weights"], torch.softmax(table, 1), rtol=1e-5, atol=1e-7)
    at[positions // 2] = rows
    done = result_of(at)
    assert done.returncode == 1 and f"{variant} index out of range in aten.embedding" in done.stderr, done.stderr
