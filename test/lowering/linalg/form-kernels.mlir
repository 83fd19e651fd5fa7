// RUN: shard-opt %s --exec-form-kernels --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @chain(
// CHECK: %[[Y:.*]] = call @[[K:[a-z_]+]](%arg0, %arg1) {exec.name = "add+relu+softmax"}
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @[[K]](
// CHECK-SAME: attributes {exec.kernel}
// CHECK: aten.add
// CHECK: aten.relu
// CHECK: aten.softmax
func.func @chain(%x: tensor<6x40xf32>, %b: tensor<40xf32>) -> tensor<6x40xf32> {
  %0 = aten.add %x, %b : (tensor<6x40xf32>, tensor<40xf32>) -> tensor<6x40xf32>
  %1 = aten.relu %0 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %2 = aten.softmax %1 dim 1 : (tensor<6x40xf32>) -> tensor<6x40xf32>
  return %2 : tensor<6x40xf32>
}

// -----
// A product between two ops keeps them apart, and stays in the program of the rank.
// CHECK-LABEL: func.func @product(
// CHECK: %[[A:.*]] = call @relu
// CHECK: %[[B:.*]] = aten.linear %[[A]], %arg1
// CHECK: call @tanh{{.*}}(%[[B]])
func.func @product(%x: tensor<6x40xf32>, %w: tensor<8x40xf32>) -> tensor<6x8xf32> {
  %0 = aten.relu %x : (tensor<6x40xf32>) -> tensor<6x40xf32>
  %1 = aten.linear %0, %w : (tensor<6x40xf32>, tensor<8x40xf32>) -> tensor<6x8xf32>
  %2 = aten.tanh %1 : (tensor<6x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}

// -----
// What a start sends must be there before it, and what a wait gives is not there before that: the sum cannot be in one
// kernel with its operand, although the two are neighbours in the graph.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
// CHECK-LABEL: func.func @in_flight(
// CHECK: %[[X:.*]] = call @exp{{.*}}(%arg0) {exec.name = "exp"}
// CHECK: %[[F:.*]] = dist.all_reduce sum over #tp %[[X]]
// CHECK: %[[W:.*]] = dist.wait %[[F]]
// CHECK: call @{{[a-z_]+}}(
func.func @in_flight(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = aten.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %f = dist.all_reduce sum over #tp %0 : (tensor<4x8xf32>) -> !dist.future<tensor<4x8xf32>>
  %w = dist.wait %f : !dist.future<tensor<4x8xf32>>
  %1 = aten.add %w, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----
// Constants are copied into each kernel that reads them: no memory holds them.
// CHECK-LABEL: func.func @constants(
// CHECK-NOT: aten.constant
// CHECK: return
// CHECK: func.func private @
// CHECK: aten.constant dense<2.000000e+00>
func.func @constants(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = aten.constant dense<2.0> : tensor<f32>
  %0 = aten.mul %x, %two : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
