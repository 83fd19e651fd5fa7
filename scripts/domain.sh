#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Trains a U-Net on a field that is too large for the memory of one rank: it shows that the compiler refuses the program of one rank under a memory
# limit, trains on four ranks with a quarter of the field each under the same limit, compares the trained model with PyTorch, and draws a picture.
# It sets up and builds first, and is idempotent. Options are those of scripts/domain/train_unet.py (--picture FILE, --size N, --limit BYTES).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PRESET=whole
setup
build shardc shard-run shardrt
exec "$VENV/bin/python" scripts/domain/train_unet.py --build "$BUILD" "$@"
