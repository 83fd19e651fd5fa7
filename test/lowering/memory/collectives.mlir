// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --split-input-file | FileCheck %s
//
// Collectives on dense buffers. `extents` are those of the whole tensor: gathered and scattered dims included.

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// What is returned is received where the caller wants it.
// CHECK-LABEL: func.func @gather(
// CHECK: %[[X:.*]] = exec.alloc : memref<4x3xf32>
// CHECK: exec.launch @relu{{.*}}(%arg0, %[[X]])
// CHECK: exec.collective all_gather over #tp(%[[X]] : memref<4x3xf32>) -> (%arg1 : memref<8x3xf32>)
// CHECK-SAME: extents = [array<i64: 8, 3>], gather_dims = array<i64: 0>, gather_extents = [array<i64>]
// CHECK-SAME: scatter_dims = array<i64: -1>
func.func @gather(%x: tensor<4x3xf32>) -> tensor<8x3xf32> {
  %0 = aten.relu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = dist.all_gather over #tp %0 dim 0 : (tensor<4x3xf32>) -> tensor<8x3xf32>
  return %1 : tensor<8x3xf32>
}

// An operand that is not dense is copied before the start, not behind the back of a collective in flight.
// CHECK-LABEL: func.func @strided(
// CHECK: exec.launch @copy{{.*}}(%{{.*}}, %[[DENSE:.*]]) name "copy"
// CHECK: %[[T:.*]] = exec.start all_gather over #tp(%[[DENSE]] : memref<4x3xf32>) -> (%arg1 : memref<8x3xf32>)
// CHECK: exec.wait %[[T]]
func.func @strided(%x: tensor<3x4xf32>) -> tensor<8x3xf32> {
  %0 = aten.transpose %x [0, 1] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %f = dist.all_gather over #tp %0 dim 0 : (tensor<4x3xf32>) -> !dist.future<tensor<8x3xf32>>
  %1 = dist.wait %f : !dist.future<tensor<8x3xf32>>
  return %1 : tensor<8x3xf32>
}

