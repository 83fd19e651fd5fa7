# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs artifacts from PyTorch through the runtime's C ABI: inputs and outputs are tensors where they are, on the host or on the
device, and work goes into PyTorch's current stream."""
import ctypes as C
import json
import threading

import torch

CODES = {torch.float32: 1, torch.float64: 2, torch.float16: 3, torch.bfloat16: 4, torch.int64: 5, torch.int32: 6,
         torch.int16: 7, torch.int8: 8, torch.uint8: 9, torch.bool: 10}
TYPES = {code: dtype for dtype, code in CODES.items()}
NAMES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
         "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
LOCAL, GLOBAL, SHARED, MAX_RANK = 0, 1, 2, 16


class Manifest(C.Structure):
    _fields_ = [("abi", C.c_uint32), ("size", C.c_uint32), ("json", C.c_void_p), ("json_bytes", C.c_uint64),
                ("program", C.c_void_p)]


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("type", C.c_int32), ("rank", C.c_int32), ("extents", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("scope", C.c_int32), ("reserved", C.c_int32),
                ("global_extents", C.POINTER(C.c_int64))]


class Shape(C.Structure):
    _fields_ = [("type", C.c_int32), ("rank", C.c_int32), ("extents", C.c_int64 * MAX_RANK)]


class Event(C.Structure):
    _fields_ = [("name", C.c_char_p), ("location", C.c_char_p), ("rank", C.c_int32), ("stream", C.c_int32),
                ("start_us", C.c_double), ("duration_us", C.c_double), ("bytes", C.c_int64)]


COMPUTE, COMM, WAIT = 0, 1, 2  # lanes of events
RECORD_EVENTS, DEBUG = 1, 3
VISIT = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(Event))
LOG = C.CFUNCTYPE(None, C.c_void_p, C.c_int32, C.c_int32, C.c_char_p)
FIND = C.CFUNCTYPE(C.c_int32, C.c_void_p, C.c_char_p, C.POINTER(Tensor))


def view(tensor, scope):
    """A view of a tensor; it keeps the tensor alive."""
    result = Tensor(tensor.data_ptr(), CODES[tensor.dtype], tensor.dim(), (C.c_int64 * MAX_RANK)(*tensor.shape),
                    None if tensor.is_contiguous() else (C.c_int64 * MAX_RANK)(*tensor.stride()), scope, 0, None)
    result.tensor = tensor
    return result


class Config(C.Structure):
    _fields_ = [("struct_bytes", C.c_uint64), ("world_size", C.c_int32), ("rank", C.c_int32),
                ("communicator", C.c_void_p), ("timeout_s", C.c_double), ("threads", C.c_int32),
                ("log_level", C.c_int32), ("log", C.c_void_p), ("log_context", C.c_void_p), ("alloc", C.c_void_p),
                ("free", C.c_void_p), ("alloc_context", C.c_void_p), ("flags", C.c_uint32), ("reserved", C.c_uint32),
                ("device", C.c_char_p), ("stream", C.c_void_p)]


class Library:
    """libshardrt; every function that fails raises a RuntimeError with its message."""

    def __init__(self, path):
        self.lib = C.CDLL(str(path))
        self.lib.shardrt_error_message.restype = self.lib.shardrt_version.restype = C.c_char_p
        self.lib.shardrt_error_message.argtypes = self.lib.shardrt_error_free.argtypes = [C.c_void_p]
        self.lib.shardrt_artifact_manifest.restype = C.POINTER(Manifest)
        self.lib.shardrt_artifact_manifest.argtypes = [C.c_void_p]
        for name in ("destroy", "communicator_destroy", "close", "clear_events"):
            getattr(self.lib, f"shardrt_{name}").argtypes = [C.c_void_p]
        for name in ("destroy", "communicator_destroy", "close", "clear_events", "visit_events"):
            getattr(self.lib, f"shardrt_{name}").restype = None

    def communicator(self):
        """This process's end of the world that its launcher says, by variables of the environment."""
        config, end = Config(), C.c_void_p()
        self.lib.shardrt_config_init_bytes(C.byref(config), C.c_uint64(C.sizeof(config)))
        self("communicator_from_environment", C.byref(config), C.byref(end))
        return end

    def rank_of(self, communicator):
        self.lib.shardrt_communicator_rank.argtypes = [C.c_void_p]
        return self.lib.shardrt_communicator_rank(communicator)

    def __call__(self, name, *arguments):
        error = C.c_void_p()
        if getattr(self.lib, f"shardrt_{name}")(*arguments, C.byref(error)) != 0:
            message = self.lib.shardrt_error_message(error).decode()
            self.lib.shardrt_error_free(error)
            raise RuntimeError(message)


