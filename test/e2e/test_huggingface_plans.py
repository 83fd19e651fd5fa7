# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans as `transformers` writes them: those of all of its configuration classes, and some of its models run with their own."""
import sys

import pytest

from conftest import ROOT, run, tool
from python_scripts import run_script

sys.path.insert(0, str(ROOT / "benchmarks"))
import families

SMALL = '''
func.func @forward(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<256x64xf32> {dist.kind = "parameter", dist.name = "first.weight"})
    -> (tensor<8x256xf32> {dist.kind = "output", dist.name = "y"}) {
  %y = aten.linear %x, %w : (tensor<8x64xf32>, tensor<256x64xf32>) -> tensor<8x256xf32> loc(fused<"first">["linear"])
  return %y : tensor<8x256xf32>
}
'''


def apply(tmp_path, sections):
    """What is said of a plan made of sections, each a name and a mapping."""
    (tmp_path / "model.mlir").write_text(SMALL)
    (tmp_path / "plan.yaml").write_text("mesh: {tp: 2}\n" + "".join(families.section(*section) for section in sections))
    return run(tool("shard-opt"), tmp_path / "model.mlir", f"--dist-apply-plan=plan={tmp_path / 'plan.yaml'}")


def test_plans_of_all_configurations_load(tmp_path):
    """None is refused. Of this model they name nothing, so that each of their lines is a remark."""
    plans = families.configured_plans()
    assert len(plans) > 150
    lines = sum(len(rules) for _, rules in plans)
    done = apply(tmp_path, plans)
    assert "error" not in done.stderr
    assert done.stderr.count("matches nothing of this model") == lines


def test_every_style_of_transformers_is_known(tmp_path):
    styles = families.registered_styles()
    assert {"colwise", "rowwise", "mla_kv_a_proj", "grouped_gemm"} <= set(styles)
    done = apply(tmp_path, [("tp_plan", {f"absent{i}": style for i, style in enumerate(styles)})])
    assert "error" not in done.stderr


@pytest.mark.parametrize("name", families.TESTED)
def test_families_run_with_their_own_plan(name, tmp_path):
    row = families.measure(name, tmp_path, exporter=lambda *arguments: run_script(families.__file__, "--export", *arguments, timeout=900))
    assert row["result"] == "right", row
