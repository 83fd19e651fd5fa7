# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs that may hang or leave processes behind, and what they need of a machine."""
import glob
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile


def bounded(command, seconds, **kwargs):
    """Exit status and output of a command. After `seconds` it is ended with everything that it started; the status is 124 then."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        status = into_file(command, seconds, out, **kwargs)
        out.seek(0)
        return status, out.read()


def into_file(command, seconds, file, **kwargs):
    """The same, with its output in a file. A file and no pipe, which would stay open while any process has it."""
    process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                               start_new_session=True, **kwargs)
    try:
        return process.wait(max(seconds, 0.1))
    except subprocess.TimeoutExpired:
        return 124
    finally:
        end(process)


def end(process):
    """Of a process that leads a session of its own: all of the session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def loaded_folders(*names):
    """Where this process has libraries of these names from."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    return {os.path.dirname(path) for path in re.findall(r"(/\S+)$", maps, re.M)
            if os.path.basename(path).startswith(names)}


def cuda_folders():
    """Folders of the libraries that the plugin of CUDA looks for by name. Wheels of PyTorch keep them where a process that is
    not Python does not look. What this process has loaded comes first."""
    found = sorted(loaded_folders("libcuda.so", "libcublasLt.so", "libnccl.so"))
    for path in sys.path:
        for pattern in ("nvidia/*/lib", "torch/lib"):
            found += sorted(f for f in glob.glob(os.path.join(path, pattern))
                            if glob.glob(os.path.join(f, "libcublasLt.so*")) or glob.glob(os.path.join(f, "libnccl.so*")))
    return list(dict.fromkeys(found))


def number(version):
    return tuple(int(part) for part in version.split("."))


def symbol_versions(paths):
    """{"GLIBC": "2.34", "GLIBCXX": "3.4.30", "CXXABI": ...}: the newest that these ELF files ask for."""
    newest = {}
    for path in paths:
        text = subprocess.run(["readelf", "-V", "-W", path], text=True, capture_output=True, check=True).stdout
        # What a file needs comes after what it defines.
        needs = text.partition("Version needs section")[2]
        for kind, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", needs):
            newest[kind] = max(newest.get(kind, "0"), version, key=number)
    return newest


def needed_libraries(paths):
    """Names of the libraries that these ELF files ask for."""
    found = set()
    for path in paths:
        text = subprocess.run(["readelf", "-d", "-W", path], text=True, capture_output=True, check=True).stdout
        found |= set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
    return found


def too_old(needs, libc, cxx):
    """What is wrong with a machine: `libc` is its glibc's version, `cxx` the bytes of its libstdc++. (error, whether the packed
    libstdc++ helps)"""
    if number(libc) < number(needs["GLIBC"]):
        return f"this machine has glibc {libc}, and the packed files need {needs['GLIBC']}", False
    lacks = [f"{kind}_{needs[kind]}" for kind in ("GLIBCXX", "CXXABI") if f"{kind}_{needs[kind]}".encode() not in cxx]
    return (f"libstdc++ lacks {', '.join(lacks)}", True) if lacks else ("", False)


def machine_needs(facts, folder):
    """Variables by which packed files run here: a newer libstdc++, if this machine's is too old. An error if nothing helps."""
    find = "import ctypes, re; ctypes.CDLL('libstdc++.so.6'); print(re.search(r'/\\S*/libstdc\\+\\+\\S*', open('/proc/self/maps').read())[0])"
    done = subprocess.run([sys.executable, "-c", find], text=True, capture_output=True)
    path = pathlib.Path(done.stdout.strip()) if done.returncode == 0 else None
    problem, helps = too_old(facts["needs"], os.confstr("CS_GNU_LIBC_VERSION").split()[-1],
                             path.read_bytes() if path else b"")
    if problem and not (helps and (folder / "lib/cxx").is_dir()):
        raise RuntimeError(problem)
    before = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": ":".join([str(folder / "lib/cxx")] + ([before] if before else []))} if problem else {}
