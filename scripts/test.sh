#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sets up, builds, runs every test and ends with `N passed, M failed`. Exit status 0 only if none failed.
#   scripts/test.sh [--only lit|unit|e2e|project]...   (default: all)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suites=()
while [ $# -gt 0 ]; do
  case "$1" in
    --only) suites+=("${2:?--only needs a suite}"); shift 2 ;;
    -h | --help) sed -n '3,4p' "$0"; exit 0 ;;
    *) die "unknown argument $1 (see --help)" ;;
  esac
done
[ ${#suites[@]} -gt 0 ] || suites=(project lit unit e2e)

setup
build all
results="$BUILD/test-results"
rm -rf "$results"
mkdir -p "$results"
for suite in "${suites[@]}"; do
  say "tests: $suite"
  case "$suite" in
    # Checks of the project itself: formatting, sizes of files, licence lines.
    project) "$VENV/bin/python" scripts/check_project.py --junit "$results/project.xml" || true ;;
    lit) "$VENV/bin/python" -c '' && /usr/lib/llvm-22/bin/lit -q --xunit-xml-output "$results/lit.xml" "$BUILD/test" || true ;;
    unit)
      for t in "$BUILD"/test/unit/*; do
        [ -f "$t" ] && [ -x "$t" ] || continue
        name=$(basename "$t")
        "$t" --gtest_brief=1 --gtest_output="xml:$results/unit-$name.xml" >"$results/$name.log" 2>&1 ||
          { echo "FAILED: $name"; tail -n 40 "$results/$name.log"; }
        # A binary that died before it wrote its report counts as one failure.
        [ -s "$results/unit-$name.xml" ] || echo "$name" >>"$results/crashed.txt"
      done ;;
    e2e) "$VENV/bin/python" -m pytest -q --junitxml "$results/e2e.xml" test/e2e || true ;;
    *) die "unknown suite $suite" ;;
  esac
done
"$VENV/bin/python" scripts/summarise_tests.py "$results" "${suites[@]}"
