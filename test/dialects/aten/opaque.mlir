// RUN: shard-opt %s --split-input-file --verify-diagnostics | shard-opt --split-input-file | FileCheck %s

// CHECK-LABEL: @forms
func.func @forms(%x: tensor<4x8x2xf32>, %n: index) -> (tensor<4x8xcomplex<f32>>, tensor<?xf32>) {
  // CHECK: aten.opaque "aten.view_as_complex.default"(%{{.*}}) aliases [0] : (tensor<4x8x2xf32>) -> tensor<4x8xcomplex<f32>>
  %c = aten.opaque "aten.view_as_complex.default"(%x) aliases [0] : (tensor<4x8x2xf32>) -> tensor<4x8xcomplex<f32>>
  // CHECK: aten.opaque "my.kernel"(%{{.*}}, %{{.*}}) {arguments = {scale = 5.000000e-01 : f64}} : (tensor<4x8x2xf32>, index) -> tensor<?xf32>
  %k = aten.opaque "my.kernel"(%x, %n) {arguments = {scale = 0.5 : f64}} : (tensor<4x8x2xf32>, index) -> tensor<?xf32>
  return %c, %k : tensor<4x8xcomplex<f32>>, tensor<?xf32>
}

// -----
func.func @count(%x: tensor<4xf32>) {
  // expected-error@+1 {{lists 2 aliases for 1 results}}
  %y = aten.opaque "f"(%x) aliases [0, 0] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @range(%x: tensor<4xf32>, %n: index) {
  // expected-error@+1 {{alias 1 is no tensor among its operands}}
  %y = aten.opaque "f"(%x, %n) aliases [1] : (tensor<4xf32>, index) -> tensor<4xf32>
  return
}

// -----
func.func @in_place(%x: tensor<4xf32>) {
  // expected-error@+1 {{is in place, but 'aliases' does not say where}}
  %y = aten.opaque "f"(%x) in_place : (tensor<4xf32>) -> tensor<4xf32>
  return
}
