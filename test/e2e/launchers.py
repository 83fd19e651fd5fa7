# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of shard-run on four ranks that are processes, under the launchers of this machine. A launcher that is not there skips the test and says what would bring it."""
import os
import pathlib
import shutil
import sys

import pytest

from conftest import BUILD, run, tool

MPIRUN = shutil.which("mpirun.openmpi")
MPIEXEC = shutil.which("mpiexec.hydra")
TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# What rank 0 says of its choice. Launchers of one machine choose shared memory; the last word of a name asks for an engine between hosts.
CHOSEN = {
    "processes": "local, 4 processes, shared memory, started by shard-run",
    "mpirun": "local, 4 processes, shared memory, started by mpirun",
    "torchrun": "local, 4 processes, shared memory, started by torchrun",
    "processes gloo": "gloo, 4 processes, Gloo",
    "torchrun gloo": "gloo, 4 processes, Gloo",
    "mpirun mpi": "mpi, 4 processes, Open MPI",
    "mpiexec mpi": "mpi, 4 processes, MPICH",
}
PLUGINS = {"gloo": ("libshardrt_gloo.so", "libgloo-dev"), "mpirun mpi": ("openmpi/libshardrt_mpi.so", "libopenmpi-dev"),
           "mpiexec mpi": ("mpich/libshardrt_mpi.so", "libmpich-dev")}


def torchrun():
    """Four ranks, with a port that torchrun chooses: its own choice without --standalone is the same for every job of a machine."""
    return [TORCHRUN, "--standalone", "--no-python", "--nproc-per-node", "4"]


def command_of(launcher):
    if launcher == "processes":
        return [tool("shard-run"), "--processes"]
    if launcher == "mpirun":
        if not MPIRUN:
            pytest.skip("Open MPI is not installed (openmpi-bin of Debian)")
        return [MPIRUN, "--oversubscribe", "-n", "4", tool("shard-run")]
    if launcher == "mpiexec":
        if not MPIEXEC:
            pytest.skip("MPICH is not installed (mpich of Debian)")
        return [MPIEXEC, "-n", "4", tool("shard-run")]
    if not TORCHRUN.exists():
        pytest.skip("torchrun is not in the environment of these tests")
    return [*torchrun(), tool("shard-run")]


def launch(kind, artifact, *arguments):
    """A run of `kind`, a key of CHOSEN, that has made this choice."""
    launcher, *engine = kind.split()
    environment = {**os.environ, **AS_ROOT, "SHARDRT_LOG": "info"}
    if engine:
        plugin, package = PLUGINS.get(kind) or PLUGINS[engine[0]]
        if not (BUILD / "lib/shardrt" / plugin).exists():
            pytest.skip(f"there is no {plugin} ({package} of Debian)")
        environment["SHARDRT_COMMUNICATOR"] = engine[0]
    done = run(*command_of(launcher), artifact, *arguments, env=environment)
    assert f"communicator: {CHOSEN[kind]}" in done.stderr, done.stderr
    return done
