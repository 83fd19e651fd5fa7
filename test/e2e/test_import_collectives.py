# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that come with collectives: each node is one op of its name, collectives are in flight until their wait."""
import collections
import json
import re
import sys

import pytest
import torch

from conftest import ROOT, run, tool

sys.path[:0] = [str(ROOT / "test/reference"), str(ROOT / "test/models")]

import program
import real_graphs

C10D = torch.ops._c10d_functional
GRAPHS = real_graphs.FOLDER


def export(tmp_path, forward, *arguments):
    class Module(torch.nn.Module):
        def forward(self, *inputs):
            return forward(*inputs)

    exported = torch.export.export(Module(), arguments)
    torch.export.save(exported, tmp_path / "graph.pt2")
    return tmp_path / "graph.pt2", exported


def groups(tmp_path, **ranks):
    path = tmp_path / "groups.json"
    path.write_text(json.dumps(ranks))
    return f"--groups={path}"


def imported(path, option):
    return run(tool("shard-opt"), path, option).stdout


def refused(path, *options):
    done = run(tool("shard-opt"), path, *options, check=False)
    assert done.returncode != 0 and not done.stdout
    return done.stderr


def lines(text):
    """Ops without value names."""
    return [re.sub(r"%[\w#:]+", "%", line.strip()) for line in text.splitlines()
            if re.match(r"\s*%.* = dist\.", line)]


def test_every_kind(tmp_path):
    def forward(x, w):
        starts = [
            C10D.all_gather_into_tensor(w, 4, "tp"),
            C10D.reduce_scatter_tensor(x, "avg", 2, "dp"),
            C10D.all_reduce(x, "max", "dp"),
            C10D.all_to_all_single(x, [2, 6], [3, 5], "ep"),
            C10D.all_to_all_single(x, [4, 4], [4, 4], "ep"),
            C10D.broadcast(x, 1, "tp"),
            *C10D.all_gather_into_tensor_coalesced([x, w], 4, "tp"),
            *C10D.reduce_scatter_tensor_coalesced([x, x], "sum", 2, "dp"),
            *C10D.all_reduce_coalesced([x, w], "product", "dp"),
        ]
        return [C10D.wait_tensor(s) for s in starts]

    path, _ = export(tmp_path, forward, torch.randn(8, 4), torch.randn(2, 3))
    text = imported(path, groups(tmp_path, tp=4, dp=[[0, 1], [2, 3]], ep=[0, 1]))
    ops = [op for op in lines(text) if "dist.wait" not in op]
    x, w, future = "tensor<8x4xf32>", "tensor<2x3xf32>", "!dist.future<tensor<{}xf32>>"
    tp, dp, ep = '#dist.named_group<"tp", 4>', "#group", "#group1"
    assert "#group = #dist.groups<[[0, 1], [2, 3]]>" in text and "#group1 = #dist.groups<[[0, 1]]>" in text
    assert ops == [
        f"% = dist.all_gather over {tp} % dim 0 : ({w}) -> {future.format('8x3')}",
        f"% = dist.reduce_scatter avg over {dp} % dim 0 : ({x}) -> {future.format('4x4')}",
        f"% = dist.all_reduce max over {dp} % : ({x}) -> {future.format('8x4')}",
        f"% = dist.all_to_all over {ep} % split 0 extents [3, 5] concat 0 extents [2, 6] : ({x}) -> {future.format('8x4')}",
        f"% = dist.all_to_all over {ep} % split 0 concat 0 : ({x}) -> {future.format('8x4')}",
        f"% = dist.broadcast over {tp} from 1 % : ({x}) -> {future.format('8x4')}",
        f"% = dist.all_gather over {tp} % dim 0, % dim 0 : ({x}, {w}) -> ({future.format('32x4')}, {future.format('8x3')})",
        f"% = dist.reduce_scatter sum over {dp} % dim 0, % dim 0 : ({x}, {x}) -> ({future.format('4x4')}, {future.format('4x4')})",
        f"% = dist.all_reduce prod over {dp} %, % : ({x}, {w}) -> ({future.format('8x4')}, {future.format('2x3')})",
    ]
    assert text.count("dist.wait") == 12
    run(tool("shard-opt"), path, groups(tmp_path, tp=4, dp=[[0, 1], [2, 3]], ep=[0, 1]), "--dist-verify-stage=scheduled")


def test_waits(tmp_path):
    def forward(x):
        in_flight, waited = C10D.all_reduce(x, "sum", "g"), C10D.all_reduce(x, "sum", "g")
        value = C10D.wait_tensor(C10D.wait_tensor(waited))  # of a wait: nothing left to wait for
        return in_flight, value, C10D.wait_tensor(x) + 1, waited

    path, _ = export(tmp_path, forward, torch.randn(4))
    text = imported(path, groups(tmp_path, g=[0, 1]))
    assert text.count("dist.wait") == 1
    kinds = re.search(r"return .* : (.*)", text)[1].split(", ")
    assert kinds == ["!dist.future<tensor<4xf32>>"] + ["tensor<4xf32>"] * 3


def test_starts_and_waits_are_optimised(tmp_path):
    """Partial input gradients of siblings, each reduced; a gather of what is reduced to what the rank has."""
    def forward(g, q, k):
        parts = [C10D.all_reduce(g @ w, "sum", "tp") for w in (q, k)]
        return C10D.wait_tensor(parts[0]) + C10D.wait_tensor(parts[1])

    path, _ = export(tmp_path, forward, torch.randn(6, 4), torch.randn(4, 8), torch.randn(4, 8))
    option = groups(tmp_path, tp=[0, 1])
    assert imported(path, option).count("dist.all_reduce") == 2
    simple = run(tool("shard-opt"), path, option, "--dist-simplify-collectives").stdout
    assert [op.split(" over")[0] for op in lines(simple)] == ["% = dist.all_reduce sum", "% = dist.wait % : !dist.future<tensor<6x8xf32>>"]
    run(tool("shard-opt"), path, option, "--shardc-optimize-collectives=memory-limit=1000000")


