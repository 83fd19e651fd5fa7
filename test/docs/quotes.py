# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the quotes on a markdown page with the files they are from: quotes.py PAGE ROOT.

A block says where it is from in its info string: ```cpp in=dialects/aten/Window.cpp. Its lines must be in that file, one
after the other.
"""

import pathlib
import re
import sys

page, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
block = re.compile(r"^```\w+ in=(\S+)\n(.*?)^```$", re.M | re.S)
quotes = block.findall(page.read_text())
bad = [f"{name} does not have:\n{quote}" for name, quote in quotes if "\n" + quote not in "\n" + (root / name).read_text()]
print("\n".join(bad) if bad else f"{len(quotes)} quotes")
sys.exit(bool(bad))
