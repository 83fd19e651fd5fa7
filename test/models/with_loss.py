# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of `builders` with a loss, for gradients and training."""
import torch
from torch import nn
from torch.nn import functional as F


class Language(nn.Module):
    """A language model, of which the next tokens are the labels: returns the loss, and the logits where they are wanted."""

    def __init__(self, model, returns_logits=False):
        super().__init__()
        self.model, self.returns_logits = model, returns_logits

    def forward(self, input_ids):
        logits = self.model(input_ids=input_ids).logits
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), input_ids[:, 1:].flatten())
        return (loss, logits) if self.returns_logits else loss


class Pairs(nn.Module):
    """Each sentence is to be near its partner, or near that of the sentence `shift` places behind it, which trained weights do not know."""

    def __init__(self, encoder, shift=0, scale=20):
        super().__init__()
        self.encoder, self.shift, self.scale = encoder, shift, scale

    def forward(self, input_ids, attention_mask):
        x = self.encoder(input_ids, attention_mask)
        scores, partners = x[::2] @ x[1::2].t() * self.scale, torch.arange(x.shape[0] // 2)
        return F.cross_entropy(scores, partners.roll(self.shift) if self.shift else partners)
