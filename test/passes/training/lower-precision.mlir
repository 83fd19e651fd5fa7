// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not shard-opt %s --split-input-file --aten-lower-precision=type=bf16 2>/dev/null | FileCheck %s
// RUN: shard-opt %s --split-input-file --aten-lower-precision | FileCheck %s --check-prefix=SAID
// RUN: not shard-opt %s --split-input-file --aten-lower-precision=type=f8 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not shard-opt %s --split-input-file --aten-lower-precision=type=bf16 2>&1 | FileCheck %s --check-prefix=OTHER

// OTHER: error: a step cannot compute in bf16: the model has no parameter of f32 (its floats are f16); leave out 'compute'
// WRONG: error: the type to compute in is bf16 or f16, not 'f8'

// Products are short, softmax and mean are f32, relu is what its operand is, and a sum of both is f32. A weight is cast once, where
// it is defined, and outputs keep their types.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32> {{.*}}, %[[W:.*]]: tensor<4x4xf32> {{.*}}, %[[B:.*]]: tensor<4xf32>
// CHECK-DAG: %[[BS:.*]] = aten.to_copy %[[B]] to bf16
// CHECK-DAG: %[[WS:.*]] = aten.to_copy %[[W]] to bf16
// CHECK-DAG: %[[XS:.*]] = aten.to_copy %[[X]] to bf16
// CHECK: %[[Y:.*]] = aten.linear %[[XS]], %[[WS]], %[[BS]] : (tensor<8x4xbf16>, tensor<4x4xbf16>, tensor<4xbf16>) -> tensor<8x4xbf16>
// CHECK: %[[R:.*]] = aten.relu %[[Y]] : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
// CHECK-NEXT: %[[RW:.*]] = aten.to_copy %[[R]] to f32
// CHECK: %[[Z:.*]] = aten.linear %[[R]], %[[WS]] :
// CHECK-NEXT: %[[D:.*]] = aten.to_copy %[[Z]] to f32
// CHECK: %[[SM:.*]] = aten.softmax %[[RW]] dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[A:.*]] = aten.add %[[SM]], %[[Z]] : (tensor<8x4xf32>, tensor<8x4xbf16>) -> tensor<8x4xf32>
// CHECK: return %[[A]], %[[D]] : tensor<8x4xf32>, tensor<8x4xf32>
// Nothing says what to compute in.
// SAID-LABEL: func.func @forward
// SAID-NOT: bf16
func.func @forward(%x: tensor<8x4xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<4x4xf32> {dist.kind = "parameter", dist.name = "w"},
                   %b: tensor<4xf32> {dist.kind = "parameter", dist.name = "b"}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %y = aten.linear %x, %w, %b : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %r = aten.relu %y : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %z = aten.linear %r, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %s = aten.softmax %r dim 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %a = aten.add %s, %z : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %a, %z : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// f64 stays, with what it meets; an op that does not promote gets f32; what moves values has their type.
// CHECK-LABEL: func.func @forward
// CHECK: aten.mm %{{.*}}, %{{.*}} : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK: %[[Y:.*]] = aten.mm %{{.*}} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
// CHECK: %[[C:.*]] = dist.constrain %[[Y]] : tensor<4x4xbf16>
// CHECK: aten.to_copy %[[C]] to f32
// CHECK: aten.scatter_add {{.*}} -> tensor<4x4xf32>
#mesh = #dist.mesh<["dp" = 2]>
func.func @forward(%x: tensor<4x4xf32> {dist.kind = "input", dist.name = "x"}, %d: tensor<4x4xf64> {dist.kind = "input", dist.name = "d"},
                   %i: tensor<4x4xi64> {dist.kind = "input", dist.name = "i"},
                   %w: tensor<4x4xf32> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<4x4xf64>, tensor<4x4xf32>) {
  %u = aten.mm %d, %d : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %y = aten.mm %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = dist.constrain %y : tensor<4x4xf32> to #dist.layout<#mesh, [S(0)]>
  %s = aten.scatter_add %x dim 0 at %i of %c : (tensor<4x4xf32>, tensor<4x4xi64>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %u, %s : tensor<4x4xf64>, tensor<4x4xf32>
}

// -----

// The plan says it; a model that is short already stays as it is.
// SAID: module
// SAID: aten.exp %{{.*}} : (tensor<4xf16>) -> tensor<4xf16>
module attributes {dist.train = "{loss: loss, precision: f16}"} {
  func.func @forward(%w: tensor<4xf16> {dist.kind = "parameter", dist.name = "w"}) -> tensor<4xf16> {
    %y = aten.exp %w : (tensor<4xf16>) -> tensor<4xf16>
    return %y : tensor<4xf16>
  }
}

// -----

// SAID: aten.mm {{.*}} -> tensor<4x4xf16>
module attributes {dist.train = "{loss: loss, precision: {compute: f16, loss_scale: off}}"} {
  func.func @forward(%w: tensor<4x4xf32> {dist.kind = "parameter", dist.name = "w"}) -> tensor<4x4xf32> {
    %y = aten.mm %w, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
}

// -----

// A product of complex numbers, a Fourier transform and products along a dim are wide, whatever made their operands; one with matrices
// that are looked up is short, as a batch of products is.
// CHECK-LABEL: func.func @forward({{.*}}tensor<3x4x4xf32>
// CHECK: %[[H:.*]] = aten.mm %{{.*}} -> tensor<4x4xbf16>
// CHECK: %[[W:.*]] = aten.to_copy %[[H]] to f32
// CHECK: aten.fft_r2c %[[W]] dim 1 onesided : (tensor<4x4xf32>) -> tensor<4x3x2xf32>
// CHECK: aten.matmul %[[W]], %{{.*}} {of_complex} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: aten.cumprod %[[W]] dim 0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: aten.erfinv %[[W]] : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: aten.indexed_mm %[[H]], %{{.*}} at %{{.*}} : (tensor<4x4xbf16>, tensor<3x4x4xbf16>, tensor<4xi64>) -> tensor<4x4xbf16>
func.func @forward(%x: tensor<4x4xf32> {dist.kind = "input", dist.name = "x"}, %i: tensor<4xi64> {dist.kind = "input", dist.name = "i"},
                   %w: tensor<4x4xf32> {dist.kind = "parameter", dist.name = "w"},
                   %e: tensor<3x4x4xf32> {dist.kind = "parameter", dist.name = "e"})
    -> (tensor<4x3x2xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %h = aten.mm %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = aten.fft_r2c %h dim 1 onesided : (tensor<4x4xf32>) -> tensor<4x3x2xf32>
  %c = aten.matmul %h, %w {of_complex} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = aten.cumprod %h dim 0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %v = aten.erfinv %h : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = aten.indexed_mm %h, %e at %i : (tensor<4x4xf32>, tensor<3x4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  return %f, %c, %p, %v, %m : tensor<4x3x2xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
