# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT-2-like model of the comparisons with other systems: 4 layers, width 256, 8 heads, vocabulary 1024, sequence 128,
batch 4, separate q/k/v, untied head. Plain modules, so that every system can shard it with its own means."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.head_dim = width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        batch, sequence, _ = x.shape
        # -1: under tensor parallelism a rank has only its own heads.
        q, k, v = (f(x).view(batch, sequence, -1, self.head_dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, sequence, -1))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers=4, width=256, heads=8, vocabulary=1024, sequence=128):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def gpt(batch=4, sequence=128, seed=0):
    torch.manual_seed(seed)
    model = Gpt(sequence=sequence).eval()
    return model, (), {"ids": torch.randint(0, 1024, (batch, sequence))}


class Loss(nn.Module):
    """The loss of a language model on its own inputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        logits = self.model(ids)
        logits = getattr(logits, "logits", logits)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def plan():
    """The tensor-parallel plan, as `--place` options."""
    specs = ["module:*.attn.{q,k,v}=colwise", "module:*.attn.o=rowwise", "module:h.*.up=colwise", "module:h.*.down=rowwise"]
    return [part for spec in specs for part in ("--place", spec)]


def rotate(x):
    """Rotary position embedding of [batch, heads, sequence, head_dim], two halves of each head."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(x.shape[2], dtype=torch.float32)[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class GroupedAttention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.head_dim, kv_width = width // heads, kv_heads * (width // heads)
        self.q, self.k, self.v, self.o = (nn.Linear(width, n, bias=False) for n in (width, kv_width, kv_width, width))

    def forward(self, x):
        batch, sequence, _ = x.shape
        q, k, v = (f(x).view(batch, sequence, -1, self.head_dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(batch, sequence, -1))


class LlamaBlock(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads):
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attn = GroupedAttention(width, heads, kv_heads)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        x = x + self.attn(self.norm_1(x))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """RMSNorm, rotary positions, grouped queries and SwiGLU, at the sizes of Gpt."""

    def __init__(self, layers=4, width=256, hidden=768, heads=8, kv_heads=4, vocabulary=1024):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, hidden, heads, kv_heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.layers:
            x = block(x)
        return self.head(self.norm(x))


def llama(batch=4, sequence=128, seed=0):
    torch.manual_seed(seed)
    return Llama().eval(), (), {"ids": torch.randint(0, 1024, (batch, sequence))}


class Training(nn.Module):
    """The mean cross-entropy of a model's logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, labels):
        return F.cross_entropy(self.model(ids).flatten(0, 1), labels.flatten())


# Of Gpt, where steps of training are measured.
SIZES = {"small": dict(layers=2, width=128, heads=4), "middle": {}, "large": dict(layers=6, width=512, heads=8)}


def training(kind, batch=4, sequence=128, seed=0, size="middle"):
    torch.manual_seed(seed)
    model = Gpt(sequence=sequence, **SIZES[size]) if kind == "gpt" else Llama()
    ids = torch.randint(0, 1024, (batch, sequence + 1))
    return Training(model).eval(), (), {"ids": ids[:, :-1].contiguous(), "labels": ids[:, 1:].contiguous()}


def training_gpt():
    return training("gpt")


def training_llama():
    return training("llama")
