// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate="into=forward cotangents=o wrt=[qkvb]" --split-input-file --verify-diagnostics %s | FileCheck %s

// The forward keeps its logsumexp, and the scores exist nowhere.
// CHECK-LABEL: func.func @forward
// CHECK: %[[O:.*]], %[[L:.*]] = aten.scaled_dot_product_flash_attention %arg0, %arg1, %arg2 mask(%arg3) gqa scale 5.000000e-01 :
// CHECK-SAME: -> (tensor<2x4x5x8xbf16>, tensor<2x4x5xf32>)
// CHECK-NEXT: %[[Y:.*]] = aten.exp %[[O]]
// CHECK: %[[G:.*]] = aten.mul %arg4, %[[Y]]
// CHECK-NEXT: %[[Q:.*]], %[[K:.*]], %[[V:.*]] = aten.scaled_dot_product_flash_attention_backward %[[G]], %arg0, %arg1, %arg2, %[[O]], %[[L]] mask(%arg3) gqa scale 5.000000e-01 :
// CHECK-NEXT: return %[[Y]], %[[Q]], %[[K]], %[[V]]
func.func @forward(%q: tensor<2x4x5x8xbf16> {dist.kind = "input", dist.name = "q"}, %k: tensor<2x2x7x8xbf16> {dist.kind = "input", dist.name = "k"},
                   %v: tensor<2x2x7x8xbf16> {dist.kind = "input", dist.name = "v"}, %m: tensor<5x7xi1> {dist.kind = "input", dist.name = "m"})
    -> (tensor<2x4x5x8xbf16> {dist.kind = "output", dist.name = "o"}) {
  %o = aten.scaled_dot_product_attention %q, %k, %v mask(%m) gqa scale 0.5 : (tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x8xbf16>, tensor<5x7xi1>) -> tensor<2x4x5x8xbf16>
  %y = aten.exp %o : (tensor<2x4x5x8xbf16>) -> tensor<2x4x5x8xbf16>
  return %y : tensor<2x4x5x8xbf16>
}

// -----

// What is broadcast is repeated for the backward, and its cotangent summed; values are not differentiated.
// CHECK-LABEL: func.func @forward
// CHECK: %[[K:.*]] = aten.expand %arg1 [3, 2, 7, 8]
// CHECK: %[[V:.*]] = aten.expand %arg2 [3, 2, 7, 8]
// CHECK: %[[DQ:.*]], %[[DK:.*]], %{{.*}} = aten.scaled_dot_product_flash_attention_backward %arg3, %arg0, %[[K]], %[[V]], %{{.*}}, %{{.*}} causal :
// CHECK: %[[SUM:.*]] = aten.sum %[[DK]] dim [0]
// CHECK: return %{{.*}}, %[[DQ]], %[[SUM]] :
func.func @forward(%q: tensor<3x2x7x8xf32> {dist.kind = "input", dist.name = "q"}, %k: tensor<2x7x8xf32> {dist.kind = "input", dist.name = "k"},
                   %v: tensor<1x2x7x8xf32> {dist.kind = "input", dist.name = "values"}) -> (tensor<3x2x7x8xf32> {dist.kind = "output", dist.name = "o"}) {
  %o = aten.scaled_dot_product_attention %q, %k, %v causal : (tensor<3x2x7x8xf32>, tensor<2x7x8xf32>, tensor<1x2x7x8xf32>) -> tensor<3x2x7x8xf32>
  return %o : tensor<3x2x7x8xf32>
}

// -----

// A mask that is trained has a cotangent: that of the scores, which are written out.
// CHECK-LABEL: func.func @forward
// CHECK: aten.scaled_dot_product_attention
// CHECK-NOT: flash
// CHECK: aten.softmax
func.func @forward(%q: tensor<2x7x8xf32> {dist.kind = "input", dist.name = "q"}, %b: tensor<7x7xf32> {dist.kind = "input", dist.name = "b"})
    -> (tensor<2x7x8xf32> {dist.kind = "output", dist.name = "o"}) {
  %o = aten.scaled_dot_product_attention %q, %q, %q mask(%b) : (tensor<2x7x8xf32>, tensor<2x7x8xf32>, tensor<2x7x8xf32>, tensor<7x7xf32>) -> tensor<2x7x8xf32>
  return %o : tensor<2x7x8xf32>
}

// -----

