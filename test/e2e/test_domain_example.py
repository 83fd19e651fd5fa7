# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of a field that is too large for one rank (scripts/domain.sh), on a small field: what it prints, writes and refuses, and its losses
beside PyTorch's."""
import json
import re
import struct
import sys
import zlib

import pytest
import torch
from safetensors.torch import load_file

from conftest import BUILD, ROOT, run_python
from python_scripts import run_script
from training import difference

sys.path.insert(0, str(ROOT / "scripts/domain"))
import fields  # noqa: E402
import picture  # noqa: E402
import unet  # noqa: E402

pytestmark = pytest.mark.xdist_group("domain example")  # which runs once
SCRIPT, SIZE, STEPS = ROOT / "scripts/domain/train_unet.py", 128, 10


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("domain")
    done = run_python(SCRIPT, "--build", BUILD, "--folder", folder, "--size", SIZE, "--steps", STEPS, "--limit", "8MiB", "--no-table")
    return folder, done.stdout


def test_report(ran):
    folder, said = ran
    refused, needed = (said.split(part, 1)[1] for part in ("refused:", "a rank needs "))
    assert re.match(r"\n  error: 'forward' needs \d+ bytes .*, the limit is 8388608 bytes", refused)
    assert re.search(r"^  error: 'train_step' needs \d+ bytes", refused, re.M) and "note: this is the least that was found" in refused
    assert float(needed.split()[0]) <= 8
    sent = {kind: int(count.replace(",", "")) for count, kind in re.findall(r"([\d,]+) bytes by (\w+)", said)}
    # Boundary rows are moved, and no field is gathered: the part of one rank has this many bytes in the 8 channels of the first block.
    assert sent.keys() == {"all_to_all", "all_reduce"} and 0 < sent["all_to_all"] < 4 * 8 * (SIZE // 2)**2
    errors = re.search(r"^mean squared error: (.*), and (.*) of the measurement$", said, re.M)
    assert float(errors[1]) < float(errors[2])
    assert str(folder / "domain.png") in said


def test_losses(ran):
    """Of the same steps in PyTorch, from the same weights: each loss, and the weights in the end."""
    log = [json.loads(line) for line in (ran[0] / "losses.log").read_text().splitlines()]
    module, batches = unet.build(SIZE)[0], fields.samples(16, SIZE, seed=0)
    optimizer = torch.optim.AdamW(module.parameters())
    losses = []
    for step, logged in enumerate(log):
        optimizer.param_groups[0]["lr"] = logged["learning_rate"]
        optimizer.zero_grad()
        loss, _ = module(**{name: value[step % 16] for name, value in batches.items()})
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert len(losses) == STEPS and losses[-1] < losses[0]
    assert [line["loss"] for line in log] == pytest.approx(losses, rel=1e-3)
    saved = load_file(ran[0] / "checkpoint.safetensors")
    for name, parameter in module.named_parameters():
        assert difference(saved[name], parameter) <= 1e-2, name


def pixels_of(path):
    """Of an indexed PNG whose rows have no filter."""
    data, chunks = path.read_bytes(), {}
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    data = data[8:]
    while data:
        length, kind = struct.unpack(">I4s", data[:8])
        chunks[kind] = data[8:8 + length]
        assert struct.unpack(">I", data[8 + length:12 + length])[0] == zlib.crc32(kind + chunks[kind])
        data = data[12 + length:]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 3, 0, 0, 0] and list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    rows = torch.frombuffer(bytearray(zlib.decompress(chunks[b"IDAT"])), dtype=torch.uint8).view(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


def test_picture(ran):
    """Four panels, in which the field is what was predicted, but for the lines between ranks."""
    pixels = pixels_of(ran[0] / "domain.png")
    assert pixels.shape == (SIZE, 4 * SIZE + 3 * picture.GAP)
    (predicted,) = (v[0, 0] for v in load_file(ran[0] / "predicted.safetensors").values() if v.dim() == 4)
    panel = pixels[:, 2 * (SIZE + picture.GAP):][:, :SIZE]
    white = panel == 2 * picture.LEVELS
    assert white[SIZE // 2].all() and white[:, SIZE // 2].all() and int(white.sum()) == 2 * SIZE - 1
    assert torch.equal(panel[~white], torch.from_numpy(picture.levels(predicted.numpy(), 0, 1))[~white])


def test_large_fields_are_drawn_smaller(tmp_path):
    field = torch.zeros(3 * picture.LARGEST - 1, 3 * picture.LARGEST - 1).numpy()
    picture.draw(tmp_path / "p.png", [field], field, (1, 1), 1.0)
    assert pixels_of(tmp_path / "p.png").shape == (picture.LARGEST, 2 * picture.LARGEST + picture.GAP)


def test_the_field_fits(tmp_path):
    """Where the program of one rank is not refused, there is nothing to show."""
    done = run_script(SCRIPT, "--build", BUILD, "--folder", tmp_path, "--size", 16, "--limit", "1GiB", "--no-table", timeout=900)
    assert done.returncode == 1 and "choose a smaller --limit" in done.stderr, done.stderr
    assert not (tmp_path / "step.so").exists()


def test_what_flows_stays():
    """The scheme neither makes nor loses what it moves, but for a rounding error and what central differences do to a flow that is not uniform."""
    x, later = fields.sample(SIZE, torch.Generator().manual_seed(3))
    c = torch.zeros(1, 1, SIZE, SIZE)
    c[..., 24:40, 24:40] = 1
    moved = fields.solve(c, x[1:2][None], x[2:3][None])
    assert abs(float(moved.sum() / c.sum()) - 1) < 2e-2 and float((moved - c).abs().max()) > 0.1
    assert later.shape == (1, SIZE, SIZE) and -0.1 < float(later.min()) and float(later.max()) < 1.1
