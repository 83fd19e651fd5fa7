#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Checks and measures CUDA programs on a machine with a GPU (docs/cuda-measuring.md).
#   scripts/gpu.sh pack [--folder DIR] [--target cuda:sm_90] [--small]       on the machine that builds
#   DIR/gpu.sh run --out RESULTS [--budget 540] [--device N|emulated] [GROUP...]      on the machine with the GPU
#   scripts/gpu.sh cost-model RESULTS --name h200-1                           a cost model of what was measured, for --topology
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command=${1:-}
[ $# -eq 0 ] || shift
case "$command" in
  pack)
    source "$here/lib.sh"
    setup
    # Of the unit tests, CMake builds those that `pack` takes along with everything else.
    build all
    exec "$VENV/bin/python" "$here/gpu/pack.py" "$@" ;;
  cost-model) exec "${PYTHON:-python3}" "$here/gpu/cost_model.py" "$@" ;;
  run)
    # Of a packed folder: needs PyTorch, and nothing that was installed for the build.
    python=${PYTHON:-$(command -v python3)}
    [ ! -x "$here/../.venv/bin/python" ] || python=${PYTHON:-$here/../.venv/bin/python}
    exec "$python" "$here/gpu/run.py" "$@" ;;
  -h | --help) sed -n '3,6p' "$0" ;;
  *) sed -n '3,6p' "$0" >&2; exit 2 ;;
esac
