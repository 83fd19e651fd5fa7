# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints in a file of each rank, and state dicts of PyTorch: what is read back, on which mesh, and what is refused."""
import os
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import BUILD, ROOT, run, tool
from test_training import BOTH, DP, PLANS, TOWERS_TP, Normed, small_files, train, trainee  # noqa: F401
from training import Trainee, difference


def load_sharded(folder):
    """As docs/training.md says that PyTorch does it."""
    code = re.search(r"```python\n(import json.*?)```", (ROOT / "docs/training.md").read_text(), re.S)[1]
    assert len(code.splitlines()) <= 15
    space = {}
    exec(code, space)
    return space["load"](folder)


@pytest.fixture(scope="module")
def towers(trainee):  # noqa: F811
    """A training that has saved both kinds of checkpoints behind its third step, and its losses."""
    one, program = trainee("towers"), trainee.folder / "towers.so"
    one.compile(program, *BOTH, *TOWERS_TP, *train("loss=0", "optimizer=adamw", "zero=1"))
    folder = trainee.folder / "sharded"
    first, whole = one.train(program, steps=3)
    save(one, program, folder, "--weights", one.source, steps=3)
    log, _ = one.train(program, steps=6)
    return one, program, folder, whole, log


def save(one, program, folder, *options, steps=3, check=True, **kwargs):
    return run(tool("shard-run"), program, "--batches", one.file, "--steps", steps, "--lr", 1e-2, "--save-sharded", folder, *options, check=check, **kwargs)


def test_a_file_of_each_rank(towers, tmp_path):
    """The tensors are those of one file, each element is in one block, and they resume on other meshes, ZeRO levels and processes."""
    one, program, folder, whole, log = towers
    read = load_sharded(folder)
    assert read.keys() == whole.keys()
    assert all(read[k].dtype == whole[k].dtype and torch.equal(read[k], whole[k]) for k in whole)
    files = sorted(folder.glob("save-*.safetensors"))
    assert len(files) == 4 and len(list(folder.iterdir())) == 5
    assert sum(t.numel() for f in files for t in load_file(f).values()) == sum(t.numel() for t in whole.values())
    for mesh, plan, zero, options in [("dp=3", DP, 3, ("--processes",)), ("dp=4", DP, 2, ()), ("dp=1", (), 0, ())]:
        other, again = tmp_path / f"{mesh}.so", tmp_path / f"{mesh}.sharded"
        one.compile(other, "--mesh", mesh, *plan, *train("loss=0", "optimizer=adamw", f"zero={zero}"))
        shutil.copytree(folder, again)
        rest, got = one.train(other, "--resume", folder, *options, steps=6, weights=False)
        assert [line["loss"] for line in rest] == pytest.approx([line["loss"] for line in log[3:]], rel=1e-10)
        # A save in place of another one: nothing of the old one is left, and the first mesh goes on from it.
        save(one, other, again, "--resume", again, *options, steps=5)
        assert len(list(again.iterdir())) == 1 + int(mesh[3:])
        last, back = one.train(program, "--resume", again, steps=6, weights=False)
        assert [line["loss"] for line in last] == pytest.approx([log[5]["loss"]], rel=1e-10)
        assert back.keys() == got.keys() and all(difference(back[k], got[k]) <= 1e-9 for k in got)
    forward = tmp_path / "forward.so"
    one.compile(forward, "--mesh", "dp=2", *DP)
    save_file(one.inputs, tmp_path / "in")
    outputs = {}
    for name, weights in [("sharded", folder), ("whole", program.with_suffix(".checkpoint.safetensors"))]:
        one.train(program, steps=3)
        run(tool("shard-run"), forward, "--weights", weights, "--inputs", tmp_path / "in", "--outputs", tmp_path / name)
        outputs[name] = load_file(tmp_path / name)
    assert all(torch.equal(outputs["sharded"][k], outputs["whole"][k]) for k in outputs["whole"])


