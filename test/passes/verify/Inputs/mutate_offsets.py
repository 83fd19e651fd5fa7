# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Corrupts the offsets of a planned program, one at a time: mutate_offsets.py SHARD_OPT PROGRAM. Every buffer of every entry with a
static arena is moved to every multiple of STEP bytes up to the end of the arena, and the stage's verifier must refuse exactly
those places where, by this script's own reading of the text, the buffer would meet another that is in use at the same time."""
import re
import subprocess
import sys

opt, path = sys.argv[1:3]
text = open(path).read()
STEP = 256
BYTES = {"f32": 4, "bf16": 2, "i8": 1, "i64": 8, "f64": 8}


def size_of(memref):
    *extents, element = memref.split("x")
    total = BYTES[element]
    for extent in extents:
        total *= int(extent)
    return total


def entries(lines):
    """(first line, last line) of each entry with a static arena."""
    for i, line in enumerate(lines):
        if "exec.arena_bytes" in line:
            yield i, next(j for j in range(i, len(lines)) if lines[j] == "  }")


def read(lines, begin, end):
    """Of each buffer: its line, offset, size, and the lines of first and last use."""
    root, starts, buffers, uses = {}, {}, {}, {}

    def use(line, at):
        for name in re.findall(r"%\w+", re.sub(r"^\s*%\w+ = ", "", line)):
            if name in root:
                uses.setdefault(root[name], []).append(at)

    for at in range(begin + 1, end):
        line = lines[at]
        result = re.match(r"\s*(%\w+) = ", line)
        if alloc := re.search(r"(%\w+) = exec\.alloc at (\d+) : memref<(\w+)>", line):
            root[alloc[1]] = alloc[1]
            buffers[alloc[1]] = (at, int(alloc[2]), size_of(alloc[3]))
        elif view := re.search(r"(%\w+) = memref\.reinterpret_cast (%\w+) to", line):
            if view[2] in root:
                root[view[1]] = root[view[2]]
        else:
            use(line, at)
            if result and "exec.start" in line:
                starts[result[1]] = line
            if wait := re.search(r"exec\.wait (%\w+)", line):
                use(starts.pop(wait[1]), at)
    for line in starts.values():  # nobody waits
        use(line, end)
    return {name: (*what, min(uses[name]), max(uses[name])) for name, what in buffers.items() if name in uses}


def is_right(buffers, arena):
    spans = list(buffers.values())
    for i, (_, offset, size, first, last) in enumerate(spans):
        if offset + size > arena:
            return False
        for _, other, other_size, other_first, other_last in spans[:i]:
            if first <= other_last and other_first <= last and offset < other + other_size and other < offset + size:
                return False
    return True


lines = text.splitlines()
mutants, expected = [], []
for begin, end in entries(lines):
    arena = int(re.search(r"exec\.arena_bytes = (\d+)", lines[begin])[1])
    buffers = read(lines, begin, end)
    assert len(buffers) > 2 and is_right(buffers, arena)
    for name, (at, offset, size, first, last) in buffers.items():
        for place in range(0, arena + 1, STEP):
            changed = list(lines)
            changed[at] = changed[at].replace(f"exec.alloc at {offset} :", f"exec.alloc at {place} :")
            mutants.append("\n".join(changed))
            expected.append(is_right(buffers | {name: (at, place, size, first, last)}, arena))
SPLIT = "\n// -----\n"
result = subprocess.run([opt, "--split-input-file", "--dist-verify-stage=planned", "-o", "/dev/null"],
                        input=SPLIT.join(mutants), text=True, capture_output=True)
refused = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: error:", result.stderr)}
height = len(lines) + 1  # with the line that splits
accepted = [True] * len(mutants)
for line in refused:
    accepted[(line - 1) // height] = False
wrong = [i for i in range(len(mutants)) if accepted[i] != expected[i]]
print(f"{len(mutants)} programs, {expected.count(False)} of them wrong: {len(wrong)} judged otherwise than by brute force")
assert expected.count(False) > 200 and expected.count(True) > 10
sys.exit(bool(wrong))
