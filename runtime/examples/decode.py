# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Continues token sequences greedily from Python, with ctypes alone: one run for the prompt, then one for each token.

    SHARDRT=build/lib/libshardrt.so python decode.py model.so [weights] 5,17,3 5,17,4 ... --tokens 32

The first input is `input_ids`, i64 of BATCH x LENGTH, of which LENGTH is dynamic, and the first output the logits. The
cache is either a state of the program (transformers' StaticCache), which then has an input `cache_position`, or inputs and
outputs in one order (a DynamicCache): what a run returns is passed to the next. Each rank keeps its own part of these."""
import concurrent.futures
import ctypes as C
import json
import sys

import numpy as np

from run import GLOBAL, TYPES, Rank, Shape, Tensor, check, lib, tensor

LOCAL = 0
NUMPY = {code: dtype for code, dtype in TYPES.values()}


def shapes_of(rank, inputs, count):
    """The outputs of a run with these inputs: whole, and this rank's part."""
    whole, part = (Shape * count)(), (Shape * count)()
    check(lib.shardrt_output_shapes, rank.model, None, (Tensor * len(inputs))(*inputs), C.c_size_t(len(inputs)), whole, part,
          C.c_size_t(count))
    return whole, part


def empty(shape):
    return np.empty(tuple(shape.extents[:shape.rank]), NUMPY[shape.type])


def part_of(whole, array):
    """This rank's part of a tensor. Where a dim is dynamic and sharded, the part does not say how large the whole is."""
    view = tensor(array, LOCAL)
    view.global_extents = whole.extents
    return view


class Decoder:
    """One rank's loop. All ranks see the same logits, and so choose the same tokens."""

    def __init__(self, entry, rank, batch):
        self.rank = rank
        self.has_positions = any(spec["name"] == "cache_position" for spec in entry["inputs"])
        self.outputs = sum(spec["kind"] == "user" for spec in entry["outputs"])
        # A cache of no tokens: a dim that has a symbol is its length, unless it is that of the batch.
        names = [spec["name"] for spec in entry["inputs"] if spec["name"] not in ("input_ids", "cache_position")]
        if len(names) != (0 if self.has_positions else self.outputs - 1):
            raise ValueError(f"the inputs {names} and {self.outputs} outputs are no cache")
        whole = {spec["name"]: spec["shape"] for spec in entry["inputs"]}
        known = {whole["input_ids"][0]: batch}
        types = {spec["name"]: TYPES[spec["type"]][1] for spec in entry["inputs"]}
        self.cache = [tensor(np.empty([n if isinstance(n, int) else known.get(n, 0) for n in whole[name]], types[name]), GLOBAL)
                      for name in names]
        self.length = 0

    def step(self, ids):
        """Runs the model on further tokens, batch x any number, and returns those that follow."""
        inputs = [tensor(np.ascontiguousarray(ids, np.int64), GLOBAL)]
        if self.has_positions:
            inputs.append(tensor(np.arange(self.length, self.length + ids.shape[1]), GLOBAL))
        inputs += self.cache
        whole, part = shapes_of(self.rank, inputs, self.outputs)
        logits, kept = empty(whole[0]), [empty(shape) for shape in part[1:]]
        self.rank.run(inputs, [tensor(logits, GLOBAL), *(tensor(value, LOCAL) for value in kept)])
        self.cache = [part_of(shape, value) for shape, value in zip(whole[1:], kept)]
        self.length += ids.shape[1]
        return logits[:, -1].argmax(-1)[:, None]

    def generate(self, prompt, count):
        tokens = [self.step(prompt)]
        while len(tokens) < count:
            tokens.append(self.step(tokens[-1]))
        return np.concatenate(tokens, 1)


def decode(path, weights, prompt, count):
    """The tokens that follow each row of `prompt`: an array of batch x count."""
    artifact = C.c_void_p()
    check(lib.shardrt_open, path.encode(), C.byref(artifact))
    manifest = lib.shardrt_artifact_manifest(artifact)
    facts = json.loads(C.string_at(manifest.contents.json, manifest.contents.json_bytes))
    world, entry = facts["world_size"], facts["entries"][0]
    ends = (C.c_void_p * world)()
    check(lib.shardrt_local_communicators, world, ends)

    def work(number):
        rank = Rank(manifest, number, world, ends[number], weights)
        try:
            return Decoder(entry, rank, len(prompt)).generate(prompt, count)
        finally:
            lib.shardrt_destroy(rank.model)
            lib.shardrt_communicator_destroy(ends[number])

    with concurrent.futures.ThreadPoolExecutor(world) as threads:
        results = list(threads.map(work, range(world)))
    lib.shardrt_close(artifact)
    return results[0]


def main(program, *words):
    count = int(words[words.index("--tokens") + 1]) if "--tokens" in words else 16
    words = words[:words.index("--tokens")] if "--tokens" in words else words
    rows = [word for word in words if word.replace(",", "").isdigit()]
    weights = next((word for word in words if word not in rows), None)
    for row in decode(program, weights, np.array([[int(token) for token in row.split(",")] for row in rows]), count):
        print(",".join(map(str, row)))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
