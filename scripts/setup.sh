#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the packages that shardc needs (Debian packages, and Python packages into .venv) and builds shardc. It is idempotent.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
setup
build "$@"
