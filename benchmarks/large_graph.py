# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a .pt2 archive of any size with a training forward in it, for measuring how tools scale.

  large_graph.py LAYERS OUT.pt2     34 nodes a layer; OUT.groups.json and OUT.durations.json beside it

Parameters are sharded over 64 ranks and gathered where they are used; activations are gathered and reduce-scattered
over 8 ranks around attention and MLP, as FSDP with tensor parallelism does. Layers differ in size, so that nothing
repeats exactly.
"""
import argparse
import json
import pathlib
import zipfile

F32, BF16 = 7, 13
TOKENS = 8192
DP, TP = 64, 8
NODES_PER_LAYER = 34


class Writer:
    """Nodes and tensors in the schema of torch.export.save, written as they come: a graph need not fit in memory."""

    def __init__(self, folder):
        self.nodes = open(folder / "nodes.json", "w+")
        self.tensors = open(folder / "tensors.json", "w+")
        self.inputs, self.outputs, self.durations, self.count = [], [], {}, 0

    def tensor(self, name, sizes, dtype):
        strides = [1]
        for size in reversed(sizes[1:]):
            strides.insert(0, strides[0] * size)
        meta = {"dtype": dtype, "sizes": [{"as_int": s} for s in sizes], "requires_grad": False,
                "device": {"type": "cuda", "index": 0}, "strides": [{"as_int": s} for s in strides],
                "storage_offset": {"as_int": 0}, "layout": 7}
        self.tensors.write(("," if self.tensors.tell() else "") + json.dumps(name) + ":" + json.dumps(meta))
        return name

    def input(self, sizes, dtype):
        self.inputs.append(self.tensor(f"arg{len(self.inputs)}_1", sizes, dtype))
        return self.inputs[-1]

    def node(self, target, arguments, sizes, dtype, us=None):
        """`arguments` maps names to values; a str that starts with $ is a tensor."""
        op = target.split(".")[-2]
        name = self.tensor(f"{op}_{self.count}", sizes, dtype)
        self.count += 1
        kinds = {int: "as_int", str: "as_string", float: "as_float", list: "as_ints"}
        inputs = [{"name": k, "kind": 1,
                   "arg": {"as_tensor": {"name": v[1:]}} if isinstance(v, str) and v.startswith("$") else {kinds[type(v)]: v}}
                  for k, v in arguments.items()]
        node = {"target": "torch.ops." + target, "inputs": inputs, "outputs": [{"as_tensor": {"name": name}}],
                "metadata": {}, "is_hop_single_tensor_return": None, "name": name}
        self.nodes.write(("," if self.nodes.tell() else "") + json.dumps(node))
        if us is not None:
            self.durations[name] = us
        return name

    def kernel(self, target, operands, sizes, us, dtype=BF16):
        return self.node("aten." + target, {k: "$" + v for k, v in operands.items()}, sizes, dtype, us)

    def collective(self, kind, value, sizes, group, size, reduction=None, dtype=BF16):
        target, arguments = "_c10d_functional." + kind + ".default", {"input": "$" + value}
        if reduction:
            arguments["reduce_op"] = reduction
        arguments |= {"group_size": size, "group_name": group}
        started = self.node(target, arguments, sizes, dtype)
        return self.node("_c10d_functional.wait_tensor.default", {"tensor": "$" + started}, sizes, dtype)


def layer(w, x, index):
    hidden = 1024 + 256 * (index % 5)
    local = TOKENS // TP

    def parameter(rows, columns):
        shard = w.input([max(rows // DP, 1), columns], F32)
        cast = w.node("prims.convert_element_type.default", {"a": "$" + shard, "dtype": BF16}, [max(rows // DP, 1), columns],
                      BF16, rows * columns / DP * 6 / 3.35e6)
        full = w.collective("all_gather_into_tensor", cast, [max(rows // DP, 1) * DP, columns], "dp", DP)
        return w.node("aten.permute.default", {"self": "$" + full, "dims": [1, 0]}, [columns, max(rows // DP, 1) * DP], BF16)

    def product(a, b, rows, inner, columns):
        return w.kernel("mm.default", {"self": a, "mat2": b}, [rows, columns], 2 * rows * inner * columns / 989.5e6)

    def pointwise(target, operands, sizes):
        count = sizes[0] * sizes[1]
        return w.kernel(target, operands, sizes, (len(operands) + 1) * count * 2 / 3.35e6)

    for inner in (hidden, 4 * hidden):  # attention, then MLP
        scale = pointwise("mul.Tensor", {"self": x, "other": x}, [local, 1024])
        full = w.collective("all_gather_into_tensor", scale, [TOKENS, 1024], "tp", TP)
        up = product(full, parameter(inner // TP, 1024), TOKENS, 1024, max(inner // TP // DP, 1) * DP)
        act = pointwise("silu.default", {"self": up}, [TOKENS, inner // TP])
        w.outputs.append(act)
        down = product(act, parameter(1024, inner // TP), TOKENS, inner // TP, 1024)
        part = w.collective("reduce_scatter_tensor", down, [local, 1024], "tp", TP, "sum")
        x = pointwise("add.Tensor", {"self": x, "other": part}, [local, 1024])
    return x


def write(layers, out):
    out = pathlib.Path(out)
    w = Writer(out.parent)
    x = w.input([TOKENS // TP, 1024], BF16)
    for index in range(layers):
        x = layer(w, x, index)
    w.outputs.append(x)
    argument = lambda name: {"as_tensor": {"name": name}}
    signature = {"input_specs": [{"user_input": {"arg": argument(n)}} for n in w.inputs],
                 "output_specs": [{"user_output": {"arg": argument(n)}} for n in w.outputs]}
    with zipfile.ZipFile(out, "w", allowZip64=True) as archive:
        for name, text in (("archive_format", "pt2"), ("archive_version", "0"), ("byteorder", "little"),
                           ("data/weights/model_weights_config.json", '{"config": {}}'),
                           ("data/constants/model_constants_config.json", '{"config": {}}')):
            archive.writestr(f"graph/{name}", text)
        with archive.open("graph/models/model.json", "w", force_zip64=True) as model:
            put = lambda text: model.write(text.encode())
            put('{"graph_module":{"graph":{"inputs":' + json.dumps([argument(n) for n in w.inputs])
                + ',"outputs":' + json.dumps([argument(n) for n in w.outputs]) + ',"nodes":[')
            for file, end in ((w.nodes, '],"tensor_values":{'), (w.tensors, "}")):
                file.seek(0)
                while chunk := file.read(1 << 20):
                    put(chunk)
                put(end)
                file.close()
            put(',"sym_int_values":{},"sym_bool_values":{},"is_single_tensor_return":false,"custom_obj_values":{},'
                '"sym_float_values":{}},"signature":' + json.dumps(signature) + ',"module_call_graph":[],"metadata":{},'
                '"treespec_namedtuple_fields":{}},"opset_version":{"aten":10},"range_constraints":{},'
                '"schema_version":{"major":8,"minor":20},"verifiers":["ATEN"],"torch_version":"2.13.0","guards_code":[]}')
    for file in ("nodes.json", "tensors.json"):
        (out.parent / file).unlink()
    stem = out.name.split(".")[0]
    (out.parent / f"{stem}.groups.json").write_text(json.dumps({"dp": DP, "tp": TP}))
    (out.parent / f"{stem}.durations.json").write_text(json.dumps(w.durations))
    return w.count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", type=int)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    print(write(args.layers, args.out), "nodes")
