// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#heads = #dist.layout<#mesh, [S(1)]>
#seq = #dist.layout<#mesh, [S(2)]>

// Six heads: 2, 2, 2 and none.
// CHECK-LABEL: func.func @heads
// CHECK-NEXT: aten.scaled_dot_product_attention %arg0, %arg1, %arg2 causal : (tensor<2x?x7x16xf32>, tensor<2x?x7x16xf32>, tensor<2x?x7x16xf32>) -> tensor<2x?x7x16xf32>
// CHECK-NEXT: return
func.func @heads(%q: tensor<2x6x7x16xf32, #heads>, %k: tensor<2x6x7x16xf32, #heads>, %v: tensor<2x6x7x16xf32, #heads>) -> tensor<2x6x7x16xf32, #heads> {
  %y = aten.scaled_dot_product_attention %q, %k, %v causal : (tensor<2x6x7x16xf32, #heads>, tensor<2x6x7x16xf32, #heads>, tensor<2x6x7x16xf32, #heads>) -> tensor<2x6x7x16xf32, #heads>
  return %y : tensor<2x6x7x16xf32, #heads>
}

// Heads of keys shard with the heads of queries that share them.
// CHECK-LABEL: func.func @grouped_heads
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg2 gqa : (tensor<2x2x7x16xf32>, tensor<2x1x7x16xf32>, tensor<2x1x7x16xf32>) -> tensor<2x2x7x16xf32>
func.func @grouped_heads(%q: tensor<2x8x7x16xf32, #heads>, %k: tensor<2x4x7x16xf32, #heads>, %v: tensor<2x4x7x16xf32, #heads>) -> tensor<2x8x7x16xf32, #heads> {
  %y = aten.scaled_dot_product_attention %q, %k, %v gqa : (tensor<2x8x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>) -> tensor<2x8x7x16xf32, #heads>
  return %y : tensor<2x8x7x16xf32, #heads>
}

// Queries 0-1, 2-3, 4-5 and 6 see keys up to their own position: a rank takes those up to its last query, which sees them all.
// CHECK-LABEL: func.func @causal_over_sharded_queries
// CHECK-DAG: %[[FIRST:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK-DAG: %[[COUNT:.*]] = dist.extent #dist.extents<7 over #mesh ["tp"]>
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %[[COUNT]]
// CHECK: %[[K:.*]] = aten.slice %arg1 dim 2 [0 : %[[END]] : 1] : (tensor<2x6x7x16xf32>) -> tensor<2x6x?x16xf32>
// CHECK: %[[V:.*]] = aten.slice %arg2 dim 2 [0 : %[[END]] : 1]
// CHECK: aten.scaled_dot_product_attention %arg0, %[[K]], %[[V]] causal lower_right scale 2.500000e-01 : (tensor<2x6x?x16xf32>, tensor<2x6x?x16xf32>, tensor<2x6x?x16xf32>)
func.func @causal_over_sharded_queries(%q: tensor<2x6x7x16xf32, #seq>, %k: tensor<2x6x7x16xf32, #R>, %v: tensor<2x6x7x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq> {
  %y = aten.scaled_dot_product_attention %q, %k, %v causal scale 0.25 : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #R>, tensor<2x6x7x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq>
  return %y : tensor<2x6x7x16xf32, #seq>
}

// More queries than keys: those behind the last key see all, and a mask by global position says which see what.
// CHECK-LABEL: func.func @more_queries_than_keys
// CHECK: %[[FIRST:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK: aten.arange [%[[FIRST]] :
// CHECK: %[[MASK:.*]] = aten.le %{{.*}}, %{{.*}} : (tensor<1x5xi64>, tensor<?x1xi64>) -> tensor<?x5xi1>
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 mask(%[[MASK]]) :
func.func @more_queries_than_keys(%q: tensor<2x6x7x16xf32, #seq>, %k: tensor<2x6x5x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq> {
  %y = aten.scaled_dot_product_attention %q, %k, %k causal : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x5x16xf32, #R>, tensor<2x6x5x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq>
  return %y : tensor<2x6x7x16xf32, #seq>
}

// The backward of some keys: zeros for those that no query of the rank sees.
// CHECK-LABEL: func.func @causal_backward
// CHECK: %[[END:.*]] = arith.addi
// CHECK: %{{.*}}, %[[DK:.*]], %[[DV:.*]] = aten.scaled_dot_product_flash_attention_backward {{.*}} causal lower_right
// CHECK-SAME: -> (tensor<2x6x?x16xf32>, tensor<2x6x?x16xf32>, tensor<2x6x?x16xf32>)
// CHECK: %[[REST:.*]] = arith.subi %{{.*}}, %[[END]]
// CHECK: %[[ZEROS:.*]] = aten.expand %{{.*}} [2, 6, %[[REST]], 16]
// CHECK: aten.cat %[[DK]], %[[ZEROS]] dim 2 : (tensor<2x6x?x16xf32>, tensor<2x6x?x16xf32>) -> tensor<2x6x7x16xf32>
func.func @causal_backward(%g: tensor<2x6x7x16xf32, #seq>, %k: tensor<2x6x7x16xf32, #R>, %l: tensor<2x6x7xf32, #seq>) -> tensor<2x6x7x16xf32, #dist.layout<#mesh, [P(sum)]>> {
  %d:3 = aten.scaled_dot_product_flash_attention_backward %g, %g, %k, %k, %g, %l causal : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #R>, tensor<2x6x7x16xf32, #R>, tensor<2x6x7x16xf32, #seq>, tensor<2x6x7xf32, #seq>) -> (tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #dist.layout<#mesh, [P(sum)]>>, tensor<2x6x7x16xf32, #dist.layout<#mesh, [P(sum)]>>)
  return %d#1 : tensor<2x6x7x16xf32, #dist.layout<#mesh, [P(sum)]>>
}

// Both results of what keeps its logsumexp; the backward has queries and keys whole.
// CHECK-LABEL: func.func @backward
// CHECK-NEXT: aten.scaled_dot_product_flash_attention %arg1, %arg2, %arg2 gqa : {{.*}} -> (tensor<2x2x7x16xf32>, tensor<2x2x7xf32>)
// CHECK-NEXT: aten.scaled_dot_product_flash_attention_backward %arg0, %arg1, %arg2, %arg2, %{{.*}}, %{{.*}} gqa :
// CHECK-SAME: -> (tensor<2x2x7x16xf32>, tensor<2x1x7x16xf32>, tensor<2x1x7x16xf32>)
func.func @backward(%g: tensor<2x8x7x16xf32, #heads>, %q: tensor<2x8x7x16xf32, #heads>, %k: tensor<2x4x7x16xf32, #heads>) -> tensor<2x4x7x16xf32, #heads> {
  %o, %l = aten.scaled_dot_product_flash_attention %q, %k, %k gqa : (tensor<2x8x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>) -> (tensor<2x8x7x16xf32, #heads>, tensor<2x8x7xf32, #heads>)
  %d:3 = aten.scaled_dot_product_flash_attention_backward %g, %q, %k, %k, %o, %l gqa : (tensor<2x8x7x16xf32, #heads>, tensor<2x8x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>, tensor<2x8x7x16xf32, #heads>, tensor<2x8x7xf32, #heads>) -> (tensor<2x8x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>, tensor<2x4x7x16xf32, #heads>)
  return %d#1 : tensor<2x4x7x16xf32, #heads>
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#heads = #dist.layout<#mesh, [S(1)]>
#seq = #dist.layout<#mesh, [S(2)]>

func.func @refused(%q: tensor<2x8x7x16xf32, #heads>, %r: tensor<2x8x7x16xf32, #R>, %s: tensor<2x8x7x16xf32, #seq>, %k: tensor<2x2x7x16xf32, #R>) {
  // expected-error @+1 {{the sequence of keys and values is sharded; gather it before, and shard the queries instead}}
  %0 = aten.scaled_dot_product_attention %r, %s, %s : (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #seq>, tensor<2x8x7x16xf32, #seq>) -> tensor<2x8x7x16xf32, #R>
  // expected-error @+1 {{a rank has queries without the heads of keys that they attend to}}
  %1 = aten.scaled_dot_product_attention %q, %k, %k gqa : (tensor<2x8x7x16xf32, #heads>, tensor<2x2x7x16xf32, #R>, tensor<2x2x7x16xf32, #R>) -> tensor<2x8x7x16xf32, #heads>
  // expected-error @+1 {{attention with dropout draws random numbers; export the model in evaluation mode}}
  %2 = aten.scaled_dot_product_attention %r, %r, %r {dropout_p = 0.1 : f64} : (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>) -> tensor<2x8x7x16xf32, #R>
  // expected-error @+1 {{counts causal attention from the last query, which only the forms that ranks compute do}}
  %4 = aten.scaled_dot_product_attention %s, %r, %r causal lower_right : (tensor<2x8x7x16xf32, #seq>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>) -> tensor<2x8x7x16xf32, #seq>
  %l = aten.sum %r dim [3] : (tensor<2x8x7x16xf32, #R>) -> tensor<2x8x7xf32, #R>
  // expected-error @+1 {{attention with dropout draws random numbers; export the model in evaluation mode}}
  %3:3 = aten.scaled_dot_product_flash_attention_backward %r, %r, %r, %r, %r, %l {dropout_p = 0.1 : f64} : (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7xf32, #R>) -> (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>)
  return
}
