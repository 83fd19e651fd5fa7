# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Transformer of characters, for scripts/train.sh and the tests of training."""
import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, LENGTH, BATCH = 128, 64, 16


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.proj = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        x = x + F.dropout(self.proj(y.transpose(1, 2).flatten(2)), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.mlp_norm(x)))), self.dropout, self.training)


class Character(nn.Module):
    """Returns the mean cross entropy of the next characters, and the logits."""

    def __init__(self, width=64, layers=2, heads=4, length=LENGTH, dropout=0.0):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, ids, targets):
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten()), logits


def build(batch=BATCH, length=LENGTH, **sizes):
    torch.manual_seed(0)
    model = Character(length=length, **sizes)
    # Two tensors: of one that is given twice torch.export would make one input.
    return model, (), {name: torch.zeros(batch, length, dtype=torch.int64) for name in ("ids", "targets")}


PLAN = ["--place", "input:*=dp:S(0)", "--place", "module:blocks.*.{q,k,v,up}=colwise", "--place", "module:blocks.*.{proj,down}=rowwise"]


def batches_of(path, steps, batch=BATCH, length=LENGTH):
    """Pieces of a text for each step, and what follows each character, as runtime/examples/train.cpp takes them."""
    text = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.uint8).long()
    places = torch.arange(steps * batch) * 7919 % (len(text) - length)
    pieces = torch.stack([text[p:p + length + 1] for p in places.tolist()]).view(steps, batch, length + 1)
    return {"ids": pieces[..., :-1].contiguous(), "targets": pieces[..., 1:].contiguous()}
