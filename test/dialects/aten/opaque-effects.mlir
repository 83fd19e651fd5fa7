// An op that is known by name only is neither removed nor merged.
// RUN: shard-opt %s --cse --canonicalize | FileCheck %s

// CHECK-LABEL: @kept
// CHECK-COUNT-3: aten.opaque "f"
func.func @kept(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = aten.opaque "f"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = aten.opaque "f"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %c = aten.opaque "f"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
