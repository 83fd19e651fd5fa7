# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as plain objects, read from what `shard-opt --test-print-program-json` writes."""
import json
import re
import subprocess

import torch

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "ui8": torch.uint8,
    "i1": torch.bool,
}


class Type:
    """A tensor type, or a future of one (shape with None for dynamic dims, dtype, layout text or None) or another kind."""

    def __init__(self, data):
        self.kind = data["kind"]
        self.shape = data.get("shape")
        element = data.get("element")
        if future := re.fullmatch(r"!dist\.future<tensor<((?:[0-9?]+x)*)(\w+)>>", self.kind):
            # What it will deliver.
            self.kind, element = "tensor", future[2]
            self.shape = [None if n == "?" else int(n) for n in future[1].split("x")[:-1]]
        self.dtype = DTYPES.get(element)
        self.layout = data.get("layout")

    @property
    def is_tensor(self):
        return self.kind == "tensor"

    def mismatch(self, value):
        """Why a run-time value is not of this type, or None."""
        if not self.is_tensor:
            return None if not isinstance(value, torch.Tensor) else f"a tensor where {self.kind} is due"
        if value.dtype != self.dtype:
            return f"element type {value.dtype} where {self.dtype} is due"
        if len(value.shape) != len(self.shape) or any(
                n is not None and n != m for n, m in zip(self.shape, value.shape)):
            return f"shape {list(value.shape)} where {self.shape} is due"
        return None


class Op:
    def __init__(self, data):
        self.name, self.operands, self.attrs = data["name"], data["operands"], data["attrs"]
        self.results = [r["id"] for r in data["results"]]
        self.types = [Type(r["type"]) for r in data["results"]]
        self.loc = data["loc"]


class Function:
    def __init__(self, data):
        self.name = data["name"]
        self.args = [a["id"] for a in data["args"]]
        self.arg_types = [Type(a["type"]) for a in data["args"]]
        self.arg_attrs = [a["attrs"] for a in data["args"]]
        self.result_types = [Type(r["type"]) for r in data["results"]]
        self.result_attrs = [r["attrs"] for r in data["results"]]
        self.ops = [Op(o) for o in data["ops"]]


def parse(text):
    return {f["name"]: Function(f) for f in json.loads(text)}


def load(shard_opt, source, *passes):
    """Runs passes over MLIR text and reads the result: (functions, None), or (None, messages)."""
    command = [shard_opt, *passes, "--test-print-program-json", "-o", "/dev/null", "-"]
    run = subprocess.run(command, input=source, text=True, capture_output=True)
    if run.returncode != 0:
        return None, run.stderr
    return parse(run.stdout), None