def test_views_of_what_is_in_flight_are_built_after_the_wait(tmp_path):
    path, _ = export(tmp_path, lambda x: C10D.wait_tensor(C10D.all_gather_into_tensor(x, 2, "g").view(2, -1)) * 2,
                     torch.randn(4, 3))
    text = imported(path, groups(tmp_path, g=[0, 1]))
    order = re.findall(r"= (dist\.\w+|aten\.\w+)", text)
    assert order[:3] == ["dist.all_gather", "dist.wait", "aten.view"]


def test_updates_in_place_and_out_buffers(tmp_path):
    def forward(x, y):
        out = torch.empty(8, 3)
        C10D.wait_tensor(C10D.all_gather_into_tensor_out(x, 2, "g", out=out))
        C10D.wait_tensor(C10D.all_reduce_(y, "sum", "g"))
        return out + 1, y * 2

    path, _ = export(tmp_path, forward, torch.randn(4, 3), torch.randn(5))
    text = imported(path, groups(tmp_path, g=[0, 1]))
    gathered, = re.findall(r"(%\w+) = dist.wait %\w+ : !dist.future<tensor<8x3xf32>>", text)
    reduced, = re.findall(r"(%\w+) = dist.wait %\w+ : !dist.future<tensor<5xf32>>", text)
    assert f"aten.add {gathered}," in text and f"aten.mul {reduced}," in text
    assert 'dist.kind = "input_mutation"' in text


def test_opaque_operators(tmp_path):
    def forward(x):
        y = C10D.wait_tensor(C10D.all_reduce(x, "sum", "g"))
        values = torch.pinverse(y, 0.5)
        z = torch.view_as_complex(y.view(-1, 2))
        return values, torch.view_as_real(z.prod(0))

    path, exported = export(tmp_path, forward, torch.randn(4, 6))
    text = imported(path, groups(tmp_path, g=[0, 1]))
    assert '= aten.opaque "aten.pinverse.default"(' in text and "rcond = 5.000000e-01" in text
    # Complex numbers are pairs.
    assert re.search(r'aten.opaque "aten.prod.\w+"\(%\w+\) .*: \(tensor<12x2xf32>\) -> tensor<2xf32>', text)


def test_groups_are_asked_for_by_name(tmp_path):
    path, _ = export(tmp_path, lambda x: (C10D.all_gather_into_tensor(x, 4, "a"), C10D.all_reduce(x, "sum", "b")),
                     torch.randn(4))
    assert 'are not in the file: "a" of 4 ranks, "b".' in refused(path)
    assert 'are not in the file: "b".' in refused(path, "--groups=consecutive")
    assert 'another size than the graph says: "a" of 4 ranks' in refused(path, groups(tmp_path, a=[0, 1], b=2))
    assert 'no valid list of ranks, or another size than the graph says: "b"' in refused(
        path, groups(tmp_path, a=4, b=[0, 0]))
    assert "cannot read the groups file" in refused(path, "--groups=/nowhere.json")
    (tmp_path / "groups.json").write_text("{")
    assert "is no JSON object" in refused(path, f"--groups={tmp_path}/groups.json")
    ok = imported(path, groups(tmp_path, a=4, b=[[0, 1], [2, 3]]))
    assert '#dist.named_group<"a", 4>' in ok


def test_reading_what_is_in_flight_is_an_error(tmp_path):
    path, _ = export(tmp_path, lambda x: C10D.all_reduce(x, "sum", "g") + 1, torch.randn(4))
    error = refused(path, groups(tmp_path, g=[0, 1]))
    assert "reads 'all_reduce' before its collective is waited for" in error and "test_import_collectives.py" in error


@pytest.mark.skipif(not real_graphs.EXPECTED, reason=real_graphs.ABSENT)
@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.pt2")), ids=lambda p: p.stem)
def test_real_graphs_map_one_to_one(path):
    option = f"--groups={GRAPHS}/{path.stem.split('.')[0]}.groups.json"
    text = run(tool("shard-opt"), path, option, "--test-print-program-json", "-o", "/dev/null").stdout
    ops = program.parse(text)["forward"].ops
    names = collections.Counter(m[1] for op in ops if (m := re.search(r'loc\((?:fused<.*>\[)?"([^"]*)"\W', op.loc)))
    sys.path.append(str(GRAPHS))
    import refsim
    graph = refsim.Graph(path)
    assert max(names.values()) == 1
    # Waits of inputs and of waits are nothing. Nor are views of pairs as complex numbers and back, which are pairs (docs/complex.md).
    idle = {n.name for n in graph.nodes if n.cls == "wait" and not any(v in graph.coll for v in n.ins)}
    idle |= {n.name for n in graph.nodes if n.name.startswith(("view_as_complex", "view_as_real"))}
    assert {n.name for n in graph.nodes} - set(names) == idle
    kinds = collections.Counter(op.name for op in ops)
    expected = real_graphs.EXPECTED[path.name]["counts"]
    short = {"AG": "all_gather", "RS": "reduce_scatter", "AR": "all_reduce", "A2A": "all_to_all"}
    assert {k: kinds["dist." + name] for k, name in short.items()} == {k: expected[k] for k in short}
    run(tool("shard-opt"), path, option, "--dist-verify-stage=scheduled", "-o", "/dev/null")
