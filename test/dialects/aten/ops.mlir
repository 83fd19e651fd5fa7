// RUN: shard-opt %s | shard-opt | FileCheck %s
// RUN: shard-opt %s --emit-bytecode | shard-opt | FileCheck %s

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<8x11x384xf32>, %w: tensor<1536x384xf32>, %b: tensor<1536xf32>) -> tensor<8x11x1536xf32> {
  // CHECK: aten.linear %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x11x384xf32>, tensor<1536x384xf32>, tensor<1536xf32>) -> tensor<8x11x1536xf32>
  %y = aten.linear %x, %w, %b : (tensor<8x11x384xf32>, tensor<1536x384xf32>, tensor<1536xf32>) -> tensor<8x11x1536xf32>
  // CHECK: aten.linear %{{.*}}, %{{.*}} :
  %z = aten.linear %x, %w : (tensor<8x11x384xf32>, tensor<1536x384xf32>) -> tensor<8x11x1536xf32>
  // CHECK: aten.add %{{.*}}, %{{.*}} {alpha = 2.000000e+00 : f64} :
  %s = aten.add %y, %z {alpha = 2.0 : f64} : (tensor<8x11x1536xf32>, tensor<8x11x1536xf32>) -> tensor<8x11x1536xf32>
  return %s : tensor<8x11x1536xf32>
}

// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<8x?x384xf32>, %n: index) -> tensor<8x12x?x32xf32> {
  // CHECK: aten.view %{{.*}} [8, %{{.*}}, 12, 32] : (tensor<8x?x384xf32>) -> tensor<8x?x12x32xf32>
  %v = aten.view %x [8, %n, 12, 32] : (tensor<8x?x384xf32>) -> tensor<8x?x12x32xf32>
  // CHECK: aten.transpose %{{.*}} [1, 2] :
  %t = aten.transpose %v [1, 2] : (tensor<8x?x12x32xf32>) -> tensor<8x12x?x32xf32>
  // CHECK: aten.permute %{{.*}} [0, 1, 2, 3] :
  %p = aten.permute %t [0, 1, 2, 3] : (tensor<8x12x?x32xf32>) -> tensor<8x12x?x32xf32>
  // CHECK: aten.scaled_dot_product_attention %{{.*}}, %{{.*}}, %{{.*}} causal scale 2.500000e-01 :
  %a = aten.scaled_dot_product_attention %p, %p, %p causal scale 0.25 : (tensor<8x12x?x32xf32>, tensor<8x12x?x32xf32>, tensor<8x12x?x32xf32>) -> tensor<8x12x?x32xf32>
  return %a : tensor<8x12x?x32xf32>
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>) -> tensor<2x3x4xf16> {
  // CHECK: aten.layer_norm %{{.*}} [4] weight(%{{.*}}) bias(%{{.*}}) {eps = 5.000000e-01 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  %0 = aten.layer_norm %x [4] weight(%w) bias(%w) {eps = 0.5 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  // CHECK: aten.softmax %{{.*}} dim 2 to f16 :
  %1 = aten.softmax %0 dim 2 to f16 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf16>
  // CHECK: aten.to_copy %{{.*}} to f32
  %2 = aten.to_copy %1 to f32 : (tensor<2x3x4xf16>) -> tensor<2x3x4xf32>
  // CHECK: aten.gelu %{{.*}} {approximate = "tanh"} :
  %3 = aten.gelu %1 {approximate = "tanh"} : (tensor<2x3x4xf16>) -> tensor<2x3x4xf16>
  return %3 : tensor<2x3x4xf16>
}

// CHECK-LABEL: func.func @embedding
func.func @embedding(%w: tensor<10x4xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  // CHECK: aten.embedding %{{.*}} at %{{.*}} {padding_idx = 0 : i64} :
  %0 = aten.embedding %w at %i {padding_idx = 0 : i64} : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  // CHECK: aten.constant dense<2.000000e+00> : tensor<f32>
  %two = aten.constant dense<2.0> : tensor<f32>
  // CHECK: aten.mul
  %1 = aten.mul %0, %two : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// Encodings may differ from operand to operand and are no concern of this dialect.
// CHECK-LABEL: func.func @encodings
func.func @encodings(%x: tensor<8x64xf32, "a">, %w: tensor<32x64xf32, "b">) -> tensor<8x32xf32, "c"> {
  %y = aten.linear %x, %w : (tensor<8x64xf32, "a">, tensor<32x64xf32, "b">) -> tensor<8x32xf32, "c">
  return %y : tensor<8x32xf32, "c">
}

// CHECK-LABEL: func.func @constant_encoding
func.func @constant_encoding() -> tensor<4xi1, "a"> {
  // CHECK: aten.constant dense<true> : tensor<4xi1> -> tensor<4xi1, "a">
  %0 = aten.constant dense<true> : tensor<4xi1> -> tensor<4xi1, "a">
  return %0 : tensor<4xi1, "a">
}
