// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>
#Pavg = #dist.layout<#mesh, [P(avg)]>
#Pmax = #dist.layout<#mesh, [P(max)]>

// Shards of 3, 3, 3 and 1: a sum over the global ten, not a mean of means (G6).
// CHECK-LABEL: func.func @mean
// CHECK-DAG: %[[TEN:.*]] = aten.constant dense<1.000000e+01> : tensor<f32>
// CHECK: %[[SUM:.*]] = aten.sum %arg0 dim [1] to f32 : (tensor<8x?xf32>) -> tensor<8xf32>
// CHECK: %[[Y:.*]] = aten.div %[[SUM]], %[[TEN]]
// CHECK: return %[[Y]]
func.func @mean(%x: tensor<8x10xf32, #S1>) -> tensor<8xf32, #P> {
  %y = aten.mean %x dim [1] : (tensor<8x10xf32, #S1>) -> tensor<8xf32, #P>
  return %y : tensor<8xf32, #P>
}

// As an average over four ranks: four times as much.
// CHECK-LABEL: func.func @mean_as_average
// CHECK: aten.constant dense<2.500000e+00> : tensor<f32>
func.func @mean_as_average(%x: tensor<8x10xf32, #S1>) -> tensor<8xf32, #Pavg> {
  %y = aten.mean %x dim [1] : (tensor<8x10xf32, #S1>) -> tensor<8xf32, #Pavg>
  return %y : tensor<8xf32, #Pavg>
}

// CHECK-LABEL: func.func @mean_of_whole_rows
// CHECK-NEXT: aten.mean %arg0 dim [1] : (tensor<2x10xf32>) -> tensor<2xf32>
func.func @mean_of_whole_rows(%x: tensor<8x10xf32, #S0>) -> tensor<8xf32, #S0> {
  %y = aten.mean %x dim [1] : (tensor<8x10xf32, #S0>) -> tensor<8xf32, #S0>
  return %y : tensor<8xf32, #S0>
}

// CHECK-LABEL: func.func @amax
// CHECK-NEXT: aten.amax %arg0 dim [1] : (tensor<8x?xf32>) -> tensor<8xf32>
func.func @amax(%x: tensor<8x10xf32, #S1>) -> tensor<8xf32, #Pmax> {
  %y = aten.amax %x dim [1] : (tensor<8x10xf32, #S1>) -> tensor<8xf32, #Pmax>
  return %y : tensor<8xf32, #Pmax>
}

// CHECK-LABEL: func.func @vector_norm
// CHECK: aten.sum %{{.*}} dim [1] to f32
// CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<8xf32>
// CHECK: aten.sqrt
func.func @vector_norm(%x: tensor<8x10xf32, #S1>) -> tensor<8xf32, #R> {
  %y = aten.linalg_vector_norm %x dim [1] : (tensor<8x10xf32, #S1>) -> tensor<8xf32, #R>
  return %y : tensor<8xf32, #R>
}

// The largest value over all ranks, then the least global position that has it.
// CHECK-LABEL: func.func @argmax
// CHECK-DAG: %[[NONE:.*]] = aten.constant dense<9223372036854775807> : tensor<i64>
// CHECK: dist.all_reduce max over #tp %{{.*}} : tensor<8x1xf32>
// CHECK: aten.isnan
// CHECK: dist.extent #dist.extents<table [0, 3, 6, 9] over #mesh>
// CHECK: aten.where %{{.*}}, %{{.*}}, %[[NONE]]
// CHECK: dist.all_reduce min over #tp %{{.*}} : tensor<8xi64>
func.func @argmax(%x: tensor<8x10xf32, #S1>) -> tensor<8xi64, #R> {
  %y = aten.argmax %x dim 1 : (tensor<8x10xf32, #S1>) -> tensor<8xi64, #R>
  return %y : tensor<8xi64, #R>
}

// One total a rank is gathered; those of the ranks before this one are added to its scan.
// CHECK-LABEL: func.func @cumsum
// CHECK: %[[TOTAL:.*]] = aten.sum %arg0 dim [1] keepdim to f32 : (tensor<8x?xf32>) -> tensor<8x1xf32>
// CHECK: %[[ALL:.*]] = dist.all_gather over #tp %[[TOTAL]] dim 1 : (tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK: %[[I:.*]] = dist.axis_index over #tp
// CHECK: %[[MINE:.*]] = {{.*}}%[[I]]
// CHECK: %[[BEFORE:.*]] = aten.lt %{{.*}}, %{{.*}} : (tensor<1x4xi64>, tensor<i64>) -> tensor<1x4xi1>
// CHECK: %[[MASKED:.*]] = aten.where %[[BEFORE]], %[[ALL]], %{{.*}} -> tensor<8x4xf32>
// CHECK: %[[PREFIX:.*]] = aten.sum %[[MASKED]] dim [1] keepdim
// CHECK: %[[SCAN:.*]] = aten.cumsum %arg0 dim 1
// CHECK: aten.add %[[PREFIX]], %[[SCAN]]
func.func @cumsum(%x: tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1> {
  %y = aten.cumsum %x dim 1 : (tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1>
  return %y : tensor<8x10xf32, #S1>
}

// A scan between two flips begins at the end: each rank turns its own part, and adds the totals of the ranks behind it.
// CHECK-LABEL: func.func @cumsum_from_the_end
// CHECK-NOT: dist.permute
// CHECK-NOT: dist.all_to_all
// CHECK: %[[ALL:.*]] = dist.all_gather over #tp %{{.*}} dim 1 : (tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK: %[[BEHIND:.*]] = aten.gt %{{.*}}, %{{.*}} : (tensor<1x4xi64>, tensor<i64>) -> tensor<1x4xi1>
// CHECK: aten.where %[[BEHIND]], %[[ALL]]
// CHECK: %[[TURNED:.*]] = aten.flip %arg0 [1]
// CHECK: %[[SCAN:.*]] = aten.cumsum %[[TURNED]] dim 1
// CHECK: aten.flip %[[SCAN]] [1]
// CHECK-NOT: dist.
func.func @cumsum_from_the_end(%x: tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1> {
  %0 = aten.flip %x [1] : (tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1>
  %1 = aten.cumsum %0 dim 1 : (tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1>
  %2 = aten.flip %1 [1] : (tensor<8x10xf32, #S1>) -> tensor<8x10xf32, #S1>
  return %2 : tensor<8x10xf32, #S1>
}

// What is between the flips is also wanted itself.
// CHECK-LABEL: func.func @cumsum_of_flipped
// CHECK-COUNT-2: dist.permute
func.func @cumsum_of_flipped(%x: tensor<8x12xf32, #S1>) -> (tensor<8x12xf32, #S1>, tensor<8x12xf32, #S1>) {
  %0 = aten.flip %x [1] : (tensor<8x12xf32, #S1>) -> tensor<8x12xf32, #S1>
  %1 = aten.cumsum %0 dim 1 : (tensor<8x12xf32, #S1>) -> tensor<8x12xf32, #S1>
  %2 = aten.flip %1 [1] : (tensor<8x12xf32, #S1>) -> tensor<8x12xf32, #S1>
  return %1, %2 : tensor<8x12xf32, #S1>, tensor<8x12xf32, #S1>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S1 = #dist.layout<#mesh, [S(1)]>
#blocks = #dist.layout<#mesh, [S(1, blocks = 2)]>

func.func @refused(%x: tensor<8x12xf32, #S1>, %b: tensor<8x12xf32, #blocks>) {
  // expected-error @+1 {{a mean over a sharded dim is P(sum) over its axis}}
  %0 = aten.mean %x dim [1] : (tensor<8x12xf32, #S1>) -> tensor<8xf32, #R>
  // expected-error @+1 {{dim 1 is sharded in blocks; replicate it before}}
  %1 = aten.cumsum %b dim 1 : (tensor<8x12xf32, #blocks>) -> tensor<8x12xf32, #blocks>
  return
}
