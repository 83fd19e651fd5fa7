// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --dist-place | FileCheck %s

// Numbers are made where they are used: no rank makes all of them to take its part. The states stay whole.
// CHECK-LABEL: func.func @dropout
// CHECK-SAME: %[[SEED:[a-z0-9]+]]: tensor<i64, #R> {{{[^}]*}}dist.name = "random.seed"}
// CHECK: %[[NUMBERS:.*]] = aten.random "uniform" [8, 4] f32 {{.*}} -> tensor<8x4xf32, #S0dp>
// CHECK: %[[MASK:.*]] = aten.lt %[[NUMBERS]], {{.*}} -> tensor<8x4xi1, #S0dp>
// CHECK-NEXT: aten.dropout %{{.*}}, %[[MASK]] {{.*}} -> tensor<8x4xf32, #S0dp>
// CHECK-NOT: dist.redistribute
#mesh = #dist.mesh<["dp" = 2]>
module attributes {dist.mesh = #mesh} {
func.func @dropout(%x: tensor<8x4xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.kind = "input", dist.name = "x"},
                   %seed: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.seed"},
                   %offset: tensor<i64> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "random.offset"})
    -> (tensor<8x4xf32> {dist.kind = "output", dist.name = "y"}, tensor<i64> {dist.kind = "state_mutation", dist.name = "random.offset"}) {
  %numbers = aten.random "uniform" [8, 4] f32 seed(%seed) offset(%offset) : (tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  %keep = aten.constant dense<0.75> : tensor<f32>
  %mask = aten.lt %numbers, %keep : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xi1>
  %y = aten.dropout %x, %mask {p = 0.25 : f64} : (tensor<8x4xf32>, tensor<8x4xi1>) -> tensor<8x4xf32>
  %c = aten.constant dense<32> : tensor<i64>
  %next = aten.add %offset, %c : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %y, %next : tensor<8x4xf32>, tensor<i64>
}
}
