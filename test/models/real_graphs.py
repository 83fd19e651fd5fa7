# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where graphs of real training programs are: GRAPH.pt2 with GRAPH.groups.json and GRAPH.durations.json, and
expected.json with reference figures. SHARDC_GRAPHS names the folder; they are too large to be part of the project, so
what needs them is left out, with a reason, where it is absent."""
import json
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ.get("SHARDC_GRAPHS", ROOT.parent / "shared/data/graphs"))
EXPECTED = json.loads((FOLDER / "expected.json").read_text()) if (FOLDER / "expected.json").exists() else {}
ABSENT = "the real graphs are not on this machine (SHARDC_GRAPHS names their folder)"
