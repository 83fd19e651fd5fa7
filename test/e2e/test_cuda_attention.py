# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention kernels for devices, forward and backward, on the emulated device against PyTorch in f64: several tiles in both
dims, sizes that no tile divides, heads up to 256, grouped heads, causal order, masks broadcast in every way, rows that see nothing,
memory that is not aligned, and sizes that are known only when the program runs."""
import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import run, tool
from kernels import Program, difference, mlir_type
from kernel_cases import BF16, F16, F32, F64
from test_attention import LOOSE, answers, attention, described, directions

EMULATED = ("--target", "cuda:emulated")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(17)


def compile_text(text, folder, *, check=True):
    (folder / "attention.mlir").write_text(text)
    return run(tool("shardc"), "compile", folder / "attention.mlir", "--mesh", "r=1", *EMULATED, "-o", folder / "attention.so",
               check=check)


def outputs(inputs, folder):
    save_file({f"input_{i}": t.clone() for i, t in enumerate(inputs)}, folder / "inputs.safetensors")
    run(tool("shard-run"), folder / "attention.so", "--device", "emulated", "--inputs", folder / "inputs.safetensors", "--outputs",
        folder / "outputs.safetensors")
    return load_file(folder / "outputs.safetensors")


def compare(cases, folder, *, backward=True):
    """All cases and their backward, as one program."""
    program, wants = Program(), []
    for one in cases:
        for case in list(directions(one, *described(one)))[:1 + backward]:
            want = case.call(*case.operands)
            program.add(case, want)
            wants += want
    compile_text(program.text(), folder)
    got, problems = outputs(program.arguments, folder), []
    for i, ((_, _, label), want) in enumerate(zip(program.results, wants, strict=True)):
        case = program.labels[label]
        if wrong := difference(got[f"output_{i}"], want.contiguous(), case.operands, case.loose):
            problems.append(f"{case.name} {case.strided}: output {i} {wrong}")
    assert not problems, f"{len(problems)} of {len(wants)} are wrong:\n" + "\n".join(problems)


def multiply_adds():
    """f32 and f64."""
    yield attention(4, 70, 70, 64, F32, batch=(1,), key_heads=2, causal=True)
    yield attention(2, 3, 130, 33, F32, width=40)
    yield attention(1, 65, 33, 128, F32, batch=(1,), strided="permuted")
    yield attention(1, 33, 17, 256, F32, batch=(1,), causal=True)
    yield attention(1, 9, 40, 80, F32, width=5, scale=0.3, strided="sliced")
    yield attention(2, 33, 35, 20, F64, key_heads=1, causal=True)
    yield attention(1, 17, 18, 130, F64, batch=(1,), width=256)


def matrix_units():
    """bf16 and f16."""
    yield attention(4, 140, 140, 64, BF16, batch=(1,), key_heads=2, causal=True)
    yield attention(1, 70, 100, 128, F16, batch=(2,), strided="permuted")
    yield attention(1, 66, 80, 256, BF16, batch=(1,), causal=True)
    yield attention(2, 1, 130, 64, BF16)
    yield attention(2, 20, 70, 33, F16, width=9, scale=0.05)
    yield attention(1, 40, 40, 200, F16, batch=(1,), width=136)
    # Gradients in two parts, of which one matrix has columns for the first only.
    yield attention(2, 40, 70, 16, BF16, width=160)
    yield attention(2, 40, 70, 160, F16, width=16)
    yield attention(2, 30, 90, 72, BF16, batch=(1,), strided="sliced")
    yield attention(1, 130, 20, 16, BF16, causal=True)


def masks():
    yield attention(2, 70, 70, 32, F32, mask="bool", mask_values=[70, 70])
    yield attention(2, 70, 130, 32, BF16, mask="bool", mask_values=[2, 1, 1, 130])
    yield attention(2, 33, 65, 16, F16, mask="add", mask_values=[1, 2, 33, 1])
    yield attention(2, 20, 65, 8, F64, mask="add", mask_values=[2, 1, 20, 65])
    yield attention(2, 90, 65, 40, F32, mask="add", mask_values=[2, 2, 90, 65], batch=(2,))
    for t in (F32, BF16):  # rows that see nothing
        nothing = attention(1, 20, 70, 32, t, mask="bool", mask_values=[20, 70])
        nothing.operands[3][3], nothing.operands[3][19] = False, False
        yield nothing
        nothing = attention(1, 20, 70, 32, t, mask="add", mask_values=[2, 1, 20, 70])
        nothing.operands[3][0, 0, 5], nothing.operands[3][1, 0, :, :66] = -float("inf"), -float("inf")
        yield nothing


def corners():
    for t in (F32, BF16):
        yield attention(2, 0, 9, 8, t)
        yield attention(3, 5, 9, 8, t, batch=())
        yield attention(1, 2, 9, 64, t, causal=True)  # the first queries of many keys
        large = attention(1, 33, 65, 16, t)
        large.operands[0].mul_(100)
        yield large
        yield attention(2, 35, 33, 16, t, scale=-0.4)


@pytest.mark.usefixtures("all_orders")
@pytest.mark.parametrize("cases", [multiply_adds, matrix_units, masks, corners])
def test_against_pytorch(cases, tmp_path):
    compare(list(cases()), tmp_path)


def decode():
    """One or a few queries and many keys, which several blocks divide; heads of queries that share keys are one block's."""
    yield attention(8, 1, 1000, 64, BF16, batch=(1,), key_heads=2)
    yield attention(6, 1, 517, 128, F16, key_heads=2, mask="add", mask_values=[2, 6, 1, 517])
    yield attention(4, 3, 400, 256, BF16, batch=(1,), key_heads=1)
    yield attention(5, 1, 777, 33, BF16, batch=(1,), key_heads=1, width=9, strided="sliced")
    yield attention(3, 7, 700, 40, F32, batch=(1,), width=24, mask="bool", mask_values=[7, 700])
    yield attention(4, 2, 300, 20, F64, key_heads=2, scale=-0.3)
    yield attention(6, 700, 700, 16, F16, batch=(1,), key_heads=2, causal=True)  # tiles that see few of the keys
    yield attention(2, 5, 900, 64, F32, batch=(1,), causal=True)  # keys that no query sees
    for t in (F32, F16):  # parts of which a row sees nothing, and rows that see nothing at all
        nothing = attention(4, 2, 640, 16, t, key_heads=2, mask="bool", mask_values=[2, 4, 2, 640])
        nothing.operands[3][0, :, :, 130:] = False
        nothing.operands[3][1, 1], nothing.operands[3][1, 2, 1] = False, False
        yield nothing


