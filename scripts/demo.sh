#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The main job on a real model: all-MiniLM-L6-v2 with its trained weights, exported by PyTorch, compiled for a mesh dp=2,tp=2,
# run on four in-process ranks on real sentences, compared with PyTorch. Sets up and builds first; does nothing twice.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
setup
build shardc shard-run shardrt
exec "$VENV/bin/python" scripts/demo/minilm.py --build "$BUILD"
