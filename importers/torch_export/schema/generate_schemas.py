# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes Schemas.inc: the schemas of the overloads in Overloads.def, ComplexOverloads.def, GroupedOverloads.def and NattenOverloads.def, and of
their in-place forms, as PyTorch's dispatcher declares them.

  generate_schemas.py Overloads.def ... Schemas.inc
"""
import json
import math
import pathlib
import re
import sys

import torch

# Argument types by their text in a schema, without alias annotation, optional mark and list length.
TYPES = {
    "Tensor": "Tensor", "Tensor[]": "TensorList", "int": "Int", "int[]": "IntList", "SymInt": "SymInt",
    "SymInt[]": "SymIntList", "float": "Float", "float[]": "FloatList", "Scalar[]": "FloatList", "Scalar": "Scalar", "bool": "Bool",
    "ScalarType": "ScalarType", "str": "String",
}


NAMESPACES = {"PRIM": "prims", "C10D": "_c10d_functional"}
# Of operators that are not PyTorch's own: a program may have them, and the build needs no library that declares them.
DECLARED = {
    "transformers.grouped_mm_fallback": "(Tensor input, Tensor weight, Tensor offs) -> Tensor",
    "transformers.grouped_mm_fallback_backward": "(Tensor input, Tensor weight, Tensor offs, Tensor grad_output) -> (Tensor, Tensor)",
}
_WINDOW = "int[] kernel_size, int[] stride, int[] dilation, bool[] is_causal, float scale"
_CUT = ", int[] q_shape, int[] kv_shape, int[] qkv_shape, int[] q_tile_shape, int[] kv_tile_shape"
# The arguments of NATTEN's operators behind those of the window, forward and backward, by the prefix of their names.
_NATTEN = {
    "": (", int[] q_tile_shape, int[] kv_tile_shape",
         ", int[] q_tile_shape, int[] kv_tile_shape, int[]? num_kv_splits, bool compute_delta_with_pt, bool deterministic=False"),
    "reference_": (", int[] qkv_shape, int num_extra_kv",) * 2,
    "hopper_": (_CUT + ", int kernel_schedule_int", _CUT),
    "blackwell_": (_CUT + ", bool run_persistent_kernel", _CUT),
}
_LENGTHS = "Tensor? cumulative_seqlen_Q, Tensor? cumulative_seqlen_KV, int max_seqlen_Q, int max_seqlen_KV"
DECLARED["natten.fmha_forward"] = ("(Tensor query, Tensor key, Tensor value, bool is_causal, float scale, int q_tile_size, int kv_tile_size, "
                                   f"{_LENGTHS}) -> (Tensor, Tensor)")
DECLARED["natten.fmha_backward"] = ("(Tensor query, Tensor key, Tensor value, Tensor output, Tensor d_output, Tensor logsumexp, bool is_causal, "
                                    "float scale, int q_tile_size, int kv_tile_size, int? num_kv_splits, bool compute_delta_with_pt, "
                                    f"{_LENGTHS}, bool deterministic=False) -> (Tensor, Tensor, Tensor)")
for _dims in (1, 2, 3):
    for _prefix, (_forward, _backward) in _NATTEN.items():
        _name = f"natten.{_prefix}na{_dims}d"
        DECLARED[f"{_name}_forward"] = f"(Tensor query, Tensor key, Tensor value, {_WINDOW}{_forward}) -> (Tensor, Tensor)"
        DECLARED[f"{_name}_backward"] = ("(Tensor query, Tensor key, Tensor value, Tensor output, Tensor d_output, Tensor logsumexp, "
                                         f"{_WINDOW}{_backward}) -> (Tensor, Tensor, Tensor)")


def listed(path):
    """Names in the form of the table: an overload of aten stands alone, others have their namespace."""
    text = "".join(line for line in path.open() if not line.startswith("//"))
    found = re.findall(r"^(ATEN|PRIM|C10D|COMPLEX|LIBRARY)\w*\(([\w.]+)[,)]", text, re.M)
    return [f"{NAMESPACES[kind]}.{name}" if kind in NAMESPACES else name for kind, name in found]


def find(name):
    space, packet, overload = name.split(".") if name.count(".") == 2 else ("aten", *name.split("."))
    packet = getattr(getattr(torch.ops, space), packet, None)
    return getattr(packet, overload, None) if packet is not None else None


def declare(name, schema):
    space, packet = name.split(".")
    library = torch.library.Library(space, "FRAGMENT")
    library.define(packet + schema)
    return library


def split_arguments(text):
    """Splits at commas outside of brackets."""
    depth, start, parts = 0, 0, []
    for i, c in enumerate(text + ","):
        depth += c in "([" 
        depth -= c in ")]"
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in parts if part and part != "*"]


def number(value):
    if math.isinf(value) or math.isnan(value):
        raise ValueError("a default that is not finite")
    return repr(float(value))


def default(argument):
    if not argument.has_default_value():
        return "{}"
    value = argument.default_value
    if value is None:
        return "{Default::None}"
    if isinstance(value, bool):
        return f"{{Default::Bool, {int(value)}}}"
    if isinstance(value, int):
        return f"{{Default::Int, {value}}}"
    if isinstance(value, float):
        return f"{{Default::Real, 0, {number(value)}}}"
    if isinstance(value, str):
        return f"{{Default::String, 0, 0, {json.dumps(value)}}}"
    if isinstance(value, list) and all(type(v) is int for v in value):
        return f"{{Default::Ints, 0, 0, \"{','.join(map(str, value))}\"}}"
    return "{Default::Other}"


def schema_rows(name, operator):
    schema = operator._schema
    text = str(schema)
    text = text[text.index("(") + 1:text.rindex(") ->")]
    rows = []
    for argument, declared in zip(schema.arguments, split_arguments(text), strict=True):
        kind = re.sub(r"\([^)]*\)", "", declared.split("=")[0].rsplit(" ", 1)[0]) # without alias sets
        optional = kind.endswith("?")
        kind = re.sub(r"\[\d+\]", "[]", kind.rstrip("?"))
        if kind == "Tensor?[]":
            kind, optional = "Tensor[]", True
        alias = argument.alias_info
        rows.append(f"    {{{json.dumps(argument.name)}, ArgumentType::{TYPES.get(kind, 'Other')}, "
                    f"{str(optional).lower()}, {str(bool(alias and alias.is_write)).lower()}, {default(argument)}}},")
    views = any(r.alias_info and not r.alias_info.is_write for r in schema.returns)
    return rows, views


def main():
    *sources, output = map(pathlib.Path, sys.argv[1:])
    libraries = [declare(*entry) for entry in DECLARED.items()]  # for as long as these are there
    names = []
    for source in sources:
        own = listed(source)
        repeated = {name for name in own if own.count(name) > 1}
        if repeated:
            sys.exit(f"{source}: listed twice: {', '.join(sorted(repeated))}")
        missing = [name for name in own if find(name) is None]
        if missing:
            sys.exit(f"{source}: PyTorch {torch.__version__} has no such overloads: {', '.join(missing)}")
        names += own
    in_place = [name.replace(".", "_.", 1) for name in names if name.count(".") == 1]
    names = sorted({*names, *(name for name in in_place if find(name) is not None)})
    lines, table = [f"// Generated from PyTorch {torch.__version__}."], []
    for i, name in enumerate(names):
        rows, views = schema_rows(name, find(name))
        lines += [f"constexpr SchemaArgument arguments{i}[] = {{", *rows, "};"] if rows else []
        arguments = f"arguments{i}" if rows else "{}"
        table.append(f"    {{\"{name}\", {arguments}, {str(views).lower()}}},")
    lines += ["constexpr Schema schemas[] = {", *table, "};"]
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
