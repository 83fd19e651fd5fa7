# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose ranks are on several hosts, which are network namespaces: right answers over a network that is slow and loses, and what is
said when it is cut in the middle of a step."""
import json
import re
import shlex
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

import hosts
from conftest import BUILD, Model, run, tool
from plans import MLP_TP, places

SECRET = "a secret that only these hosts know"
PER_HOST = 2
pytestmark = [pytest.mark.skipif(bool(hosts.reason_not()), reason=hosts.reason_not()), pytest.mark.xdist_group("overlap")]
# Once rank 0 has made three steps, all have begun: then any moment is within one.
IN_A_STEP = {"seen": "step 3 of", "times": 1, "after_s": 0.5}
COLLECTIVE = r"all_\w+\.\d+ \(\w+ \(builders\.py:\d+\)\)|the barrier|the broadcast of an input|the scatter of an input|the gather of an output|the arguments of a run"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for ranks in (4, 6):
        plan = MLP_TP if ranks == 4 else places("param:*=tp:S(0)")
        run(tool("shardc"), "compile", Model("mlp").path, "--mesh", f"tp={ranks}", *plan, "-o", folder / f"{ranks}.so")
    return {ranks: folder / f"{ranks}.so" for ranks in (4, 6)}


# mpirun notices by itself that it has lost a host if it is told to look every second, when that many looks were in vain: after the deadline of
# ranks. What it sends to that host meanwhile, to end the others, it takes for lost after RETRIES, of 0.2 s, 0.4 s and so on. So would it take
# a network that loses frames for one that is cut.
MPI_DEADLINE, LOOKS, RETRIES = 3, 8, 4
WATCHFUL = [word for name, value in {"time": 1, "intvl": 1, "probes": LOOKS}.items()
            for word in ("--mca", f"oob_tcp_keepalive_{name}", str(value))]


def commands(kind, program, count, tmp_path, *arguments, link="", mpirun_options=()):
    """One command for each rank, or mpirun's, which begins ranks on other hosts by `ip netns exec`."""
    model = Model("mlp")
    words = [tool("shard-run"), program, "--weights", model.path, "--inputs", model.inputs, "--outputs", tmp_path / "out", "--threads", 1,
             *arguments]
    words = [str(word) for word in words]
    common = {"SHARDRT_SECRET": SECRET, "MASTER_ADDR": hosts.address(0), "MASTER_PORT": 29500, "SHARDRT_COMMUNICATOR": kind,
              "SHARDRT_LOG": "info"}
    if link:
        common["SHARDRT_LINK"] = link
    if kind == "gloo":
        if not (BUILD / "lib/shardrt/libshardrt_gloo.so").exists():
            pytest.skip("there is no plugin of Gloo (libgloo-dev of Debian)")
        return [{"host": rank // PER_HOST, "command": words,
                 "env": {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank % PER_HOST, "LOCAL_WORLD_SIZE": PER_HOST, **common}}
                for rank in range(count)]
    if not shutil.which("mpirun.openmpi") or not (BUILD / "lib/shardrt/openmpi/libshardrt_mpi.so").exists():
        pytest.skip("Open MPI or its plugin is not there (openmpi-bin, libopenmpi-dev of Debian)")
    # In place of ssh: mpirun calls it with the name of the host and a command.
    agent = tmp_path / "agent"
    cases = "\n".join(f"{hosts.address(host)}) {shlex.join(hosts.on_host(host))} sh -c \"$*\" ;;" for host in range(count // PER_HOST))
    agent.write_text(f"#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}\nesac\n")
    agent.chmod(0o755)
    names = ",".join(f"{hosts.address(host)}:{PER_HOST}" for host in range(count // PER_HOST))
    mpirun = ["mpirun.openmpi", "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0",
              "--mca", "mpi_yield_when_idle", "1", "--mca", "oob_tcp_if_include", "eth0", *mpirun_options, "--host", names, "-n", str(count)]
    for name in common:
        mpirun += ["-x", name]
    return [{"host": 0, "command": [*mpirun, *words],
             "env": {**common, "OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1, "TMPDIR": tmp_path}}]


@pytest.mark.parametrize("kind", ["gloo", "mpi"])
@pytest.mark.parametrize("count", [4, 6])
def test_answers_over_a_slow_network_that_loses(programs, tmp_path, count, kind):
    """Each rank's frames take 5 ms, and one of a hundred is lost."""
    ended = hosts.run_hosts(count // PER_HOST, commands(kind, programs[count], count, tmp_path, "--steps", 5), 5 * hosts.GUARD,
                            delay_ms=5, loss=0.01, seed=count)
    assert [end.status for end in ended] == [0] * len(ended), "\n".join(end.stderr for end in ended)
    got, want = load_file(tmp_path / "out"), load_file(Model("mlp").outputs)
    assert got.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-4 * np.abs(value).max())


@pytest.mark.parametrize("count", [4, 6])
def test_gloo_names_ranks_of_a_host_that_is_cut_off(programs, tmp_path, count):
    deadline, cut = 5, count // PER_HOST - 1
    ended = hosts.run_hosts(count // PER_HOST,
                            commands("gloo", programs[count], count, tmp_path, "--steps", 1000000, "--timeout", deadline, "--flight-record",
                                     tmp_path / "records", "--progress", link="20000,1"), hosts.GUARD, cut=IN_A_STEP | {"host": cut})
    assert all(end.status == 1 and end.own_seconds < deadline + 2 for end in ended), ended
    records = {int(path.stem[5:]): json.loads(path.read_text()) for path in (tmp_path / "records").glob("rank-*.json")}
    assert sorted(records) == list(range(count))
    lost = {cut * PER_HOST, cut * PER_HOST + 1}
    for rank, record in records.items():
        others = set(range(count)) - lost if rank in lost else lost
        assert re.search(COLLECTIVE, record["message"]), record["message"]
        for other in others:
            assert re.search(rf"ranks? (\d+(, | and ))*{other}\b", record["message"]), (rank, record["message"])
    assert re.search(rf"error: .*missing ranks .*rank {cut * PER_HOST} \(pid \d+ on h{cut}\) does not answer", ended[0].stderr), ended[0].stderr
    merged = run(tool("shard-run"), "--postmortem", tmp_path / "records").stdout
    assert all(f"rank {rank}" in merged for rank in range(count)), merged


def test_mpi_ends_in_time_when_a_host_is_cut_off(programs, tmp_path):
    """Ranks that are not cut off say at their deadline who is missing. mpirun ends when it has lost the other host, for which it has timers of
    its own and of the kernel's TCP: only that it ends is asked here."""
    [command] = commands("mpi", programs[4], 4, tmp_path, "--steps", 1000000, "--timeout", MPI_DEADLINE, "--flight-record",
                         tmp_path / "records", "--progress", link="20000,1", mpirun_options=WATCHFUL)
    command["command"] = ["sh", "-c", f'echo {RETRIES} >/proc/sys/net/ipv4/tcp_retries2 && exec "$@"', "sh", *command["command"]]
    [ended] = hosts.run_hosts(2, [command], hosts.GUARD, cut=IN_A_STEP | {"host": 1})
    assert ended.status not in (0, None), ended
    records = {int(path.stem[5:]): json.loads(path.read_text()) for path in (tmp_path / "records").glob("rank-*.json")}
    for rank in (0, 1):
        assert re.search(COLLECTIVE, records[rank]["message"]), records[rank]["message"]
        assert re.search(rf"within {MPI_DEADLINE} s: missing ranks 2 and 3.*rank 2 \(pid \d+ on h1\) does not answer",
                         records[rank]["message"]), records[rank]["message"]
