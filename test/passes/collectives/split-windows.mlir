// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whatever it costs, and what every rank computes.
// DEFINE: %{local} = --dist-plan-redistributions=planner=greedy --dist-localize --canonicalize --cse
// DEFINE: %{pass} = --dist-split-windows=mode=all
// RUN: shard-opt %{local} %s -o %t.mlir
// RUN: shard-opt %t.mlir %{pass} | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %t.mlir --tolerance 1e-5 -- %{pass} | FileCheck --check-prefix=SAME %s %}
// SAME: 8 functions, 0 failures
// RUN: shard-opt %t.mlir %{pass} --dist-schedule-collectives --dist-verify-schedule --dist-verify-stage=stage=scheduled | FileCheck --check-prefix=ORDER %s
// RUN: shard-opt %t.mlir %{pass} --pass-statistics -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s
// STATS-DAG: 8 split
// RUN: shard-opt %t.mlir --dist-split-windows="mode=all remarks" -o /dev/null 2>&1 | FileCheck --check-prefix=REMARK %s
// REMARK: remark: what needs nothing of other ranks is computed apart
// RUN: shard-opt %t.mlir --dist-split-windows=mode=off | FileCheck --check-prefix=WHOLE %s
// WHOLE-LABEL: func.func @convolution
// WHOLE: aten.convolution
// WHOLE-NOT: aten.convolution
// WHOLE: return
// RUN: not shard-opt --dist-split-windows="mode=some topology=mars" %s 2>&1 | FileCheck --check-prefix=WRONG %s
// WRONG: error: mode: 'some' is neither off, auto nor all

#mesh = #dist.mesh<["h" = 2]>
#R = #dist.layout<#mesh, [R]>
#S2 = #dist.layout<#mesh, [S(2)]>
#three = #dist.mesh<["h" = 3]>
#R3 = #dist.layout<#three, [R]>
#S2three = #dist.layout<#three, [S(2)]>
#S2uneven = #dist.layout<#three, [S(2, sizes = [9, 0, 2])]>
#square = #dist.mesh<["h" = 2, "w" = 2]>
#Rsquare = #dist.layout<#square, [R, R]>
#S23 = #dist.layout<#square, [S(2), S(3)]>

// The interior reads the operand as it is. One position before it and one behind it read what arrives, or padding.
// CHECK-LABEL: func.func @convolution(
// CHECK: %[[SENT:.*]] = dist.all_to_all
// CHECK-DAG: %[[I:.*]] = aten.convolution %arg0, %arg1 {{.*}} : (tensor<1x2x8x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
// CHECK-DAG: aten.convolution {{.*}} : (tensor<1x2x3x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x1x6xf32>
// CHECK: aten.cat %{{.*}}, %[[I]], %{{.*}} dim 2 : (tensor<1x2x1x6xf32>, tensor<1x2x6x6xf32>, tensor<1x2x1x6xf32>) -> tensor<1x2x8x6xf32>
// ORDER-LABEL: func.func @convolution(
// ORDER: %[[F:.*]] = dist.all_to_all {{.*}} -> !dist.future
// ORDER: aten.convolution %arg0, %arg1 {{.*}} -> tensor<1x2x6x6xf32>
// ORDER: dist.wait %[[F]]
// ORDER: aten.convolution {{.*}} -> tensor<1x2x1x6xf32>
func.func @convolution(%x: tensor<1x2x16x6xf32, #S2>, %w: tensor<2x2x3x3xf32, #R>) -> tensor<1x2x16x6xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<1x2x16x6xf32, #S2>, tensor<2x2x3x3xf32, #R>) -> tensor<1x2x16x6xf32, #S2>
  return %0 : tensor<1x2x16x6xf32, #S2>
}

