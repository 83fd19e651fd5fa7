# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The control plane between hosts: network namespaces with a network that delays, loses and is cut."""
import re

import pytest

import hosts
from conftest import BUILD

RANK = BUILD / "test/artifacts/control_rank"
SECRET = "a secret that only these hosts know"
pytestmark = pytest.mark.skipif(bool(hosts.reason_not()), reason=hosts.reason_not())


def ranks(count, per_host, *arguments, **env):
    """One command a rank, with the variables that launchers set."""
    return [{"host": r // per_host, "command": [RANK, *map(str, arguments)],
             "env": {"RANK": r, "WORLD_SIZE": count, "LOCAL_RANK": r % per_host, "LOCAL_WORLD_SIZE": per_host,
                     "MASTER_ADDR": hosts.address(0), "MASTER_PORT": 29500, "SHARDRT_SECRET": SECRET, **env}}
            for r in range(count)]


def test_hosts_meet_over_a_slow_network_that_loses():
    ended = hosts.run_hosts(3, ranks(6, 2, "--barriers", "20", "--deadline", hosts.GUARD), 3 * hosts.GUARD, delay_ms=3, loss=0.02, seed=5)
    assert [(e.status, e.stdout.splitlines()[-1]) for e in ended] == [(0, "done")] * 6, ended


def test_a_host_that_is_cut_off_is_named_at_the_deadline():
    deadline = 5
    cut = {"host": 1, "seen": "joined in", "times": 6, "after_s": 0.5}
    ended = hosts.run_hosts(3, ranks(6, 2, "--deadline", deadline), hosts.GUARD, cut=cut)
    for rank, end in enumerate(ended):
        assert end.status == 3 and end.own_seconds < deadline + 2, end
        said = end.stdout.splitlines()[-1]
        assert said.startswith("failed 6: the barrier"), said
        # Ranks 2 and 3 are on the host: to them, all others are missing.
        missing = "missing ranks 0, 1, 4 and 5" if rank in (2, 3) else "missing ranks 2 and 3"
        assert missing in said and "does not answer, and was in the loop of barriers" in said, said


def test_ranks_of_several_hosts_need_a_secret():
    ended = hosts.run_hosts(2, ranks(2, 1, "--timeout", 10 * hosts.GUARD, SHARDRT_SECRET=""), hosts.GUARD)
    for end in ended:
        assert end.status == 3, end  # at once: they would wait for each other far longer than the guard lets them run
        assert re.search("failed 1: the control plane: ranks on several hosts need a secret: set SHARDRT_SECRET", end.stdout), end


def test_hosts_with_different_secrets_name_each_other():
    # Rank 0 listens until long after rank 1 has given up, whichever of them is started late.
    commands = [*ranks(2, 1, "--timeout", "8")[:1], *ranks(2, 1, "--timeout", "4")[1:]]
    commands[1]["env"]["SHARDRT_SECRET"] = "another secret of some length"
    zero, one = hosts.run_hosts(2, commands, hosts.GUARD)
    assert "rank 1 did not come within 8 s" in zero.stdout and f"the last one from {hosts.address(1)}" in zero.stdout
    assert f"{hosts.address(0)}:29500: it knows another secret" in one.stdout
