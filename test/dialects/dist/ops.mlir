// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s | shard-opt | FileCheck %s
// RUN: shard-opt %s --emit-bytecode | shard-opt | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#dp = #dist.axes<#mesh, ["dp"]>
#R = #dist.layout<#mesh, [R, R]>
#P = #dist.layout<#mesh, [R, P(sum)]>

// CHECK-LABEL: func.func @placement(
func.func @placement(%x: tensor<8x16xf32>, %y: tensor<8x32xf32, #P>) {
  // CHECK: dist.constrain %{{.*}} : tensor<8x16xf32> to #S0dp_open_tp
  %0 = dist.constrain %x : tensor<8x16xf32> to #dist.layout<#mesh, [S(0), ?]>
  // CHECK: dist.redistribute %{{.*}} : tensor<8x32xf32, #Ptp> to tensor<8x32xf32, #R>
  %1 = dist.redistribute %y : tensor<8x32xf32, #P> to tensor<8x32xf32, #R>
  // CHECK: dist.redistribute backward %{{.*}} : tensor<8x32xf32, #R> to tensor<8x32xf32, #Ptp>
  %2 = dist.redistribute backward %1 : tensor<8x32xf32, #R> to tensor<8x32xf32, #P>
  return
}

// CHECK-LABEL: func.func @rank(
func.func @rank() -> (index, index) {
  // CHECK: dist.axis_index over #tp
  %0 = dist.axis_index over #tp
  // CHECK: dist.extent #dist.extents<10 over #mesh ["dp"]>
  %1 = dist.extent #dist.extents<10 over #mesh ["dp"]>
  return %0, %1 : index, index
}

// CHECK-LABEL: func.func @reduce(
func.func @reduce(%x: tensor<8x32xf32>, %y: tensor<?xbf16>) {
  // CHECK: dist.all_reduce sum over #tp %{{.*}} : tensor<8x32xf32>
  %0 = dist.all_reduce sum over #tp %x : tensor<8x32xf32>
  // CHECK: dist.all_reduce avg over #dp %{{.*}}, %{{.*}} : (tensor<8x32xf32>, tensor<?xbf16>) -> (!dist.future<tensor<8x32xf32>>, !dist.future<tensor<?xbf16>>)
  %1:2 = dist.all_reduce avg over #dp %x, %y : (tensor<8x32xf32>, tensor<?xbf16>)
      -> (!dist.future<tensor<8x32xf32>>, !dist.future<tensor<?xbf16>>)
  // CHECK: dist.wait %{{.*}}, %{{.*}} : !dist.future<tensor<8x32xf32>>, !dist.future<tensor<?xbf16>>
  %2:2 = dist.wait %1#0, %1#1 : !dist.future<tensor<8x32xf32>>, !dist.future<tensor<?xbf16>>
  // A bucket may be empty.
  // CHECK: dist.all_reduce max over #tp : () -> ()
  dist.all_reduce max over #tp : () -> ()
  // CHECK: dist.reduce_scatter sum over #tp %{{.*}} dim 0 {kept = true} : (tensor<8x32xf32>) -> tensor<2x32xf32>
  %3 = dist.reduce_scatter sum over #tp %x dim 0 {kept = true} : (tensor<8x32xf32>) -> tensor<2x32xf32>
  // CHECK: dist.reduce_scatter min over #tp %{{.*}} dim 1 extents [20, 0, 5, 7] : (tensor<8x32xf32>) -> tensor<8x?xf32>
  %4 = dist.reduce_scatter min over #tp %x dim 1 extents [20, 0, 5, 7]
      : (tensor<8x32xf32>) -> tensor<8x?xf32>
  return
}

// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<4x?xf32>, %[[N:.*]]: index, %[[M:.*]]: index
func.func @gather(%x: tensor<4x8xf32>, %y: tensor<4x?xf32>, %n: index, %m: index) {
  // CHECK: dist.all_gather over #tp %[[X]] dim 0, %[[Y]] dim 1 extents [5, 3, 0, 2]
  %0:2 = dist.all_gather over #tp %x dim 0, %y dim 1 extents [5, 3, 0, 2]
      : (tensor<4x8xf32>, tensor<4x?xf32>) -> (tensor<16x8xf32>, tensor<4x10xf32>)
  // CHECK: dist.all_gather over #tp %[[Y]] dim 1 full %[[N]], %[[Y]] dim 1 extents [%[[M]], 3, %[[N]], 2], %[[X]] dim 1, %[[Y]] dim 1 full %[[M]]
  %1:4 = dist.all_gather over #tp %y dim 1 full %n, %y dim 1 extents [%m, 3, %n, 2], %x dim 1, %y dim 1 full %m
      : (tensor<4x?xf32>, tensor<4x?xf32>, tensor<4x8xf32>, tensor<4x?xf32>)
      -> (tensor<4x?xf32>, tensor<4x?xf32>, tensor<4x32xf32>, tensor<4x?xf32>)
  return
}

// CHECK-LABEL: func.func @exchange(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[Y:.*]]: tensor<?x4xf32>, %[[N:.*]]: index, %[[M:.*]]: index
func.func @exchange(%x: tensor<8x4xf32>, %y: tensor<?x4xf32>, %n: index, %m: index) {
  // CHECK: dist.all_to_all over #tp %[[X]] split 0 concat 1 : (tensor<8x4xf32>) -> tensor<2x16xf32>
  %0 = dist.all_to_all over #tp %x split 0 concat 1 : (tensor<8x4xf32>) -> tensor<2x16xf32>
  // CHECK: dist.all_to_all over #tp %[[X]] split 0 concat 0 : tensor<8x4xf32>
  %1 = dist.all_to_all over #tp %x split 0 concat 0 : tensor<8x4xf32>
  // CHECK: dist.all_to_all over #dp %[[Y]] split 0 extents [%[[N]], 3] concat 0 extents [2, %[[M]]], %[[X]] split 1 concat 0 full %[[N]]
  %2:2 = dist.all_to_all over #dp %y split 0 extents [%n, 3] concat 0 extents [2, %m], %x split 1 concat 0 full %n
      : (tensor<?x4xf32>, tensor<8x4xf32>) -> (tensor<?x4xf32>, tensor<?x2xf32>)
  // CHECK: dist.broadcast over #group from 3 %[[X]], %[[Y]] : tensor<8x4xf32>, tensor<?x4xf32>
  %3:2 = dist.broadcast over #dist.groups<[[0, 2, 4, 6], [1, 3, 5, 7]]> from 3 %x, %y
      : tensor<8x4xf32>, tensor<?x4xf32>
  // CHECK: dist.permute over #dist.named_group<"ring", 2> pairs {{\[\[}}0, 1], [1, 0]] %[[X]] : tensor<8x4xf32>
  %4 = dist.permute over #dist.named_group<"ring", 2> pairs [[0, 1], [1, 0]] %x : tensor<8x4xf32>
  // CHECK: dist.permute over #tp pairs [] %[[X]], %[[Y]] dim 0 extents [%[[N]], 2, 3, %[[M]]], %[[X]] dim 1 extents [4, 4, 0, 2] :
  %5:3 = dist.permute over #tp pairs [] %x, %y dim 0 extents [%n, 2, 3, %m], %x dim 1 extents [4, 4, 0, 2]
      : (tensor<8x4xf32>, tensor<?x4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<?x4xf32>, tensor<8x?xf32>)
  return
}

// CHECK-LABEL: func.func @crossing(
func.func @crossing(%x: tensor<8xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<4xf32>) {
  // CHECK: dist.leave_mesh on #mesh %{{.*}} : tensor<8xf32> to tensor<?xf32>
  %0 = dist.leave_mesh on #mesh %x : tensor<8xf32> to tensor<?xf32>
  // CHECK: dist.enter_mesh on #mesh %{{.*}} : tensor<?xf32> to tensor<4xf32>
  %1 = dist.enter_mesh on #mesh %y : tensor<?xf32> to tensor<4xf32>
  return %0, %1 : tensor<?xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @read_sizes(
func.func @read_sizes(%counts: tensor<3xi64>) -> (index, index, index) {
  // CHECK: %{{.*}}:3 = dist.read_sizes %{{.*}} at_most 100 : tensor<3xi64>
  %n:3 = dist.read_sizes %counts at_most 100 : tensor<3xi64>
  return %n#0, %n#1, %n#2 : index, index, index
}
