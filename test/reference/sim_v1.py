# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulation model sim-v1 of docs/collective-optimiser.md, written from that text: a program in its own order, or
in the order and with the buckets of a plan. A plan that breaks a rule is an AssertionError that names it."""
import collections
import json
import random
import zipfile

ITEM = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2,
        29: 1, 30: 1, 31: 1, 32: 1, 33: 1, 34: 4, 35: 8}
KINDS = {"all_gather_into_tensor": "AG", "reduce_scatter_tensor": "RS", "all_reduce": "AR", "all_to_all_single": "A2A"}
VIEWS = set("""view reshape _unsafe_view permute transpose t slice select split split_with_sizes unsqueeze squeeze expand
as_strided alias detach chunk narrow unbind unflatten view_as_complex view_as_real _conj diagonal lift_fresh view_of
_reshape_alias unsafe_split getitem""".split())
EMPTY = {"empty", "new_empty", "empty_strided", "new_empty_strided", "empty_like"}
MEMORY = 3.35e6  # bytes per microsecond


def names(argument):
    """Tensors that a serialized argument names."""
    if isinstance(argument, list):
        return [n for a in argument for n in names(a)]
    found = []
    for key, value in argument.items() if isinstance(argument, dict) else ():
        if key == "as_tensor":
            found.append(value["name"])
        elif key == "as_tensors":
            found += [t["name"] for t in value]
        elif key in ("as_optional_tensor", "as_optional_tensors"):
            found += names(value)
    return found


def classify(target):
    if "wait_tensor" in target:
        return "wait"
    if "_pre_bucket" not in target:
        for part, kind in KINDS.items():
            if part in target:
                return kind
    parts = target.split(".")
    op = parts[-2] if len(parts) > 1 else parts[-1]
    if parts[0] == "_operator":
        op = parts[-1]
        return "view" if op == "getitem" else "scalar"
    if target.startswith(("torch.sym_", "math.")) or op.startswith("sym_") or op == "_assert_scalar":
        return "scalar"
    if op in VIEWS:
        return "view"
    if op in EMPTY:
        return "empty"
    return "in place" if op.endswith("_") and not op.endswith("__") else "kernel"


class Node:
    def __init__(self, entry):
        self.name, self.target = entry["name"], entry["target"]
        self.kind = classify(self.target)
        arguments = {a["name"]: a["arg"] for a in entry["inputs"]}
        self.ins, self.outs = names(list(arguments.values())), names(entry["outputs"])
        self.buffers = names(arguments.get("out", {}))
        self.sent = names(next((arguments[k] for k in ("input", "inputs", "self") if k in arguments), {}))
        self.group = arguments.get("group_name", {}).get("as_string")
        self.reduction = arguments.get("reduce_op", {}).get("as_string")
        self.group_size = arguments.get("group_size", {}).get("as_int")


class Program:
    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            graph = json.loads(archive.read(next(n for n in archive.namelist() if "models/" in n and n.endswith(".json"))))
        graph = graph["graph_module"]["graph"]
        self.bytes = {}
        for name, meta in graph["tensor_values"].items():
            self.bytes[name] = ITEM[meta["dtype"]]
            for size in meta["sizes"]:
                self.bytes[name] *= size["as_int"] if "as_int" in size else (size["as_expr"].get("hint") or {"as_int": 512})["as_int"]
        self.inputs, self.outputs = names(graph["inputs"]), names(graph["outputs"])
        self.nodes = [Node(n) for n in graph["nodes"]]
        self.root, self.pending, self.maker = {v: v for v in self.inputs}, {}, {}
        for n in self.nodes:
            for i, out in enumerate(n.outs):
                self.maker[out] = n
                source = {"view": n.ins[:1], "wait": n.ins[i:i + 1], "in place": n.ins[i:i + 1]}.get(n.kind, n.buffers[i:i + 1])
                self.root[out] = self.root[source[0]] if source else out
                if n.kind in KINDS.values():
                    self.pending[out] = n
                elif n.kind == "view" and source and source[0] in self.pending:
                    self.pending[out] = self.pending[source[0]]

    def size(self, values):
        return sum(self.bytes[v] for v in values)

    def volume(self, node):
        """The full bytes S."""
        return self.size(node.outs if node.kind == "AG" else node.sent)


def line(x, xs, ys):
    for (x0, y0), (x1, y1) in zip(zip(xs, ys), zip(xs[1:], ys[1:])):
        if x <= x1:
            return y0 + (y1 - y0) * (max(x, x0) - x0) / (x1 - x0)
    return ys[-1]


def collective_us(kind, ranks, volume):
    if ranks <= 8:
        latency = line(ranks, (2, 4, 8), (10, 15, 31) if kind == "AR" else (8, 17, 30))
        bandwidth = line(ranks, (2, 4, 8), (537, 434, 394))
    else:
        nodes = -(-ranks // 8)
        latency, bandwidth = line(nodes, (2, 8, 32), (70, 297, 1204)), line(nodes, (2, 8, 32), (410, 390, 386))
    return latency + volume * (ranks - 1) / ranks * (2 if kind == "AR" else 1) / (bandwidth * 1e3)


class Run:
    """One rank's streams and storages."""

    def __init__(self, program, durations, groups, flat, network=1.0):
        self.network = network
        self.p, self.durations, self.flat = program, durations, flat
        self.groups = {name: len(g[0] if isinstance(g[0], list) else g) if isinstance(g, list) else g for name, g in groups.items()}
        self.now, self.free, self.end = 0.0, collections.defaultdict(float), {}
        self.compute, self.launches = 0.0, 0
        self.comm, self.exposed, self.counts = ({k: 0 for k in KINDS.values()} for _ in range(3))
        # What happens to storages: [new], [used], and which collective keeps or gives up its operands.
        self.events, self.held, self.given_up = [], {}, {}
        self.moved, self.extra = {}, {}
        self.done, self.waited = set(), set()

    def root(self, value):
        return self.moved.get(self.p.root[value], self.p.root[value])

    def kernel(self, us):
        self.now += 1 + us
        self.launches += 1
        self.compute += us

    def start(self, key, kind, group, volume):
        self.now += 1
        self.launches += 1
        us = self.network * collective_us(kind, self.groups[group], volume)
        self.free[group] = self.end[key] = max(self.now, self.free[group]) + us
        self.comm[kind] += us
        self.counts[kind] += 1

    def wait(self, key, kind):
        assert key not in self.waited, f"{key} is waited for twice"
        self.waited.add(key)
        self.exposed[kind] += max(self.end[key] - self.now, 0)
        self.now = max(self.end[key], self.now)
        self.given_up[key] = len(self.events)

    def touch(self, new, used):
        self.events.append((new, used))

    def node(self, n):
        p = self.p
        assert n.name not in self.done, f"{n.name} runs twice"
        self.done.add(n.name)
        roots = [self.root(v) for v in n.ins + n.outs]
        if n.kind == "wait":
            for start in dict.fromkeys(p.pending[v] for v in n.ins if v in p.pending):
                if start.name not in self.waited and start.name in self.end:  # else it is there already
                    self.wait(start.name, start.kind)
        elif n.kind in KINDS.values():
            self.held[n.name] = [self.root(v) for v in n.ins]
            self.start(n.name, n.kind, n.group, p.volume(n))
        elif n.kind in ("kernel", "in place"):
            us = self.durations.get(n.name)
            if us is None:
                written = 0 if n.kind == "in place" else p.size(n.outs)
                if "_pre_bucket_all_gather" in n.target:
                    written /= n.group_size
                us = (p.size(set(n.ins)) + written) / MEMORY
            self.kernel(us)
        self.touch([self.root(v) for v in n.outs], roots)

    def bucket(self, key, members):
        p, kind = self.p, members[0].kind
        assert len(members) > 1 and kind in ("AG", "RS", "AR"), f"{key}: no bucket"
        assert len({(n.kind, n.group, n.reduction) for n in members}) == 1, f"{key}: members differ"
        operands, results = ([v for n in members for v in vs(n)] for vs in (lambda n: n.ins, lambda n: n.outs))
        roots = [self.root(v) for v in operands]
        if not self.flat:
            self.extra[f"%in {key}"], self.extra[f"%out {key}"] = p.size(operands), p.size(results)
            self.kernel(2 * p.size(operands) / MEMORY)
            self.touch([f"%in {key}"], roots)
            roots = [f"%in {key}"]
            if kind == "RS":
                self.moved |= {p.root[v]: f"%out {key}" for v in results}
        self.held[key] = roots
        self.start(key, kind, members[0].group, sum(p.volume(n) for n in members))
        new = [self.root(v) for v in results] if self.flat or kind == "RS" else [f"%out {key}"]
        self.touch(new, roots + new)
        self.done |= {n.name for n in members}

    def unpack(self, key, members):
        results = [v for n in members for v in n.outs]
        if not self.flat and members[0].kind != "RS":
            self.kernel(2 * self.p.size(results) / MEMORY)
            roots = [self.root(v) for v in results]
            self.touch(roots, roots + [f"%out {key}"])

    def peak(self, hold):
        last = {}
        for at, (new, used) in enumerate(self.events):
            last |= dict.fromkeys(new + used, at)
        for key, roots in self.held.items() if hold else ():
            for r in roots:
                last[r] = max(last.get(r, 0), self.given_up.get(key, 0))
        sizes, live = self.p.bytes | self.extra, set(self.p.inputs)
        for value in self.p.inputs + self.p.outputs:
            last.pop(self.root(value), None)
        dying = collections.defaultdict(list)
        for r, at in last.items():
            dying[at].append(r)
        current = peak = sum(sizes[v] for v in live)
        for at, (new, _) in enumerate(self.events):
            for r in new:
                if r not in live:
                    live.add(r)
                    current += sizes[r]
            peak = max(peak, current)
            for r in dying[at]:
                if r in live:
                    current -= sizes[r]
        return peak


