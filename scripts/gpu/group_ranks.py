# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several ranks: threads of one process on one device, processes over NCCL, each as a host of its own (NCCL refuses two ranks on
one device of one host before 2.30), and the suite of all communicators on 2 and 4 processes and one."""
import concurrent.futures
import os
import secrets
import socket

import torch

import commands
import group_abi
import measure
import tensors


def run(it):
    it.each(it.chosen("ranks"), lambda model: threads(it, model))
    it.each(it.chosen("ranks"), lambda model: over_nccl(it, model))
    own = {name: value for name, value in environment(0, 1, 0).items() if name.startswith("NCCL_") and name != "NCCL_HOSTID"}
    it.each([t | {"env": own} for t in it.facts["tests"] if t["group"] == "ranks"], lambda test: group_abi.unit_test(it, test))


def reference(it, model):
    """PyTorch's answer on one device: the output, or the loss and the gradients by name."""
    module = model.module().to(it.place)
    inputs = {name: t.to(it.place) for name, t in model.inputs().items()}
    if not model.gradients:
        with torch.no_grad():
            return {None: module(**inputs).cpu()}
    loss = module(**inputs)
    loss.backward()
    return {None: loss.detach().cpu()} | {name: p.grad.cpu() for name, p in module.named_parameters()}


def error(got, wants):
    """Of all outputs; the one that has no parameter's name is the first of the reference."""
    rest = [name for name in got if name not in wants]
    pairs = [(got[name] if name else got[rest[0]], want) for name, want in wants.items()]
    return max(measure.scaled_error(g.cpu(), w) for g, w in pairs)


def threads(it, model):
    weights = {name: t.detach().contiguous() for name, t in model.module().state_dict().items()}
    inputs = {name: t.to(it.place) for name, t in model.inputs().items()}
    with it.open(model.name, weights) as program:
        call = program.prepare(inputs, "gradients" if model.gradients else None)
        call()
        it.synchronise()
        first = {name: t.clone() for name, t in call.outputs.items()}
        call()
        it.synchronise()
        same = all(torch.equal(first[name], t) for name, t in call.outputs.items())
    it.report.add(f"{model.name}, threads: error", error(first, reference(it, model)), 1e-4, measure.AT_MOST)
    it.report.check(f"{model.name}, threads: the same bits again", None if same else "others")


def free_port():
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return end.getsockname()[1]


SECRET = secrets.token_hex(16)


def environment(rank, world, port):
    """As torchrun sets it, with a host for each rank; ranks on several hosts have a secret. That the host moves the data
    instead of NCCL is an error."""
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NCCL_HOSTID": f"shardc-{rank}",
            "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "SHARDRT_DEVICE_COLLECTIVES": "device",
            "SHARDRT_SECRET": SECRET}


def over_nccl(it, model):
    """Processes of `shard-run`, as a launcher starts them."""
    world, name = int(model.mesh.split("=")[1]), f"{model.name}, NCCL"
    folder = it.out / "ranks"
    folder.mkdir(exist_ok=True)
    weights, inputs, outputs = (folder / f"{model.name}.{part}.safetensors" for part in ("weights", "inputs", "outputs"))
    module = model.module()
    tensors.save(dict(module.named_parameters()), weights)
    tensors.save(model.inputs(), inputs)
    command = [it.folder / "bin/shard-run", it.folder / "programs" / f"{model.name}.so", "--device", it.device_name,
               "--weights", weights, "--inputs", inputs, "--outputs", outputs, "--timeout", "60"]
    command += ["--entry", "gradients"] if model.gradients else []
    port = free_port()
    limit = max(min(120, it.left - 2), 5)
    with concurrent.futures.ThreadPoolExecutor(world) as pool:
        results = list(pool.map(lambda rank: commands.bounded(command, limit, env=os.environ | environment(rank, world, port)),
                                range(world)))
    print("\n".join(text for _, text in results))
    if any(status for status, _ in results):
        it.report.check(name, " | ".join(f"rank {rank} ended with {status}: {text[-300:]}"
                                         for rank, (status, text) in enumerate(results) if status))
        return
    it.report.add(f"{name}: error", error(tensors.load(outputs), reference(it, model)), 1e-4, measure.AT_MOST)
