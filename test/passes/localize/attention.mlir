// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#heads = #dist.layout<#mesh, [S(1)]>
#seq = #dist.layout<#mesh, [S(2)]>
#blocks = #dist.layout<#mesh, [S(2, blocks = 2)]>

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

// Queries 0-1, 2-3, 4-5 and 6 see keys up to their own position: a rank says where its first query is.
// CHECK-LABEL: func.func @causal_over_sharded_queries
// CHECK-NEXT: %[[FIRST:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK-NEXT: aten.scaled_dot_product_attention %arg0, %arg1, %arg2 causal first %[[FIRST]] scale 2.500000e-01 : (tensor<2x6x?x16xf32>, tensor<2x6x7x16xf32>, tensor<2x6x7x16xf32>, index)
// CHECK-NEXT: return
func.func @causal_over_sharded_queries(%q: tensor<2x6x7x16xf32, #seq>, %k: tensor<2x6x7x16xf32, #R>, %v: tensor<2x6x7x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq> {
  %y = aten.scaled_dot_product_attention %q, %k, %v causal scale 0.25 : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #R>, tensor<2x6x7x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq>
  return %y : tensor<2x6x7x16xf32, #seq>
}

// More queries than keys: those behind the last key see all.
// CHECK-LABEL: func.func @more_queries_than_keys
// CHECK-NEXT: %[[FIRST:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK-NEXT: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 causal first %[[FIRST]] : (tensor<2x6x?x16xf32>, tensor<2x6x5x16xf32>, tensor<2x6x5x16xf32>, index)
func.func @more_queries_than_keys(%q: tensor<2x6x7x16xf32, #seq>, %k: tensor<2x6x5x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq> {
  %y = aten.scaled_dot_product_attention %q, %k, %k causal : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x5x16xf32, #R>, tensor<2x6x5x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq>
  return %y : tensor<2x6x7x16xf32, #seq>
}

// An op whose first query is not at the first key: here and in the whole.
// CHECK-LABEL: func.func @behind_the_first_key
// CHECK: %[[OFFSET:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK: %[[FIRST:.*]] = arith.addi %[[OFFSET]], %c3
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 causal first %[[FIRST]] :
// CHECK: %[[THERE:.*]] = arith.addi %arg2, %[[OFFSET]]
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 causal first %[[THERE]] :
func.func @behind_the_first_key(%q: tensor<2x6x7x16xf32, #seq>, %k: tensor<2x6x12x16xf32, #R>, %i: index) -> (tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #seq>) {
  %x = aten.scaled_dot_product_attention %q, %k, %k causal first 3 : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x12x16xf32, #R>, tensor<2x6x12x16xf32, #R>) -> tensor<2x6x7x16xf32, #seq>
  %y = aten.scaled_dot_product_attention %q, %k, %k causal first %i : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x12x16xf32, #R>, tensor<2x6x12x16xf32, #R>, index) -> tensor<2x6x7x16xf32, #seq>
  return %x, %y : tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #seq>
}