@pytest.mark.skipif(not (BUILD / "lib/shardrt/libcuda-emulated.so").exists(), reason="the emulated device was not built")
def test_on_a_device(towers, tmp_path):
    """A training goes on on a device, and from there on CPUs."""
    one, program, folder, _, log = towers
    device = tmp_path / "device.so"
    one.compile(device, *BOTH, *TOWERS_TP, *train("loss=0", "optimizer=adamw", "zero=1"), "--target", "cuda:emulated")
    save(one, device, tmp_path / "sharded", "--resume", folder, "--device", "emulated", steps=5)
    last, _ = one.train(program, "--resume", tmp_path / "sharded", steps=6, weights=False)
    assert [line["loss"] for line in last] == pytest.approx([log[5]["loss"]], rel=1e-10)


def test_fused_weights(trainee, tmp_path):  # noqa: F811
    """A rank has several boxes of a fused weight, and writes each as a block."""
    one, program, folder = trainee("gpt2"), tmp_path / "gpt2.so", tmp_path / "sharded"
    one.compile(program, *BOTH, *PLANS["gpt2"], *train("loss=0", "optimizer=adamw", "zero=3"))
    _, whole = one.train(program, steps=1)
    save(one, program, folder, "--weights", one.source, steps=1)
    read = load_sharded(folder)
    assert read.keys() == whole.keys() and all(torch.equal(read[k], whole[k]) for k in whole)
    blocks = [key for f in folder.glob("*.safetensors") for key in load_file(f) if "c_attn.weight" in key]
    assert len(blocks) > 4 * sum("c_attn.weight" in key for key in whole), "every rank has three boxes or more"
    _, again = one.train(program, "--resume", folder, steps=2, weights=False)
    _, want = one.train(program, steps=2)
    assert all(difference(again[k], want[k]) <= 1e-12 for k in want)


def test_refused_folders(towers, trainee, tmp_path):  # noqa: F811
    one, program, folder, _, _ = towers

    def refuse(path, *words, option="--resume"):
        done = one.train(program, option, path, weights=False, check=False)
        assert done.returncode == 1
        for word in words:
            assert word in done.stderr, done.stderr

    def damaged(name):
        copy = tmp_path / name
        shutil.copytree(folder, copy)
        return copy, sorted(copy.glob("save-*"))
    lacking, files = damaged("lacking")
    files[1].unlink(), files[3].unlink()
    refuse(lacking, f"{lacking}: 2 of its 4 files cannot be opened: {files[1].name}: No such file or directory, {files[3].name}")
    refuse(lacking, "2 of its 4 files cannot be opened", option="--weights")
    torn, files = damaged("torn")
    files[2].write_bytes(files[2].read_bytes()[:-9])
    refuse(torn, f"{files[2].name}: tensor", "lies outside the file")
    mixed, files = damaged("mixed")
    save(one, program, tmp_path / "later", "--weights", one.source, steps=1)
    later = sorted((tmp_path / "later").glob("save-*"))
    shutil.copy(later[1], files[1])
    refuse(mixed, f"{files[1].name}: it is of the save {later[1].name[5:].split('-')[0]}, and the index is of the save {files[1].name[5:].split('-')[0]}")
    cut, _ = damaged("cut")
    (cut / "index.json").write_bytes((cut / "index.json").read_bytes()[:-20])
    refuse(cut, f"{cut}: index.json: ")
    gap, _ = damaged("gap")
    text = (gap / "index.json").read_text()
    block = re.search(r'{"file": "[^"]*", "key": "frozen\[0:6\]"[^}]*}, ', text)[0]
    (gap / "index.json").write_text(text.replace(block, ""))
    refuse(gap, "tensor 'frozen' is not the sum of its blocks")
    (gap / "index.json").write_text(text.replace('"key": "frozen[0:6]"', '"key": "frozen"'))
    refuse(gap, "tensor 'frozen' has a block frozen, which ", "does not have")
    (gap / "index.json").unlink()
    refuse(gap, f"{gap}: it is no folder with a checkpoint: it lacks index.json")
    other, mse = trainee("mse"), tmp_path / "mse.so"
    other.compile(mse, "--mesh", "dp=1", *train("loss=0", "optimizer=sgd"))
    save(other, mse, tmp_path / "other", "--weights", other.source, steps=1)
    refuse(tmp_path / "other", f"the checkpoint {tmp_path / 'other'}", "first.weight: it is f64[20, 12], expected f64[11, 7]",
           "optimizer.exp_avg.first.weight: missing, expected f64[11, 7]", "tiny: missing")


