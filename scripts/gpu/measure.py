# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times on a GPU, and what is said about them: every figure has a limit, and is a hit or a miss."""
import dataclasses
import json
import statistics

AT_LEAST, AT_MOST = ">=", "<="


@dataclasses.dataclass
class Figure:
    """`value` is measured, or None with a `note` that says why it is not."""
    name: str
    value: float | None
    limit: float | None = None
    sense: str = AT_LEAST
    unit: str = ""
    note: str = ""
    required: bool = True

    @property
    def verdict(self):
        if self.value is None:
            return "missing" if self.required else "not measured"
        if self.limit is None:
            return "measured"
        holds = self.value >= self.limit if self.sense == AT_LEAST else self.value <= self.limit
        return "hit" if holds else "miss"

    @property
    def failed(self):
        return self.verdict in ("miss", "missing")


class Report:
    """The figures of one group."""

    def __init__(self, group):
        self.group, self.figures = group, []

    def add(self, name, value, limit=None, sense=AT_LEAST, unit="", note=""):
        self.figures.append(Figure(name, None if value is None else float(value), limit, sense, unit, note))

    def check(self, name, problem):
        """A figure that is 1 where nothing is wrong, else 0 with what is."""
        self.figures.append(Figure(name, 0.0 if problem else 1.0, 1.0, AT_LEAST, "", str(problem or "")))

    def skip(self, name, note):
        """What this machine cannot measure; no miss."""
        self.figures.append(Figure(name, None, note=note, required=False))

    @property
    def failed(self):
        return [f for f in self.figures if f.failed]

    def as_json(self):
        return {"group": self.group, "figures": [dataclasses.asdict(f) | {"verdict": f.verdict} for f in self.figures]}

    @staticmethod
    def from_json(data):
        report = Report(data["group"])
        for figure in data["figures"]:
            report.figures.append(Figure(**{k: v for k, v in figure.items() if k != "verdict"}))
        return report

    def write(self, path):
        """All of it or nothing, whenever the process ends."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.as_json(), indent=1))
        temporary.replace(path)


def number(value):
    return "" if value is None else f"{value:.4g}"


def table(reports):
    """Markdown: a row for each figure."""
    lines = ["| group | figure | value | limit | |", "|---|---|---|---|---|"]
    for report in reports:
        for f in report.figures:
            limit = "" if f.limit is None else f"{f.sense} {number(f.limit)}"
            note = f": {f.note.splitlines()[0][:160]}" if f.note else ""
            lines.append(f"| {report.group} | {f.name} | {number(f.value)} {f.unit} | {limit} | {f.verdict}{note} |")
    return "\n".join(lines) + "\n"


def interleaved(functions, synchronise, clock, seconds=1.0, least=5, most=200, warm=3):
    """Seconds of a call of each function: the median of runs that take turns, so that what changes on the machine changes
    all. `clock` times one call."""
    for function in functions:
        for _ in range(warm):
            function()
    synchronise()
    once = sum(clock(f) for f in functions)
    rounds = int(min(max(seconds / max(once, 1e-7), least), most))
    times = [[] for _ in functions]
    for _ in range(rounds):
        for own, function in zip(times, functions):
            own.append(clock(function))
    return [statistics.median(own) for own in times]


def gpu_clock(torch):
    """Times one call on the current stream by events, in seconds."""
    def clock(function):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3
    return clock


def on_gpu(torch, *functions, seconds=1.0):
    return interleaved(functions, torch.cuda.synchronize, gpu_clock(torch), seconds)


def scaled_error(got, want):
    """The largest difference, as a part of the largest magnitude that is right; infinite where one is no number."""
    got, want = got.double(), want.double()
    if not want.numel():
        return 0.0
    error = float((got - want).abs().max() / want.abs().max().clamp(min=1e-30))
    return error if error == error else float("inf")
