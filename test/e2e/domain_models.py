# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of science and vision whose domain (the dims of a field, the nodes of a graph, the rows of an image) is shared out over ranks. Each returns a loss
first and what it predicts next."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class SpectralConv(nn.Module):
    """Products with complex weights for the lowest frequencies of a field with one or two dims, as the code of the Fourier neural operator has them.
    The weights are complex parameters, or real ones with a last dim of 2."""

    def __init__(self, channels, modes, pairs):
        super().__init__()
        self.modes = modes
        for n in range(2 ** (len(modes) - 1)):
            weight = torch.randn(channels, channels, *modes, dtype=torch.complex128) / channels
            self.register_parameter(f"weight{n}", nn.Parameter(torch.view_as_real(weight).clone() if pairs else weight))

    def weight(self, n):
        weight = getattr(self, f"weight{n}")
        return weight if weight.is_complex() else torch.view_as_complex(weight)

    def forward(self, x):
        if x.dim() == 3:
            ft, (m,) = torch.fft.rfft(x), self.modes
            out = torch.zeros_like(ft)
            out[:, :, :m] = torch.einsum("bix,iox->box", ft[:, :, :m], self.weight(0))
            return torch.fft.irfft(out, n=x.shape[2])
        ft, (m, n) = torch.fft.rfft2(x), self.modes
        out = torch.zeros_like(ft)
        out[:, :, :m, :n] = torch.einsum("bixy,ioxy->boxy", ft[:, :, :m, :n], self.weight(0))
        out[:, :, -m:, :n] = torch.einsum("bixy,ioxy->boxy", ft[:, :, -m:, :n], self.weight(1))
        return torch.fft.irfft2(out, s=x.shape[2:])


class NeuralOperator(nn.Module):
    """A Fourier neural operator: pointwise convolutions beside spectral ones."""

    def __init__(self, modes, channels=4, layers=2, pairs=False):
        super().__init__()
        conv = (nn.Conv1d, nn.Conv2d)[len(modes) - 1]
        self.lift, self.project = conv(2, channels, 1), conv(channels, 1, 1)
        self.spectral = nn.ModuleList(SpectralConv(channels, modes, pairs) for _ in range(layers))
        self.skip = nn.ModuleList(conv(channels, channels, 1) for _ in range(layers))

    def forward(self, x, target):
        h = self.lift(x)
        for spectral, skip in zip(self.spectral, self.skip):
            h = F.gelu(spectral(h) + skip(h))
        y = self.project(h)
        return F.mse_loss(y, target), y


def neural_operator(sizes, modes, **options):
    torch.manual_seed(1)
    module = NeuralOperator(modes, **options).double()
    return module, {"x": torch.randn(2, 2, *sizes, dtype=torch.float64), "target": torch.randn(2, 1, *sizes, dtype=torch.float64)}


def mlp(inside, outside, width=8):
    return nn.Sequential(nn.Linear(inside, width), nn.SiLU(), nn.Linear(width, outside), nn.LayerNorm(outside))


class Messages(nn.Module):
    """Each edge makes a message of its sender and its receiver, and receivers take the sum of theirs."""

    def __init__(self, width):
        super().__init__()
        self.edge, self.node = mlp(2 * width, width), mlp(2 * width, width)

    def forward(self, senders, receivers, edges):
        sender, receiver = edges
        message = self.edge(torch.cat([senders.index_select(1, sender), receivers[:, receiver]], -1))
        total = torch.zeros_like(receivers).index_add(1, receiver, message)
        return receivers + self.node(torch.cat([receivers, total], -1))


class MeshGraphNet(nn.Module):
    """Encode, process and decode as GraphCast does: from the nodes of a grid to those of a coarser mesh, some rounds of messages on the mesh, and back.
    Edges are buffers, unless the caller gives them: pairs of senders and receivers."""

    def __init__(self, edges=None, mesh=9, width=4, rounds=2):
        super().__init__()
        self.nodes = nn.Parameter(torch.randn(mesh, width))
        self.embed, self.head = mlp(3, width), nn.Linear(width, 3)
        self.encode, self.decode = Messages(width), Messages(width)
        self.process = nn.ModuleList(Messages(width) for _ in range(rounds))
        for name, value in (edges or {}).items():
            self.register_buffer(name, value)

    def forward(self, x, target, up=None, across=None, down=None):
        up, across, down = (getattr(self, name) if value is None else value for name, value in (("up", up), ("across", across), ("down", down)))
        grid = self.embed(x)
        mesh = self.encode(grid, self.nodes.expand(len(x), -1, -1), up)
        for layer in self.process:
            mesh = layer(mesh, mesh, across)
        y = x + self.head(self.decode(mesh, grid, down))
        return F.mse_loss(y, target), y


def graph_edges(grid, mesh):
    """Each node of the grid has an edge to the two mesh nodes next to it, in its order, and from three; the mesh is a ring with some long edges."""
    position = torch.arange(grid)
    near = position * mesh // grid
    up = torch.stack([position.repeat_interleave(2), torch.stack([near, (near + 1) % mesh], 1).flatten()])
    down = torch.stack([torch.stack([(near + mesh - 1) % mesh, near, (near + 1) % mesh], 1).flatten(), position.repeat_interleave(3)])
    node = torch.arange(mesh)
    across = torch.cat([torch.stack([node, (node + step) % mesh]) for step in (1, mesh - 1, 3, mesh - 3)], 1)
    return {"up": up, "across": across, "down": down}