// With a mask, too, of which a rank has the rows of its queries.
// CHECK-LABEL: func.func @masked
// CHECK: %[[FIRST:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 mask(%arg2) causal first %[[FIRST]] : {{.*}}, tensor<?x7xi1>, index)
func.func @masked(%q: tensor<2x6x7x16xf32, #seq>, %k: tensor<2x6x7x16xf32, #R>, %m: tensor<7x7xi1, #dist.layout<#mesh, [S(0)]>>) -> tensor<2x6x7x16xf32, #seq> {
  %x = aten.scaled_dot_product_attention %q, %k, %k mask(%m) causal : (tensor<2x6x7x16xf32, #seq>, tensor<2x6x7x16xf32, #R>, tensor<2x6x7x16xf32, #R>, tensor<7x7xi1, #dist.layout<#mesh, [S(0)]>>) -> tensor<2x6x7x16xf32, #seq>
  return %x : tensor<2x6x7x16xf32, #seq>
}

// Queries that are no range: a mask by global position says which see what.
// CHECK-LABEL: func.func @queries_in_blocks
// CHECK: %[[MASK:.*]] = aten.le %{{.*}}, %{{.*}} : (tensor<1x8xi64>, tensor<2x1xi64>) -> tensor<2x8xi1>
// CHECK: aten.scaled_dot_product_attention %arg0, %arg1, %arg1 mask(%[[MASK]]) :
func.func @queries_in_blocks(%q: tensor<2x6x8x16xf32, #blocks>, %k: tensor<2x6x8x16xf32, #R>) -> tensor<2x6x8x16xf32, #blocks> {
  %y = aten.scaled_dot_product_attention %q, %k, %k causal first 1 : (tensor<2x6x8x16xf32, #blocks>, tensor<2x6x8x16xf32, #R>, tensor<2x6x8x16xf32, #R>) -> tensor<2x6x8x16xf32, #blocks>
  return %y : tensor<2x6x8x16xf32, #blocks>
}

// The backward makes zeros itself for keys that no query of the rank sees.
// CHECK-LABEL: func.func @causal_backward
// CHECK-NEXT: %[[FIRST:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
// CHECK-NEXT: %{{.*}}, %[[DK:.*]], %{{.*}} = aten.scaled_dot_product_flash_attention_backward {{.*}} causal first %[[FIRST]] :
// CHECK-SAME: -> (tensor<2x6x?x16xf32>, tensor<2x6x7x16xf32>, tensor<2x6x7x16xf32>)
// CHECK-NEXT: return %[[DK]]
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
#blocks = #dist.layout<#mesh, [S(2, blocks = 2)]>
#rows = #dist.layout<#mesh, [S(0, blocks = 2)]>

func.func @refused(%q: tensor<2x8x7x16xf32, #heads>, %r: tensor<2x8x7x16xf32, #R>, %s: tensor<2x8x7x16xf32, #seq>, %k: tensor<2x2x7x16xf32, #R>,
                   %b: tensor<2x8x8x16xf32, #blocks>, %c: tensor<2x8x8x16xf32, #R>, %m: tensor<8x8xi1, #rows>) {
  // expected-error @+1 {{the sequence of keys and values is sharded; gather it before, and shard the queries instead}}
  %0 = aten.scaled_dot_product_attention %r, %s, %s : (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #seq>, tensor<2x8x7x16xf32, #seq>) -> tensor<2x8x7x16xf32, #R>
  // expected-error @+1 {{a rank has queries without the heads of keys that they attend to}}
  %1 = aten.scaled_dot_product_attention %q, %k, %k gqa : (tensor<2x8x7x16xf32, #heads>, tensor<2x2x7x16xf32, #R>, tensor<2x2x7x16xf32, #R>) -> tensor<2x8x7x16xf32, #heads>
  // expected-error @+1 {{attention with dropout draws random numbers; export the model in evaluation mode}}
  %2 = aten.scaled_dot_product_attention %r, %r, %r {dropout_p = 0.1 : f64} : (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>) -> tensor<2x8x7x16xf32, #R>
  // expected-error @+1 {{is causal and has a mask, too, and a rank's queries are no range; make the mask causal}}
  %4 = aten.scaled_dot_product_attention %b, %c, %c mask(%m) causal : (tensor<2x8x8x16xf32, #blocks>, tensor<2x8x8x16xf32, #R>, tensor<2x8x8x16xf32, #R>, tensor<8x8xi1, #rows>) -> tensor<2x8x8x16xf32, #blocks>
  %l = aten.sum %r dim [3] : (tensor<2x8x7x16xf32, #R>) -> tensor<2x8x7xf32, #R>
  // expected-error @+1 {{attention with dropout draws random numbers; export the model in evaluation mode}}
  %3:3 = aten.scaled_dot_product_flash_attention_backward %r, %r, %r, %r, %r, %l {dropout_p = 0.1 : f64} : (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7xf32, #R>) -> (tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>, tensor<2x8x7x16xf32, #R>)
  return
}
