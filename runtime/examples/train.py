# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a model of characters on a text from Python, with ctypes alone: the same program, batches and losses as train.cpp.

    SHARDRT=build/lib/libshardrt.so python train.py step.so model.pt2 text.txt [steps] [learning rate] [checkpoint]

Then it prints what the model writes. Inputs are `ids` and `targets`, i64 of batch x length; outputs are the loss and the logits."""
import concurrent.futures
import ctypes as C
import json
import pathlib
import sys

import numpy as np

from run import GLOBAL, SHARED, TYPES, Rank, check, lib, tensor


class World:
    """All ranks of a program, as threads; each call runs on all of them."""

    def __init__(self, path, weights):
        self.artifact = C.c_void_p()
        check(lib.shardrt_open, path.encode(), C.byref(self.artifact))
        manifest = lib.shardrt_artifact_manifest(self.artifact)
        facts = json.loads(C.string_at(manifest.contents.json, manifest.contents.json_bytes))
        self.entries = {entry["name"]: entry for entry in facts["entries"]}
        self.size = facts["world_size"]
        self.ends = (C.c_void_p * self.size)()
        check(lib.shardrt_local_communicators, self.size, self.ends)
        self.threads = concurrent.futures.ThreadPoolExecutor(self.size)
        self.ranks = list(self.threads.map(lambda r: Rank(manifest, r, self.size, self.ends[r], weights), range(self.size)))

    def each(self, body):
        for future in [self.threads.submit(body, rank) for rank in self.ranks]:
            future.result()

    def run(self, name, **inputs):
        """The outputs of an entry by name."""
        entry = self.entries[name]
        given = [tensor(np.asarray(inputs[spec["name"]], order="C"), GLOBAL) for spec in entry["inputs"]]
        wanted = [spec for spec in entry["outputs"] if spec["kind"] == "user"]
        outputs = {spec["name"]: np.empty(spec["shape"], TYPES[spec["type"]][1]) for spec in wanted}
        self.each(lambda rank: rank.run(given, [tensor(output, SHARED) for output in outputs.values()], name))
        return outputs

    def save(self, path):
        self.each(lambda rank: check(lib.shardrt_save, rank.model, path.encode()))

    def close(self):
        for rank, end in zip(self.ranks, self.ends):
            lib.shardrt_destroy(rank.model)
            lib.shardrt_communicator_destroy(end)
        lib.shardrt_close(self.artifact)


def batch_of(text, step, batch, length):
    """Pieces of a text, at places that depend on the step alone, and what follows each character."""
    places = [(step * batch + row) * 7919 % (len(text) - length) for row in range(batch)]
    pieces = np.stack([text[place:place + length + 1] for place in places]).astype(np.int64)
    return {"ids": pieces[:, :-1], "targets": pieces[:, 1:]}


def sample(world, prompt, count, temperature=0.7, seed=0):
    """A text that the model continues: each character is drawn from what it expects."""
    batch, length = world.entries["forward"]["inputs"][0]["shape"]
    generator, text = np.random.default_rng(seed), [ord(c) for c in prompt]
    for _ in range(count):
        seen = text[-length:]
        ids = np.zeros((batch, length), np.int64)
        ids[0, :len(seen)] = seen
        _, logits = world.run("forward", ids=ids, targets=np.zeros_like(ids)).values()
        scores = logits[0, len(seen) - 1].astype(np.float64) / temperature
        odds = np.exp(scores - scores.max())
        text.append(int(generator.choice(len(odds), p=odds / odds.sum())))
    return "".join(chr(c) for c in text)


def main(program, weights, path, steps="10", rate="1e-3", checkpoint=None):
    text = np.frombuffer(pathlib.Path(path).read_bytes(), np.uint8)
    world = World(program, weights)
    batch, length = world.entries["forward"]["inputs"][0]["shape"]
    for step in range(int(steps)):
        outputs = world.run("train_step", **batch_of(text, step, batch, length), learning_rate=np.array(float(rate)))
        print(f"step {step + 1}: loss {next(iter(outputs.values())):.6f}")
    if checkpoint:
        world.save(checkpoint)
    print(sample(world, "The ", 60))
    world.close()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
