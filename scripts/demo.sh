#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shows the whole way on a real model: it exports all-MiniLM-L6-v2 with its trained weights from PyTorch, compiles it for a mesh dp=2,tp=2, runs it
# on four ranks of one process on real sentences, and compares the outputs with PyTorch's. It sets up and builds first, and is idempotent.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PRESET=whole
setup
build shardc shard-run shardrt
exec "$VENV/bin/python" scripts/demo/minilm.py --build "$BUILD"
