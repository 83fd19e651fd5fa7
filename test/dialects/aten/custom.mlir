// Operators that users have registered: what the op says, and what is refused.
// RUN: shard-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @round_trip
func.func @round_trip(%x: tensor<10x3xf32>, %y: tensor<20x3xf32>, %i: tensor<12x4xf64>) {
  // CHECK: aten.custom "geometry.knn.default"(%{{.*}}, %{{.*}}) rule "n d, m d -> n k" symbol "knn" library "geometry.so"
  // CHECK-SAME: {arguments = {k = 3 : i64}}
  %k = aten.custom "geometry.knn.default"(%x, %y) rule "n d, m d -> n k" symbol "knn" library "geometry.so"
    {arguments = {k = 3 : i64}} : (tensor<10x3xf32>, tensor<20x3xf32>) -> tensor<10x3xi64>
  // CHECK: rule "y[kernel=3] x -> y x" symbol "smooth" {backward = [{rule = "y[kernel=3, padding=2] x, _, _ -> y x", symbol = "smooth"}]}
  %s = aten.custom "geometry.smooth.default"(%i) rule "y[kernel=3] x -> y x" symbol "smooth"
    {backward = [{rule = "y[kernel=3, padding=2] x, _, _ -> y x", symbol = "smooth"}]} : (tensor<12x4xf64>) -> tensor<10x4xf64>
  return
}

// -----

func.func @rule(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected '->' between operands and results, at character 2 of the rule 'n'}}
  %y = aten.custom "f"(%x) rule "n" symbol "f" : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @sizes(%x: tensor<4xf32>) {
  // expected-error @+1 {{cannot have the rule 'n -> n': dim 0 of result 0 has 5 elements, but 'n' has 4 elsewhere}}
  %y = aten.custom "f"(%x) rule "n -> n" symbol "f" : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @padding(%x: tensor<4xf32>) {
  // expected-error @+1 {{has a window with padding, which an op in front of it is to add}}
  %y = aten.custom "f"(%x) rule "n[kernel=3, padding=1] -> n" symbol "f" : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @unused(%x: tensor<4xf32>) {
  // expected-error @+1 {{has an operand that its function does not need: 1}}
  %y = aten.custom "f"(%x, %x) rule "n, _ -> n" symbol "f" : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @backward(%x: tensor<4xf32>) {
  // expected-error @+1 {{has no 'symbol' in its 'backward'}}
  %y = aten.custom "f"(%x) rule "n -> n" symbol "f" {backward = [{rule = "n, _, _ -> n"}]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
