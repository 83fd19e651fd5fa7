// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-move-products %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-move-products %}
// RUN: shard-opt --dist-move-products --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// STATS: 5 moved

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>

// CHECK-LABEL: func.func @less(
// CHECK: %[[Y:.*]] = aten.linear %arg0, %arg1, %arg2 : (tensor<2x4x64xf32>, {{.*}}) -> tensor<2x4x8xf32>
// CHECK: %[[G:.*]] = dist.all_gather over #tp %[[Y]] dim 1 : (tensor<2x4x8xf32>) -> tensor<2x16x8xf32>
// CHECK: return %[[G]]
func.func @less(%x: tensor<2x4x64xf32>, %w: tensor<8x64xf32> {dist.global_type = tensor<8x64xf32>, dist.layout = #R},
                %b: tensor<8xf32> {dist.global_type = tensor<8xf32>, dist.layout = #R}) -> tensor<2x16x8xf32> {
  %g = dist.all_gather over #tp %x dim 1 : (tensor<2x4x64xf32>) -> tensor<2x16x64xf32>
  %y = aten.linear %g, %w, %b : (tensor<2x16x64xf32>, tensor<8x64xf32>, tensor<8xf32>) -> tensor<2x16x8xf32>
  return %y : tensor<2x16x8xf32>
}

// Two products, and unequal shares.
// CHECK-LABEL: func.func @chain(
// CHECK: aten.mm %arg0, %arg1 : (tensor<?x64xf32>, tensor<64x8xf32>) -> tensor<?x8xf32>
// CHECK: %[[Z:.*]] = aten.mm %{{.*}}, %arg2 : (tensor<?x8xf32>, tensor<8x2xf32>) -> tensor<?x2xf32>
// CHECK: dist.all_gather over #tp %[[Z]] dim 0 : (tensor<?x2xf32>) -> tensor<14x2xf32>
func.func @chain(%x: tensor<?x64xf32> {dist.global_type = tensor<14x64xf32>, dist.layout = #S0},
                 %w: tensor<64x8xf32> {dist.global_type = tensor<64x8xf32>, dist.layout = #R},
                 %v: tensor<8x2xf32> {dist.global_type = tensor<8x2xf32>, dist.layout = #R}) -> tensor<14x2xf32> {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<?x64xf32>) -> tensor<14x64xf32>
  %y = aten.mm %g, %w : (tensor<14x64xf32>, tensor<64x8xf32>) -> tensor<14x8xf32>
  %z = aten.mm %y, %v : (tensor<14x8xf32>, tensor<8x2xf32>) -> tensor<14x2xf32>
  return %z : tensor<14x2xf32>
}

// Columns of the other operand; in flight.
// CHECK-LABEL: func.func @columns(
// CHECK: %[[Y:.*]] = aten.mm %arg1, %arg0 : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[F:.*]] = dist.all_gather over #tp %[[Y]] dim 1 : (tensor<8x4xf32>) -> !dist.future<tensor<8x16xf32>>
// CHECK: dist.wait %[[F]]
func.func @columns(%x: tensor<64x4xf32>, %a: tensor<8x64xf32> {dist.global_type = tensor<8x64xf32>, dist.layout = #R}) -> tensor<8x16xf32> {
  %f = dist.all_gather over #tp %x dim 1 : (tensor<64x4xf32>) -> !dist.future<tensor<64x16xf32>>
  %g = dist.wait %f : !dist.future<tensor<64x16xf32>>
  %y = aten.mm %a, %g : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// The weight is gathered itself, so that all ranks have the same.
// CHECK-LABEL: func.func @gathered_weight(
// CHECK: %[[W:.*]] = dist.all_gather over #tp %arg1
// CHECK: %[[Y:.*]] = aten.linear %arg0, %[[W]]
// CHECK: dist.all_gather over #tp %[[Y]] dim 0
func.func @gathered_weight(%x: tensor<4x64xf32>, %w: tensor<2x64xf32>) -> tensor<16x8xf32> {
  %v = dist.all_gather over #tp %w dim 0 : (tensor<2x64xf32>) -> tensor<8x64xf32>
  %g = dist.all_gather over #tp %x dim 0 : (tensor<4x64xf32>) -> tensor<16x64xf32>
  %y = aten.linear %g, %v : (tensor<16x64xf32>, tensor<8x64xf32>) -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// It would gather more; ranks have weights of their own; rows are summed over; someone else reads what is gathered.
// CHECK-LABEL: func.func @stay(
// CHECK-COUNT-4: dist.all_gather over #tp %arg0 dim 0
func.func @stay(%x: tensor<4x16xf32>, %wide: tensor<64x16xf32> {dist.global_type = tensor<64x16xf32>, dist.layout = #R},
                %own: tensor<8x16xf32>, %rows: tensor<8x16xf32> {dist.global_type = tensor<8x16xf32>, dist.layout = #R})
    -> (tensor<16x64xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x8xf32>, tensor<16x16xf32>) {
  %g0 = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %a = aten.linear %g0, %wide : (tensor<16x16xf32>, tensor<64x16xf32>) -> tensor<16x64xf32>
  %g1 = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %b = aten.linear %g1, %own : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
  %g2 = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %c = aten.mm %rows, %g2 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %g3 = dist.all_gather over #tp %x dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %d = aten.linear %g3, %rows : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
  return %a, %b, %c, %d, %g3 : tensor<16x64xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x8xf32>, tensor<16x16xf32>
}