def test_decode_against_pytorch(tmp_path):
    compare(list(decode()), tmp_path, backward=False)


DYNAMIC = """func.func @forward(%q: tensor<?x4x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<4>, #dist.size<l>, #dist.size<{e}>]}},
    %k: tensor<?x2x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<2>, #dist.size<s>, #dist.size<{e}>]}},
    %v: tensor<?x2x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<2>, #dist.size<s>, #dist.size<{e}>]}})
    -> (tensor<?x4x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<4>, #dist.size<l>, #dist.size<{e}>]}})
    attributes {{dist.symbols = [#dist.symbol<b in [0, 8]>, #dist.symbol<l in [0, 200]>, #dist.symbol<s in [0, 200]>]}} {{
  %r = aten.scaled_dot_product_attention %q, %k, %v causal gqa : (tensor<?x4x?x{e}x{t}>, tensor<?x2x?x{e}x{t}>, tensor<?x2x?x{e}x{t}>)
      -> tensor<?x4x?x{e}x{t}>
  return %r : tensor<?x4x?x{e}x{t}>
}}
"""


@pytest.mark.parametrize("t, name", [(F32, "f32"), (BF16, "bf16")])
def test_sizes_known_when_it_runs(t, name, tmp_path):
    compile_text(DYNAMIC.format(e=24, t=name), tmp_path)
    for b, rows, keys in [(2, 70, 130), (1, 1, 65), (3, 130, 5), (2, 0, 7), (2, 7, 0), (0, 3, 3)]:
        q, k, v = torch.randn(b, 4, rows, 24, dtype=t), torch.randn(b, 2, keys, 24, dtype=t), torch.randn(b, 2, keys, 24, dtype=t)
        want = answers(q, k, v, None, True, None)[0].detach().to(t) if keys else torch.zeros_like(q)
        (got,) = outputs([q, k, v], tmp_path).values()
        assert not difference(got, want, [q, k, v], LOOSE[t]), (b, rows, keys)


