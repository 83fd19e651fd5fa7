# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the attention kernels need of a multiprocessor: registers, local memory (spills) and shared memory of each, by element type, size of
a head, direction and chip.

    PYTHONPATH=test/e2e .venv/bin/python test/e2e/attention_survey.py [--types bf16,f32] [--sizes 8,64] [--chips 80,90]

surveys everything that it is asked for (by default all types, sizes that are multiples of 8 up to 256, and chips), prints a line for
each, and exits with 1 where a limit is exceeded. test_cuda_code.py does so with a subset that has each of the tiles."""
import argparse
import dataclasses
import pathlib
import sys
import tempfile

from conftest import run, tool
import cuda_images
from cuda_images import CUBIN

CHIPS = {80: 163 << 10, 90: 227 << 10, 100: 227 << 10}  # and the shared memory that a block may have
REGISTERS, STATIC_SHARED = 65536, 48 << 10
TYPES = ["bf16", "f16", "f32", "f64"]
SIZES = list(range(8, 257, 8))
# Queries, heads and keys: many queries, and the few of a decode step, whose keys several blocks share.
MANY, FEW = (512, 1, 512), (1, 4, 4096)


@dataclasses.dataclass
class Attention:
    type: str
    size: int
    backward: bool = False
    rows: tuple = MANY
    mask: bool = False

    @property
    def name(self):
        return (f"{self.type} {self.size}{' backward' * self.backward}{' few rows' * (self.rows == FEW)}{' mask' * self.mask}")


def program(attentions):
    """Each is a function, as its kernels are then named after the function's number."""
    inputs, lines, outputs = [], [], []

    def tensor(shape, element):
        inputs.append(f"tensor<{'x'.join(map(str, shape))}x{element}>")
        return f"%x{len(inputs) - 1}", inputs[-1]

    for number, one in enumerate(attentions):
        rows, heads, keys = one.rows
        q, k = [1, heads, rows, one.size], [1, 1, keys, one.size]
        wide = "f64" if one.type == "f64" else "f32"
        operands = [tensor(q, one.type)] * one.backward + [tensor(q, one.type), tensor(k, one.type), tensor(k, one.type)]
        if one.backward:
            operands += [tensor(q, one.type), tensor(q[:3], wide)]
        texts = [name for name, _ in operands]
        words = "aten.scaled_dot_product_flash_attention" + "_backward" * one.backward + " " + ", ".join(texts)
        if one.mask:
            operands.append(tensor([rows, keys], "i1"))
            words += f" mask({operands[-1][0]})"
        words += " causal" * (one.rows == MANY) + " gqa" * (heads > 1)
        results = [operands[1][1], operands[2][1], operands[3][1]] if one.backward else [operands[0][1],
                                                                                         f"tensor<1x{heads}x{rows}x{wide}>"]
        lines.append(f"%r{number}:{len(results)} = {words} : ({', '.join(t for _, t in operands)}) -> ({', '.join(results)}) "
                     f'loc("attention {number}")')
        outputs += [(f"%r{number}#{i}", t) for i, t in enumerate(results)]
    arguments = ", ".join(f"%x{i}: {t}" for i, t in enumerate(inputs))
    body = "\n  ".join(lines)
    return (f"func.func @forward({arguments}) -> ({', '.join(t for _, t in outputs)}) {{\n  {body}\n"
            f"  return {', '.join(n for n, _ in outputs)} : {', '.join(t for _, t in outputs)}\n}}\n")


def excess(kernel, needs, chip):
    """What a kernel needs beyond what there is, as text."""
    found = []
    if needs.frame:
        found.append(f"{needs.frame} bytes of local memory in each thread")
    if needs.registers > 255 or needs.registers * kernel.threads > REGISTERS:
        found.append(f"{needs.registers} registers in {kernel.threads} threads")
    if needs.shared > STATIC_SHARED or needs.shared + kernel.shared > CHIPS[chip]:
        found.append(f"{needs.shared} + {kernel.shared} bytes of shared memory")
    return found


def survey(attentions, chips, folder):
    """(attention, chip, kernel, needs) of all kernels; attentions are compiled one by one."""
    for number, one in enumerate(attentions):
        (folder / "survey.mlir").write_text(program([one]))
        artifact = folder / f"survey{number}.so"  # of its own: a library that is open stays
        run(tool("shardc"), "compile", folder / "survey.mlir", "--mesh", "r=1", "--target",
            "cuda:" + ",".join(f"sm_{c}" for c in chips), "-o", artifact)
        images, kernels = cuda_images.read(artifact)
        for chip in chips:
            found = cuda_images.needs(images[CUBIN, chip])
            for kernel in kernels:
                yield one, chip, kernel, found[kernel.name]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--chips", default=",".join(map(str, CHIPS)))
    parser.add_argument("--forms", default="forward,backward,few,mask")
    options = parser.parse_args()
    forms = {"forward": {}, "backward": {"backward": True}, "few": {"rows": FEW}, "mask": {"mask": True}}
    attentions = [Attention(t, int(size), **forms[form]) for t in options.types.split(",") for size in options.sizes.split(",")
                  for form in options.forms.split(",")]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for one, chip, kernel, needs in survey(attentions, [int(c) for c in options.chips.split(",")], pathlib.Path(folder)):
            wrong = excess(kernel, needs, chip)
            failed |= bool(wrong)
            print(f"{one.name}: sm_{chip} {kernel.name}: {kernel.threads} threads, {needs.registers} registers, "
                  f"{needs.shared + kernel.shared} bytes shared{': ' * bool(wrong)}{', '.join(wrong)}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
