// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What dist-fit-memory refuses; what it makes is shown by its example and by the tests of dist-recompute and of joint graphs.

// RUN: not shard-opt %s --dist-fit-memory=pipeline={memory-limit=18000} 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: 'builtin.module' op found no way to meet the memory limit of 18000 bytes: a rank needs 28672 bytes, and the least that computing values again was found to need is 26624; allow at least that much
// RUN: shard-opt %s "--dist-fit-memory=pipeline={memory-limit=18000 best-effort}" 2>&1 | FileCheck %s --check-prefix=BEST
// BEST: dist.least_memory = {least_bytes = 26624 : i64, without_bytes = 28672 : i64}

// RUN: not shard-opt %s --dist-fit-memory 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'builtin.module' op needs a memory limit to fit: 'memory-limit' of the pipeline's options is a number of bytes, e.g. 2GiB, not ''
// RUN: not shard-opt %s "--dist-fit-memory=pipeline={memory-limit=1MiB bucket-cap=3}" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: 'builtin.module' op has options that the pipeline does not have: {{.*}}bucket-cap

// The pass is printed with all that it needs, and runs again from that.
// RUN: shard-opt %s "--shardc-compile=from=local to=scheduled memory-limit=28000 recompute=mlp,m* bucket-caps=1,25" --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=DUMP
// DUMP: dist-fit-memory{pipeline={{{.*}} bucket-caps=1,25 {{.*}} memory-limit=28000 {{.*}}recompute={{[{][{]}}mlp},{m*}}

module attributes {dist.mesh = #dist.mesh<["r" = 1]>} {
func.func @f(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"}, %w: tensor<64x64xf32> {dist.kind = "parameter", dist.name = "w"})
    -> (tensor<8x64xf32> {dist.name = "y"}, tensor<8x64xf32> {dist.kind = "gradient", dist.name = "x"}) {
  %h = aten.exp %x : (tensor<8x64xf32>) -> tensor<8x64xf32> loc(#mlp)
  %u = aten.linear %h, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %v = aten.linear %u, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %y = aten.linear %v, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %dv = aten.mm %y, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#backward)
  %du = aten.mm %dv, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#backward)
  %dh = aten.mm %du, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#backward)
  %g = aten.mul %dh, %h : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32> loc(#backward)
  return %y, %g : tensor<8x64xf32>, tensor<8x64xf32>
}
}
#mlp = loc(fused<"mlp">["model.py":3:0])
#backward = loc("backward of exp")
