# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times on a GPU, and what is said about them: every figure has a limit, and is a hit or a miss."""
import dataclasses
import json
import statistics
import time

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
        # What is no number holds no limit.
        holds = self.value >= self.limit if self.sense == AT_LEAST else self.value <= self.limit
        return "hit" if holds else "miss"

    @property
    def failed(self):
        return self.verdict in ("miss", "missing")


class Report:
    """The figures of one group. With a path, the file there always has all figures so far."""

    def __init__(self, group, path=None):
        self.group, self.figures, self.path = group, [], path

    def append(self, figure):
        self.figures.append(figure)
        if self.path:
            self.write(self.path)

    def add(self, name, value, limit=None, sense=AT_LEAST, unit="", note=""):
        self.append(Figure(name, None if value is None else float(value), limit, sense, unit, note))

    def check(self, name, problem):
        """A figure that is 1 where nothing is wrong, else 0 with what is."""
        self.append(Figure(name, 0.0 if problem else 1.0, 1.0, AT_LEAST, "", str(problem or "")))

    def skip(self, name, note):
        """What this machine cannot measure; no miss."""
        self.append(Figure(name, None, note=note, required=False))

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


def interleaved(clocks, seconds=1.0, least=5, most=200, warm=3):
    """Seconds of each: the medians of measurements that take turns, so that what changes on the machine changes all. Each of
    `clocks` does the work once and returns its seconds."""
    for clock in clocks:
        for _ in range(warm - 1):
            clock()
    begin = time.perf_counter()
    for clock in clocks:
        clock()
    once = time.perf_counter() - begin
    rounds = int(min(max(seconds / max(once, 1e-7), least), most))
    times = [[] for _ in clocks]
    for _ in range(rounds):
        for own, clock in zip(times, clocks):
            own.append(clock())
    return [statistics.median(own) for own in times]


class Gpu:
    """Clocks on PyTorch's current device. What is timed on the device begins with caches that hold other data, and while the
    device is still busy, so that it does not wait for the host between kernels."""
    FLUSHED = 256 << 20  # bytes; the second-level cache of an H100 or H200 has 50 to 60 MB
    BUSY = 1_000_000  # cycles, about 0.6 ms

    def __init__(self, torch, place, flushed=FLUSHED):
        self.torch, self.place = torch, place
        self.flushed = torch.empty(flushed, dtype=torch.uint8, device=place)

    def prepare(self):
        self.flushed.zero_()
        self.torch.cuda._sleep(self.BUSY)

    def warm_up(self, seconds=0.7):
        """Until clocks are those of a device that works."""
        a = self.torch.ones(2048, 2048, device=self.place)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for _ in range(10):
                a @ a
            self.torch.cuda.synchronize()

    def of_function(self, function):
        """The device's time for what PyTorch puts on its stream, between two events."""
        def clock():
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.prepare()
            begin.record()
            function()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3
        return clock

    def of_call(self, call):
        """The device's time for a program that was opened to record events: from the first op's begin to the last one's end."""
        def clock():
            self.prepare()
            call.clear_events()
            call()
            return call.device_seconds()
        return clock

    def of_step(self, function):
        """The time until the host has the result: `function`, and the end of everything that it started."""
        def clock():
            self.torch.cuda.synchronize()
            begin = time.perf_counter()
            function()
            self.torch.cuda.synchronize()
            return time.perf_counter() - begin
        return clock


def scaled_error(got, want):
    """The largest difference, as a part of the largest magnitude that is right; infinite where one is no number."""
    got, want = got.double(), want.double()
    if not want.numel():
        return 0.0
    error = float((got - want).abs().max() / want.abs().max().clamp(min=1e-30))
    return error if error == error else float("inf")
