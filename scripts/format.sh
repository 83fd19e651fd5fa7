#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Formats every C and C++ file of the project. With --check it changes nothing, lists the files that are not formatted, and fails if there is one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mapfile -t files < <(git ls-files '*.c' '*.cpp' '*.h' '*.hpp')
[ ${#files[@]} -gt 0 ] || exit 0
if [ "${1:-}" = --check ]; then
  clang-format-22 --dry-run --Werror "${files[@]}"
else
  clang-format-22 -i "${files[@]}"
fi
