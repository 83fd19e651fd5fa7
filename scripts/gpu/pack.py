# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles everything that is measured and puts it into one folder, with the runtime, the tests and these scripts. A machine
with a GPU needs that folder, PyTorch and the driver."""
import argparse
import concurrent.futures
import functools
import json
import pathlib
import shutil
import subprocess
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tools/export"), str(ROOT / "test/e2e")]

import commands  # noqa: E402
import programs  # noqa: E402

LIMIT = 48 << 20
# Unit tests that a real device can run as well as the emulated one (test/unit/runtime/CudaDevice.h), each with the group that runs
# it: all of the first, of the second those whose ranks are processes, and of the third those whose ranks may share a device.
TESTS = [{"name": "test_runtime_cuda_gemm", "group": "abi", "filter": "*"},
         {"name": "test_runtime_cuda_world", "group": "ranks", "filter": "Cuda/*/processes:CudaProcesses.*"},
         {"name": "test_runtime_cuda_peers", "group": "ranks", "filter": "CudaPeersOfAnyDevice.*"}]
# What every machine has: the parts of glibc; and what is packed, for a machine whose own is older.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
CXX = ("libstdc++.so.6", "libgcc_s.so.1")
LIBRARIES = ("lib/libshardrt.so*", "lib/shardrt/libshardrt_device.so", "lib/shardrt/libshardrt_cuda.so")
EMULATOR = "libcuda-emulated.so"


def run(*command):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout


def export(model, path):
    """Without weights: a program needs their shapes only."""
    import shardc_export
    with torch.device("meta"):
        inputs = {name: torch.empty_like(t, device="meta") for name, t in model.inputs().items()}
        program = shardc_export.export(model.module("meta"), (), inputs)
    torch.export.save(program, path)


class Packer:
    def __init__(self, build, folder, target):
        self.build, self.folder, self.target = build, folder, target
        self.work = folder.with_name(folder.name + ".work")

    def compile(self, source, name, mesh="r=1", *options):
        run(self.build / "bin/shardc", "compile", source, *(("--mesh", mesh) if mesh else ()), "--target", self.target, *options, "-o",
            self.folder / "programs" / f"{name}.so")

    def add(self, program):
        source = self.work / program.name
        if isinstance(program, programs.Model):
            source = source.with_suffix(".pt2")
            self.compile(source, program.name, program.mesh, *program.compile_options)
            return
        source = source.with_suffix(".mlir")
        source.write_text(program.mlir())
        if program.backward:
            forward, source = source, source.with_suffix(".backward.mlir")
            run(self.build / "bin/shard-opt", forward, "--aten-differentiate=into=forward cotangents=0 wrt=x*", "-o", source)
        self.compile(source, program.name, program.mesh, *program.options)

    def add_cases(self, name, text, arguments, wants):
        """A program of many ops, with PyTorch's answers on a CPU."""
        source = self.work / f"{name}.mlir"
        source.write_text(text)
        self.compile(source, name)
        torch.save({"inputs": arguments, "wants": wants}, self.folder / "cases" / f"{name}.pt")

    def copy(self, pattern, into):
        found = sorted(self.build.glob(pattern))
        if not found:
            raise RuntimeError(f"there is no {self.build / pattern}: build it first")
        for file in found:
            target = self.folder / into / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target, follow_symlinks=False)
            if file.is_file() and not file.is_symlink():
                subprocess.run(["strip", "--strip-unneeded", target], check=False, capture_output=True)

    def copy_runtime(self):
        emulated = (f"lib/shardrt/{EMULATOR}",) if self.target == "cuda:emulated" else ()
        for pattern in ("bin/shard-run", *LIBRARIES, *emulated):
            self.copy(pattern, pathlib.Path(pattern).parent)
        for test in TESTS:
            self.copy(f"test/unit/{test['name']}", "tests")
        for file in sorted(HERE.glob("*.py")):
            shutil.copy2(file, self.folder / "gpu" / file.name)
        shutil.copy2(HERE.parent / "gpu.sh", self.folder / "gpu.sh")

    def copy_cxx(self):
        """This machine's libstdc++, which is the one that everything was linked with."""
        import ctypes
        (self.folder / "lib/cxx").mkdir(parents=True)
        for name in CXX:
            ctypes.CDLL(name)
            (path,) = {line.split()[-1] for line in open("/proc/self/maps") if f"/{name}" in line}
            shutil.copy2(path, self.folder / "lib/cxx" / name)

    def needs(self):
        """The newest symbols of glibc and libstdc++ that packed files ask for. That they ask for other libraries is an error."""
        files = [f for part in ("bin", "tests", "lib", "programs") for f in sorted((self.folder / part).rglob("*"))
                 if f.is_file() and not f.is_symlink() and f.name not in (*CXX, EMULATOR)]
        own = {f.name for f in (self.folder / "lib").rglob("*.so*")}
        if others := commands.needed_libraries(files) - SYSTEM - set(CXX) - own:
            raise SystemExit(f"error: packed files need {', '.join(sorted(others))}, which another machine may lack")
        return commands.symbol_versions(files)


