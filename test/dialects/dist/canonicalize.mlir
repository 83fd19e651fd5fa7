// RUN: shard-opt %s --canonicalize --cse --split-input-file | FileCheck %s

#mesh = #dist.mesh<["dp" = 1, "tp" = 4]>
#R = #dist.layout<#mesh, [R, R]>
#S = #dist.layout<#mesh, [R, S(0)]>
#P = #dist.layout<#mesh, [R, P(sum)]>

// CHECK-LABEL: func.func @constrain(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
func.func @constrain(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.constrain %x : tensor<8xf32> to #dist.layout<#mesh, [?, ?]>
  // CHECK: %[[A:.*]] = dist.constrain %[[X]]
  %1 = dist.constrain %x : tensor<8xf32> to #S
  %2 = dist.constrain %1 : tensor<8xf32> to #S
  // CHECK: %[[B:.*]] = dist.constrain %[[A]]
  %3 = dist.constrain %2 : tensor<8xf32> to #R
  // CHECK: return %[[X]], %[[A]], %[[B]]
  return %0, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @redistribute(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32, #Ptp>
func.func @redistribute(%x: tensor<8xf32, #P>) -> (tensor<8xf32, #P>, tensor<8xf32, #S>) {
  %0 = dist.redistribute %x : tensor<8xf32, #P> to tensor<8xf32, #P>
  %1 = dist.redistribute %x : tensor<8xf32, #P> to tensor<8xf32, #R>
  // CHECK: %[[Y:.*]] = dist.redistribute %[[X]] : tensor<8xf32, #Ptp> to tensor<8xf32, #S0tp>
  %2 = dist.redistribute %1 : tensor<8xf32, #R> to tensor<8xf32, #S>
  // CHECK-NEXT: return %[[X]], %[[Y]]
  return %0, %2 : tensor<8xf32, #P>, tensor<8xf32, #S>
}

// The reduced value is used twice: merging would reduce twice. A backward redistribute is not merged
// with a forward one.
// CHECK-LABEL: func.func @redistribute_kept(
func.func @redistribute_kept(%x: tensor<8xf32, #P>) -> (tensor<8xf32, #R>, tensor<8xf32, #S>, tensor<8xf32, #P>) {
  // CHECK-COUNT-4: dist.redistribute
  %1 = dist.redistribute %x : tensor<8xf32, #P> to tensor<8xf32, #R>
  %2 = dist.redistribute %1 : tensor<8xf32, #R> to tensor<8xf32, #S>
  %3 = dist.redistribute %2 : tensor<8xf32, #S> to tensor<8xf32, #R>
  %4 = dist.redistribute backward %3 : tensor<8xf32, #R> to tensor<8xf32, #P>
  return %1, %2, %4 : tensor<8xf32, #R>, tensor<8xf32, #S>, tensor<8xf32, #P>
}

// -----

#mesh = #dist.mesh<["dp" = 1, "tp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>
#tp = #dist.axes<#mesh, ["tp"]>

// CHECK-LABEL: func.func @index
func.func @index() -> (index, index, index, index) {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  // CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
  %0 = dist.axis_index over #dp
  %1 = dist.extent #dist.extents<8 over #mesh ["tp"]>
  %2 = dist.extent #dist.extents<table [3, 3, 3, 3] over #mesh>
  // CHECK: %[[E:.*]] = dist.extent #dist.extents<10 over #mesh ["tp"]>
  %3 = dist.extent #dist.extents<10 over #mesh ["tp"]>
  // CHECK: return %[[C0]], %[[C2]], %[[C3]], %[[E]]
  return %0, %1, %2, %3 : index, index, index, index
}

// CHECK-LABEL: func.func @group_of_one(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<4xf32>
func.func @group_of_one(%x: tensor<8xf32>, %y: tensor<4xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) {
  %0 = dist.all_gather over #dp %x dim 0 : tensor<8xf32>
  %f:2 = dist.all_reduce avg over #dp %x, %y : (tensor<8xf32>, tensor<4xf32>)
      -> (!dist.future<tensor<8xf32>>, !dist.future<tensor<4xf32>>)
  // CHECK: %[[G:.*]] = dist.broadcast over #tp from 0 %[[Y]]
  %g = dist.broadcast over #tp from 0 %y : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  // CHECK: %[[W:.*]] = dist.wait %[[G]] : !dist.future<tensor<4xf32>>
  %w:3 = dist.wait %f#0, %g, %f#1 : !dist.future<tensor<8xf32>>, !dist.future<tensor<4xf32>>, !dist.future<tensor<4xf32>>
  // A permute that leaves the one position out delivers zeros.
  // CHECK: %[[P:.*]] = dist.permute
  %p = dist.permute over #dp pairs [] %x : tensor<8xf32>
  // CHECK: return %[[X]], %[[X]], %[[W]], %[[Y]], %[[P]]
  return %0, %w#0, %w#1, %w#2, %p : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
}

// A caller gets the future itself: the start stays.
// CHECK-LABEL: func.func @future_is_returned(
func.func @future_is_returned(%x: tensor<8xf32>) -> !dist.future<tensor<8xf32>> {
  // CHECK: dist.all_reduce
  %f = dist.all_reduce sum over #dp %x : (tensor<8xf32>) -> !dist.future<tensor<8xf32>>
  return %f : !dist.future<tensor<8xf32>>
}

// Synchronous collectives are values: an unused one goes, two equal ones are one. Starts are messages:
// all stay, in order.
// CHECK-LABEL: func.func @effects(
func.func @effects(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NOT: dist.broadcast
  %unused = dist.broadcast over #tp from 0 %x : tensor<8xf32>
  // CHECK: %[[A:.*]] = dist.all_reduce sum
  // CHECK-NOT: dist.all_reduce sum
  %0 = dist.all_reduce sum over #tp %x : tensor<8xf32>
  %1 = dist.all_reduce sum over #tp %x : tensor<8xf32>
  // CHECK-COUNT-2: dist.all_reduce max
  %f = dist.all_reduce max over #tp %x : (tensor<8xf32>) -> !dist.future<tensor<8xf32>>
  %g = dist.all_reduce max over #tp %x : (tensor<8xf32>) -> !dist.future<tensor<8xf32>>
  dist.all_reduce sum over #tp : () -> ()
  // CHECK-NEXT: return %[[A]], %[[A]]
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @wait_twice(
func.func @wait_twice(%f: !dist.future<tensor<8xf32>>, %g: !dist.future<tensor<4xf32>>)
    -> (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>) {
  // CHECK: %[[W:.*]]:2 = dist.wait %{{.*}}, %{{.*}} :
  %0:3 = dist.wait %f, %g, %f : !dist.future<tensor<8xf32>>, !dist.future<tensor<4xf32>>, !dist.future<tensor<8xf32>>
  // CHECK: return %[[W]]#0, %[[W]]#1, %[[W]]#0
  return %0#0, %0#1, %0#2 : tensor<8xf32>, tensor<4xf32>, tensor<8xf32>
}