// With strides, and shards of different sizes.
// CHECK-LABEL: func.func @strided(
// CHECK-COUNT-3: aten.convolution
// CHECK: aten.cat
func.func @strided(%x: tensor<1x2x31x5xf32, #S2three>, %w: tensor<7x2x3x3xf32, #R3>) -> tensor<1x7x16x5xf32, #S2three> {
  %0 = aten.convolution %x, %w stride [2, 1] padding [1, 1] dilation [1, 1] : (tensor<1x2x31x5xf32, #S2three>, tensor<7x2x3x3xf32, #R3>) -> tensor<1x7x16x5xf32, #S2three>
  return %0 : tensor<1x7x16x5xf32, #S2three>
}

// One rank has no rows, and one fewer than the window covers: their interior is empty.
// CHECK-LABEL: func.func @uneven(
// CHECK: aten.convolution
// CHECK: aten.convolution
// CHECK: aten.cat
func.func @uneven(%x: tensor<1x2x11x4xf32, #S2uneven>, %w: tensor<2x2x3x1xf32, #R3>) -> tensor<1x2x11x4xf32, #S2uneven> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 0] dilation [1, 1] : (tensor<1x2x11x4xf32, #S2uneven>, tensor<2x2x3x1xf32, #R3>) -> tensor<1x2x11x4xf32, #S2uneven>
  return %0 : tensor<1x2x11x4xf32, #S2uneven>
}

// CHECK-LABEL: func.func @pools(
// CHECK-COUNT-2: aten.max_pool
// CHECK-COUNT-2: aten.avg_pool
func.func @pools(%x: tensor<1x2x16x4xf32, #S2>) -> (tensor<1x2x14x2xf32, #S2>, tensor<1x2x13x4xf32, #S2>) {
  %0 = aten.max_pool %x kernel [3, 3] stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x2x16x4xf32, #S2>) -> tensor<1x2x14x2xf32, #S2>
  %1 = aten.avg_pool %x kernel [4, 1] stride [1, 1] padding [0, 0] : (tensor<1x2x16x4xf32, #S2>) -> tensor<1x2x13x4xf32, #S2>
  return %0, %1 : tensor<1x2x14x2xf32, #S2>, tensor<1x2x13x4xf32, #S2>
}

// Columns are exchanged behind rows. Half of what needs neither is computed during each exchange.
// CHECK-LABEL: func.func @square(
// CHECK-DAG: %[[A:.*]] = aten.slice %arg0 dim 2 [0 : 5 : 1]
// CHECK-DAG: aten.convolution %[[A]], %arg1 {{.*}} -> tensor<1x2x3x6xf32>
// CHECK-DAG: %[[B:.*]] = aten.slice %arg0 dim 2 [3 : 8 : 1]
// CHECK-DAG: aten.convolution %[[B]], %arg1 {{.*}} -> tensor<1x2x3x6xf32>
func.func @square(%x: tensor<1x2x16x16xf32, #S23>, %w: tensor<2x2x3x3xf32, #Rsquare>) -> tensor<1x2x16x16xf32, #S23> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<1x2x16x16xf32, #S23>, tensor<2x2x3x3xf32, #Rsquare>) -> tensor<1x2x16x16xf32, #S23>
  return %0 : tensor<1x2x16x16xf32, #S23>
}

// Every position covers rows of another rank.
// CHECK-LABEL: func.func @no_interior(
// CHECK: aten.convolution
// CHECK-NOT: aten.convolution
// CHECK: return
func.func @no_interior(%x: tensor<1x1x4x4xf32, #S2>, %w: tensor<4x1x3x3xf32, #R>) -> tensor<1x4x2x2xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<1x1x4x4xf32, #S2>, tensor<4x1x3x3xf32, #R>) -> tensor<1x4x2x2xf32, #S2>
  return %0 : tensor<1x4x2x2xf32, #S2>
}

// Nothing is exchanged.
// CHECK-LABEL: func.func @alone(
// CHECK: aten.convolution
// CHECK-NOT: aten.convolution
// CHECK: return
func.func @alone(%x: tensor<1x1x8x4xf32, #S2>, %w: tensor<1x1x2x2xf32, #R>) -> tensor<1x1x4x2xf32, #S2> {
  %0 = aten.convolution %x, %w stride [2, 2] padding [0, 0] dilation [1, 1] : (tensor<1x1x8x4xf32, #S2>, tensor<1x1x2x2xf32, #R>) -> tensor<1x1x4x2xf32, #S2>
  return %0 : tensor<1x1x4x2xf32, #S2>
}

// Of two layers, the second sends rows of what the first made.
// CHECK-LABEL: func.func @chain(
// CHECK-COUNT-6: aten.convolution
func.func @chain(%x: tensor<1x2x16x6xf32, #S2>, %w: tensor<2x2x3x3xf32, #R>) -> tensor<1x2x16x6xf32, #S2> {
  %0 = aten.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<1x2x16x6xf32, #S2>, tensor<2x2x3x3xf32, #R>) -> tensor<1x2x16x6xf32, #S2>
  %1 = aten.relu %0 : (tensor<1x2x16x6xf32, #S2>) -> tensor<1x2x16x6xf32, #S2>
  %2 = aten.convolution %1, %w stride [1, 1] padding [1, 1] dilation [1, 1] : (tensor<1x2x16x6xf32, #S2>, tensor<2x2x3x3xf32, #R>) -> tensor<1x2x16x6xf32, #S2>
  return %2 : tensor<1x2x16x6xf32, #S2>
}
