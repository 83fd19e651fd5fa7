# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One fault of one rank of an artifact, through the C ABI: faulty_ranks.py FAULT RUN.PY MODEL.so WEIGHTS INPUTS.

Ranks are threads. All run once; then the last one does not do its part: `stuck` (it never calls run), `dies` (it gives up its communicator while
the others wait), `bad_input` (it passes a tensor of another shape), `abort` (somebody outside ends all). Prints JSON: what every
other rank's run returned, and after how long."""
import ctypes as C
import importlib.util
import json
import sys
import threading
import time

import numpy as np
from safetensors.numpy import load_file


def main(fault, example, path, weights, inputs_file):
    spec = importlib.util.spec_from_file_location("run", example)
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    lib = run.lib
    lib.shardrt_communicator_abort.argtypes = [C.c_void_p, C.c_char_p]
    arrays = load_file(inputs_file)
    artifact = C.c_void_p()
    run.check(lib.shardrt_open, path.encode(), C.byref(artifact))
    manifest = lib.shardrt_artifact_manifest(artifact)
    facts = json.loads(C.string_at(manifest.contents.json, manifest.contents.json_bytes))
    entry, world = facts["entries"][0], facts["world_size"]
    ends = (C.c_void_p * world)()
    run.check(lib.shardrt_local_communicators, world, ends)
    ranks = [run.Rank(manifest, r, world, ends[r], weights, timeout=1.5 if fault == "stuck" else 60) for r in range(world)]
    inputs = [run.tensor(arrays[spec["name"]], run.GLOBAL) for spec in entry["inputs"]]
    outputs = [np.empty(o["shape"], np.float32) for o in entry["outputs"]]
    results = [None] * world

    def work(rank, given):
        begin = time.monotonic()
        try:
            ranks[rank].run(given, [run.tensor(o, run.SHARED) for o in outputs])
            message = ""
        except RuntimeError as error:
            message = str(error)
        results[rank] = {"message": message, "seconds": time.monotonic() - begin}

    def begin(count):
        threads = [threading.Thread(target=work, args=(rank, inputs)) for rank in range(count)]
        for thread in threads:
            thread.start()
        return threads

    for thread in begin(world):
        thread.join()
    assert all(result["message"] == "" for result in results), results
    results[world - 1] = None
    others = begin(world - 1)
    if fault == "bad_input":
        work(world - 1, [run.tensor(np.zeros((3, 5), np.float32), run.GLOBAL) for _ in inputs])
    elif fault != "stuck":
        time.sleep(0.5)  # the others wait in their first collective
        if fault == "dies":
            lib.shardrt_communicator_destroy(ends[world - 1])
        else:
            lib.shardrt_communicator_abort(ends[world - 1], b"the operator's request")
    for thread in others:
        thread.join()
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
