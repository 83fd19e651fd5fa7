# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code that kernels become for real chips: every kind of kernel for sm_80, sm_90 and sm_100, without spills, within what a
multiprocessor has, and with the instructions that make it fast. Needs ptxas; instructions are counted in the machine code where there is
nvdisasm, else in the PTX."""
import re
import subprocess

import pytest

from conftest import run, tool
import cuda_images
from cuda_images import CUBIN, PTX

CHIPS = {80: 163 << 10, 90: 227 << 10, 100: 227 << 10}  # and the shared memory that a block may have
REGISTERS, STATIC_SHARED = 65536, 48 << 10

# Wide loads, shuffles among lanes, products on tensor cores, copies to shared memory without registers: in machine code, in PTX.
WIDE, SHUFFLE, TENSOR, COPY = "wide", "shuffle", "tensor", "copy"
SASS = {WIDE: r"LDG\.E(\.\w+)*\.128", SHUFFLE: r"SHFL", TENSOR: r"HMMA", COPY: r"LDGSTS"}
TEXT = {WIDE: r"ld\.global[.\w]*\.v4\.\w*32|ld\.global[.\w]*\.v2\.\w*64", SHUFFLE: r"shfl\.sync", TENSOR: r"mma\.sync",
        COPY: r"cp\.async\.c[ag]"}
SDPA = "aten.scaled_dot_product_attention {0}, {1}, {2}"

# (op, types of operands, type of the result, instructions that some kernel of it must have)
KINDS = {
    "pointwise": ("aten.add {0}, {1}", ["4096x1024xf32"] * 2, "4096x1024xf32", [WIDE]),
    "pointwise_bf16": ("aten.gelu {0}", ["4096x1024xbf16"], "4096x1024xbf16", [WIDE]),
    "rows_in_registers": ("aten.softmax {0} dim 1", ["4096x1024xf32"], "4096x1024xf32", [WIDE, SHUFFLE]),
    "rows_in_shared_memory": ("aten.softmax {0} dim 1", ["512x16000xf32"], "512x16000xf32", [SHUFFLE]),
    "rows_in_passes": ("aten.log_softmax {0} dim 1", ["64x50257xf32"], "64x50257xf32", [SHUFFLE]),
    "layer_norm": ("aten.layer_norm {0} [768] weight({1}) bias({2})", ["4096x768xf32", "768xf32", "768xf32"], "4096x768xf32",
                   [WIDE, SHUFFLE]),
    "columns": ("aten.sum {0} dim [0]", ["8192x768xf32"], "768xf32", []),
    "argmax": ("aten.argmax {0} dim 1", ["64x50257xf32"], "64xi64", []),
    "scan": ("aten.cumsum {0} dim 1", ["64x4096xf32"], "64x4096xf32", []),
    "transpose": ("aten.permute {0} [1, 0]", ["2048x1024xf32"], "1024x2048xf32", []),
    "concatenation": ("aten.cat {0}, {1} dim 1", ["512x256xf32", "512x512xf32"], "512x768xf32", []),
    "pad": ("aten.constant_pad_nd {0} [1, 2, 0, 3] {{value = 1.5}}", ["512x256xf32"], "515x259xf32", []),
    "positions": ("aten.embedding {0} at {1}", ["50257x768xf32", "8192xi64"], "8192x768xf32", []),
    "scatter": ("aten.index_put {0}[{1}] of {2} accumulate", ["50257x768xf32", "8192xi64", "8192x768xf32"], "50257x768xf32",
                []),
    "scatter_bf16": ("aten.scatter_add {0} dim 1 at {1} of {2}", ["64x50257xbf16", "64x9xi64", "64x9xbf16"], "64x50257xbf16",
                     []),
    "attention_bf16": (SDPA + " causal", ["2x8x512x64xbf16"] * 3, "2x8x512x64xbf16", [TENSOR, COPY]),
    "attention_f16_128": (SDPA, ["2x8x512x128xf16"] * 3, "2x8x512x128xf16", [TENSOR, COPY]),
    "attention_f32": (SDPA + " causal", ["2x8x512x64xf32"] * 3, "2x8x512x64xf32", []),
}
BACKWARD = {"attention_bf16": [TENSOR], "attention_f32": []}

needs_ptxas = pytest.mark.skipif(not cuda_images.find("ptxas"), reason="there is no ptxas")


def program(name):
    op, operands, result, _ = KINDS[name]
    arguments = ", ".join(f'%x{i}: tensor<{t}> {{dist.kind = "input", dist.name = "x{i}"}}' for i, t in enumerate(operands))
    types = ", ".join(f"tensor<{t}>" for t in operands)
    text = op.format(*(f"%x{i}" for i in range(len(operands))))
    return (f'func.func @forward({arguments}) -> (tensor<{result}> {{dist.kind = "output", dist.name = "y"}}) {{\n'
            f"  %y = {text} : ({types}) -> tensor<{result}>\n  return %y : tensor<{result}>\n}}\n")


def compiled(source, folder):
    run(tool("shardc"), "compile", source, "--mesh", "r=1", "--target", "cuda", "-o", folder / "code.so")
    return cuda_images.read(folder / "code.so")


def check(images, kernels, wanted, folder):
    assert kernels and {chip for form, chip in images if form == CUBIN} == CHIPS.keys()
    assert (PTX, max(CHIPS)) in images
    problems = []
    for chip, most_shared in CHIPS.items():
        found = cuda_images.needs(images[CUBIN, chip])
        for kernel in kernels:
            needs = found.get(kernel.name)
            if needs is None:
                problems.append(f"sm_{chip}: no {kernel.name}")
                continue
            if needs.frame:
                problems.append(f"sm_{chip} {kernel.name}: {needs.frame} bytes of local memory in each thread")
            if needs.registers > 255 or needs.registers * kernel.threads > REGISTERS:
                problems.append(f"sm_{chip} {kernel.name}: {needs.registers} registers in {kernel.threads} threads")
            if needs.shared > STATIC_SHARED or needs.shared + kernel.shared > most_shared:
                problems.append(f"sm_{chip} {kernel.name}: {needs.shared} + {kernel.shared} bytes of shared memory")
        problems += instructions(images, chip, wanted, folder)
    assert not problems, "\n".join(problems)


def instructions(images, chip, wanted, folder):
    if cuda_images.find("nvdisasm"):
        code = cuda_images.disassemble(images[CUBIN, chip], folder)
        listing = [op for ops in code.values() for op in ops]
        spills = sorted({op for op in listing if re.match(r"(STL|LDL)\b", op)})
        missing = [what for what in wanted if not any(re.match(SASS[what], op) for op in listing)]
        return [f"sm_{chip}: {', '.join(spills)}"] * bool(spills) + [f"sm_{chip}: no {SASS[what]}" for what in missing]
    ptx = images[PTX, max(CHIPS)].decode()
    return [f"no {TEXT[what]}" for what in wanted if not re.search(TEXT[what], ptx)]


@needs_ptxas
@pytest.mark.parametrize("name", KINDS)
def test_kind(name, tmp_path):
    (tmp_path / "code.mlir").write_text(program(name))
    check(*compiled(tmp_path / "code.mlir", tmp_path), KINDS[name][3], tmp_path)


@needs_ptxas
@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name, tmp_path):
    (tmp_path / "code.mlir").write_text(program(name))
    run(tool("shard-opt"), tmp_path / "code.mlir", "--aten-differentiate=into=forward cotangents=0 wrt=x*", "-o",
        tmp_path / "backward.mlir")
    check(*compiled(tmp_path / "backward.mlir", tmp_path), BACKWARD[name], tmp_path)


SPILLING = """.version 8.0
.target sm_80
.address_size 64
.visible .entry spills(.param .u64 p) .maxntid 1024, 1, 1 {
  .reg .b64 %p;
  .shared .align 4 .b8 s[1024];
  .local .align 8 .b8 room[96];
  .reg .b32 %r<4>;
  .reg .b64 %a<4>;
  ld.param.u64 %p, [p];
  ld.global.u32 %r0, [%p];
  mul.wide.u32 %a0, %r0, 4;
  mov.u64 %a1, room;
  add.u64 %a1, %a1, %a0;
  st.local.u32 [%a1], %r0;
  ld.local.u32 %r1, [room+4];
  st.shared.u32 [s], %r1;
  st.global.u32 [%p], %r1;
  ret;
}
"""


@needs_ptxas
def test_what_a_cubin_says_is_what_ptxas_says(tmp_path):
    """Of a kernel that has a frame, against ptxas's own report."""
    (tmp_path / "spills.ptx").write_text(SPILLING)
    done = subprocess.run([cuda_images.find("ptxas"), "-v", "-arch", "sm_80", tmp_path / "spills.ptx", "-o",
                           tmp_path / "spills.cubin"], text=True, capture_output=True, check=True)
    needs = cuda_images.needs((tmp_path / "spills.cubin").read_bytes())["spills"]
    report = done.stdout + done.stderr
    assert needs.registers == int(re.search(r"Used (\d+) registers", report)[1])
    assert needs.frame == int(re.search(r"(\d+) bytes stack frame", report)[1]) >= 96
    assert needs.shared == int(re.search(r"(\d+) bytes smem", report)[1]) == 1024
