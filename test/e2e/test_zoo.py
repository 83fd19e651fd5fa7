# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A dozen models of benchmarks/zoo.py, which runs all of them by hand: those of the libraries that are there for tests."""
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import zoo

MODELS = ["torch.nn/lstm", "torch.nn/transformer", "torch.nn/conv2d_grouped", "torch.nn/upsample_bicubic", "torch.nn/pools1d",
          "transformers/gpt2", "transformers/t5", "transformers/deberta-v2", "transformers/xlnet", "transformers/convbert",
          "transformers/clip", "transformers/mobilebert", "transformers/fnet", "torch.nn/neural_operator", "torch.nn/spectrogram"]


@pytest.mark.parametrize("name", MODELS)
def test_model_is_right_with_data_and_tensor_parallelism(name, tmp_path):
    result = zoo.examine(name, tmp_path, "generic", 120, ["dp2 x tp2"])
    assert result["verdict"] == "right", result["reason"]


def test_reasons_are_told_apart():
    text = ("error: operators that are not supported: 2, uses: 3. Export the model with ...\n"
            "  aten.topk.default, 1 use: topk (m.py:1)\n  aten.view_as_complex.default, 2 uses: a (m.py:2)\n")
    assert zoo.missing_operators(text) == ["aten.topk.default", "aten.view_as_complex.default"]
    assert zoo.why({"reason": "tp2: /tmp/plan.yaml:1: error: no module\nnote: more"}) == "tp2: /tmp/plan.yaml:1: error: no module"
    assert zoo.command(5, sys.executable, "-c", "import os; os.abort()")[0] == "crashed"
    assert zoo.command(0.2, sys.executable, "-c", "import time; time.sleep(9)")[0] == "hung"
    assert zoo.command(5, sys.executable, "-c", "raise SystemExit('error: no')")[0] == "refused"
