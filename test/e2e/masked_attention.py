# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighborhood attention as models in plain PyTorch write it: attention with a mask that is made of coordinates, in several ways."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def coordinates(sizes):
    """One vector for each dim: where each of the flattened positions is."""
    return [x.flatten() for x in torch.meshgrid(*(torch.arange(n) for n in sizes), indexing="ij")]


def differences(sizes):
    return [x[:, None] - x[None, :] for x in coordinates(sizes)]


def every(masks):
    masks = list(masks)
    result = masks[0]
    for mask in masks[1:]:
        result = result & mask
    return result


def cut(sizes, radius, dilation=1):
    """Windows that end at the border."""
    masks = []
    for d in differences(sizes):
        masks.append(d.abs() <= radius * dilation)
        if dilation > 1:
            masks.append(d % dilation == 0)
    return every(masks)


def distances(sizes, radius):
    """The same by the largest difference of coordinates, as relative positions are computed."""
    where = torch.stack(torch.meshgrid(*(torch.arange(n) for n in sizes), indexing="ij")).flatten(1)
    return (where[:, :, None] - where[:, None, :]).abs().amax(0) <= radius


def sliding(size, window):
    """Each position and those before it, `window` in all."""
    i = torch.arange(size)
    return (i[None, :] <= i[:, None]) & (i[None, :] > i[:, None] - window)


def band(size, below, above):
    return torch.ones(size, size, dtype=torch.bool).tril(above).triu(-below)


def natten(sizes, kernel):
    """Windows that are moved inwards at the border."""
    masks = []
    for x, size, k in zip(coordinates(sizes), sizes, kernel, strict=True):
        start = (x - k // 2).clamp(0, size - k)
        masks.append((x[None, :] >= start[:, None]) & (x[None, :] < start[:, None] + k))
    return every(masks)


def natten_causal(size, width, kernel):
    """Causal along the first of two dims."""
    y, x = coordinates((size, width))
    start = (x - kernel // 2).clamp(0, width - kernel)
    rows = (y[None, :] <= y[:, None]) & (y[:, None] - y[None, :] < kernel)
    return rows & (x[None, :] >= start[:, None]) & (x[None, :] < start[:, None] + kernel)


def outer(sizes, radius):
    """By a mask of each dim, whose product it is."""
    lines = [cut((n,), radius) for n in sizes]
    both = lines[0][:, None, :, None] & lines[1][None, :, None, :]
    return both.reshape(math.prod(sizes), math.prod(sizes))


def ways(height, width, radius):
    """Masks of the same windows, over an image, as models write them."""
    size = height * width
    i = torch.arange(size)
    y, x = torch.div(i, width, rounding_mode="floor"), i % width
    yield ((y[:, None] - y) <= radius) & ((y - y[:, None]) <= radius) & ((x[:, None] - x).abs() < radius + 1)
    where = torch.stack((i // width, torch.remainder(i, width)), -1)
    yield ((where[:, None] - where[None]).abs() <= radius).all(-1)
    yield torch.kron(band(height, radius, radius).to(torch.int64), band(width, radius, radius).to(torch.int64)) == 1
    rows = torch.arange(height).repeat_interleave(width).to(torch.float32)
    far = (rows[:, None] - rows[None, :]).abs().gt(radius) | torch.logical_not((x[:, None] - x).abs().le(radius))
    yield ~far
    yield torch.maximum((y[:, None] - y).abs(), (x[:, None] - x).abs()) <= radius
    lines = [torch.eye(n, dtype=torch.bool) for n in (height, width)]
    for line in lines:
        for r in range(1, radius + 1):
            line = line | torch.ones_like(line).triu(r).tril(r) | torch.ones_like(line).tril(-r).triu(-r)
        lines = [*lines[1:], line]
    yield (lines[0].view(height, 1, height, 1) * lines[1].view(1, width, 1, width)).view(size, size)
    grid = torch.cat([c.reshape(1, -1) for c in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")])
    inside = (grid.unsqueeze(2) - grid.unsqueeze(1)).abs().clamp(max=radius + 1).ne(radius + 1)
    yield inside[0].logical_and(inside[1])


def one_op(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def added(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(mask, 0.0, -torch.inf).to(q.dtype))


def inverted(q, k, v, mask):
    """As BERT's masks: of ones and zeros, subtracted from one."""
    numbers = mask.to(q.dtype)[None, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=(1.0 - numbers) * torch.finfo(q.dtype).min)


def filled(q, k, v, mask):
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v


def summed(q, k, v, mask):
    scores = torch.einsum("bhid,bhjd->bhij", q * q.shape[-1]**-0.5, k)
    scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, torch.finfo(q.dtype).min)
    return torch.einsum("bhij,bhjd->bhid", F.softmax(scores, dim=-1), v)


def batched(q, k, v, mask):
    """By products of batches, with a factor that is learned nowhere but a tensor."""
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    scores = torch.bmm(q, k.transpose(1, 2)) * torch.tensor(0.5, dtype=q.dtype)
    weights = torch.where(mask, scores, torch.tensor(-torch.inf, dtype=q.dtype)).softmax(-1)
    return torch.bmm(weights, v)


class Layer(nn.Module):
    """A layer of a transformer over flattened positions."""

    def __init__(self, width, heads, mask, attend):
        super().__init__()
        self.heads, self.mask, self.attend = heads, mask, attend
        self.norm, self.qkv, self.leave = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = self.attend(q, k, v, self.mask())
        return x + self.leave(y.reshape(q.shape).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Of a line, an image or a volume; `masks` are functions, one for each layer, with how they are applied."""

    def __init__(self, dims, masks, width=8, heads=2):
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
        self.enter = conv(3, width, 3, padding=1)
        self.layers = nn.ModuleList(Layer(width, heads, mask, attend) for mask, attend in masks)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        h = self.enter(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            h = layer(h)
        y = self.head(h)
        return y.square().mean(), y
