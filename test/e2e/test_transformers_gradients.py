# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of three kinds of models as `transformers` has them, with the loss inside: an encoder, a decoder with grouped queries
and an encoder-decoder, on the usual meshes. Each is as near to PyTorch's as 1e-5 of the largest of its kind."""
import functools
import math
import sys

import pytest

from conftest import run, tool
from model_gradients import Reference
from plans import places

BUILDER = '''
import torch
from torch import nn

class Loss(nn.Module):
    """Of a model that computes it itself."""
    def __init__(self, model):
        super().__init__()
        self.model = model
    def forward(self, **inputs):
        return self.model(**inputs).loss

def ids(batch, length, seed, vocabulary=96):
    return torch.randint(2, vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed))

def make(kind):
    torch.manual_seed(7)
    if kind == "encoder":
        from transformers import BertConfig, BertForMaskedLM
        model = BertForMaskedLM(BertConfig(
            vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=72,
            max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
        mask = torch.ones(4, 12, dtype=torch.long)
        mask[1, 9:], mask[3, 5:] = 0, 0
        labels = torch.where(ids(4, 12, 2) % 3 == 0, ids(4, 12, 3), -100)
        return Loss(model).eval(), dict(input_ids=ids(4, 12, 1), attention_mask=mask, labels=labels)
    if kind == "decoder":
        from transformers import Qwen2Config, Qwen2ForCausalLM
        model = Qwen2ForCausalLM(Qwen2Config(
            vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4, intermediate_size=56,
            max_position_embeddings=32, attention_dropout=0.0, use_cache=False, tie_word_embeddings=False))
        return Loss(model).eval(), dict(input_ids=ids(4, 12, 1), labels=ids(4, 12, 2))
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=56, num_layers=2, num_heads=4, dropout_rate=0.0, feed_forward_proj="gated-gelu",
        use_cache=False, decoder_start_token_id=0, relative_attention_num_buckets=8, relative_attention_max_distance=16))
    return Loss(model).eval(), dict(input_ids=ids(4, 12, 1), labels=ids(4, 9, 2))
'''
KINDS = ("encoder", "decoder", "encoder_decoder")

DATA = ["input:*=dp:S(0)"]
TENSOR = {
    "encoder": ["module:*.attention.self.{query,key,value}=colwise", "module:*.attention.output.dense=rowwise",
                "module:*.intermediate.dense=colwise", "module:*.layer.*.output.dense=rowwise",
                "module:*.word_embeddings=embedding_rowwise"],
    "decoder": ["module:*.self_attn.{q,k,v}_proj=colwise", "module:*.self_attn.o_proj=rowwise", "module:*.mlp.{gate,up}_proj=colwise",
                "module:*.mlp.down_proj=rowwise", "module:*.embed_tokens=embedding_rowwise", "module:*.lm_head=colwise"],
    "encoder_decoder": ["module:*Attention.{q,k,v}=colwise", "module:*Attention.o=rowwise", "module:*.{wi_0,wi_1}=colwise",
                        "module:*.wo=rowwise"],
}
SEQUENCE = ["module:*.input_layernorm=sequence", "module:*.post_attention_layernorm=sequence", "module:*.model.norm=sequence"]
MESHES = {
    "tp4": ("tp=4", lambda kind: TENSOR[kind]),
    "dp4": ("dp=4", lambda kind: DATA),
    "dp2-tp2": ("dp=2,tp=2", lambda kind: [*DATA, *TENSOR[kind]]),
    "sharded": ("dp=4", lambda kind: [*DATA, "param:*=dp:S(0)"]),
}
CASES = [(kind, mesh, plan(kind)) for kind in KINDS for mesh, plan in MESHES.values()]
CASES += [("decoder", "tp=4", [*TENSOR["decoder"], *SEQUENCE]), ("decoder", "dp=2,tp=2", [*DATA, *TENSOR["decoder"], *SEQUENCE])]
NAMES = [f"{kind}-{name}" for kind in KINDS for name in MESHES] + ["decoder-tp4-sequence", "decoder-dp2-tp2-sequence"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transformers")
    builds = "".join(f"def build_{k}():\n    m, x = make('{k}')\n    return m, (), x\n" for k in KINDS)
    (folder / "transformers_models.py").write_text(BUILDER + builds)
    sys.path.insert(0, str(folder))

    def make(kind):
        import transformers_models
        return Reference(folder, kind, f"{folder}/transformers_models.py:build_{kind}", *transformers_models.make(kind))

    yield functools.cache(make)
    sys.path.remove(str(folder))


@pytest.mark.parametrize("kind, mesh, plan", CASES, ids=NAMES)
def test_gradients(reference, tmp_path, kind, mesh, plan):
    model, program = reference(kind), tmp_path / "m.so"
    run(tool("shardc"), "compile", model.source, "--mesh", mesh, *places(*plan), "--gradients", "0", "-o", program)
    model.check(model.outputs(program, "gradients", math.prod(int(axis.split("=")[1]) for axis in mesh.split(","))))