// The logsumexp of a placed forward has the layout of its result; heads of queries that are sharded within the group of a key
// get a key each, whose cotangents are added.
#mesh = #dist.mesh<["tp" = 2]>
#heads = #dist.layout<#mesh, [S(1)]>
#R = #dist.layout<#mesh, [R]>
// CHECK-LABEL: func.func @forward
// CHECK: %[[O:.*]], %[[L:.*]] = aten.scaled_dot_product_flash_attention %arg0, %arg1, %arg1 gqa :
// CHECK-SAME: -> (tensor<2x4x5x8xf32, #[[HEADS:[A-Za-z0-9_]+]]>, tensor<2x4x5xf32, #[[HEADS]]>)
// CHECK: %[[K:.*]] = aten.view %{{.*}} [2, 4, 7, 8]
// CHECK: %{{.*}}, %[[DK:.*]], %[[DV:.*]] = aten.scaled_dot_product_flash_attention_backward %arg2, %arg0, %[[K]], %{{.*}}, %[[O]], %[[L]] {
// CHECK-DAG: aten.view %[[DK]] [2, 1, 4, 7, 8]
// CHECK-DAG: aten.view %[[DV]] [2, 1, 4, 7, 8]
module attributes {dist.mesh = #mesh} {
  func.func @forward(%q: tensor<2x4x5x8xf32, #heads> {dist.kind = "input", dist.name = "q"}, %k: tensor<2x1x7x8xf32, #R> {dist.kind = "input", dist.name = "k"})
      -> (tensor<2x4x5x8xf32, #heads> {dist.kind = "output", dist.name = "o"}) {
    %o = aten.scaled_dot_product_attention %q, %k, %k gqa : (tensor<2x4x5x8xf32, #heads>, tensor<2x1x7x8xf32, #R>, tensor<2x1x7x8xf32, #R>) -> tensor<2x4x5x8xf32, #heads>
    return %o : tensor<2x4x5x8xf32, #heads>
  }
}

// -----

// Over sharded queries the cotangents of keys and values are sums, and the scores exist nowhere.
#mesh = #dist.mesh<["sp" = 2]>
#rows = #dist.layout<#mesh, [S(2)]>
#R = #dist.layout<#mesh, [R]>
// CHECK-LABEL: func.func @forward
// CHECK: aten.scaled_dot_product_flash_attention %arg0, %arg1, %arg1 :
// CHECK: aten.scaled_dot_product_flash_attention_backward
// CHECK-NOT: aten.softmax
module attributes {dist.mesh = #mesh} {
  func.func @forward(%q: tensor<2x4x5x8xf32, #rows> {dist.kind = "input", dist.name = "q"}, %k: tensor<2x4x5x8xf32, #R> {dist.kind = "input", dist.name = "k"})
      -> (tensor<2x4x5x8xf32, #rows> {dist.kind = "output", dist.name = "o"}) {
    %o = aten.scaled_dot_product_attention %q, %k, %k : (tensor<2x4x5x8xf32, #rows>, tensor<2x4x5x8xf32, #R>, tensor<2x4x5x8xf32, #R>) -> tensor<2x4x5x8xf32, #rows>
    return %o : tensor<2x4x5x8xf32, #rows>
  }
}

// -----

// One that has its logsumexp already stays.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT: %[[O:.*]], %[[L:.*]] = aten.scaled_dot_product_flash_attention %arg0, %arg0, %arg0
// CHECK-NEXT: %{{.*}}, %{{.*}}, %{{.*}} = aten.scaled_dot_product_flash_attention_backward %arg1, %arg0, %arg0, %arg0, %[[O]], %[[L]] :
func.func @forward(%q: tensor<2x7x8xf32> {dist.kind = "input", dist.name = "q"}) -> (tensor<2x7x8xf32> {dist.kind = "output", dist.name = "o"}) {
  %o, %l = aten.scaled_dot_product_flash_attention %q, %q, %q : (tensor<2x7x8xf32>, tensor<2x7x8xf32>, tensor<2x7x8xf32>) -> (tensor<2x7x8xf32>, tensor<2x7xf32>)
  return %o : tensor<2x7x8xf32>
}

// -----

func.func @forward(%q: tensor<2x7x8xf32> {dist.kind = "input", dist.name = "q"}) -> (tensor<2x7xf32> {dist.kind = "output", dist.name = "o"}) {
  // expected-error @+1 {{has a logsumexp that the loss depends on, which has no derivative: detach it}}
  %o, %l = aten.scaled_dot_product_flash_attention %q, %q, %q : (tensor<2x7x8xf32>, tensor<2x7x8xf32>, tensor<2x7x8xf32>) -> (tensor<2x7x8xf32>, tensor<2x7xf32>)
  return %l : tensor<2x7xf32>
}

// -----

// Where the first query is among the keys, forward and backward.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT: %[[O:.*]], %[[L:.*]] = aten.scaled_dot_product_flash_attention %arg0, %arg1, %arg1 causal first 3 :
// CHECK-NEXT: aten.scaled_dot_product_flash_attention_backward %arg2, %arg0, %arg1, %arg1, %[[O]], %[[L]] causal first 3 :
func.func @forward(%q: tensor<2x5x8xf32> {dist.kind = "input", dist.name = "q"}, %k: tensor<2x9x8xf32> {dist.kind = "input", dist.name = "k"})
    -> (tensor<2x5x8xf32> {dist.kind = "output", dist.name = "o"}) {
  %o = aten.scaled_dot_product_attention %q, %k, %k causal first 3 : (tensor<2x5x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

// Written out.
// CHECK-LABEL: func.func @forward
// CHECK: %[[THREE:.*]] = aten.constant dense<3> : tensor<i64>
// CHECK: %[[ROWS:.*]] = aten.add %{{.*}}, %[[THREE]] : (tensor<5x1xi64>, tensor<i64>) -> tensor<5x1xi64>
// CHECK: aten.le %{{.*}}, %[[ROWS]] : (tensor<1x9xi64>, tensor<5x1xi64>) -> tensor<5x9xi1>
func.func @forward(%q: tensor<2x5x8xf32> {dist.kind = "input", dist.name = "q"}, %k: tensor<2x9x8xf32> {dist.kind = "input", dist.name = "k"},
                   %b: tensor<5x9xf32> {dist.kind = "input", dist.name = "b"}) -> (tensor<2x5x8xf32> {dist.kind = "output", dist.name = "o"}) {
  %o = aten.scaled_dot_product_attention %q, %k, %k mask(%b) causal first 3 : (tensor<2x5x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<5x9xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}
