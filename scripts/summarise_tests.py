# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds up JUnit reports: summarise_tests.py RESULTS_DIR SUITE...; ends with `N passed, M failed[, K skipped]`."""
import pathlib
import sys
import xml.etree.ElementTree as ET


def count(path):
    passed = failed = skipped = 0
    for case in ET.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
            print(f"FAILED {case.get('classname')}.{case.get('name')}")
        elif "skipped" in kinds or case.get("status") == "notrun":
            skipped += 1
            print(f"skipped {case.get('classname')}.{case.get('name')}")
        else:
            passed += 1
    return passed, failed, skipped


def main():
    results = pathlib.Path(sys.argv[1])
    total = [0, 0, 0]
    for suite in sys.argv[2:]:
        reports = sorted(results.glob(f"{suite}*.xml"))
        counts = [count(r) for r in reports]
        # A suite that reported nothing, or no test, has failed: silence is not success.
        if not sum(p + f for p, f, _ in counts):
            print(f"FAILED {suite}: no test ran")
            total[1] += 1
        for c in counts:
            total = [a + b for a, b in zip(total, c)]
    crashed = results / "crashed.txt"
    if crashed.exists():
        for name in crashed.read_text().split():
            print(f"FAILED {name}: ended without a report")
            total[1] += 1
    line = f"{total[0]} passed, {total[1]} failed"
    print(line + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
