# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small U-Net that predicts a field from a measurement of what it was before, for scripts/domain.sh and its test."""
import torch
from torch import nn
from torch.nn import functional as F

SIZE, WIDTH = 512, 8


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.first, self.second = nn.Conv2d(inside, outside, 3, padding=1), nn.Conv2d(outside, outside, 3, padding=1)
        self.norm = nn.GroupNorm(2, outside)

    def forward(self, x):
        return F.silu(self.norm(self.second(F.silu(self.first(x)))))


class UNet(nn.Module):
    """Takes a measured concentration and the two components of a velocity. Returns the mean squared error, and the concentration later."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.enter, self.middle, self.deep = Block(3, width), Block(width, 2 * width), Block(2 * width, 2 * width)
        self.down = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, 2 * width, 2, stride=2)
        self.joined, self.leave = Block(4 * width, width), Block(2 * width, width)
        self.last = nn.Conv2d(width, 1, 1)
        # The model begins as the guess that the measurement is right and nothing changes.
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x, target):
        fine = self.enter(x)
        coarse = self.middle(F.max_pool2d(fine, 2))
        up = self.up(self.deep(self.down(coarse)))
        joined = self.joined(torch.cat([up, coarse], 1))
        resized = F.interpolate(joined, scale_factor=2, mode="nearest")
        later = x[:, :1] + self.last(self.leave(torch.cat([resized, fine], 1)))
        return F.mse_loss(later, target), later


def build(size=SIZE):
    """For `shardc export`."""
    torch.manual_seed(0)
    return UNet(), (), {"x": torch.zeros(1, 3, size, size), "target": torch.zeros(1, 1, size, size)}
