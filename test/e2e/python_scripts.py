# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scripts in Python, each in a process of its own that has PyTorch from the start: importing it takes longer than what most scripts do.
The processes are forked from a server that has imported it and has done nothing else."""
import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before the server imports transformers
# What many tests export: transformers imports a model's module, and what all of them need, when it is first used.
MODELS = [f"transformers.models.{name}.modeling_{name}" for name in ("bert", "gpt2", "llama")]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "export_modules", "transformers", "safetensors.torch", "numpy", *MODELS])


def work(command, folder, environment, streams):
    """What `python COMMAND...` does. `streams`: files for its output and its error output."""
    for number, path in enumerate(streams, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = command
    sys.path.insert(0, os.path.dirname(os.path.abspath(command[0])))
    runpy.run_path(command[0], run_name="__main__")


def run_script(*command, timeout):
    """As subprocess.run([sys.executable, *command]) with its outputs as text."""
    command = [str(c) for c in command]
    with tempfile.TemporaryDirectory() as folder:
        streams = [str(pathlib.Path(folder) / name) for name in ("output", "errors")]
        process = CONTEXT.Process(target=work, args=(command, os.getcwd(), dict(os.environ), streams))
        process.start()
        process.join(timeout)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, timeout)
        texts = [pathlib.Path(path).read_text() if os.path.exists(path) else "" for path in streams]
        return subprocess.CompletedProcess(command, process.exitcode, *texts)