// Seven columns: four for the first rank, three for the second. A list of extents is handed on.
// CHECK-LABEL: func.func @uneven(
// CHECK: exec.collective reduce_scatter sum over #tp(%arg0 : memref<5x7xf32>) -> (%arg1 : memref<5x4xf32>)
// CHECK-SAME: extents = [array<i64: 5, 7>]
// CHECK-SAME: scatter_dims = array<i64: 1>, scatter_extents = [array<i64: 4, 3>]
func.func @uneven(%x: tensor<5x7xf32>) -> tensor<5x4xf32> {
  %0 = dist.reduce_scatter sum over #tp %x dim 1 extents [4, 3] : (tensor<5x7xf32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// Both dims are whole in `extents`: 2 x 4 rows are gathered, 6 columns scattered.
// CHECK-LABEL: func.func @exchange(
// CHECK: exec.collective all_to_all over #tp(%arg0 : memref<4x6xf32>) -> (%arg1 : memref<8x3xf32>)
// CHECK-SAME: extents = [array<i64: 8, 6>], gather_dims = array<i64: 0>
// CHECK-SAME: scatter_dims = array<i64: 1>
func.func @exchange(%x: tensor<4x6xf32>) -> tensor<8x3xf32> {
  %0 = dist.all_to_all over #tp %x split 1 concat 0 : (tensor<4x6xf32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// Within one dim, `extents` has what this rank has, and the lists are its own. The last row stays where it is.
// CHECK-LABEL: func.func @within(
// CHECK: exec.collective all_to_all over #tp(%arg0 : memref<5x3xf32>) -> (%arg1 : memref<7x3xf32>)
// CHECK-SAME: extents = [array<i64: 5, 3>], gather_dims = array<i64: 0>, gather_extents = [array<i64: 1, 6>]
// CHECK-SAME: scatter_dims = array<i64: 0>, scatter_extents = [array<i64: 1, 3>]
// CHECK-DAG: %[[N:.*]] = dist.extent #dist.extents<table [1, 2, 1, 2]
// CHECK-DAG: %[[M:.*]] = dist.extent #dist.extents<table [3, 0, 4, 1]
// CHECK: %[[ROWS:.*]] = arith.addi %[[M]], %{{.*}}
// CHECK: %[[OUT:.*]] = memref.reinterpret_cast %arg2 to offset: [0], sizes: [%[[ROWS]], 3]
// CHECK: exec.collective all_to_all over #tp(%arg0 : memref<5x3xf32>) -> (%[[OUT]] : {{.*}}) sizes(%[[M]], %[[N]])
// CHECK-SAME: extents = [array<i64: 5, 3>]
// CHECK-SAME: gather_extents = [array<i64: {{-[0-9]+}}, 2>]
// CHECK-SAME: scatter_extents = [array<i64: {{-[0-9]+}}, 0>]
func.func @within(%x: tensor<5x3xf32>) -> (tensor<7x3xf32>, tensor<?x3xf32>) {
  %0 = dist.all_to_all over #tp %x split 0 extents [1, 3] concat 0 extents [1, 6] : (tensor<5x3xf32>) -> tensor<7x3xf32>
  %n = dist.extent #dist.extents<table [1, 2, 1, 2] over #mesh>
  %m = dist.extent #dist.extents<table [3, 0, 4, 1] over #mesh>
  %1 = dist.all_to_all over #tp %x split 0 extents [%n, 0] concat 0 extents [%m, 2] : (tensor<5x3xf32>) -> tensor<?x3xf32>
  return %0, %1 : tensor<7x3xf32>, tensor<?x3xf32>
}

// A bucket is one collective, waited for once, before the first of its results is read. bool is i8 in memory only.
// CHECK-LABEL: func.func @bucket(
// CHECK: %[[T:.*]] = exec.start all_reduce max over #tp(%arg0, %arg1 : memref<4xf32>, memref<5xi8>) -> (%[[X:.*]], %arg3 :
// CHECK-SAME: element_types = [f32, i1]
// CHECK-NOT: exec.wait
// CHECK: exec.wait %[[T]]
// CHECK: exec.launch @relu{{.*}}(%[[X]], %arg2)
// CHECK-NOT: exec.wait
// CHECK: return
func.func @bucket(%x: tensor<4xf32>, %y: tensor<5xi1>) -> (tensor<4xf32>, tensor<5xi1>) {
  %f:2 = dist.all_reduce max over #tp %x, %y
      : (tensor<4xf32>, tensor<5xi1>) -> (!dist.future<tensor<4xf32>>, !dist.future<tensor<5xi1>>)
  %a = dist.wait %f#0 : !dist.future<tensor<4xf32>>
  %b = dist.wait %f#1 : !dist.future<tensor<5xi1>>
  %c = aten.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  return %c, %b : tensor<4xf32>, tensor<5xi1>
}

// CHECK-LABEL: func.func @point_to_point(
// CHECK: exec.collective broadcast over #tp(%arg0 : memref<4xf32>) -> (%arg1 : memref<4xf32>)
// CHECK-SAME: root = 1 : i64
// CHECK: exec.collective permute over #tp(%arg0 : memref<4xf32>) -> (%arg2 : memref<4xf32>)
// CHECK-SAME: pairs = array<i64: 0, 1>
func.func @point_to_point(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.broadcast over #tp from 1 %x : tensor<4xf32>
  %1 = dist.permute over #tp pairs [[0, 1]] %x : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// What is sent while a kernel computes has its own memory: relu, which could run in place, does not.
// CHECK-LABEL: func.func @sent_and_read(
// CHECK: exec.launch @exp{{.*}}(%arg0, %[[X:.*]]) name
// CHECK: %[[T:.*]] = exec.start all_reduce sum over #tp(%[[X]] : memref<4xf32>) -> (%[[S:.*]] : memref<4xf32>)
// CHECK: %[[Y:.*]] = exec.alloc : memref<4xf32>
// CHECK: exec.launch @relu{{.*}}(%[[X]], %[[Y]]) name
// CHECK: exec.wait %[[T]]
// CHECK: exec.launch @add{{.*}}(%[[S]], %[[Y]], %arg1)
func.func @sent_and_read(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = aten.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %f = dist.all_reduce sum over #tp %0 : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %1 = aten.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %w = dist.wait %f : !dist.future<tensor<4xf32>>
  %2 = aten.add %w, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
