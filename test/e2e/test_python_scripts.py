# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scripts that are forked from a process with PyTorch end, print and fail as they do when they are started."""
import subprocess
import sys

import pytest

from conftest import run_python
from python_scripts import run_script

SAYS = """import os, sys
print(os.environ["SAID"], *sys.argv[1:], __name__, os.path.basename(sys.path[0]))
print("why", file=sys.stderr)
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise SystemExit('no')", "1 / 0", "os.abort()"])
def test_as_if_started(tmp_path, monkeypatch, end):
    monkeypatch.setenv("SAID", "here")
    script = tmp_path / "script.py"
    script.write_text(SAYS + end)
    started = subprocess.run([sys.executable, script, "a", "b c"], text=True, capture_output=True)
    forked = run_script(script, "a", "b c", timeout=100)
    assert forked.returncode == started.returncode
    # What is still in a buffer is lost when a process is aborted.
    assert forked.stdout == started.stdout == f"here a b c __main__ {tmp_path.name}\n" or "abort" in end
    last = started.stderr.splitlines()[-1]
    assert "why" in forked.stderr and ("abort" in end or last in forked.stderr)


def test_failures_and_limits(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(100)")
    with pytest.raises(subprocess.TimeoutExpired):
        run_python(script, timeout=1)
    script.write_text("raise ValueError('that is why')")
    with pytest.raises(AssertionError, match="(?s)script.py failed with 1.*that is why"):
        run_python(script)
