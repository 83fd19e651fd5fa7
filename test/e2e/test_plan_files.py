# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that `shardc simulate` reads: its own, and others that do or do not fit the graph."""
import json
import random
import sys
import zipfile

import pytest

from conftest import ROOT, run, tool

sys.path[:0] = [str(ROOT / "test/reference"), str(ROOT / "test/models"), str(ROOT / "benchmarks")]

import large_graph
import real_graphs
import sim_v1

REAL, EXPECTED = real_graphs.FOLDER, real_graphs.EXPECTED
FIGURES = ("step_us", "step_us_flat", "step_range_us", "scenarios", "compute_us", "launches", "exposed_us", "comm_us", "peak_bytes",
           "peak_hold_bytes", "before")


@pytest.fixture(scope="session")
def layers(tmp_path_factory):
    path = tmp_path_factory.mktemp("layers") / "layers.pt2"
    large_graph.write(3, path)
    return path


def side_files(path):
    stem = path.parent / path.name.split(".")[0]
    return ["--groups", f"{stem}.groups.json", "--durations", f"{stem}.durations.json"]


def simulate(path, *options):
    return json.loads(run(tool("shardc"), "simulate", path, *side_files(path), *options, "--format", "json").stdout)


def refused(path, *options):
    done = run(tool("shardc"), "simulate", path, *side_files(path), *options, check=False)
    assert done.returncode == 1 and not done.stdout
    return done.stderr


def same_figures(got, want):
    return all(got[key] == want[key] for key in FIGURES if key in want)


def by_start(plan):
    """The items, with each bucket called by its members."""
    items = json.loads(plan.read_text())
    members = {item["start"]: "+".join(item["members"]) for item in items if "start" in item}
    return [{key: members.get(value, value) if isinstance(value, str) else value for key, value in item.items()} for item in items]


def by_name(report):
    return sorted(report["buckets"], key=lambda bucket: bucket["members"][0]["name"]) + report["alone"]


@pytest.mark.parametrize("options", [[], ["--network", "1.5", "--flat"], ["--policy", "defensive"], ["--caps", "2", "--no-schedule"]],
                         ids=" ".join)
@pytest.mark.parametrize("name", ["layers", *EXPECTED])
def test_a_plan_comes_back_as_it_was_written(name, options, request, tmp_path):
    """The same figures to the last digit, and the same file, but for what buckets are called."""
    graph = REAL / name if name in EXPECTED else request.getfixturevalue(name)
    plan, again = tmp_path / "plan.json", tmp_path / "again.json"
    want = simulate(graph, "--optimize", *options, "--emit", plan)
    replayed = options if "--network" in options else []
    got = simulate(graph, "--plan", plan, *replayed, "--emit", again)
    assert got["mode"] == "plan" and same_figures(got, want)
    assert by_start(again) == by_start(plan)
    # What is in buckets, with the times of each; why is not known.
    times = ("exposed_before_us", "exposed_after_us", "duration_us", "slack_us")
    for mine, theirs in zip(by_name(got), by_name(want), strict=True):
        assert all(mine[key] == theirs[key] for key in times) and mine.get("members") == theirs.get("members")
        assert mine.get("closed", "given") == "given" and mine.get("reason", "the plan has it in no bucket").startswith("the plan has it")


def test_two_plans_are_compared(layers, tmp_path):
    plan, trace = tmp_path / "plan.json", tmp_path / "trace.json"
    defensive = simulate(layers, "--optimize", "--policy", "defensive", "--emit", plan)
    mine = simulate(layers, "--optimize")
    both = simulate(layers, "--optimize", "--plan", plan, "--trace", trace)
    assert both["mode"] == "optimize" and same_figures(both, mine)
    assert same_figures(both["plan"], {key: value for key, value in defensive.items() if key != "before"})
    processes = [e["args"]["name"] for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "process_name"]
    assert processes == ["before", "plan", "after"]
    text = run(tool("shardc"), "simulate", layers, *side_files(layers), "--optimize", "--plan", plan).stdout
    head, steps = text.splitlines()[2:4]
    assert head.split() == ["as", "is", "planned", "optimised"]
    assert steps.split()[1::2] == [f"{got['step_us'] / 1e3:.3f}" for got in (mine["before"], defensive, mine)]
    # What is optimised is emitted.
    simulate(layers, "--optimize", "--plan", plan, "--emit", plan)
    assert same_figures(simulate(layers, "--plan", plan), mine)


def test_programs_in_mlir_have_plans_too(tmp_path):
    program = tmp_path / "program.mlir"
    program.write_text("""#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<1048576xf32>, %y: tensor<1024xf32>) -> (tensor<1048576xf32>, tensor<1024xf32>) {
    %r = dist.all_reduce sum over #dp %x : tensor<1048576xf32>
    %g = aten.gelu %y : (tensor<1024xf32>) -> tensor<1024xf32>
    return %r, %g : tensor<1048576xf32>, tensor<1024xf32>
  }
}
""")
    ask = lambda *o: json.loads(run(tool("shardc"), "simulate", program, *o, "--format", "json").stdout)
    want = ask("--optimize", "--emit", tmp_path / "plan.json")
    assert same_figures(ask("--plan", tmp_path / "plan.json"), want)


