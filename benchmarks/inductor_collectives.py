# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The peer of collectives.py: PyTorch Inductor's overlap scheduling (and bucketing) on one exported graph.

  inductor_collectives.py GRAPH.pt2 GROUPS.json DURATIONS.json [--bucket] [-o OUT.pt2]

Prints {"pass_cpu_s", "load_cpu_s", "nodes"} and, with -o, saves the resulting graph for `shardc simulate --as-is`. Both
sides know the same: durations of kernels from the file, collectives by sim-v1. Nothing runs: process groups are fake.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import time
import zipfile

import torch
import torch._inductor.utils
import torch.distributed as dist
from torch._C._distributed_c10d import _register_process_group, _unregister_process_group
from torch._export.verifier import TrainingIRVerifier
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "test/reference"))
import sim_v1

SCHEMA = {"as_tensor": "Tensor", "as_tensors": "Tensor[]", "as_int": "SymInt", "as_ints": "SymInt[]", "as_sym_ints": "SymInt[]",
          "as_float": "float", "as_bool": "bool", "as_string": "str", "as_optional_tensors": "Tensor?[]"}


def on_cpu(source, target):
    """The same archive with its tensors on the CPU: this PyTorch may have no CUDA. Returns the graph's nodes."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".json"):
                data = data.replace(b'"type": "cuda", "index": 0', b'"type": "cpu", "index": null')
                if "/models/" in name:
                    nodes = json.loads(data)["graph_module"]["graph"]["nodes"]
            new.writestr(name, data)
    return nodes


def declare_operators(nodes):
    """Operators of other packages, by what their calls look like: the passes ask for no more than a schema."""
    libraries, known = {}, set()
    for node in nodes:
        parts = node["target"].split(".")
        if len(parts) != 5 or parts[2] in ("aten", "prims", "_c10d_functional", "bucketing") or node["target"] in known:
            continue
        known.add(node["target"])
        kind = lambda value: SCHEMA[next(iter(value))]
        arguments = ", ".join(f"{kind(a['arg'])} {a['name']}" for a in node["inputs"])
        results = ", ".join(kind(o) for o in node["outputs"])
        library = libraries.setdefault(parts[2], torch.library.Library(parts[2], "FRAGMENT"))
        library.define(f"{parts[3]}({arguments}) -> ({results})")
    return libraries


def register_groups(groups):
    dist.init_process_group("fake", world_size=max([64, *groups.values()]), rank=0, store=FakeStore())
    made = {name: dist.new_group(list(range(size))) for name, size in groups.items()}
    for name, group in made.items():
        try:
            _unregister_process_group(name)
        except RuntimeError:
            pass
        _register_process_group(name, group)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("groups")
    parser.add_argument("durations")
    parser.add_argument("--bucket", action="store_true", help="merge collectives too, not only move them")
    parser.add_argument("-o", dest="out", help="save the resulting graph here")
    args = parser.parse_args()
    torch.set_num_threads(1)
    groups = {k: len(v) if isinstance(v, list) else v for k, v in json.loads(pathlib.Path(args.groups).read_text()).items()}
    durations = json.loads(pathlib.Path(args.durations).read_text())
    program = sim_v1.Program(args.graph)
    collective = {n.name: sim_v1.collective_us(n.kind, groups[n.group], program.volume(n)) for n in program.nodes
                  if n.kind in sim_v1.KINDS.values()}

    def estimate(node, size):
        """Milliseconds; of a collective over `size` bytes where the pass asks for another size than the node's."""
        if node.name in collective and size is None:
            return collective[node.name] / 1e3
        if "c10d" in str(node.target):
            return None
        return durations.get(node.name, 0.0) / 1e3

    with tempfile.TemporaryDirectory() as folder:
        nodes = on_cpu(args.graph, pathlib.Path(folder) / "graph.pt2")
        libraries = declare_operators(nodes)
        register_groups(groups)
        begin = time.process_time()
        exported = torch.export.load(pathlib.Path(folder) / "graph.pt2")
        load = time.process_time() - begin
    # Bandwidth of the H100 whose durations the file has; without a GPU the pass cannot look it up.
    torch._inductor.utils.get_gpu_dram_gbps = lambda: 3350
    from torch._inductor.fx_passes.overlap_scheduling import schedule_overlap_bucketing  # takes the function above
    begin = time.process_time()
    result = schedule_overlap_bucketing(exported.graph_module, collective_bucketing=args.bucket,
                                        pre_bucketing_fsdp_collectives=args.bucket, custom_runtime_estimation=estimate,
                                        compute_estimator="analytical", collective_estimator="analytical")
    seconds = time.process_time() - begin
    if args.out:
        exported._verifiers = [TrainingIRVerifier]  # the copies into its buckets are in place
        torch.export.save(exported, args.out)
    print(json.dumps({"pass_cpu_s": seconds, "load_cpu_s": load, "nodes": len(result.graph.nodes)}))
    del libraries


if __name__ == "__main__":
    main()