@pytest.mark.parametrize("options", [(), ("--processes",)], ids=["threads", "processes"])
def test_saves_that_fail(towers, tmp_path, options):
    """On a full disk, or with a folder that cannot be, every rank fails, and the old checkpoint stays."""
    one, program, folder, _, _ = towers
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    before = {f.name: f.read_bytes() for f in kept.iterdir()}
    if not options:  # the memory that processes share is a file too
        done = save(one, program, kept, "--weights", one.source, check=False, preexec_fn=small_files)
        assert done.returncode == 1 and re.search(r"rank-\d.safetensors: cannot write the checkpoint: no room for \d+ bytes: File too large", done.stderr)
    (kept / "index.json").rename(kept / "index"), (kept / "index.json").mkdir()
    done = save(one, program, kept, "--weights", one.source, *options, check=False)
    assert done.returncode == 1 and f"{kept}/index.json: cannot write the checkpoint: cannot replace it: Is a directory" in done.stderr, done.stderr
    (kept / "index.json").rmdir(), (kept / "index").rename(kept / "index.json")
    assert {f.name: f.read_bytes() for f in kept.iterdir()} == before
    # What can be told is told before the first step.
    (tmp_path / "file").write_text("x")
    for option, path, words in [("--save-sharded", tmp_path / "file", "it is a file, and not the folder that"),
                                ("--save-sharded", tmp_path / "no/where", f"there is no folder {tmp_path}/no"),
                                ("--save", tmp_path, "it is a folder: give the name of a file"),
                                ("--save", tmp_path / "no-%s/where", f"there is no folder {tmp_path}/no-4")]:
        done = run(tool("shard-run"), program, "--weights", one.source, "--batches", one.file, "--steps", 8, "--lr", 1e-2, option, path, "--save-every", 4,
                   *options, check=False)
        assert done.returncode == 1 and not done.stdout, done.stdout
        assert f"{option}: {path}: {words}".replace("%s", "4") in done.stderr, done.stderr
    twice = run(tool("shard-run"), program, "--save", "a", "--save-sharded", "b", check=False)
    assert "--save and --save-sharded exclude each other" in twice.stderr
    for option in ("--resume", "--weights"):
        index = run(tool("shard-run"), "m.so", option, "folder/index.json", check=False)
        assert f"{option} folder/index.json is the index of a checkpoint of several files: give its folder, folder" in index.stderr