def ordered(program, plan):
    """What a plan says, with views and allocations where they are first needed: checks on the way that every value is
    made, and complete, before it is used."""
    by_name = {n.name: n for n in program.nodes}
    made, complete, buckets, member = set(program.inputs), set(program.inputs), {}, {}
    free = ("view", "empty", "scalar")

    def ready(n):
        return [program.maker[v] for v in n.ins if v not in made]

    def emit(n):
        stack = [n]
        while stack:
            missing = ready(stack[-1])
            for m in missing:
                idle = m.kind == "wait" and not any(v in program.pending and v not in complete for v in m.ins if v in made)
                assert m.kind in free or idle, f"{stack[-1].name} runs before {m.name}"
            if missing:
                stack += missing
                continue
            at = stack.pop()
            if all(v in made for v in at.outs) and at.outs:
                continue
            if at.kind not in (*free, "wait"):
                for v in at.ins:
                    assert v not in program.pending or v in complete, f"{at.name} reads {v} in flight"
            made.update(at.outs)
            complete.update(v for v in at.outs if v not in program.pending
                            or (at.kind in free and all(i in complete for i in at.ins)))
            yield "node", at

    def finish(collectives):
        complete.update(v for v, n in program.pending.items() if n in collectives)

    for item in plan:
        (verb, key), = [(k, item[k]) for k in ("op", "pack", "start", "wait", "unpack") if k in item]
        if verb == "op":
            n = by_name[key]
            assert n.kind not in KINDS.values() or n.name not in member, f"{key} is in a bucket and alone"
            if all(v in made for v in n.outs) and n.outs and n.kind in (*free, "wait"):
                continue
            yield from emit(n)
            if n.kind == "wait":
                finish({program.pending[v] for v in n.ins if v in program.pending})
        elif verb == "start":
            members = [by_name[m] for m in item["members"]]
            buckets[key] = members
            for n in members:
                for m in ready(n):
                    yield from emit(m)
                for v in n.ins:
                    assert v not in program.pending or v in complete, f"{n.name} reads {v} in flight"
                assert n.name not in member and not n.buffers, f"{n.name} cannot be in {key}"
                member[n.name] = key
                made.update(n.outs)
            yield "start", (key, members)
        elif verb == "wait":
            yield "wait", (key, buckets[key])
            finish(set(buckets[key]))
        elif verb == "unpack":
            yield "unpack", (key, buckets[key])
    for value in program.outputs:
        if value not in made:
            yield from emit(program.maker[value])


