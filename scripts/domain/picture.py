# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fields as a picture (PNG), without a library for pictures."""
import struct
import zlib

import numpy as np

# Colors of values from 0 to 1, between which colors are interpolated.
CONCENTRATION = [(24, 15, 61), (68, 57, 131), (49, 104, 142), (33, 145, 140), (94, 201, 98), (253, 231, 37)]
DIFFERENCE = [(5, 48, 97), (67, 147, 195), (247, 247, 247), (214, 96, 77), (103, 0, 31)]
LEVELS = 64  # of each palette
GAP, LARGEST = 8, 256  # pixels


def palette(colors):
    at, of = np.linspace(0, 1, LEVELS), np.linspace(0, 1, len(colors))
    return np.stack([np.interp(at, of, channel) for channel in zip(*colors)], 1).round().astype(np.uint8)


def levels(values, low, high):
    return ((np.clip((values - low) / (high - low), 0, 1)) * (LEVELS - 1)).round().astype(np.uint8)


def write_png(path, pixels, colors):
    """An indexed PNG: `pixels` are numbers of `colors`."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels], 1)  # each row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", colors.tobytes()) +
                     chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b""))


def draw(path, fields, difference, cuts, scale):
    """Fields from 0 to 1 beside each other, and at the right a difference from -scale to scale. White lines show where ranks meet: `cuts` are
    the numbers of parts along both dims. Of a field of more than LARGEST cells along a side the picture has every second, third, ... cell."""
    every = -(-max(difference.shape) // LARGEST)
    fields, difference = [field[::every, ::every] for field in fields], difference[::every, ::every]
    white = 2 * LEVELS
    colors = np.concatenate([palette(CONCENTRATION), palette(DIFFERENCE), np.full((1, 3), 255, np.uint8)])
    panels = [levels(field, 0, 1) for field in fields] + [LEVELS + levels(difference, -scale, scale)]
    for panel in panels[:-1]:
        height, width = panel.shape
        for part in range(1, cuts[0]):
            panel[height * part // cuts[0]] = white
        for part in range(1, cuts[1]):
            panel[:, width * part // cuts[1]] = white
    gap = np.full((panels[0].shape[0], GAP), white, np.uint8)
    row = [piece for panel in panels for piece in (gap, panel)][1:]
    write_png(path, np.concatenate(row, 1), colors)
