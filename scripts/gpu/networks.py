# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of the measurements, as plain PyTorch modules: a machine with a GPU has PyTorch and no other package. Weights are
made there, by seed, so that nothing large travels."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Of GPT-2: one product makes queries, keys and values."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, cache=None):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        new = None
        if cache is not None:
            new = torch.stack((k, v))
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return self.out(y.transpose(1, 2).flatten(2)), new


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None):
        y, new = self.attention(self.ln_1(x), cache)
        x = x + y
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh")), new


class Gpt2(nn.Module):
    """GPT-2; the defaults are those of 124M. The head is the embedding."""

    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, positions=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x, _ = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class Gpt2Loss(nn.Module):
    """The loss of GPT-2 on its own inputs: what a training step differentiates."""

    def __init__(self, **sizes):
        super().__init__()
        self.model = Gpt2(**sizes)

    def forward(self, ids):
        logits = self.model(ids)[:, :-1]
        return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


class Gpt2Decode(nn.Module):
    """One more token for each sequence, whose keys and values so far are an input; returns logits and what to add to them."""

    def __init__(self, **sizes):
        super().__init__()
        self.model = Gpt2(**sizes)

    def forward(self, ids, cache):
        model = self.model
        x = model.wte(ids) + model.wpe(torch.full((1,), cache.shape[4], device=ids.device))
        added = []
        for layer, block in enumerate(model.blocks):
            x, new = block(x, cache[layer])
            added.append(new)
        return F.linear(model.ln_f(x), model.wte.weight), torch.stack(added)


def rotate(x, base):
    half = x.shape[-1] // 2
    frequency = base ** (-torch.arange(half, dtype=torch.float32, device=x.device) / half)
    angle = torch.arange(x.shape[2], dtype=torch.float32, device=x.device)[:, None] * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads):
        super().__init__()
        self.dim, narrow = width // heads, kv_heads * (width // heads)
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, narrow, bias=False), nn.Linear(width, narrow, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        y = self.norm_1(x)
        q, k, v = (f(y).unflatten(-1, (-1, self.dim)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(rotate(q, 5e5), rotate(k, 5e5), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Llama 3.2 1B; the head is the embedding."""

    def __init__(self, layers=16, width=2048, hidden=8192, heads=32, kv_heads=8, vocabulary=128256):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, hidden, heads, kv_heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.embed.weight)


class BertBlock(nn.Module):
    def __init__(self, width, hidden, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x, mask):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
        x = self.norm_1(x + self.o(y))
        return self.norm_2(x + self.down(F.gelu(self.up(x))))


class MiniLm(nn.Module):
    """all-MiniLM-L6 as sentence-transformers runs it: a BERT, the mean over the mask, unit length."""

    def __init__(self, layers=6, width=384, hidden=1536, heads=12, vocabulary=30522, positions=512):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.ModuleList(BertBlock(width, hidden, heads) for _ in range(layers))

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device)))
        for block in self.blocks:
            x = block(x, mask[:, None, None, :].bool())
        weights = mask[:, :, None].to(x.dtype)
        return F.normalize((x * weights).sum(1) / weights.sum(1), dim=-1)


def seeded(module, seed=0):
    """Gives every parameter values that depend on its name and the seed alone; norms stay near 1, biases near 0."""
    with torch.no_grad():
        for number, (name, parameter) in enumerate(sorted(module.named_parameters())):
            generator = torch.Generator().manual_seed(1000 * seed + number)
            noise = torch.randn(parameter.shape, generator=generator) * 0.02
            parameter.copy_(noise + 1 if parameter.dim() == 1 and name.endswith("weight") else noise)
    return module.eval()


def ids(end, *shape, seed=0):
    return torch.randint(0, end, shape, generator=torch.Generator().manual_seed(seed))
