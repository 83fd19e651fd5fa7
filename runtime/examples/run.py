# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an artifact from Python with ctypes alone: one thread for each rank, inputs and outputs as numpy arrays.

    SHARDRT=build/lib/libshardrt.so python run.py model.so [weights] NAME=FILE.npy...

Each NAME=FILE.npy is an input of the first entry; outputs are printed by name."""
import ctypes as C
import json
import os
import sys
import threading

import numpy as np

TYPES = {"f32": (1, np.float32), "f64": (2, np.float64), "i64": (5, np.int64), "i32": (6, np.int32),
         "u8": (9, np.uint8), "bool": (10, np.bool_)}
GLOBAL, SHARED, MAX_RANK = 1, 2, 16


class Manifest(C.Structure):
    _fields_ = [("abi", C.c_uint32), ("size", C.c_uint32), ("json", C.c_void_p), ("json_bytes", C.c_uint64),
                ("program", C.c_void_p)]


class Config(C.Structure):
    _fields_ = [("struct_bytes", C.c_uint64), ("world_size", C.c_int32), ("rank", C.c_int32),
                ("communicator", C.c_void_p), ("timeout_s", C.c_double), ("threads", C.c_int32),
                ("log_level", C.c_int32), ("log", C.c_void_p), ("log_context", C.c_void_p), ("alloc", C.c_void_p),
                ("free", C.c_void_p), ("alloc_context", C.c_void_p), ("flags", C.c_uint32), ("reserved", C.c_uint32),
                ("device", C.c_char_p), ("stream", C.c_void_p)]


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("type", C.c_int32), ("rank", C.c_int32), ("extents", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("scope", C.c_int32), ("reserved", C.c_int32),
                ("global_extents", C.POINTER(C.c_int64))]


class Shape(C.Structure):
    _fields_ = [("type", C.c_int32), ("rank", C.c_int32), ("extents", C.c_int64 * MAX_RANK)]


lib = C.CDLL(os.environ.get("SHARDRT", "libshardrt.so"))
lib.shardrt_error_message.restype = C.c_char_p
lib.shardrt_error_message.argtypes = lib.shardrt_error_free.argtypes = [C.c_void_p]
lib.shardrt_artifact_manifest.restype = C.POINTER(Manifest)
lib.shardrt_artifact_manifest.argtypes = [C.c_void_p]
lib.shardrt_destroy.argtypes = lib.shardrt_communicator_destroy.argtypes = lib.shardrt_close.argtypes = [C.c_void_p]


def check(function, *arguments):
    """Calls a function of the C ABI whose last argument is an error."""
    error = C.c_void_p()
    if function(*arguments, C.byref(error)) != 0:
        message = lib.shardrt_error_message(error).decode()
        lib.shardrt_error_free(error)
        raise RuntimeError(message)


def tensor(array, scope):
    """A view of a dense array; the view keeps it alive."""
    code = next(c for c, t in TYPES.values() if t == array.dtype)
    view = Tensor(array.ctypes.data, code, array.ndim, (C.c_int64 * MAX_RANK)(*array.shape), None, scope, 0, None)
    view.array = array
    return view


class Rank:
    def __init__(self, manifest, rank, world, communicator, weights, timeout=600):
        config = Config()
        lib.shardrt_config_init_bytes(C.byref(config), C.c_uint64(C.sizeof(config)))
        config.world_size, config.rank, config.communicator = world, rank, communicator
        config.timeout_s = timeout
        self.model = C.c_void_p()
        check(lib.shardrt_create, manifest, C.byref(config), C.byref(self.model))
        if weights:
            check(lib.shardrt_load_parameters_file, self.model, weights.encode())

    def run(self, inputs, outputs, entry=None):
        """Runs an entry by name, or the first."""
        check(lib.shardrt_run, self.model, entry and entry.encode(), (Tensor * len(inputs))(*inputs), C.c_size_t(len(inputs)),
              (Tensor * len(outputs))(*outputs), C.c_size_t(len(outputs)))


def main(path, *arguments):
    arrays = {name: np.ascontiguousarray(np.load(file)) for name, file in
              (a.split("=", 1) for a in arguments if "=" in a)}
    weights = next((a for a in arguments if "=" not in a), None)
    artifact = C.c_void_p()
    check(lib.shardrt_open, path.encode(), C.byref(artifact))
    manifest = lib.shardrt_artifact_manifest(artifact)
    facts = json.loads(C.string_at(manifest.contents.json, manifest.contents.json_bytes))
    entry, world = facts["entries"][0], facts["world_size"]
    names = [output["name"] for output in entry["outputs"] if output["kind"] == "user"]
    inputs = [tensor(arrays[spec["name"]], GLOBAL) for spec in entry["inputs"]]

    ends = (C.c_void_p * world)()
    check(lib.shardrt_local_communicators, world, ends)
    ranks = [Rank(manifest, r, world, ends[r], weights) for r in range(world)]
    shapes = (Shape * len(names))()
    check(lib.shardrt_output_shapes, ranks[0].model, None, (Tensor * len(inputs))(*inputs), C.c_size_t(len(inputs)),
          shapes, None, C.c_size_t(len(names)))
    numpy_type = {code: dtype for code, dtype in TYPES.values()}
    outputs = [np.empty(tuple(s.extents[:s.rank]), numpy_type[s.type]) for s in shapes]

    errors = []

    def work(rank):
        try:
            rank.run(inputs, [tensor(output, SHARED) for output in outputs])
        except RuntimeError as error:
            errors.append(error)
    threads = [threading.Thread(target=work, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank, end in zip(ranks, ends):
        lib.shardrt_destroy(rank.model)
        lib.shardrt_communicator_destroy(end)
    lib.shardrt_close(artifact)
    if errors:
        raise SystemExit(f"error: {errors[0]}")
    return dict(zip(names, outputs))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for name, value in main(*sys.argv[1:]).items():
        print(name, value.shape, value.dtype)
        print(value)