def test_what_else_a_folder_has(towers, tmp_path):
    """Files of other saves are removed, also such that were not finished, and no others."""
    one, program, _, _, _ = towers
    folder, options = tmp_path / "new", ("--weights", one.source)
    save(one, program, f"{folder}/", *options, steps=1)
    mine, theirs = ["save-1a.2b-rank-0.safetensors", "save-1a.2b-rank-11.safetensors.tmp17", "index.json.tmp17"], ["save-x-rank-y-notes.safetensors", "notes"]
    for name in mine + theirs:
        (folder / name).write_text("x")
    save(one, program, folder, *options, steps=1)
    names = {f.name for f in folder.iterdir()}
    assert not names & set(mine) and names >= set(theirs) and len(names) == 5 + len(theirs)
    (folder / "index.json").write_text("{}")
    done = save(one, program, folder, *options, steps=1, check=False)
    assert done.returncode == 1 and f"{folder}/index.json: cannot write the checkpoint: there is a file that is no index" in done.stderr, done.stderr
    assert (folder / "index.json").read_text() == "{}" and {f.name for f in folder.iterdir()} == names


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_state_dicts(towers, tmp_path):
    """torch.save(module.state_dict()): views, strides and shared storages, parameters as such, and buffers that a program need not have."""
    one, program, _, _, log = towers
    file = tmp_path / "x.pt"
    strange = {k: v.t().contiguous().t() if v.dim() == 2 else torch.cat([v, v])[len(v):] for k, v in one.module.state_dict().items()}
    strange["counter"] = torch.tensor(3)
    for state in [one.module.state_dict(), one.module.state_dict(keep_vars=True), strange, dict(one.module.state_dict())]:
        torch.save(state, file)
        got, _ = one.train(program, "--weights", file, steps=1, weights=False)
        assert got[0]["loss"] == pytest.approx(log[0]["loss"], rel=1e-12)
    normed, forward = Normed().eval(), tmp_path / "normed.so"
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        inputs = {"x": torch.randn(9, 7).to(kind), "target": torch.randn(9, 3).to(kind)}
        module = Normed().eval().to(kind)
        trainable = Trainee(tmp_path, "normed", module, inputs)
        trainable.compile(forward, "--mesh", "dp=2", *DP)
        torch.save(module.state_dict(), file)
        save_file(inputs, tmp_path / "in")
        outputs = []
        for weights in (file, trainable.source):
            run(tool("shard-run"), forward, "--weights", weights, "--inputs", tmp_path / "in", "--outputs", tmp_path / "out")
            outputs.append(load_file(tmp_path / "out"))
        assert all(torch.equal(outputs[0][k], outputs[1][k]) for k in outputs[1]), kind
    assert "norm.num_batches_tracked" in normed.state_dict()

    def refuse(state, *words, option="--weights", **how):
        if state is not None:
            torch.save(state, file, **how)
        done = one.train(program, option, file, weights=False, check=False)
        assert done.returncode == 1
        for word in words:
            assert word in done.stderr, done.stderr
    state = one.module.state_dict()
    refuse(state, "it is no checkpoint of a training", "train.step: missing", option="--resume")
    refuse({"module." + k: v for k, v in state.items()}, "x.pt: 10 names begin with 'module.', such as module.first.bias; they are those of",
           "save model.module.state_dict()")
    refuse({"_orig_mod." + k: v for k, v in state.items() if k != "tiny"}, "9 names begin with '_orig_mod.'", "tiny: missing, expected f64[1]")
    refuse({**state, "tiny": torch.zeros(2), "first.bias": state["first.bias"].float()}, "tiny: it is f32[2], expected f64[1]",
           "first.bias: it is f32[11], expected f64[11]")
    refuse({"model": state, "epoch": 3}, "not the state dict of a module alone: 'model' is a dict, 'epoch' is a number: give a file of torch.save(module.")
    refuse(one.module, f"{file}: it holds an object of test_training.Towers, and what a pickle would run is never run")
    refuse({**state, "evil": Evil(tmp_path / "made")}, "'evil' is a result of posix.mkdir")
    refuse(Evil(tmp_path / "made"), "it holds a result of posix.mkdir")
    assert not (tmp_path / "made").exists()
    refuse({**state, "tiny": torch.zeros(1, dtype=torch.float8_e4m3fn)}, "'tiny' is a result of torch._utils._rebuild_tensor_v3")
    negated = torch.complex(*torch.ones(2, 11, dtype=torch.float64)).conj().imag  # the file has the elements as they were, and a bit
    assert negated.is_neg()
    refuse({**state, "first.bias": negated}, "'first.bias' is a tensor of a type that is not supported")
    refuse(state, "in the format that it had before PyTorch 1.6", _use_new_zipfile_serialization=False)
    refuse(state, "it has another protocol than 2", pickle_protocol=4)
    torch.save(state, file)
    good = file.read_bytes()
    file.write_bytes(good[:-30])
    refuse(None, f"{file}: ", "truncated")
    at = good.index(b"first.weight")
    file.write_bytes(good[:at] + b"F" + good[at + 1:])
    refuse(None, "the record 'data.pkl' is corrupt: its checksum does not match")
