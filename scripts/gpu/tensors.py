# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as safetensors files, without that package: a length, a header in JSON, and the bytes."""
import ctypes
import json
import math
import struct

import torch

NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
TYPES = {name: dtype for dtype, name in NAMES.items()}


def save(tensors, path):
    header, data, begin = {}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, begin + size]}
        data.append(ctypes.string_at(tensor.data_ptr(), size) if size else b"")
        begin += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def load(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype, count = TYPES[entry["dtype"]], math.prod(entry["shape"])
        part = bytearray(raw[begin:end])
        tensors[name] = (torch.frombuffer(part, dtype=dtype, count=count) if count else torch.empty(0, dtype=dtype)
                         ).reshape(entry["shape"])
    return tensors