LONG = """func.func @forward(%q: tensor<?x6x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<6>, #dist.size<l>, #dist.size<{e}>]}},
    %k: tensor<?x2x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<2>, #dist.size<s>, #dist.size<{e}>]}},
    %v: tensor<?x2x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<2>, #dist.size<s>, #dist.size<{e}>]}})
    -> (tensor<?x6x?x{e}x{t}> {{dist.sizes = [#dist.size<b>, #dist.size<6>, #dist.size<l>, #dist.size<{e}>]}})
    attributes {{dist.symbols = [#dist.symbol<b in [0, 200]>, #dist.symbol<l in [0, 99]>, #dist.symbol<s in [0, 4000]>]}} {{
  %r = aten.scaled_dot_product_attention %q, %k, %v gqa : (tensor<?x6x?x{e}x{t}>, tensor<?x2x?x{e}x{t}>, tensor<?x2x?x{e}x{t}>)
      -> tensor<?x6x?x{e}x{t}>
  return %r : tensor<?x6x?x{e}x{t}>
}}
"""


@pytest.mark.parametrize("t, name", [(F32, "f32"), (BF16, "bf16")])
def test_long_keys_of_a_length_known_when_it_runs(t, name, tmp_path):
    """The host chooses when it runs whether blocks divide the keys: by their number, and by that of the queries."""
    compile_text(LONG.format(e=40, t=name), tmp_path)
    for b, rows, keys in [(1, 1, 1500), (2, 5, 300), (2, 1, 255), (1, 40, 600), (140, 1, 257), (0, 1, 700), (1, 0, 700), (1, 1, 0)]:
        q, k, v = torch.randn(b, 6, rows, 40, dtype=t), torch.randn(b, 2, keys, 40, dtype=t), torch.randn(b, 2, keys, 40, dtype=t)
        want = answers(q, k, v, None, False, None)[0].detach().to(t) if keys else torch.zeros_like(q)
        (got,) = outputs([q, k, v], tmp_path).values()
        assert not difference(got, want, [q, k, v], LOOSE[t]), (b, rows, keys)


def test_runs_give_the_same_bits(tmp_path):
    operands = [torch.randn(1, 4, 80, 48, dtype=BF16), *(torch.randn(1, 2, 80, 48, dtype=BF16) for _ in range(2))]
    case = attention(4, 80, 80, 48, BF16, batch=(1,), key_heads=2)
    case.operands[:] = operands
    _, backward = directions(case)
    program = Program()
    program.add(backward, backward.call(*backward.operands))
    compile_text(program.text(), tmp_path)
    first, second = (outputs(program.arguments, tmp_path) for _ in range(2))
    assert all(torch.equal(first[x].view(torch.int16), second[x].view(torch.int16)) for x in first)


def test_heads_that_are_too_large_are_refused_together(tmp_path):
    q, big = torch.zeros(1, 1, 4, 264), torch.zeros(1, 1, 4, 300)
    text = f"""func.func @forward(%q: {mlir_type(q)}, %b: {mlir_type(big)}) -> ({mlir_type(q)}, {mlir_type(big)}) {{
  %0 = aten.scaled_dot_product_attention %q, %q, %q : ({mlir_type(q)}, {mlir_type(q)}, {mlir_type(q)}) -> {mlir_type(q)}
  %1 = aten.scaled_dot_product_attention %b, %b, %b : ({mlir_type(big)}, {mlir_type(big)}, {mlir_type(big)}) -> {mlir_type(big)}
  return %0, %1 : {mlir_type(q)}, {mlir_type(big)}
}}
"""
    done = compile_text(text, tmp_path, check=False)
    assert done.returncode == 1
    for size in (264, 300):
        assert f"of size {size}; CUDA kernels take sizes up to 256" in done.stderr