def mesh_graph_net(given=False, grid=22, mesh=9, **options):
    torch.manual_seed(2)
    edges = graph_edges(grid, mesh)
    module = MeshGraphNet(None if given else edges, mesh, **options).double()
    return module, {"x": torch.randn(2, grid, 3, dtype=torch.float64), "target": torch.randn(2, grid, 3, dtype=torch.float64)} | (edges if given else {})


class NeighbourhoodAttention(nn.Module):
    """Attention of each position to those of a square around it: all scores with a mask, or only those of the square, which `unfold` collects."""

    def __init__(self, width, heads, reach, masked):
        super().__init__()
        self.heads, self.reach, self.masked = heads, reach, masked
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, h, w, c = x.shape
        q, k, v = self.qkv(x).view(b, h, w, 3, self.heads, c // self.heads).unbind(3)
        return self.out((self.all_scores if self.masked else self.near_scores)(q, k, v).reshape(b, h, w, c))

    def all_scores(self, q, k, v):
        b, h, w, heads, size = q.shape
        q, k, v = (t.flatten(1, 2).transpose(1, 2) for t in (q, k, v))
        row, column = torch.arange(h * w) // w, torch.arange(h * w) % w
        far = ((row[:, None] - row).abs() > self.reach) | ((column[:, None] - column).abs() > self.reach)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(size)).masked_fill(far, -torch.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2)

    def near_scores(self, q, k, v):
        b, h, w, heads, size = q.shape
        side = 2 * self.reach + 1

        def around(t):
            t = F.pad(t.flatten(3).permute(0, 3, 1, 2), (self.reach,) * 4)
            t = t.unfold(2, side, 1).unfold(3, side, 1)
            return t.reshape(b, heads, size, h, w, side * side)
        inside = around(torch.ones(b, h, w, heads, size, dtype=q.dtype))[:, :, 0] > 0
        scores = torch.einsum("bhwnc,bnchws->bnhws", q, around(k)) / math.sqrt(size)
        weights = scores.masked_fill(~inside, -torch.inf).softmax(-1)
        return torch.einsum("bnhws,bnchws->bhwnc", weights, around(v))


class NeighbourhoodTransformer(nn.Module):
    """A vision transformer of rows and columns of patches, with a prediction for each pixel."""

    def __init__(self, masked, width=8, heads=2, layers=2, reach=1):
        super().__init__()
        self.patch, self.pixels = nn.Conv2d(2, width, 2, 2), nn.ConvTranspose2d(width, 1, 2, 2)
        self.attention = nn.ModuleList(NeighbourhoodAttention(width, heads, reach, masked) for _ in range(layers))
        self.mlp = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width)) for _ in range(layers))
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x, target):
        h = self.patch(x).permute(0, 2, 3, 1)
        for norm, attention, block in zip(self.norm, self.attention, self.mlp):
            h = h + attention(norm(h))
            h = h + block(h)
        y = self.pixels(h.permute(0, 3, 1, 2))
        return F.mse_loss(y, target), y


def neighbourhood_transformer(masked, sizes=(14, 10), **options):
    torch.manual_seed(3)
    module = NeighbourhoodTransformer(masked, **options).double()
    return module, {"x": torch.randn(2, 2, *sizes, dtype=torch.float64), "target": torch.randn(2, 1, *sizes, dtype=torch.float64)}


class ConvNet(nn.Module):
    """Plain convolutions, one of them around the borders, pools, a norm, and a classifier behind the mean of all positions."""

    def __init__(self, width=4, classes=5):
        super().__init__()
        self.around = nn.Conv2d(2, width, 3, padding=1, padding_mode="circular")
        self.down, self.deep = nn.Conv2d(width, 2 * width, 3, 2, 1), nn.Conv2d(2 * width, 2 * width, 3, padding=2, dilation=2)
        self.norm, self.head = nn.BatchNorm2d(2 * width), nn.Linear(2 * width, classes)

    def forward(self, x, target):
        h = F.max_pool2d(F.relu(self.around(x)), 3, 2, 1)
        h = F.relu(self.norm(self.down(h)))
        y = self.head(F.avg_pool2d(F.silu(self.deep(h)), 2).mean((2, 3)))
        return F.cross_entropy(y, target), y


def conv_net(sizes=(37, 29), **options):
    torch.manual_seed(4)
    return ConvNet(**options).double(), {"x": torch.randn(2, 2, *sizes, dtype=torch.float64), "target": torch.tensor([1, 3])}


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1 or inside != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    """torchvision's, with a loss: ResNet-50 has 3, 4, 6 and 3 blocks and a width of 64."""

    def __init__(self, blocks=(3, 4, 6, 3), width=64, classes=1000):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inside, self.stages = width, [f"layer{stage + 1}" for stage in range(len(blocks))]
        for stage, count in enumerate(blocks):
            layers = []
            for block in range(count):
                layers.append(Bottleneck(inside, width << stage, 2 if stage and not block else 1))
                inside = 4 * width << stage
            self.add_module(self.stages[stage], nn.Sequential(*layers))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(inside, classes)

    def forward(self, x, target):
        h = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            h = getattr(self, stage)(h)
        y = self.fc(torch.flatten(self.avgpool(h), 1))
        return F.cross_entropy(y, target), y


def resnet(sizes, batch=2, dtype=torch.float64, **options):
    """With the statistics of norms, and their weights, as they may be after training."""
    torch.manual_seed(5)
    module = ResNet(**options)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean, 0.0, 0.1)
            nn.init.uniform_(part.running_var, 0.5, 1.5)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, 0.0, 0.1)
    return module.to(dtype), {"x": torch.randn(batch, 3, *sizes, dtype=dtype), "target": torch.arange(batch) % module.fc.out_features}