class Rank:
    """A program bound to one rank. `log`: takes each message of its log, all levels."""

    def __init__(self, program, rank, communicator, device, stream, record=False, log=None):
        self.program, self.library = program, program.library
        config = Config()
        self.library.lib.shardrt_config_init_bytes(C.byref(config), C.c_uint64(C.sizeof(config)))
        config.world_size, config.rank, config.communicator = program.world, rank, communicator
        config.timeout_s = 120
        config.device, config.stream = device, stream
        config.flags = RECORD_EVENTS if record else 0
        if log:
            self.log = LOG(lambda _, level, rank, text: log(text.decode(errors="replace")))
            config.log, config.log_level = C.cast(self.log, C.c_void_p), DEBUG
        self.model = C.c_void_p()
        self.library("create", program.manifest, C.byref(config), C.byref(self.model))

    def load(self, tensors):
        """Parameters by name; host memory."""
        def find(_, name, out):
            tensor = tensors.get(name.decode())
            if tensor is None:
                return 1
            kept.append(view(tensor, GLOBAL))
            out[0] = kept[-1]
            return 0
        kept = []  # the extents that the runtime reads
        self.library("load_parameters", self.model, FIND(find), None)

    def shapes(self, entry, inputs, n_outputs):
        shapes = (Shape * n_outputs)()
        self.library("output_shapes", self.model, entry, inputs, C.c_size_t(len(inputs)), shapes, None,
                     C.c_size_t(n_outputs))
        return [(tuple(s.extents[:s.rank]), TYPES[s.type]) for s in shapes]

    def run(self, entry, inputs, outputs):
        self.library("run", self.model, entry, inputs, C.c_size_t(len(inputs)), outputs, C.c_size_t(len(outputs)))

    def events(self):
        """(lane, name, location, begin, end) of what was recorded, in seconds."""
        found = []

        def visit(_, event):
            e = event[0]
            found.append((e.stream, e.name.decode(), e.location.decode(), e.start_us * 1e-6,
                          (e.start_us + e.duration_us) * 1e-6))
        self.library.lib.shardrt_visit_events(self.model, VISIT(visit), None)
        return found

    def clear_events(self):
        self.library.lib.shardrt_clear_events(self.model)

    def close(self):
        self.library.lib.shardrt_destroy(self.model)


class Program:
    """An artifact with its ranks, all in this process, on one device: the number of a GPU or "emulated", as text. Or with the
    rank that this process is (`communicator`, of Library.communicator)."""

    def __init__(self, library, path, device, stream=None, weights=None, record=False, log=None, communicator=None):
        device = device.encode() if device else None
        self.library, self.artifact, self.ranks, self.ends = library, C.c_void_p(), [], []
        library("open", str(path).encode(), C.byref(self.artifact))
        self.manifest = library.lib.shardrt_artifact_manifest(self.artifact)
        self.facts = json.loads(C.string_at(self.manifest.contents.json, self.manifest.contents.json_bytes))
        self.world = self.facts["world_size"]
        if communicator:
            self.ranks.append(Rank(self, library.rank_of(communicator), communicator, device, stream, record, log))
            return
        ends = (C.c_void_p * self.world)()
        if self.world > 1:
            library("local_communicators", self.world, ends)
        self.ends = [C.c_void_p(end) for end in ends]
        for rank in range(self.world):
            self.ranks.append(Rank(self, rank, self.ends[rank] if self.world > 1 else None, device, stream, record, log))
            if weights is not None:
                self.ranks[-1].load(weights)

    def entry(self, name=None):
        return next(e for e in self.facts["entries"] if name in (None, e["name"]))

    def prepare(self, inputs, entry=None):
        """What a call needs, for `inputs` by name: `call()` runs all ranks, `outputs` are its tensors by name."""
        return Call(self, inputs, self.entry(entry))

    def close(self):
        for rank in self.ranks:
            rank.close()
        for end in self.ends:
            if self.world > 1:
                self.library.lib.shardrt_communicator_destroy(end)
        self.library.lib.shardrt_close(self.artifact)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Call:
    def __init__(self, program, inputs, entry):
        self.program, self.entry = program, entry["name"].encode()
        missing = [spec["name"] for spec in entry["inputs"] if spec["name"] not in inputs]
        if missing:
            raise RuntimeError(f"the program takes {', '.join(missing)} too")
        views = [view(inputs[spec["name"]], GLOBAL) for spec in entry["inputs"]]
        self.views = views
        self.inputs = (Tensor * len(views))(*views)
        names = [output["name"] for output in entry["outputs"] if output["kind"] != "state"]
        device = next(iter(inputs.values())).device
        shapes = program.ranks[0].shapes(self.entry, self.inputs, len(names))
        self.outputs = {name: torch.empty(shape, dtype=dtype, device=device)
                        for name, (shape, dtype) in zip(names, shapes)}
        scope = SHARED if program.world > 1 else GLOBAL
        kept = [view(tensor, scope) for tensor in self.outputs.values()]
        self.kept = kept
        self.results = (Tensor * len(kept))(*kept)

    def clear_events(self):
        for rank in self.program.ranks:
            rank.clear_events()

    def device_seconds(self):
        """Of the last run, of the rank that took longest: from the first op's begin to the last one's end."""
        spans = [[e for e in rank.events() if e[0] == COMPUTE] for rank in self.program.ranks]
        return max(max(e[4] for e in own) - min(e[3] for e in own) for own in spans)

    def __call__(self):
        ranks = self.program.ranks
        if len(ranks) == 1:
            return ranks[0].run(self.entry, self.inputs, self.results)
        errors = []

        def work(rank):
            try:
                rank.run(self.entry, self.inputs, self.results)
            except RuntimeError as error:
                errors.append(error)
        threads = [threading.Thread(target=work, args=(rank,)) for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
