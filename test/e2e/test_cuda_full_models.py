# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models that scripts/gpu.sh compares on a GPU, with their real widths and vocabularies, on the emulated device with all its
checks: short sequences, and fewer layers, which are all alike. Against PyTorch, as the group `answers` does it."""
import math
import sys

import pytest
import torch

from conftest import BUILD, ROOT

sys.path[:0] = [str(ROOT / "scripts/gpu"), str(ROOT / "tools/export")]
import group_answers  # noqa: E402
import measure  # noqa: E402
import networks  # noqa: E402
import pack  # noqa: E402
import programs  # noqa: E402
import shardrt  # noqa: E402

pytestmark = pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
GPT2, LLAMA = dict(layers=2), dict(layers=1, vocabulary=4096)  # Llama's of 128,256 would need 8 GiB with the emulator's notes
MODELS = [
    programs.Model("gpt2", networks.Gpt2, programs.tokens(50257, 2, 5), GPT2),
    programs.Model("gpt2_bf16", networks.Gpt2, programs.tokens(50257, 1, 7), GPT2, torch.bfloat16),
    programs.Model("gpt2_gradients", networks.Gpt2Loss, programs.tokens(50257, 2, 5), dict(layers=1), gradients="0"),
    programs.Model("gpt2_decode", networks.Gpt2Decode, programs.cached(torch.float32, 2, 12, 64, 2, 9, 50257), GPT2),
    programs.Model("minilm", networks.MiniLm, programs.sentences(30522, 2, 9)),
    programs.Model("minilm_bf16", networks.MiniLm, programs.sentences(30522, 2, 9), {}, torch.bfloat16),
    programs.Model("llama", networks.Llama, programs.tokens(4096, 1, 5), LLAMA),
    programs.Model("llama_bf16", networks.Llama, programs.tokens(4096, 1, 5), LLAMA, torch.bfloat16),
]


class Emulated:
    """What `group_answers.answer` works with, over one program."""
    place, left = torch.device("cpu"), math.inf

    def __init__(self, path):
        self.path, self.report = path, measure.Report("answers")

    def open(self, name, weights):
        library = shardrt.Library(BUILD / "lib/libshardrt.so")
        return shardrt.Program(library, self.path, "emulated", None, weights)

    def synchronise(self):
        pass


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_model(model, tmp_path):
    pack.export(model, tmp_path / "model.pt2")
    gradients = ("--gradients", model.gradients) if model.gradients else ()
    pack.run(BUILD / "bin/shardc", "compile", tmp_path / "model.pt2", "--target", "cuda:emulated", "--mesh", "r=1", *gradients,
             "-o", tmp_path / "model.so")
    (tmp_path / "model.pt2").unlink()
    it = Emulated(tmp_path / "model.so")
    group_answers.answer(it, model)
    (error,) = it.report.figures
    assert error.verdict == "hit" and error.value > 0, error
    assert error.limit == (1e-4 if model.dtype == torch.float32 else 2e-2)
