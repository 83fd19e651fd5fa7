# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of `shardc simulate` under times that they were not made for, replayed by the reference implementation."""
import json
import sys

import pytest

from conftest import ROOT, run, tool

sys.path[:0] = [str(ROOT / "test/reference"), str(ROOT / "test/models"), str(ROOT / "benchmarks")]

import large_graph
import memory_plans
import real_graphs
import robust_plans

REAL, EXPECTED = real_graphs.FOLDER, real_graphs.EXPECTED
BASE = [name for name in EXPECTED if "inductor_best" in EXPECTED[name]]


@pytest.fixture(scope="session")
def layers(tmp_path_factory):
    path = tmp_path_factory.mktemp("layers") / "layers.pt2"
    large_graph.write(12, path)
    return path


@pytest.fixture(params=["layers", *BASE])
def replays(request, tmp_path):
    """The graph's replays, and the path of Inductor's graph where there is one."""
    name = request.param
    path = REAL / name if name in BASE else request.getfixturevalue(name)
    stem = str(path.parent / path.name.split(".")[0])

    def plan_of(*options):
        out = tmp_path / "plan.json"
        done = run(tool("shardc"), "simulate", path, "--groups", stem + ".groups.json", "--durations", stem + ".durations.json",
                   "--optimize", "--emit", out, *options, check=False)
        assert done.returncode == 0 or "cannot be met" in done.stderr
        return json.loads(out.read_text()) if done.returncode == 0 else None

    inductor = REAL / f"{stem}.inductor_{EXPECTED[name]['inductor_best']['config']}.pt2" if name in BASE else None
    return robust_plans.Replays(path, stem + ".groups.json", stem + ".durations.json", plan_of), inductor


def test_never_longer_than_what_needs_no_times(replays):
    """Than the defensive schedules, and than Inductor's graph under its own peak, on every network and with every jitter."""
    rows = list(replays[0].table(replays[1]))
    assert all(row for _, _, row in rows)
    compared = [(limit, what, row) for limit, what, row in rows
                if what.startswith("over defensive") or (what == "over inductor" and limit == "its peak")]
    assert len(compared) == (5 if replays[1] else 2)
    for limit, what, row in compared:
        assert all(ratio <= 1 for ratio in row.values()), (limit, what, row)


def test_robust_plans_keep_most_of_what_a_plan_for_that_network_hides(replays):
    """What a plan that is made for nominal times alone loses on a network that is twice as slow, ours does not."""
    plan = replays[0].plan_of()
    ours = replays[0].steps(plan)
    for name, most in {"x1.2": 1.03, "x1.5": 1.05}.items():
        scenario = robust_plans.SCENARIOS[name]
        own = replays[0].step(scenario, replays[0].plan_of("--network", scenario["network"], "--robust", 0))["step_us"]
        assert ours[name] <= most * own


@pytest.mark.skipif(not EXPECTED, reason=real_graphs.ABSENT)
@pytest.mark.parametrize("name", BASE)
def test_memory_is_used_where_inductor_uses_it(name):
    """Bound by communication or by compute: with Inductor's memory, or 15 % more than the graph takes, never longer than its step; and
    its graph is planned within what the original takes."""
    stem = str(REAL / name.split(".")[0])
    files = ["--groups", stem + ".groups.json", "--durations", stem + ".durations.json", "--format", "json"]
    after = REAL / f"{stem}.inductor_{EXPECTED[name]['inductor_best']['config']}.pt2"
    for row in memory_plans.rows(REAL / name, after, lambda path, *o: json.loads(run(tool("shardc"), "simulate", path, *files, *o).stdout)):
        assert row["115%"] <= 1 and row["at its peak"] <= 1 and row["its graph"] <= 1, row


def test_steps_are_reported_as_a_range(layers):
    """The replays on slower networks are those of the reference; what is hidden says by how much."""
    stem = str(layers).removesuffix(".pt2")
    slow = layers.parent / "slow.json"  # kernels that there is something to hide behind
    slow.write_text(json.dumps({name: 20 * us for name, us in json.loads(open(stem + ".durations.json").read()).items()}))
    files = ["--groups", stem + ".groups.json", "--durations", slow]
    plan = layers.parent / "range.json"
    got = json.loads(run(tool("shardc"), "simulate", layers, *files, "--optimize", "--emit", plan, "--format", "json").stdout)
    replays = robust_plans.Replays(layers, files[1], files[3], None)
    steps = {s["name"]: s["step_us"] for s in got["scenarios"]}
    before = {s["name"]: s["step_us"] for s in got["before"]["scenarios"]}
    assert steps["nominal"] == pytest.approx(got["step_us"]) and before["nominal"] == pytest.approx(got["before"]["step_us"])
    assert got["step_range_us"] == [min(steps.values()), max(steps.values())]
    for network in (1.25, 1.5, 2):
        for said, made in ((steps, json.loads(plan.read_text())), (before, None)):
            assert said[f"network x{network:g}"] == pytest.approx(replays.step({"network": network}, made)["step_us"])
    collectives = got["alone"] + got["buckets"]
    assert any(c["slack_us"] > 0 for c in collectives)
    for c in collectives:
        assert c["duration_us"] > 0 and (c["slack_us"] is None or c["slack_us"] == 0 or c["exposed_after_us"] == 0)
    text = run(tool("shardc"), "simulate", layers, *files, "--optimize").stdout
    assert f"at most {max(before.values()) / 1e3:15.3f} ms"[-12:] in text.split("  at most")[1].splitlines()[0]
    nearly = [c for c in got["alone"] if c["exposed_after_us"] == 0 and c["slack_us"] is not None and c["slack_us"] < c["duration_us"]]
    assert (f"nearly exposed: {len(nearly)} collectives" in text) == bool(nearly)