def test_what_is_accepted_the_reference_accepts(layers, tmp_path):
    """Plans in another order: what our checker takes, the second implementation of the rules takes as well, and says the same."""
    plan, mutant = tmp_path / "plan.json", tmp_path / "mutant.json"
    simulate(layers, "--optimize", "--caps", "1", "--emit", plan)
    items = json.loads(plan.read_text())
    assert any("start" in item for item in items)
    groups, durations = (json.loads(open(f).read()) for f in side_files(layers)[1::2])
    program, seen = sim_v1.Program(layers), set()
    for seed in range(60):
        rng = random.Random(seed)
        mutated = list(items)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(mutated))
            if rng.random() < 0.2:
                mutated.insert(at, rng.choice(mutated))
            else:
                mutated.insert(max(0, at + rng.randint(-4, 4)), mutated.pop(at)) if rng.random() < 0.8 else mutated.pop(at)
        mutant.write_text(json.dumps(mutated))
        try:
            want = sim_v1.simulate(program, durations, groups, mutated)
        except (AssertionError, KeyError):
            want = None
        done = run(tool("shardc"), "simulate", layers, *side_files(layers), "--plan", mutant, "--format", "json", check=False)
        if done.returncode == 0:
            assert want and json.loads(done.stdout)["step_us"] == pytest.approx(want["step_us"], rel=1e-9), seed
        else:
            assert done.returncode == 1 and f"{mutant}:" in done.stderr, done.stderr
        seen.add(done.returncode)
    assert seen == {0, 1}


def rewritten(path, name, change):
    """The graph with another program, and the same side files."""
    out = path.parent / name
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(out, "w") as made:
        for member in archive.namelist():
            data = archive.read(member)
            if "models/" in member and member.endswith(".json"):
                program = json.loads(data)
                change(program["graph_module"]["graph"])
                data = json.dumps(program)
            made.writestr(member, data)
    return out


def test_graphs_that_cannot_be_planned_are_named(layers, tmp_path):
    def renamed(graph):
        for node in graph["nodes"][:9]:
            node["name"] = "twin"

    def enlarged(graph):
        for tensor in graph["tensor_values"].values():
            tensor["sizes"] = [{"as_int": 2**58}]

    def groupless(graph):
        for node in graph["nodes"]:
            node["inputs"] = [a for a in node["inputs"] if a["name"] != "group_name"]

    def resized(graph):
        for number, node in enumerate(graph["nodes"]):
            for argument in node["inputs"]:
                if argument["name"] == "group_size":
                    argument["arg"] = {"as_int": 2 + number % 2}

    def simulated(name, change, *options):
        done = run(tool("shardc"), "simulate", rewritten(layers, name, change), *options, check=False)
        return done.returncode, done.stderr

    code, error = simulated("twins.pt2", renamed, "--emit", tmp_path / "plan.json")
    assert code == 1 and "several nodes are called 'twin': a plan file" in error and not (tmp_path / "plan.json").exists()
    assert simulated("twins.pt2", renamed, "--optimize") == (0, "")
    assert "bytes together; the largest, of" in simulated("huge.pt2", enlarged)[1]
    assert "the collective does not say its group (group_name)" in simulated("groupless.pt2", groupless)[1]
    assert "ranks here, but 3 at an earlier node" in simulated("resized.pt2", resized)[1]
    long = tmp_path / "us.json"
    long.write_text(json.dumps({name: 1e308 for name in json.loads(open(side_files(layers)[3]).read())}))
    error = refused(layers, "--durations", long)
    assert "the step is longer than a number can say" in error and "1.000000e+308 us" in error


def test_mistakes_are_named_together(layers, tmp_path):
    plan = tmp_path / "plan.json"
    simulate(layers, "--optimize", "--emit", plan)
    (tmp_path / "us.json").write_text('{"no_node": 3}')
    (tmp_path / "g.json").write_text('{"elsewhere": 8}')
    lines = plan.read_text().splitlines()
    lines[3] = '{"op": "made up"},'
    plan.write_text("\n".join(lines))
    error = refused(layers, "--plan", plan, "--durations", tmp_path / "us.json", "--optimize", "--caps", "0")
    for mistake in (f"{plan}:4:1: the graph has no node 'made up'", "names no kernel of the graph", "--caps: "):
        assert mistake in error
    # Without a graph it is still said that it is no plan.
    plan.write_text("[")
    error = refused(layers, "--plan", plan, "--groups", tmp_path / "g.json")
    assert "unknown process groups" in error and f"{plan}: " in error
    for options, mistake in {("--as-is",): "--as-is and --plan exclude each other",
                             ("--optimize", "--chunk-collectives", "2"): "--plan and --chunk-collectives exclude each other",
                             ("--memory-limit", "3GiB"): "--memory-limit: only with --optimize"}.items():
        assert mistake in refused(layers, "--plan", plan, *options)
    # Thousands of mistakes are not all printed.
    plan.write_text("[]")
    error = refused(layers, "--plan", plan)
    assert f"{plan}: and " in error and error.count("\n") < 60
    assert "none.json" in refused(layers, "--plan", tmp_path / "none.json")
