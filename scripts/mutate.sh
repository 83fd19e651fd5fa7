#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes small mistakes in the source, one at a time, and prints which of them the tests notice. Run it by hand: each mistake takes half a minute.
#   scripts/mutate.sh [--count 120] [--seed 1] [--only GLOB]... [--list]
# It works on a copy of the committed source in build-mutate/ and leaves the checkout alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
setup
exec "$VENV/bin/python" scripts/mutate.py "$@"
