#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Trains a Transformer of characters on a text of Debian's: it exports the model from PyTorch, compiles the training step for a mesh dp=2,tp=2, trains
# 300 steps in C++, goes on from the checkpoint half way on another mesh, compares the losses with PyTorch's, and prints what the model writes.
# It sets up and builds first, and is idempotent. Options are those of scripts/train/curves.py (--picture FILE).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PRESET=whole
setup
build shardc shard-run shardrt
exec "$VENV/bin/python" scripts/train/curves.py --build "$BUILD" "$@"
