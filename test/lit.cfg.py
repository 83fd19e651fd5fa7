# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# lit configuration of all tests under test/. Run them with `ninja check-shardc`, or one folder or file
# with `lit -v build/test --filter dialects/dist`.
#
# Substitutions: %python (with torch where it is installed), %cxx, %build (build tree), %root (source
# tree). Features: `torch` where %python can import it, `torchscript` where the importer's plugin is built too, `ptxas` where
# code for CUDA's chips can be made.

import glob
import os
import shutil
import subprocess

import lit.formats

config.name = "shardc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "e2e"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.shardc_build_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [config.shardc_tools_dir, config.llvm_tools_dir, config.environment.get("PATH", "")]
)
config.substitutions += [
    ("%llvm_tools", config.llvm_tools_dir),
    ("%python", config.shardc_python),
    ("%cxx", config.shardc_cxx),
    ("%build", config.shardc_build_dir),
    ("%root", config.shardc_source_dir),
]


def has_torch():
    """Whether %python has PyTorch, without importing it (that takes seconds)."""
    probe = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    return subprocess.call([config.shardc_python, "-c", probe]) == 0


def has_ptxas():
    """Whether NVIDIA's assembler is where the compiler finds it without being told."""
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    wheels = os.path.join(config.shardc_source_dir, ".venv/lib/python3*/site-packages/nvidia/*/bin/ptxas")
    return bool(shutil.which("ptxas") or os.path.exists(os.path.join(cuda, "bin/ptxas")) or glob.glob(wheels))


if has_ptxas():
    config.available_features.add("ptxas")
if has_torch():
    config.available_features.add("torch")
    if os.path.exists(os.path.join(config.shardc_build_dir, "lib/shardc/shardc-torchscript")):
        config.available_features.add("torchscript")
