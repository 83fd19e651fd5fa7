# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime alone: configured without the compiler, built by another C++ compiler, and tested, without a file of LLVM."""
import concurrent.futures
import fcntl
import os
import re
import shutil

import pytest

from conftest import BUILD, ROOT, run

TESTS = ["test_runtime_support", "test_runtime_comm", "test_runtime_control", "test_runtime_shared", "test_runtime_compute",
         "test_runtime_model", "test_runtime_device", "test_runtime_abi", "test_shard_run"]
TREE = BUILD / "runtime-tree"
pytestmark = pytest.mark.xdist_group("runtime-tree")  # one process builds it


@pytest.fixture(scope="module")
def tree():
    compilers = ["-DCMAKE_C_COMPILER=gcc", "-DCMAKE_CXX_COMPILER=g++"] if shutil.which("g++") else []
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    lock = open(BUILD / "runtime-tree.lock", "w")  # another run of the tests may build it too
    fcntl.flock(lock, fcntl.LOCK_EX)
    run("cmake", "-S", ROOT, "-B", TREE, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON", "-DSHARDC_COMPILER=OFF",
        "-DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON", *compilers, *launcher)
    run("ninja", "-C", TREE, "shardrt", "shard-run", *TESTS, timeout=3600)
    lock.close()
    return TREE


def test_no_file_of_llvm_is_read(tree):
    deps = run("ninja", "-C", tree, "-t", "deps").stdout
    assert "shardrt.h" in deps
    assert not re.findall(r".*/llvm-\d+/include/(?:llvm|mlir).*", deps)


def test_library_is_small_and_needs_only_the_system(tree, tmp_path):
    library = os.path.realpath(tree / "lib" / "libshardrt.so")
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library).stdout)
    assert set(needed) <= {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}
    stripped = tmp_path / "stripped.so"
    run("strip", "-o", stripped, library)
    assert stripped.stat().st_size < 1 << 20
    exported = re.findall(r" [TDBVWR] (\S+)", run("nm", "-D", "--defined-only", library).stdout)
    assert exported and all(name.startswith("shardrt_") for name in exported)


@pytest.fixture(scope="module")
def units(tree, request):
    """Runs of those that are asked for, some at a time: they wait for other ranks and for deadlines more than they compute."""
    asked = [item.callspec.params["name"] for item in request.session.items if getattr(item, "originalname", "") == test_unit.__name__
             and item.path == request.path]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        # Tests that fail are named at the end of the output, however long that is.
        yield {name: pool.submit(run, tree / "test/unit" / name, "--gtest_brief=0") for name in asked}


@pytest.mark.parametrize("name", TESTS)
def test_unit(units, name):
    units[name].result()
