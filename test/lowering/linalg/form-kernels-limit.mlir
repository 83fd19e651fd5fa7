// RUN: shard-opt %s --exec-form-kernels=max-ops=2 | FileCheck %s

// Four ops, at most two in a kernel.
// CHECK-LABEL: func.func @chain(
// CHECK-COUNT-2: call @
// CHECK-NOT: call @
// CHECK: return
func.func @chain(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = aten.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = aten.tanh %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = aten.exp %1 : (tensor<64xf32>) -> tensor<64xf32>
  %3 = aten.tanh %2 : (tensor<64xf32>) -> tensor<64xf32>
  return %3 : tensor<64xf32>
}
