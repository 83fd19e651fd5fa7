# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program for many ranks has no more code than one for few: only its tables grow."""
import json

import pytest

from conftest import run, tool
from plans import places


def sections(path):
    """Bytes of the shared object's sections."""
    lines = (line.split() for line in run("size", "-A", path).stdout.splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 3 and words[1].isdigit()}


@pytest.mark.parametrize("name, plan", [
    ("gpt2", ["param:*=r:S(0)"]),  # heads that do not divide: every rank begins elsewhere
    ("llama", ["param:*=r:S(0)", "input:*=r:S(1)"]),
])
def test_code_does_not_grow_with_ranks(model, tmp_path, name, plan):
    code, variants = {}, {}
    for ranks in (16, 128, 512):
        program = tmp_path / f"{ranks}.so"
        run(tool("shardc"), "compile", model(name).path, "--mesh", f"r={ranks}", *places(*plan), "-o", program)
        code[ranks] = sections(program)[".text"]
        [entry] = json.loads(run(tool("shard-run"), program, "--manifest").stdout)["entries"]
        variants[ranks] = len(entry["arena_bytes"])
    # A variant is for ranks with the same extents: the small model's dims give a few, however many ranks there are.
    assert max(variants.values()) <= 12, variants
    assert code[512] <= 2 * code[16], code  # a few variants more; it would be 32 with one for each rank
