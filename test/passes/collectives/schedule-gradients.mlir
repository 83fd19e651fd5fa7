// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-schedule-collectives --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck %s
// RUN: shard-opt --dist-schedule-collectives=bucket --dist-verify-schedule --dist-verify-stage=scheduled %s | FileCheck %s

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// The gradients of a backward under data parallelism, which are all reduced at its end. Each starts where it has been made, so
// that they go in the order in which the backward makes them, the last layer's first. To put some products off would take
// equally long.
// CHECK-LABEL: func.func @backward(
// CHECK: %[[W7:.*]] = aten.tensordot %{{.*}}, %arg9 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W7]] {{.*}} -> !dist.future
// CHECK: %[[W6:.*]] = aten.tensordot %{{.*}}, %arg8 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W6]] {{.*}} -> !dist.future
// CHECK: %[[W5:.*]] = aten.tensordot %{{.*}}, %arg7 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W5]] {{.*}} -> !dist.future
// CHECK: %[[W4:.*]] = aten.tensordot %{{.*}}, %arg6 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W4]] {{.*}} -> !dist.future
// CHECK: %[[W3:.*]] = aten.tensordot %{{.*}}, %arg5 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W3]] {{.*}} -> !dist.future
// CHECK: %[[W2:.*]] = aten.tensordot %{{.*}}, %arg4 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W2]] {{.*}} -> !dist.future
// CHECK: %[[W1:.*]] = aten.tensordot %{{.*}}, %arg3 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W1]] {{.*}} -> !dist.future
// CHECK: %[[W0:.*]] = aten.tensordot %{{.*}}, %arg2 dims [0] [0]
// CHECK: dist.all_reduce sum over #dp %[[W0]] {{.*}} -> !dist.future
func.func @backward(%g: tensor<256x1024xf32>, %w: tensor<1024x1024xf32>, %x0: tensor<256x1024xf32>, %x1: tensor<256x1024xf32>, %x2: tensor<256x1024xf32>, %x3: tensor<256x1024xf32>, %x4: tensor<256x1024xf32>, %x5: tensor<256x1024xf32>, %x6: tensor<256x1024xf32>, %x7: tensor<256x1024xf32>)
    -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %s7 = aten.mul %g, %x7 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %d7 = aten.mm %s7, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %dw7 = aten.tensordot %s7, %x7 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %s6 = aten.mul %d7, %x6 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %d6 = aten.mm %s6, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %dw6 = aten.tensordot %s6, %x6 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %s5 = aten.mul %d6, %x5 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %d5 = aten.mm %s5, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %dw5 = aten.tensordot %s5, %x5 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %s4 = aten.mul %d5, %x4 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %d4 = aten.mm %s4, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %dw4 = aten.tensordot %s4, %x4 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %s3 = aten.mul %d4, %x3 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %d3 = aten.mm %s3, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %dw3 = aten.tensordot %s3, %x3 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %s2 = aten.mul %d3, %x2 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %d2 = aten.mm %s2, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %dw2 = aten.tensordot %s2, %x2 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %s1 = aten.mul %d2, %x1 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %d1 = aten.mm %s1, %w : (tensor<256x1024xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %dw1 = aten.tensordot %s1, %x1 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %s0 = aten.mul %d1, %x0 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %dw0 = aten.tensordot %s0, %x0 dims [0] [0] : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<1024x1024xf32>
  %r0 = dist.all_reduce sum over #dp %dw0 : tensor<1024x1024xf32>
  %r1 = dist.all_reduce sum over #dp %dw1 : tensor<1024x1024xf32>
  %r2 = dist.all_reduce sum over #dp %dw2 : tensor<1024x1024xf32>
  %r3 = dist.all_reduce sum over #dp %dw3 : tensor<1024x1024xf32>
  %r4 = dist.all_reduce sum over #dp %dw4 : tensor<1024x1024xf32>
  %r5 = dist.all_reduce sum over #dp %dw5 : tensor<1024x1024xf32>
  %r6 = dist.all_reduce sum over #dp %dw6 : tensor<1024x1024xf32>
  %r7 = dist.all_reduce sum over #dp %dw7 : tensor<1024x1024xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7 : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
}
