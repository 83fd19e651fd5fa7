# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's tensors as arguments of a program by DLPack, and a program's outputs as PyTorch's tensors, with ctypes alone: the functions of
shardrt_dlpack.h that libshardrt_device.so exports."""
import ctypes as C
import importlib.util
import json
import os

import pytest
import torch
import torch.utils.dlpack
from safetensors.torch import load_file

from conftest import BUILD, ROOT

CPU, GLOBAL, MAX_RANK = 1, 1, 16
pointer = C.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
capsule = C.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = C.py_object, [C.c_void_p, C.c_char_p, C.c_void_p]
Release = C.CFUNCTYPE(None, C.c_void_p, C.c_void_p)


class Use(C.Structure):
    _fields_ = [("device_type", C.c_int32), ("device_id", C.c_int32), ("scope", C.c_int32), ("is_output", C.c_int32)]


class Device(C.Structure):
    _fields_ = [("device_type", C.c_int32), ("device_id", C.c_int32)]


@pytest.fixture(scope="module")
def shardrt():
    os.environ["SHARDRT"] = str(BUILD / "lib/libshardrt.so")
    spec = importlib.util.spec_from_file_location("shardrt_example", ROOT / "runtime/examples/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.dlpack = C.CDLL(str(BUILD / "lib/shardrt/libshardrt_device.so"))
    return module


def view(shardrt, tensor, is_output=False, device_type=CPU):
    """What shardrt_run takes. The capsule keeps the tensor, and is never consumed."""
    made, message = shardrt.Tensor(), C.create_string_buffer(4096)
    made.capsule = torch.utils.dlpack.to_dlpack(tensor)
    use = Use(device_type, -1, GLOBAL, is_output)
    status = shardrt.dlpack.shardrt_dlpackf_view_managed(C.c_void_p(pointer(made.capsule, b"dltensor")), C.byref(use), C.byref(made), message,
                                                         C.c_size_t(len(message)))
    if status:
        raise ValueError(message.value.decode())
    return made


def wrap(shardrt, tensor, release):
    """The memory of a view as a tensor of PyTorch, which calls `release` when it has no more use for it."""
    managed = C.c_void_p()
    assert shardrt.dlpack.shardrt_dlpackf_wrap(C.byref(tensor), Device(CPU, 0), release, None, C.byref(managed), None) == 0
    return torch.utils.dlpack.from_dlpack(capsule(managed.value, b"dltensor", None))


@pytest.mark.parametrize("name", ["mlp"])
def test_arguments_and_outputs(shardrt, compile_model, name):
    program = compile_model(name, "tp=1")
    inputs, wanted = load_file(program.source.inputs), load_file(program.source.outputs)
    artifact = C.c_void_p()
    shardrt.check(shardrt.lib.shardrt_open, str(program.path).encode(), C.byref(artifact))
    manifest = shardrt.lib.shardrt_artifact_manifest(artifact)
    entry = json.loads(C.string_at(manifest.contents.json, manifest.contents.json_bytes))["entries"][0]
    ends = (C.c_void_p * 1)()
    shardrt.check(shardrt.lib.shardrt_local_communicators, 1, ends)
    rank = shardrt.Rank(manifest, 0, 1, ends[0], str(program.source.path))
    names = [output["name"] for output in entry["outputs"] if output["kind"] == "user"]

    given = [inputs[spec["name"]] for spec in entry["inputs"]]
    # Dense, in a wider tensor, with dims the other way round, and at an offset.
    forms = [lambda t: t, lambda t: torch.cat([t, t], -1)[..., : t.shape[-1]], lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0),
             lambda t: torch.cat([t.flatten()[:1], t.flatten()])[1:].view(t.shape)]
    for form in forms:
        outputs = [form(torch.zeros_like(wanted[n])) for n in names]
        rank.run([view(shardrt, form(tensor)) for tensor in given], [view(shardrt, out, is_output=True) for out in outputs])
        for n, out in zip(names, outputs):
            torch.testing.assert_close(out, wanted[n], rtol=1e-4, atol=1e-5)

    # Memory of the caller, of which PyTorch makes tensors that outlive everything else.
    released, buffers, views = [], [], []
    for n in names:
        buffers.append((C.c_float * wanted[n].numel())())
        views.append(shardrt.Tensor(C.addressof(buffers[-1]), shardrt.TYPES["f32"][0], wanted[n].dim(),
                                    (C.c_int64 * MAX_RANK)(*wanted[n].shape), None, GLOBAL, 0, None))
    rank.run([view(shardrt, tensor) for tensor in given], views)
    release = Release(lambda context, data: released.append(data))
    results = [wrap(shardrt, v, release) for v in views]
    addresses = [v.data for v in views]
    del views
    for n, result in zip(names, results):
        torch.testing.assert_close(result, wanted[n], rtol=1e-4, atol=1e-5)
    assert released == []
    del result
    results.clear()
    assert sorted(released) == sorted(addresses)

    shardrt.lib.shardrt_destroy(rank.model)
    shardrt.lib.shardrt_communicator_destroy(ends[0])
    shardrt.lib.shardrt_close(artifact)


def test_types(shardrt):
    for number, dtype in enumerate([torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                                    torch.int8, torch.uint8, torch.bool], 1):
        tensor = torch.ones(2, 3, dtype=dtype)
        made = view(shardrt, tensor[:, 1:])
        assert (made.type, made.rank, list(made.extents[:2]), list(made.strides[:2])) == (number, 2, [2, 2], [3, 1])
        assert made.data == tensor.data_ptr() + tensor.element_size()
        back = wrap(shardrt, made, Release())
        assert back.dtype == dtype and back.data_ptr() == made.data and torch.equal(back, tensor[:, 1:])


def test_what_is_refused(shardrt):
    with pytest.raises(ValueError, match=r"its element type \(code 5, 64 bits\) is none of f32, "):
        view(shardrt, torch.ones(2, dtype=torch.complex64))
    with pytest.raises(ValueError, match="it is an output, and dim 0 has stride 0"):
        view(shardrt, torch.ones(3).expand(2, 3), is_output=True)
