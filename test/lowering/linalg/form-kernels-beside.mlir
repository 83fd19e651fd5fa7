// RUN: shard-opt %s --exec-form-kernels | FileCheck %s

// Two updates have a scalar in common: each is a kernel, the first with the scalar. In one kernel their loops would
// run beside each other.
// CHECK-LABEL: func.func @updates(
// CHECK: %[[A:.*]]:2 = call @[[FIRST:[a-z_]+]](%arg4, %arg1, %arg0)
// CHECK: %[[B:.*]] = call @[[SECOND:[a-z_]+]](%arg3, %[[A]]#0, %arg2)
// CHECK: return %[[A]]#1, %[[B]]
func.func @updates(%v: tensor<6x8xf32>, %g: tensor<6x8xf32>, %w: tensor<30xf32>, %h: tensor<30xf32>, %rate: tensor<f32>)
    -> (tensor<6x8xf32>, tensor<30xf32>) {
  %0 = aten.exp %rate : (tensor<f32>) -> tensor<f32>
  %1 = aten.mul %g, %0 : (tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf32>
  %2 = aten.sub %v, %1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %3 = aten.mul %h, %0 : (tensor<30xf32>, tensor<f32>) -> tensor<30xf32>
  %4 = aten.sub %w, %3 : (tensor<30xf32>, tensor<30xf32>) -> tensor<30xf32>
  return %2, %4 : tensor<6x8xf32>, tensor<30xf32>
}

// A scalar that is reduced from the larger values needs their kernel.
// CHECK-LABEL: func.func @mean(
// CHECK: call @
// CHECK-NOT: call @
// CHECK: return
func.func @mean(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = aten.sum %x dim [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  %1 = aten.sub %y, %0 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
