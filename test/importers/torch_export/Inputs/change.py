# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A copy of a .pt2 archive whose program has a text replaced, everywhere or once.

  change.py FROM TO OLD NEW [--once]
  change.py FROM TO --without RECORD       leaves out the records whose names end like that
"""
import sys
import zipfile

source, target, *change = sys.argv[1:]
with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
    for name in old.namelist():
        data = old.read(name)
        if change[0] == "--without":
            if name.endswith(change[1]):
                continue
        elif name.endswith("models/model.json"):
            text = data.decode()
            assert change[0] in text, f"{change[0]} is not in {name}"
            data = text.replace(change[0], change[1], 1 if "--once" in change else -1).encode()
        new.writestr(name, data)
