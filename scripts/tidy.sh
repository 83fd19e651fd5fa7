#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs clang-tidy on the C++ files that have changed since the revision $1 (default: the one before the last commit). It needs a configured build.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
base=${1:-HEAD~1}
[ -f "$BUILD/compile_commands.json" ] || die "there is no configured build in $BUILD: run scripts/setup.sh first"
# Where several files are compiled as one there is no command for each.
if grep -q '^CMAKE_UNITY_BUILD:.*=ON' "$BUILD/CMakeCache.txt"; then
  only_here
  say "configuring a build of single files, in place of the one of several at once"
  cmake --preset default >/dev/null
fi
mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp')
[ ${#files[@]} -gt 0 ] || { echo "No C++ file has changed since $base."; exit 0; }
clang-tidy-22 -p "$BUILD" --quiet "${files[@]}"
