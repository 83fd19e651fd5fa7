# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is in the device images of an artifact: code of kernels for each chip, its text, and what it needs of a multiprocessor.

The tables are those of runtime/abi/shardrt_program.h. A cubin is an ELF file: its section `.nv.info` has registers and stack frames by
symbol, `.nv.shared.NAME` is as long as the static shared memory of a kernel."""
import ctypes as C
import dataclasses
import functools
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

CUBIN, PTX, BITCODE = 1, 2, 3
REGISTERS, FRAME = 0x2F, 0x11  # attributes of .nv.info with a value for each symbol
PROGRAM_ABI = 10


class ImageTable(C.Structure):
    _fields_ = [("data", C.c_void_p), ("bytes", C.c_uint64), ("format", C.c_uint32), ("chip", C.c_uint32)]


class KernelTable(C.Structure):
    _fields_ = [("name", C.c_char_p), ("messages", C.c_void_p), ("n_messages", C.c_uint32), ("n_params", C.c_uint32),
                ("block", C.c_uint32 * 3), ("shared_bytes", C.c_uint32)]


class ProgramTable(C.Structure):
    _fields_ = [("struct_bytes", C.c_uint64), *((name, C.c_void_p) for name in ("entries", "groups", "constants",
                                                                                 "collectives")),
                *((f"n_{name}", C.c_uint32) for name in ("entries", "groups", "constants", "collectives")),
                ("images", C.POINTER(ImageTable)), ("kernels", C.POINTER(KernelTable)), ("n_images", C.c_uint32),
                ("n_kernels", C.c_uint32)]


class Manifest(C.Structure):
    _fields_ = [("abi", C.c_uint32), ("size", C.c_uint32), ("json", C.c_void_p), ("json_bytes", C.c_uint64),
                ("program", C.POINTER(ProgramTable))]


@dataclasses.dataclass
class Kernel:
    name: str
    threads: int
    shared: int  # dynamic, in bytes


@dataclasses.dataclass
class Needs:
    """Of one kernel in a cubin."""
    registers: int
    frame: int
    shared: int  # static, in bytes


def read(artifact):
    """Images as {(format, chip): bytes}, and the kernels."""
    library = C.CDLL(str(artifact))
    library.shardrt_query.restype = C.POINTER(Manifest)
    manifest = library.shardrt_query().contents
    assert manifest.abi == PROGRAM_ABI
    program = manifest.program.contents
    images = {(i.format, i.chip): C.string_at(i.data, i.bytes) for i in program.images[:program.n_images]}
    kernels = [Kernel(k.name.decode(), k.block[0] * k.block[1] * k.block[2], k.shared_bytes)
               for k in program.kernels[:program.n_kernels]]
    return images, kernels


def sections(elf):
    """Of a 64-bit ELF file: (name, type, offset, size, link)."""
    assert elf[:5] == b"\x7fELF\x02", "a cubin is a 64-bit ELF file"
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQII", elf, offset + i * size) for i in range(count)]
    start = headers[names][4]
    return [(elf[start + h[0]:elf.index(b"\0", start + h[0])].decode(), h[1], h[4], h[5], h[6]) for h in headers]


def needs(elf):
    """{kernel: Needs} of a cubin."""
    table = sections(elf)
    symbols = next(s for s in table if s[0] == ".symtab")
    strings = table[symbols[4]][2]

    def name_of(number):
        start = strings + struct.unpack_from("<I", elf, symbols[2] + 24 * number)[0]
        return elf[start:elf.index(b"\0", start)].decode()

    found = {}
    _, _, at, size, _ = next(s for s in table if s[0] == ".nv.info")
    end = at + size
    while at < end:
        form, attribute, length = struct.unpack_from("<BBH", elf, at)
        at += 4
        if form != 4:  # the value is in the header
            continue
        if attribute in (REGISTERS, FRAME):
            symbol, value = struct.unpack_from("<II", elf, at)
            found.setdefault(name_of(symbol), {})[attribute] = value
        at += length
    shared = {s[0].removeprefix(".nv.shared."): s[3] for s in table if s[0].startswith(".nv.shared.")}
    return {name: Needs(values[REGISTERS], values.get(FRAME, 0), shared.get(name, 0)) for name, values in found.items()
            if REGISTERS in values}


@functools.cache
def find(name):
    """A program of NVIDIA's toolkit: by its variable, of CUDA_HOME, PATH, the usual place, or a wheel of this Python."""
    folders = [os.path.join(os.environ[home], "bin") for home in ("CUDA_HOME", "CUDA_PATH") if home in os.environ]
    folders += os.environ.get("PATH", "").split(":") + sorted(glob.glob("/usr/local/cuda*/bin"), reverse=True)
    folders += [folder for path in sys.path for folder in glob.glob(f"{path}/nvidia/*/bin")]
    return os.environ.get(f"SHARDC_{name.upper()}") or shutil.which(name, path=":".join(folders))


def disassemble(elf, folder):
    """{kernel: its instructions}, of a cubin."""
    (folder / "code.cubin").write_bytes(elf)
    text = subprocess.run([find("nvdisasm"), "-c", folder / "code.cubin"], text=True, capture_output=True, check=True).stdout
    parts = re.split(r"^\s*\.section\s+\.text\.(\S+?),", text, flags=re.M)
    return {name: re.findall(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(\S+)", body, re.M)
            for name, body in zip(parts[1::2], parts[2::2])}


def bodies(ptx):
    """{kernel: its text}, of PTX."""
    parts = re.split(r"^(?:\.visible )?\.entry (\w+)\(", ptx, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))
