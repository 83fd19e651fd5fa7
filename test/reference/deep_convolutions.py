# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A placed program of many convolutions in a row, from 3 to 64 channels and back, whose rows are shared out unevenly.

    python test/reference/deep_convolutions.py 60 > deep.mlir
"""
import sys


def tensor(channels, layout="#S2"):
    return f"tensor<1x{channels}x42x8xf32, {layout}>"


def main():
    count = int(sys.argv[1])
    channels = [(3, 64)[i % 2] for i in range(count + 1)]
    weights = [f"tensor<{made}x{read}x3x3xf32, #R>" for read, made in zip(channels, channels[1:])]
    print('#mesh = #dist.mesh<["h" = 4]>\n#R = #dist.layout<#mesh, [R]>\n#S2 = #dist.layout<#mesh, [S(2)]>')
    arguments = ", ".join([f"%v0: {tensor(3)}", *(f"%w{i}: {weight}" for i, weight in enumerate(weights))])
    print(f"func.func @deep({arguments}) -> {tensor(channels[-1])} {{")
    for i, weight in enumerate(weights):
        print(f"  %c{i} = aten.convolution %v{i}, %w{i} stride [1, 1] padding [1, 1] dilation [1, 1] : ({tensor(channels[i])}, {weight}) -> {tensor(channels[i + 1])}")
        print(f"  %v{i + 1} = aten.relu %c{i} : ({tensor(channels[i + 1])}) -> {tensor(channels[i + 1])}")
    print(f"  return %v{count} : {tensor(channels[-1])}\n}}")


if __name__ == "__main__":
    main()