def jittered(durations, spread, seed):
    """Each duration times a factor from [1 - spread, 1 + spread], the same for a name and a seed in every plan."""
    return {name: us * random.Random(f"{seed}/{name}").uniform(1 - spread, 1 + spread) for name, us in durations.items()}


def simulate(program, durations, groups, plan=None, flat=False, network=1.0):
    """`network`: how many times as long collectives take."""
    r = Run(program, durations, groups, flat, network)
    if plan is None:
        plan = [{"op": n.name} for n in program.nodes]
    position = {}
    for what, it in ordered(program, plan):
        if what == "node":
            position[it.name] = len(position)
            r.node(it)
        elif what == "start":
            position |= {n.name: len(position) for n in it[1]}
            r.bucket(*it)
        elif what == "wait":
            r.wait(it[0], it[1][0].kind)
            r.touch([], [r.root(v) for n in it[1] for v in n.outs] if flat or it[1][0].kind == "RS" else [f"%out {it[0]}"])
        else:
            r.unpack(*it)
    check_order(program, r, position)
    return dict(step_us=max([r.now, *r.free.values()]), compute_us=r.compute, launches=r.launches,
                exposed_us=r.exposed | {"total": sum(r.exposed.values())}, comm_us=r.comm | {"total": sum(r.comm.values())},
                counts=r.counts, peak_bytes=r.peak(False), peak_hold_bytes=r.peak(True))


def check_order(program, r, position):
    """Everything runs, and what is overwritten keeps its order against all that touches it."""
    touching = collections.defaultdict(list)
    for i, n in enumerate(program.nodes):
        assert n.name in r.done or n.kind in ("view", "empty", "scalar", "wait"), f"{n.name} does not run"
        for root in {program.root[v] for v in n.ins + n.outs}:
            touching[root].append((i, n))
    for i, n in enumerate(program.nodes):
        if n.kind == "in place":
            for j, m in touching[program.root[n.outs[0]]]:
                if m is not n and m.name in position and m.kind not in ("view", "wait"):
                    assert (j < i) == (position[m.name] < position[n.name]), f"{m.name} and {n.name} changed places"
