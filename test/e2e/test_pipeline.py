# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One pipeline: what `shardc compile` writes at each stage is what `shard-opt` makes, with the same options."""
import re

import pytest

from conftest import run, tool
from plans import DATA_PARALLEL, places, sequence_parallel, tensor_parallel
from test_bad_input import refused

STEPS = [("2-placed", "place"), ("3-local", "localize"), ("4-scheduled", "optimize-collectives"),
         ("5-specialized", "specialize"), ("6-planned", "plan-memory"), ("7-lowered", "lower-planned")]


def as_pipeline_options(flags):
    """`--mesh tp=2 --place a --place b` as `mesh=tp=2 place={{a},{b}}`."""
    lists, options = {}, []
    for name, value in zip(flags[::2], flags[1::2]):
        if name in ("--place", "--size"):
            lists.setdefault(name, []).append("{" + value + "}")
        else:
            options.append(f"{name[2:]}={value}")
    return options + [f"{name[2:]}={{{','.join(values)}}}" for name, values in lists.items()]


def accepted(step, options):
    """Those that the pipeline of a step takes."""
    known = set(options_of(f"shardc-{step}"))
    return " ".join(o for o in options if o.split("=")[0] in known)


def options_of(pipeline):
    """Names of a pipeline's options, as help lists them: below it, deeper."""
    lines = run(tool("shard-opt"), "--help").stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(rf" +--{pipeline}( |$)", line))
    indent = len(lines[start]) - len(lines[start].lstrip())
    names = []
    for line in lines[start + 1:]:
        option = re.match(r"( +)--([\w-]+)", line)
        if option and len(option[1]) <= indent:
            break
        if option:
            names.append(option[2])
    return names


@pytest.mark.parametrize("name, flags", [
    ("gpt2", ["--mesh", "dp=2,tp=2", *tensor_parallel("gpt2"), *DATA_PARALLEL,
              *places("param:*wte.weight=dp:S(0)", "param:*ln_*=dp:S(0)")]),
    ("llama_odd", ["--mesh", "tp=3", *tensor_parallel("llama"), "--bucket-form", "packed", "--topology", "h100-8"]),
    ("mlp_dynamic", ["--mesh", "tp=4", *tensor_parallel("mlp"), "--memory-limit", "1MiB"]),
    ("gpt2_dynamic", ["--mesh", "tp=2", *tensor_parallel("gpt2"), *sequence_parallel("gpt2"), "--bucket-caps", "0.05"]),
], ids=lambda v: v if isinstance(v, str) else "")
def test_stages_are_those_of_shard_opt(model, tmp_path, name, flags):
    source = model(name).path
    run(tool("shardc"), "compile", source, *flags, "--save-stages", tmp_path, "-o", tmp_path / "m.so")
    options = as_pipeline_options(flags)
    before = source
    printed = lambda *options: run(tool("shard-opt"), *options, "--mlir-print-debuginfo").stdout.rstrip()
    assert printed(source) == (tmp_path / "1-imported.mlir").read_text().rstrip()
    for stage, step in STEPS:
        saved = (tmp_path / f"{stage}.mlir").read_text().rstrip()
        made = printed(before, f"--shardc-{step}={accepted(step, options)}")
        assert made == saved, f"{stage} differs"
        before = tmp_path / f"{stage}.mlir"
    whole = printed(source, f"--shardc-compile={' '.join(options)}")
    assert whole == saved


COLLECTIVES = """
#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<2x6xf32> {dist.global_type = tensor<2x6xf32>, dist.layout = #R, dist.name = "x"},
                     %a: tensor<?x6xf32> {dist.global_type = tensor<5x6xf32>, dist.layout = #S0, dist.kind = "parameter", dist.name = "a"})
      -> (tensor<2x5xf32> {dist.global_type = tensor<2x5xf32>, dist.layout = #R, dist.name = "y"}) {
    %w = dist.all_gather over #dp %a dim 0 : (tensor<?x6xf32>) -> tensor<5x6xf32>
    %r = aten.relu %x : (tensor<2x6xf32>) -> tensor<2x6xf32>
    %y = aten.linear %r, %w : (tensor<2x6xf32>, tensor<5x6xf32>) -> tensor<2x5xf32>
    return %y : tensor<2x5xf32>
  }
}
"""


def test_a_program_with_collectives_goes_the_same_way(tmp_path):
    """Written for one rank, and compiled as it is."""
    source = tmp_path / "p.mlir"
    source.write_text(COLLECTIVES)
    run(tool("shardc"), "compile", source, "--save-stages", tmp_path, "-o", tmp_path / "m.so")
    assert sorted(p.name for p in tmp_path.glob("[0-9]-*.mlir")) == ["3-local.mlir", "5-specialized.mlir", "6-planned.mlir",
                                                                      "7-lowered.mlir"]
    for stage in ("specialized", "planned", "lowered"):
        (file,) = tmp_path.glob(f"?-{stage}.mlir")
        made = run(tool("shard-opt"), source, f"--shardc-compile=from=local to={stage} keep-collectives", "--mlir-print-debuginfo")
        assert made.stdout.rstrip() == file.read_text().rstrip()
    # Scheduled by shard-opt, it is taken as it is too.
    run(tool("shard-opt"), source, "--shardc-optimize-collectives", "-o", tmp_path / "s.mlir")
    run(tool("shardc"), "compile", tmp_path / "s.mlir", "--save-stages", tmp_path / "again", "-o", tmp_path / "s.so")
    assert "!dist.future" in (tmp_path / "again/5-specialized.mlir").read_text()


