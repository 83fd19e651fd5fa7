# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""change_byte.py FROM TO: a copy with one bit in the middle changed."""
import pathlib
import sys

data = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
data[len(data) // 2] ^= 0x10
pathlib.Path(sys.argv[2]).write_bytes(data)
