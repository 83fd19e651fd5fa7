// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --exec-form-kernels --exec-assign-buffers --exec-plan-arena --split-input-file | FileCheck %s

// Memory of a collective in flight is nobody else's until its wait. After %y's last reader here, its memory is free for the
// next result of that size: but the collective still reads it.

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// CHECK-LABEL: func.func @operand_in_flight
func.func @operand_in_flight(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK: %[[Y:.*]] = exec.alloc at [[AT:[0-9]+]] : memref<8x16xf32>
  %y = aten.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[SUM:.*]] = exec.start all_reduce {{.*}}over #{{.*}}(%[[Y]] : {{.*}}) -> (%{{.*}} : memref<8x16xf32>)
  %f = dist.all_reduce sum over #dp %y : (tensor<8x16xf32>) -> !dist.future<tensor<8x16xf32>>
  // CHECK-NOT: exec.alloc at [[AT]] : memref<8x16xf32>
  %a = aten.linear %y, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %b = aten.linear %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %c = aten.linear %b, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  // CHECK: exec.wait %[[SUM]]
  %r = dist.wait %f : !dist.future<tensor<8x16xf32>>
  // Afterwards it is free.
  // CHECK: exec.alloc at [[AT]] : memref<8x16xf32>
  %d = aten.linear %c, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %e = aten.linear %d, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %e, %r : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// The same without a collective in flight: the candidate is real.

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// CHECK-LABEL: func.func @operand_at_rest
func.func @operand_at_rest(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK: %[[Y:.*]] = exec.alloc at [[AT:[0-9]+]] : memref<8x16xf32>
  %y = aten.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %r = dist.all_reduce sum over #dp %y : tensor<8x16xf32>
  %a = aten.linear %y, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  // CHECK: exec.gemm %[[Y]]
  // CHECK: exec.alloc at [[AT]] : memref<8x16xf32>
  %b = aten.linear %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %c = aten.linear %b, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %c, %r : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// What a collective writes is taken from its start on, and a view of the operand is the operand. One that nobody waits for is
// in flight to the end.

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// CHECK-LABEL: func.func @view_and_no_wait
func.func @view_and_no_wait(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<8x16xf32>, !dist.future<tensor<32x16xf32>>) {
  // CHECK: %[[Y:.*]] = exec.alloc at [[AT:[0-9]+]] : memref<8x16xf32>
  %y = aten.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %v = aten.view %y [16, 8] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  // CHECK: exec.start all_gather
  %f = dist.all_gather over #dp %v dim 0 : (tensor<16x8xf32>) -> !dist.future<tensor<64x8xf32>>
  %g = dist.all_gather over #dp %x dim 0 : (tensor<8x16xf32>) -> !dist.future<tensor<32x16xf32>>
  // CHECK-NOT: exec.alloc at [[AT]] : memref<8x16xf32>
  %a = aten.linear %y, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %b = aten.linear %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %c = aten.linear %b, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  // CHECK: return
  return %c, %g : tensor<8x16xf32>, !dist.future<tensor<32x16xf32>>
}
