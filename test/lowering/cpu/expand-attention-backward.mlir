// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --cpu-expand-attention | FileCheck %s

// Two layers share a kernel, forward and backward have one each, and the tasks of the backward are heads of keys: 2 x 2.
// CHECK-LABEL: func.func @layers(
// CHECK: exec.launch @[[F:attention[a-z_0-9]*]](
// CHECK: exec.launch @[[B:attention_backward[a-z_0-9]*]](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) name "first"
// CHECK: exec.launch @[[B]]({{.*}} name "second"
// CHECK-NOT: exec.attention
// CHECK: func.func private @[[F]](
// CHECK-SAME: exec.writes = array<i64: 3, 4>
// CHECK: func.func private @[[B]](
// CHECK-SAME: exec.writes = array<i64: 6, 7, 8>
// CHECK: exec.parallel %{{.*}} to %c4{{[_0-9]*}} grain 1 {
// CHECK: math.exp {{.*}} : vector<8xf32>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"cpu" = #dlti.target_device_spec<
    "vector_bytes" = 32 : i64, "vector_registers" = 16 : i64>>} {
  func.func @layers(%q: memref<2x4x70x64xf32> {exec.argument = #exec.argument<input>}, %k: memref<2x2x64x64xf32> {exec.argument = #exec.argument<input>},
                    %o: memref<2x4x70x64xf32> {exec.argument = #exec.argument<output>}, %l: memref<2x4x70xf32> {exec.argument = #exec.argument<output>},
                    %dq: memref<2x4x70x64xf32> {exec.argument = #exec.argument<output>},
                    %dk: memref<2x2x64x64xf32> {exec.argument = #exec.argument<output>}, %dv: memref<2x2x64x64xf32> {exec.argument = #exec.argument<output>})
      attributes {exec.entry} {
    exec.attention %q, %k, %k -> %o logsumexp %l scale 0.125 : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32> logsumexp memref<2x4x70xf32>
    exec.attention_backward %q, %q, %k, %k, %o, %l -> %dq, %dk, %dv scale 0.125 name "first" : memref<2x4x70x64xf32>, memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32>, memref<2x4x70x64xf32>, memref<2x4x70xf32> -> memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32>
    exec.attention_backward %q, %q, %k, %k, %o, %l -> %dq, %dk, %dv scale 0.125 name "second" : memref<2x4x70x64xf32>, memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32>, memref<2x4x70x64xf32>, memref<2x4x70xf32> -> memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32>
    return
  }
}