@pytest.mark.parametrize("stage", ["2-placed", "3-local", "4-scheduled", "5-specialized", "6-planned", "7-lowered"])
def test_compilation_goes_on_from_any_stage(model, tmp_path, stage):
    """Placed or later, and the artifact is the same."""
    source, flags = model("mlp_odd").path, ["--mesh", "tp=4", *tensor_parallel("mlp")]
    run(tool("shardc"), "compile", source, *flags, "--save-stages", tmp_path, "-o", tmp_path / "mlp_odd.so")
    again = tmp_path / "again" / "mlp_odd.so"
    again.parent.mkdir()
    # The name in the manifest is that of the file.
    (again.parent / "mlp_odd.mlir").write_bytes((tmp_path / f"{stage}.mlir").read_bytes())
    keep = [] if stage != "3-local" else ["--save-stages", tmp_path / "local"]
    run(tool("shardc"), "compile", again.parent / "mlp_odd.mlir", *keep, "-o", again)
    if stage != "3-local":  # its collectives are kept as they are
        assert again.read_bytes() == (tmp_path / "mlp_odd.so").read_bytes()
    message = refused(tool("shardc"), "compile", tmp_path / f"{stage}.mlir", *flags, "-o", again,
                      says="already: --mesh, --plan and --place have nothing to place")
    assert ("placed already" in message) == (stage == "2-placed")


@pytest.mark.parametrize("command", ["compile", "explain"])
def test_an_option_has_one_name(command):
    """Flags of shardc are the options of pipelines, and mean the same: one declaration has both."""
    flags = run(tool("shardc"), command, "--help").stdout.split(f"Options of shardc {command}:")[1].split("EXAMPLES")[0]
    names = set(re.findall(r"^  -{1,2}([\w-]+)", flags, re.M))
    own = {"o", "save-stages", "input", "ops", "fixed-buffer"} | ({"format", "entry"} if command == "explain" else set())
    assert names - own == set(options_of("shardc-compile")) - {"from", "to"}
    assert own <= names and len(names) > 15


def test_simulate_has_the_same_options():
    flags = run(tool("shardc"), "simulate", "--help").stdout
    for name in ("topology", "memory-limit", "bucket-caps", "bucket", "reorder", "mixed-dtype", "policy", "robust"):
        assert re.search(rf"^  --{name}\b", flags, re.M) and name in options_of("shardc-optimize-collectives")


def test_all_mistakes_of_options_at_once(model, tmp_path):
    refused(tool("shardc"), "compile", model("mlp").path, "--mesh", "tp=0", "--topology", "nowhere", "--bucket-caps", "big",
            "--memory-limit", "much", "--robust", "2", "--target", "abacus", "--save-stages", "/dev/null/stages", "-o", "/no/such/folder/m.so",
            says=["--topology: no target named 'nowhere'", "--bucket-caps: bucket cap 'big'", "--memory-limit is a number of bytes",
                  "--robust: 2 is not from 0", "--target: unknown target 'abacus'", "cannot write '/no/such/folder/m.so'", "/dev/null/stages",
                  "size of at least 1"])


def test_a_program_is_simulated_by_what_it_is_compiled_by(tmp_path):
    import json
    (tmp_path / "p.mlir").write_text(COLLECTIVES.replace("?x6", "5x6").replace("-> tensor<5x6xf32>", "-> tensor<10x6xf32>")
                                     .replace("5x6xf32>) -> tensor<2x5", "10x6xf32>) -> tensor<2x10").replace("2x5", "2x10")
                                     .replace("dist.global_type = tensor<5x6xf32>", "dist.global_type = tensor<10x6xf32>"))
    by = lambda *o: json.loads(run(tool("shardc"), "simulate", tmp_path / "p.mlir", *o, "--format", "json").stdout)
    assert by()["topology"] == "cpu-local" == by("--topology", "cpu-local")["topology"]
    assert by()["step_us"] == by("--topology", "cpu-local")["step_us"] != by("--topology", "h100-64")["step_us"]


@pytest.mark.parametrize("command", ["compile", "explain", "export", "simulate"])
def test_help_ends_with_examples_of_the_command(command):
    _, *parts = run(tool("shardc"), command, "--help").stdout.split("EXAMPLES:\n")
    assert len(parts) == 1
    lines = parts[0].strip().splitlines()
    assert lines and all(line.strip().startswith(f"shardc {command} ") for line in lines)
