# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code that kernels become for real chips: every kind of kernel for sm_80, sm_90 and sm_100, without spills, within what a
multiprocessor has, and with the instructions that make it fast, kernel by kernel. Needs ptxas; instructions are counted in the machine
code where there is nvdisasm, else looked for in the PTX."""
import re
import subprocess

import pytest

from conftest import run, tool
import cuda_images
from attention_survey import CHIPS, FEW, Attention, excess, survey
from cuda_images import CUBIN, PTX

# Wide loads and stores, shuffles among lanes, reads of shared memory, products on tensor cores, copies to shared memory without
# registers: in machine code, in PTX.
WIDE, STORE, SHUFFLE, SHARED, TENSOR, COPY = "wide", "store", "shuffle", "shared", "tensor", "copy"
SASS = {WIDE: r"LDG\.E(\.\w+)*\.128", STORE: r"STG\.E(\.\w+)*\.128", SHUFFLE: r"SHFL", SHARED: r"LDS\b", TENSOR: r"HMMA", COPY: r"LDGSTS"}
TEXT = {WIDE: r"ld\.global[.\w]*\.v4\.\w*32|ld\.global[.\w]*\.v2\.\w*64", STORE: r"st\.global[.\w]*\.v4\.\w*32|st\.global[.\w]*\.v2\.\w*64",
        SHUFFLE: r"shfl\.sync", SHARED: r"ld\.shared", TENSOR: r"mma\.sync", COPY: r"cp\.async\.c[ag]"}
SDPA = "aten.scaled_dot_product_attention {0}, {1}, {2}"

# Least numbers: a load for each operand, a store for each result, five shuffles for a reduction among 32 lanes.
MAP = {WIDE: 1, STORE: 1}
REDUCTION = {SHUFFLE: 5}
# Keys and values to shared memory. Products of 16 x 8 x 16 for a warp: 32 for 16 queries by 64 keys with heads of 64.
TILES = {COPY: 2}
MATRICES = {TENSOR: 32, **TILES}

# (op, types of operands, type of the result, for kernels that must have instructions: how many of each at least)
KINDS = {
    "pointwise": ("aten.add {0}, {1}", ["4096x1024xf32"] * 2, "4096x1024xf32", {"add_kernel": {WIDE: 2, STORE: 1}}),
    "pointwise_bf16": ("aten.gelu {0}", ["4096x1024xbf16"], "4096x1024xbf16", {"gelu_kernel": MAP}),
    "rows_in_registers": ("aten.softmax {0} dim 1", ["4096x1024xf32"], "4096x1024xf32",
                          {"softmax_kernel": {**MAP, SHUFFLE: 10}}),  # largest, sum
    "rows_in_shared_memory": ("aten.softmax {0} dim 1", ["512x16000xf32"], "512x16000xf32",
                              {"softmax_kernel": {**MAP, SHUFFLE: 10, SHARED: 1}}),
    # Each row is several blocks' work: its largest, its sum, and the results.
    "rows_in_passes": ("aten.log_softmax {0} dim 1", ["64x50257xf32"], "64x50257xf32",
                       {"log_softmax_kernel": {WIDE: 1, **REDUCTION}, "log_softmax_kernel_0": REDUCTION,
                        "log_softmax_kernel_1": {WIDE: 1, **REDUCTION}, "log_softmax_kernel_2": REDUCTION,
                        "log_softmax_kernel_3": MAP}),
    "layer_norm": ("aten.layer_norm {0} [768] weight({1}) bias({2})", ["4096x768xf32", "768xf32", "768xf32"], "4096x768xf32",
                   {"layer_norm_kernel": {WIDE: 3, STORE: 1, SHUFFLE: 10}}),  # mean, variance
    "columns": ("aten.sum {0} dim [0]", ["8192x768xf32"], "768xf32", {"sum_kernel": {SHARED: 1}, "sum_kernel_0": REDUCTION}),
    # Shuffles of the element and of its position.
    "argmax": ("aten.argmax {0} dim 1", ["64x50257xf32"], "64xi64",
               {"argmax_kernel": {WIDE: 1, SHUFFLE: 10}, "argmax_kernel_0": {SHUFFLE: 10}}),
    "scan": ("aten.cumsum {0} dim 1", ["64x4096xf32"], "64x4096xf32", {"cumsum_kernel": {**MAP, **REDUCTION}}),
    "transpose": ("aten.permute {0} [1, 0]", ["2048x1024xf32"], "1024x2048xf32", {"copy": {SHARED: 1}}),
    "concatenation": ("aten.cat {0}, {1} dim 1", ["512x256xf32", "512x512xf32"], "512x768xf32", {"copy": MAP, "copy_0": MAP}),
    "unpack_rows": ("aten.slice {0} dim 0 [40 : 513 : 1]", ["1024x256xbf16"], "473x256xbf16", {"copy": MAP}),
    "unpack_columns": ("aten.slice {0} dim 1 [256 : 768 : 1]", ["512x1024xf32"], "512x512xf32", {"copy": MAP}),
    # Rows that begin anywhere: nothing is aligned.
    "pad": ("aten.constant_pad_nd {0} [1, 2, 0, 3] {{value = 1.5}}", ["512x256xf32"], "515x259xf32", {}),
    "positions": ("aten.embedding {0} at {1}", ["50257x768xf32", "8192xi64"], "8192x768xf32", {"embedding_kernel": MAP}),
    # The lists are sorted in shared memory; what is added is read at positions.
    "scatter": ("aten.index_put {0}[{1}] of {2} accumulate", ["50257x768xf32", "8192xi64", "8192x768xf32"], "50257x768xf32",
                {f"scatter_add_{i}": {SHARED: 1} for i in range(4)}),
    "scatter_bf16": ("aten.scatter_add {0} dim 1 at {1} of {2}", ["64x50257xbf16", "64x9xi64", "64x9xbf16"], "64x50257xbf16",
                     {f"scatter_add_{i}": {SHARED: 1} for i in range(4)}),
    "attention_bf16": (SDPA + " causal", ["2x8x512x64xbf16"] * 3, "2x8x512x64xbf16", {"attention": {**MATRICES, SHUFFLE: 4}}),
    "attention_f16_128": (SDPA, ["2x8x512x128xf16"] * 3, "2x8x512x128xf16", {"attention": {**MATRICES, SHUFFLE: 4}}),
    "attention_f32": (SDPA + " causal", ["2x8x512x64xf32"] * 3, "2x8x512x64xf32", {"attention": {**TILES, STORE: 1, SHUFFLE: 4}}),
}
BACKWARD = {"attention_bf16": {f"attention{part}": MATRICES for part in ("", "_backward_1", "_backward_2")},
            "attention_f32": {f"attention{part}": {**TILES, STORE: 1} for part in ("", "_backward_1", "_backward_2")}}

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
            problems += [f"sm_{chip} {kernel.name}: {what}" for what in excess(kernel, needs, chip)]
        problems += instructions(images, chip, wanted, folder)
    assert not problems, "\n".join(problems)


def instructions(images, chip, wanted, folder):
    """What kernels lack, spills, and atomic sums, of which no kernel has any."""
    if cuda_images.find("nvdisasm"):
        code = cuda_images.disassemble(images[CUBIN, chip], folder)
        found = sorted({f"{name} has {op}" for name, ops in code.items() for op in ops if re.match(r"(STL|LDL|RED)\b|ATOMG?\.(\w+\.)*ADD", op)})
        lacks = [f"{name} has {number} of {SASS[what]}, not {least}" for name, all in wanted.items() for what, least in all.items()
                 if (number := sum(bool(re.match(SASS[what], op)) for op in code.get(name, ()))) < least]
        return [f"sm_{chip}: {problem}" for problem in found + lacks]
    code = cuda_images.bodies(images[PTX, max(CHIPS)].decode())
    return [f"{name} has no {TEXT[what]}" for name, all in wanted.items() for what in all if not re.search(TEXT[what], code.get(name, ""))]


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


# Of each type: heads that are padded, whose tiles differ, and the largest. attention_survey.py, as a program, has all.
SURVEYED = {"bf16": [8, 80, 128, 256], "f16": [96], "f32": [64, 192, 256], "f64": [16, 96, 256]}


@needs_ptxas
@pytest.mark.parametrize("type, size", [(t, size) for t, sizes in SURVEYED.items() for size in sizes])
def test_attention_stays_in_registers(type, size, tmp_path):
    """Forward, backward and with divided keys, one chip each: the smallest, whose shared memory is least, and a newer one in turn."""
    forms = [Attention(type, size), Attention(type, size, backward=True), Attention(type, size, rows=FEW)]
    chips = [80, 90 if size % 32 else 100]
    problems = [f"{one.name} sm_{chip} {kernel.name}: {what}" for one, chip, kernel, needs in survey(forms, chips, tmp_path)
                for what in excess(kernel, needs, chip)]
    assert not problems, "\n".join(problems)


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