def kernel_cases(packer):
    """The cases of test/e2e/test_kernels.py and of the scatter-adds."""
    import cuda_scatter_cases
    import kernel_cases
    import kernel_images
    import kernel_rows
    import kernels
    families = [kernel_cases.unary, kernel_cases.binary, kernel_cases.powers, kernel_cases.several_operands,
                kernel_cases.casts, kernel_rows.reductions, kernel_rows.normalizations, kernel_rows.lookups,
                kernel_rows.products, kernel_rows.casting_reductions, kernel_images.images, cuda_scatter_cases.cases]
    for family in families:
        name = "cases_" + ("scatters" if family is cuda_scatter_cases.cases else family.__name__)
        program, wants = kernels.Program(), []
        for case, want, tensors in kernels.answered(family()):
            scale = kernels.largest(case.operands) if case.loose >= kernels.SUMS else 0.0
            program.add(case, want)
            for tensor in tensors:
                wants.append({"case": case.name, "want": tensor.contiguous(), "loose": case.loose, "scale": scale,
                              "output": f"output_{len(wants)}"})
        yield functools.partial(packer.add_cases, name, program.text(),
                                {f"input_{i}": t for i, t in enumerate(program.arguments)}, wants)


BEYOND = """func.func @forward(%x: tensor<7x5xf32>, %i: tensor<3xi64>) -> tensor<3x5xf32> {
  %r = aten.embedding %x at %i : (tensor<7x5xf32>, tensor<3xi64>) -> tensor<3x5xf32> loc("layer")
  return %r : tensor<3x5xf32>
}
"""


def pack(build, folder, target, small, jobs, only=None, cases=True):
    """`only`: whether a program is packed; without `cases`, none of the kernel tests is."""
    packer = Packer(build, folder, target)
    for path in (folder, packer.work):
        shutil.rmtree(path, ignore_errors=True)
    for part in ("programs", "cases", "gpu"):
        (folder / part).mkdir(parents=True)
    packer.work.mkdir()
    chosen = [p for p in programs.everything(small) if only is None or only(p)]
    for program in chosen:
        if isinstance(program, programs.Model):
            export(program, packer.work / f"{program.name}.pt2")
    torch.manual_seed(7)
    tasks = [functools.partial(packer.add, program) for program in chosen] + (list(kernel_cases(packer)) if cases else [])
    tasks.append(functools.partial(packer.add_cases, "cases_beyond", BEYOND,
                                   {"input_0": torch.randn(7, 5), "input_1": torch.tensor([0, 7, 1])}, []))
    problems = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(task) for task in tasks]:
            try:
                future.result()
            except RuntimeError as error:
                problems.append(str(error))
    if problems:
        raise SystemExit("\n".join(problems) + f"\nerror: {len(problems)} of {len(tasks)} programs were not made")
    packer.copy_runtime()
    packer.copy_cxx()
    shutil.rmtree(packer.work)
    facts = {"target": target, "small": small, "programs": [p.name for p in chosen], "tests": TESTS, "needs": packer.needs(),
             "commit": subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], text=True, capture_output=True).stdout.strip()}
    (folder / "pack.json").write_text(json.dumps(facts, indent=1))
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink())
    needs = ", ".join(f"{kind} {version}" for kind, version in facts["needs"].items())
    print(f"{folder}: {len(tasks)} programs, {len(TESTS)} tests, {size / 2**20:.1f} MiB; needs {needs}")
    if size > LIMIT and target != "cuda:emulated":  # which has a compiler of its own, and does not travel
        raise SystemExit(f"error: that is more than {LIMIT >> 20} MiB")


def main(arguments):
    parser = argparse.ArgumentParser(prog="gpu.sh pack", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/gpu", help="where to put it (ignored by git)")
    parser.add_argument("--target", default="cuda:sm_90")
    parser.add_argument("--small", action="store_true", help="only what the emulated device runs in a moment")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args(arguments)
    pack(args.build.resolve(), args.folder.resolve(), args.target, args.small or args.target == "cuda:emulated", args.jobs)


if __name__ == "__main__":
    main(sys.argv[1:])
