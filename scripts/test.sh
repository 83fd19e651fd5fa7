#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sets up, builds, runs every test and ends with the line `N passed, M failed`. The exit status is 0 only if no test failed.
#   scripts/test.sh [--only lit|unit|e2e|project]...   (default: all)
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suites=()
while [ $# -gt 0 ]; do
  case "$1" in
    --only) suites+=("${2:?--only needs the name of a suite: lit, unit, e2e or project}"); shift 2 ;;
    -h | --help) sed -n '3,4p' "$0"; exit 0 ;;
    *) die "unknown argument $1 (see --help)" ;;
  esac
done
[ ${#suites[@]} -gt 0 ] || suites=(project lit unit e2e)

PRESET=whole # unless there is a build already: several files of a target are compiled as one, which takes less time in all
SECONDS=0
setup
setup_seconds=$SECONDS
build all
build_seconds=$((SECONDS - setup_seconds))
results="$BUILD/test-results"
rm -rf "$results"
mkdir -p "$results"
jobs=$(nproc)
# Threads of OpenBLAS that wait for work spin for a while, which takes the processors from other tests.
export OPENBLAS_THREAD_TIMEOUT=4

# run_unit_test BINARY: runs one gtest binary, which writes a report, and prints its output only if it fails.
run_unit_test() {
  local name
  name=$(basename "$1")
  "$1" --gtest_brief=1 --gtest_output="xml:$results/unit-$name.xml" >"$results/$name.log" 2>&1 ||
    { echo "FAILED: $name"; tail -n 40 "$results/$name.log"; }
  # A binary that died before it wrote its report counts as one failure.
  [ -s "$results/unit-$name.xml" ] || echo "$name" >>"$results/crashed.txt"
}
export -f run_unit_test
export results

seconds() { printf '%4d s  %s\n' "$SECONDS" "$1" >>"$results/times.txt"; SECONDS=0; }
printf '%4d s  set-up\n%4d s  build\n' "$setup_seconds" "$build_seconds" >"$results/times.txt"
SECONDS=0
for suite in "${suites[@]}"; do
  say "tests: $suite"
  case "$suite" in
    # These are checks of the project itself: formatting, sizes of files, licence lines, dependency order and links.
    project) "$VENV/bin/python" scripts/check_project.py --junit "$results/project.xml" || true ;;
    lit) "$VENV/bin/python" -c '' && /usr/lib/llvm-22/bin/lit -q -j "$jobs" --xunit-xml-output "$results/lit.xml" "$BUILD/test" 9>&- || true ;;
    # Many unit tests wait for other ranks and for deadlines more than they compute.
    unit) find "$BUILD/test/unit" -maxdepth 1 -type f -executable -print0 | sort -z |
      xargs -0 -r -n 1 -P "$((2 * jobs))" bash -c 'run_unit_test "$0"' 9>&- || true ;;
    e2e) "$VENV/bin/python" -m pytest -q -p no:unraisableexception -p no:threadexception -n "$jobs" --dist loadgroup --durations 10 --junitxml "$results/e2e.xml" test/e2e 9>&- || true ;;
    *) die "there is no suite named '$suite': choose from lit, unit, e2e and project" ;;
  esac
  seconds "tests: $suite"
done
say "times"
cat "$results/times.txt"
"$VENV/bin/python" scripts/summarise_tests.py "$results" "${suites[@]}"
