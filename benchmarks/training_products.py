# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the matrix products of a training step take by themselves: no step whose products are these, by this library, is faster.

The products are read from the planned stage of the program, and each rank is a process that runs its own, with memory of their own, through the
BLAS library that the runtime takes. python benchmarks/training_products.py STAGE RANKS THREADS STEPS prints the median and the CPU time of a step in ms."""
import ctypes
import json
import multiprocessing
import pathlib
import re
import statistics
import sys
import time

MEMREF = re.compile(r"memref<([0-9x]+)xf32(?:, strided<\[([0-9, ]+)\])?")
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


def products(stage, entry="train_step"):
    """(m, n, k, whether A is transposed, whether B is, how many) of each product of an entry, as its first kind of rank runs it."""
    found, inside = [], False
    for line in pathlib.Path(stage).read_text().splitlines():
        if "func.func @" in line:
            inside = f"func.func @{entry}(" in line
        if not inside or " exec.gemm " not in line:
            continue
        types = MEMREF.findall(line)
        shapes = [[int(size) for size in shape.split("x")] for shape, _ in types]
        strides = [[int(stride) for stride in text.split(",")] if text else [0, 1] for _, text in types]
        (m, k), n = shapes[0][-2:], shapes[1][-1]
        flips = [s[-1] != 1 and shape[-1] != 1 for s, shape in zip(strides[:2], shapes[:2])]
        found.append((m, n, k, *flips, shapes[0][0] if len(shapes[0]) == 3 else 1))
    if not found:
        sys.exit(f"{stage} has no products of f32 in '{entry}'")
    return found


def flops(table):
    return sum(2 * m * n * k * batch for m, n, k, _, _, batch in table)


def library(threads):
    import scipy_openblas32
    blas = ctypes.CDLL(str(pathlib.Path(scipy_openblas32.get_lib_dir()) / "libscipy_openblas.so"))
    blas.scipy_openblas_set_num_threads(threads)
    return blas


def kernels():
    """Which processor's kernels the library runs."""
    name = library(1).scipy_openblas_get_corename
    name.restype = ctypes.c_char_p
    return name().decode()


def run(table, threads, steps, barrier, results):
    import numpy
    blas, i, p, f = library(threads), ctypes.c_int, ctypes.c_void_p, ctypes.c_float
    calls, kept = [], []
    for m, n, k, flip_a, flip_b, batch in table:
        for _ in range(batch):
            a, b, c = (numpy.full(size, 0.01, numpy.float32) for size in (m * k, k * n, m * n))
            kept += [a, b, c]
            calls.append((i(ROW_MAJOR), i(TRANSPOSED if flip_a else PLAIN), i(TRANSPOSED if flip_b else PLAIN), i(m), i(n), i(k), f(1),
                          p(a.ctypes.data), i(m if flip_a else k), p(b.ctypes.data), i(k if flip_b else n), f(0), p(c.ctypes.data), i(n)))
    times, cpu = [], []
    for _ in range(steps):
        barrier.wait()
        begin, used = time.perf_counter(), time.process_time()
        for call in calls:
            blas.scipy_cblas_sgemm(*call)
        times.append((time.perf_counter() - begin) * 1e3)
        cpu.append((time.process_time() - used) * 1e3)
    results.put((times[3:], sum(cpu[3:]) / len(cpu[3:])))


def measure(stage, ranks, threads, steps):
    """The time of a step, of the slowest rank, and the CPU time of all, in ms."""
    table, context = products(stage), multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(ranks), context.Queue()
    processes = [context.Process(target=run, args=(table, threads, steps, barrier, results)) for _ in range(ranks)]
    for process in processes:
        process.start()
    collected = [results.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    slowest = [max(step) for step in zip(*(times for times, _ in collected))]
    return {"step_ms": sorted(slowest), "cpu_ms": sum(cpu for _, cpu in collected), "gflop": flops(table) * ranks / 1e9}


if __name__ == "__main__":
    measured = measure(sys.argv[1], *map(int, sys.argv[2:5]))
    print(json.dumps({**measured, "median_ms": statistics.median(measured["step_ms"]), "kernels": kernels()}))
