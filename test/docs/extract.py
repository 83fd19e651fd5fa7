# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the code blocks of a markdown page that name a file to a folder: extract.py PAGE FOLDER.

A block names a file in its info string: ```cpp file=Name.cpp
"""

import pathlib
import re
import sys

page, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
block = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.M | re.S)
names = []
for name, code in block.findall(page.read_text()):
    if name in names or "/" in name:
        sys.exit(f"{page}: block '{name}' is there twice, or is no plain name")
    names.append(name)
    (folder / name).write_text(code)
if not names:
    sys.exit(f"{page}: no block names a file")
print("\n".join(names))
