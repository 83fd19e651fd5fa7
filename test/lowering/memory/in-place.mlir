// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-plan-arena --dist-verify-stage=planned --split-input-file | FileCheck %s
//
// An all-reduce of what nothing else reads takes no memory of its own.

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// A gradient: the product writes the output, where it is reduced.
// CHECK-LABEL: func.func @gradient(
// CHECK-SAME: exec.arena_bytes = 0
// CHECK: exec.gemm {{.*}} -> %arg2 
// CHECK: exec.start all_reduce sum over #dp(%arg2 : memref<4x8xf32>) -> (%arg2 : memref<4x8xf32>)
func.func @gradient(%x: tensor<6x4xf32>, %g: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %t = aten.permute %x [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %0 = aten.matmul %t, %g : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %f = dist.all_reduce sum over #dp %0 : (tensor<4x8xf32>) -> !dist.future<tensor<4x8xf32>>
  %1 = dist.wait %f : !dist.future<tensor<4x8xf32>>
  return %1 : tensor<4x8xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
#tp = #dist.axes<#mesh, ["tp"]>

// Through reshapes and from one all-reduce to the next.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: exec.arena_bytes = 0
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %arg1 to offset: [0], sizes: [4, 6]
// CHECK: exec.launch @relu{{.*}}(%arg0, %[[ROWS]])
// CHECK: exec.collective all_reduce sum over #dp(%arg1 : memref<24xf32>) -> (%arg1 : memref<24xf32>)
// CHECK: exec.collective all_reduce max over #tp(%arg1 : memref<24xf32>) -> (%arg1 : memref<24xf32>)
// CHECK-NOT: copy
// CHECK: return
func.func @chain(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %0 = aten.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = aten.view %0 [24] : (tensor<4x6xf32>) -> tensor<24xf32>
  %2 = dist.all_reduce sum over #dp %1 : (tensor<24xf32>) -> tensor<24xf32>
  %3 = dist.all_reduce max over #tp %2 : (tensor<24xf32>) -> tensor<24xf32>
  return %3 : tensor<24xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// In a buffer where the result is not returned; the output is another memory.
// CHECK-LABEL: func.func @inside(
// CHECK-SAME: exec.arena_bytes = 64
// CHECK: %[[X:.*]] = exec.alloc
// CHECK-NOT: exec.alloc
// CHECK: exec.collective all_reduce sum over #dp(%[[X]] : memref<6xf32>) -> (%[[X]] : memref<6xf32>)
// CHECK: exec.launch @exp{{.*}}(%[[X]], %arg1)
func.func @inside(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = dist.all_reduce sum over #dp %0 : (tensor<6xf32>) -> tensor<6xf32>
  %2 = aten.exp %1 : (tensor<6xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// What is read once more, what the caller gave, a constant, and what has its elements in another order are not overwritten.
// CHECK-LABEL: func.func @others(
// CHECK-DAG: exec.collective all_reduce sum over #dp(%{{[0-9]+}} : memref<6xf32>) -> (%arg1 : memref<6xf32>)
// CHECK-DAG: exec.collective all_reduce sum over #dp(%arg0 : memref<6xf32>) -> (%arg2 : memref<6xf32>)
// CHECK-DAG: exec.collective all_reduce sum over #dp(%{{[0-9]+}} : memref<2xf32>) -> (%arg3 : memref<2xf32>)
// CHECK-DAG: exec.collective all_reduce sum over #dp(%{{[0-9]+}} : memref<3x2xf32>) -> (%arg4 : memref<3x2xf32>)
// CHECK-DAG: exec.launch @exp{{.*}}(%{{[0-9]+}}, %arg5)
func.func @others(%x: tensor<6xf32>)
    -> (tensor<6xf32>, tensor<6xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<6xf32>) {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %read = dist.all_reduce sum over #dp %0 : (tensor<6xf32>) -> tensor<6xf32>
  %again = aten.exp %0 : (tensor<6xf32>) -> tensor<6xf32>
  %given = dist.all_reduce sum over #dp %x : (tensor<6xf32>) -> tensor<6xf32>
  %c = aten.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %known = dist.all_reduce sum over #dp %c : (tensor<2xf32>) -> tensor<2xf32>
  %s = aten.sin %x : (tensor<6xf32>) -> tensor<6xf32>
  %v = aten.view %s [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %p = aten.permute %v [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %turned = dist.all_reduce sum over #dp %p : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %read, %given, %known, %turned, %again : tensor<6xf32>, tensor<6xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<6xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// A value that is returned twice is reduced in the first output, and copied to the second.
// CHECK-LABEL: func.func @twice(
// CHECK: exec.collective all_reduce sum over #dp(%arg1 : memref<6xf32>) -> (%arg1 : memref<6xf32>)
// CHECK: exec.launch @copy{{.*}}(%arg1, %arg2)
func.func @twice(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = dist.all_reduce sum over #dp %0 : (tensor<6xf32>) -> tensor<6xf32>
  return %1, %1 : tensor<6xf32>, tensor<6xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// Operands of a concatenation are computed in it: one that is read later is still there, or the concatenation is not overwritten.
// CHECK-LABEL: func.func @read_later(
// CHECK: exec.collective all_reduce sum over #dp(%[[CAT:.*]] : memref<12xf32>) -> (%arg1 : memref<12xf32>)
// CHECK: exec.launch @exp{{.*}}(%{{.*}}, %arg2)
func.func @read_later(%x: tensor<6xf32>) -> (tensor<12xf32>, tensor<6xf32>) {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = aten.sin %x : (tensor<6xf32>) -> tensor<6xf32>
  %2 = aten.cat %0, %1 dim 0 : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
  %3 = dist.all_reduce sum over #dp %2 : (tensor<12xf32>) -> tensor<12xf32>
  %4 = aten.exp %0 : (tensor<6xf32>) -> tensor<6xf32>
  return %3, %4 : tensor<12xf32>, tensor<6xf32>
}

// CHECK-LABEL: func.func @not_read_later(
// CHECK: exec.collective all_reduce sum over #dp(%arg1 : memref<12xf32>) -> (%arg1 : memref<12xf32>)
func.func @not_read_later(%x: tensor<6xf32>) -> tensor<12xf32> {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = aten.sin %x : (tensor<6xf32>) -> tensor<6xf32>
  %2 = aten.cat %0, %1 dim 0 : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
  %3 = dist.all_reduce sum over #dp %2 : (tensor<12xf32>) -> tensor<12xf32>
  return %3 : tensor<12xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// So does a broadcast. A gather has more to write than to read.
// CHECK-LABEL: func.func @kinds(
// CHECK: exec.collective broadcast over #dp(%arg1 : memref<6xf32>) -> (%arg1 : memref<6xf32>)
// CHECK: exec.collective all_gather over #dp(%{{[0-9]+}} : memref<6xf32>) -> (%arg2 : memref<12xf32>)
func.func @kinds(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<12xf32>) {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = dist.broadcast over #dp from 1 %0 : (tensor<6xf32>) -> tensor<6xf32>
  %2 = aten.sin %x : (tensor<6xf32>) -> tensor<6xf32>
  %3 = dist.all_gather over #dp %2 dim 0 : (tensor<6xf32>) -> tensor<12xf32>
  return %1, %3 : tensor<6xf32>, tensor<12xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>

// A bucket works in place as a whole, or not at all.
// CHECK-LABEL: func.func @bucket(
// CHECK: exec.collective all_reduce sum over #dp(%[[A:[0-9]+]], %arg0 : memref<6xf32>, memref<6xf32>) -> (%arg1, %arg2 : memref<6xf32>, memref<6xf32>)
func.func @bucket(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = aten.relu %x : (tensor<6xf32>) -> tensor<6xf32>
  %1:2 = dist.all_reduce sum over #dp %0, %x : (tensor<6xf32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>)
  return %1#0, %1#1 : tensor<6xf32>, tensor<6xf32>
}
