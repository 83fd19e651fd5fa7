// RUN: shard-opt %s --dist-bucket-collectives | FileCheck %s
// RUN: shard-opt %s --dist-schedule-collectives | FileCheck %s
// RUN: shard-opt %s --dist-predict-timeline | FileCheck %s

// What costs are asked for, although few programs have it.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// A bucket without tensors, in a function whose sizes differ by rank.
// CHECK-LABEL: func.func @empty(
// CHECK: dist.all_gather over
func.func @empty(%x: tensor<?x4xf32>) -> tensor<5x4xf32> {
  dist.all_reduce max over #tp : () -> ()
  %0 = dist.all_gather over #tp %x dim 0 extents [3, 2] : (tensor<?x4xf32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// Tensors of index values.
// CHECK-LABEL: func.func @indices(
// CHECK: dist.all_gather over {{.*}} : (tensor<4xindex>) ->
func.func @indices(%x: tensor<4xindex>) -> tensor<8xindex> {
  %0 = dist.all_gather over #tp %x dim 0 : (tensor<4xindex>) -> tensor<8xindex>
  return %0 : tensor<8xindex>
}
