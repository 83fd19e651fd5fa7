# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of torch.nn for zoo.py: those that have weights or several steps, each in a small model, and models with complex numbers."""
import torch
from torch import nn
from torch.nn import functional as F

import zoo_spectral


class Called(nn.Module):
    """A module that is called with all inputs, then a function of what it returns."""

    def __init__(self, inner, then=lambda y: y, **how):
        super().__init__()
        self.inner, self.then, self.how = inner, then, how

    def forward(self, *args):
        return self.then(self.inner(*args, **self.how))


class Attention(nn.Module):
    def __init__(self, **how):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, **how)

    def forward(self, x, y):
        return self.attention(x, y, y)


def layers():
    x, y = torch.randn(3, 7, 16), torch.randn(3, 5, 16)
    image, volume, line = torch.randn(3, 4, 13, 11), torch.randn(3, 4, 6, 7, 5), torch.randn(3, 4, 19)
    ids = torch.randint(0, 13, (3, 7))
    return {
        "mlp": lambda: (nn.Sequential(nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 16), nn.LayerNorm(16)), x),
        "gated_mlp": lambda: (nn.Sequential(nn.Linear(16, 48), nn.GLU(), nn.Linear(24, 10)), x),
        "bilinear": lambda: (nn.Bilinear(16, 16, 6), x, torch.randn(3, 7, 16)),
        "embedding": lambda: (nn.Sequential(nn.Embedding(13, 8, padding_idx=0), nn.Linear(8, 13)), ids),
        "embedding_bag": lambda: (nn.EmbeddingBag(13, 8, mode="mean"), ids),
        "rnn": lambda: (nn.RNN(16, 12, batch_first=True), x), "gru": lambda: (nn.GRU(16, 12, num_layers=2, batch_first=True), x),
        "lstm": lambda: (nn.LSTM(16, 12, num_layers=2, batch_first=True, bidirectional=True), x),
        "lstm_cell": lambda: (nn.LSTMCell(16, 12), x[:, 0]), "gru_cell": lambda: (nn.GRUCell(16, 12), x[:, 0]),
        "multihead_attention": lambda: (Attention(batch_first=True), x, y), "multihead_attention_sequence_first": lambda: (Attention(), x.transpose(0, 1), y.transpose(0, 1)),
        "multihead_attention_bias_kv": lambda: (Attention(batch_first=True, add_bias_kv=True), x, y),
        "transformer": lambda: (nn.Transformer(16, 4, 2, 2, 32, batch_first=True), x, y),
        "transformer_encoder": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True), 2), x),
        "transformer_decoder": lambda: (nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 2), x, y),
        "conv1d": lambda: (nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, 6, 5, stride=2, dilation=2)), line),
        "conv2d": lambda: (nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 6, (3, 2), stride=2)), image),
        "conv2d_grouped": lambda: (nn.Sequential(nn.Conv2d(4, 8, 3, groups=2, padding="same"), nn.Conv2d(8, 8, 3, groups=8), nn.Conv2d(8, 3, 1)), image),
        "conv2d_circular": lambda: (nn.Conv2d(4, 8, 3, padding=1, padding_mode="circular"), image), "conv2d_reflect": lambda: (nn.Conv2d(4, 8, 3, padding=2, padding_mode="reflect"), image),
        "conv3d": lambda: (nn.Conv3d(4, 6, 3, padding=1), volume), "conv_transpose1d": lambda: (nn.ConvTranspose1d(4, 6, 3, stride=2), line),
        "conv_transpose2d": lambda: (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), image), "conv_transpose3d": lambda: (nn.ConvTranspose3d(4, 6, 2, stride=2), volume),
        "pools2d": lambda: (Called(nn.MaxPool2d(3, 2), lambda y: (y, F.avg_pool2d(y, 2))), image), "pools1d": lambda: (Called(nn.MaxPool1d(3, 2), lambda y: (y, F.avg_pool1d(y, 2))), line),
        "pools3d": lambda: (Called(nn.MaxPool3d(2), lambda y: (y, F.avg_pool3d(y, 2))), volume), "adaptive_pools": lambda: (Called(nn.AdaptiveAvgPool2d((3, 2)), lambda y: (y, y.mean((2, 3)))), image),
        "adaptive_max_pool": lambda: (nn.AdaptiveMaxPool2d((3, 2)), image), "lp_pool": lambda: (nn.LPPool2d(2, 3), image), "max_unpool": lambda: (
            Called(nn.MaxPool2d(2, return_indices=True), lambda y: F.max_unpool2d(*y, 2)), torch.randn(3, 4, 12, 10)),
        "batch_norm1d": lambda: (nn.BatchNorm1d(16), x[:, 0]), "instance_norm": lambda: (nn.InstanceNorm2d(4, affine=True), image), "group_norm": lambda: (nn.GroupNorm(2, 4), image),
        "local_response_norm": lambda: (nn.LocalResponseNorm(3), image), "rms_norm": lambda: (nn.RMSNorm(16), x), "layer_norm_image": lambda: (nn.LayerNorm([4, 13, 11]), image),
        "pixel_shuffle": lambda: (nn.PixelShuffle(2), image), "pixel_unshuffle": lambda: (nn.PixelUnshuffle(2), torch.randn(3, 4, 12, 10)), "channel_shuffle": lambda: (nn.ChannelShuffle(2), image),
        "upsample_nearest": lambda: (nn.Upsample(scale_factor=2), image), "upsample_bilinear": lambda: (nn.Upsample(size=(20, 15), mode="bilinear"), image),
        "upsample_bicubic": lambda: (nn.Upsample(scale_factor=1.5, mode="bicubic", align_corners=True), image), "unfold": lambda: (nn.Unfold(3, padding=1), image),
        "fold": lambda: (nn.Fold((6, 5), 2), torch.randn(3, 16, 20)), "reflection_pad": lambda: (nn.ReflectionPad2d((1, 2, 3, 0)), image),
        "replication_pad": lambda: (nn.ReplicationPad2d(2), image), "zero_pad": lambda: (nn.ZeroPad2d((1, -1, 0, 2)), image), "circular_pad": lambda: (nn.CircularPad1d(2), line),
        "cosine_similarity": lambda: (nn.CosineSimilarity(-1), x, torch.randn(3, 7, 16)), "pairwise_distance": lambda: (nn.PairwiseDistance(), x[0], torch.randn(7, 16)),
        "cross_entropy": lambda: (nn.CrossEntropyLoss(label_smoothing=0.1), torch.randn(3, 13, 7), ids), "nll": lambda: (nn.Sequential(nn.LogSoftmax(1)), torch.randn(3, 13)),
        "kl": lambda: (nn.KLDivLoss(reduction="batchmean"), torch.randn(3, 7).log_softmax(-1), torch.randn(3, 7).softmax(-1)),
        "activations": lambda: (nn.Sequential(nn.Linear(16, 16), nn.PReLU(), nn.ELU(), nn.Hardswish(), nn.Softplus(), nn.Mish(), nn.Tanhshrink(), nn.CELU(), nn.Hardtanh(), nn.SELU()), x),
        "softmaxes": lambda: (nn.Sequential(nn.Softmin(1), nn.Softmax2d(), nn.LogSoftmax(-1)), image), "parametrised": lambda: (nn.utils.parametrizations.weight_norm(nn.Linear(16, 8)), x),
        "spectral_norm": lambda: (nn.utils.parametrizations.spectral_norm(nn.Linear(16, 8)), x),
    }


def build(name):
    torch.manual_seed(0)
    module, *inputs = (layers() | zoo_spectral.layers())[name]()
    return module.eval(), tuple(inputs)


def names():
    return [*layers(), *zoo_spectral.layers()]
