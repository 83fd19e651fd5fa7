// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-plan-arena --exec-account-memory | FileCheck %s
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-plan-arena --exec-account-memory=sizes=s0=8 | FileCheck %s --check-prefix=SIZES
// RUN: not shard-opt %s --exec-account-memory=sizes=s0 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-plan-arena --exec-account-memory --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// STATS: exec-account-memory
// STATS-DAG: 2 accounted
// STATS-DAG: 1 symbolic

// By hand, in bytes: w is 16 x 16 x 4, unused 5 x 4; x and the result are 8 x 16 x 4 each; a and b live at once.

// CHECK: func.func @forward
// CHECK-SAME: exec.arena_bytes = 1024
// CHECK-SAME: exec.memory = {arena = 1024 : i64, caller = 1024 : i64, modules = {{\[}}[512, "first"], [512, "second"]], parameters = array<i64: 1024, 20>,
// CHECK-SAME: peak = {{\[}}[512, "first (m.py:3)"], [512, "second (m.py:4)"]]}
func.func @forward(%w: tensor<16x16xf32> {dist.kind = "parameter"}, %unused: tensor<5xf32> {dist.kind = "parameter"},
                   %x: tensor<8x16xf32> {dist.kind = "input"}) -> tensor<8x16xf32> {
  %a = aten.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc(fused<"first">["a"("m.py":3:0)])
  %b = aten.linear %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc(fused<"second">["b"("m.py":4:0)])
  %c = aten.linear %b, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc(fused<"third">["c"("m.py":5:0)])
  return %c : tensor<8x16xf32>
}

// What one module fills is added up, and the module that takes most comes first: 512 of "first", 2 x 512 of "second".
// CHECK: func.func @by_module
// CHECK-SAME: modules = {{\[}}[1024, "second"], [512, "first"]]
// CHECK-SAME: peak = {{\[}}[512, "first (m.py:3)"], [512, "second (m.py:4)"], [512, "second (m.py:5)"]]}
func.func @by_module(%w: tensor<16x16xf32> {dist.kind = "parameter"}, %x: tensor<8x16xf32> {dist.kind = "input"}) -> tensor<8x16xf32> {
  %a = aten.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc(fused<"first">["a"("m.py":3:0)])
  %b = aten.linear %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc(fused<"second">["b"("m.py":4:0)])
  %c = aten.linear %b, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc(fused<"second">["c"("m.py":5:0)])
  %d = aten.add %a, %b : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc(fused<"third">["d"("m.py":6:0)])
  %e = aten.add %d, %c : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc(fused<"third">["e"("m.py":7:0)])
  return %e : tensor<8x16xf32>
}

// Sizes that depend on symbols are known where the option says them: with 8 rows x, the
// result and the one buffer have 8 x 16 x 4 bytes, w has 16 x 16 x 4.
// FORM: error: 's0' is not the value of a symbol: expected NAME=NUMBER
// SIZES-LABEL: func.func @symbolic
// SIZES-SAME: exec.memory = {arena = 512 : i64, caller = 1024 : i64, modules = {{\[}}[512, ""]], parameters = array<i64: 1024>, peak = {{\[}}[512, "

// CHECK: func.func @symbolic
// CHECK-NOT: exec.memory
// CHECK: return
func.func @symbolic(%x: tensor<?x16xf32> {dist.kind = "input", dist.sizes = [#dist.size<s0>, #dist.size<16>]},
                    %w: tensor<16x16xf32> {dist.kind = "parameter"})
    -> (tensor<?x16xf32> {dist.sizes = [#dist.size<s0>, #dist.size<16>]}) attributes {dist.symbols = [#dist.symbol<s0 in [1, 64]>]} {
  %a = aten.linear %x, %w : (tensor<?x16xf32>, tensor<16x16xf32>) -> tensor<?x16xf32>
  %b = aten.linear %a, %w : (tensor<?x16xf32>, tensor<16x16xf32>) -> tensor<?x16xf32>
  return %b : tensor<?x16xf32>
}
