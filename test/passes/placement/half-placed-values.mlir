// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-propagate --dist-place --dist-verify-stage=placed -o %t.placed
// RUN: FileCheck %s --input-file %t.placed --implicit-check-not=dist.sharding
// RUN: shard-opt %t.placed --dist-propagate --dist-place | diff %t.placed -
// RUN: shard-opt %s --dist-propagate | FileCheck %s --check-prefix=PROPAGATED
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-propagate --dist-place | FileCheck %s --check-prefix=RAN %}

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#R = #dist.layout<#mesh, [R, R]>
#P = #dist.layout<#mesh, [R, P(sum)]>
#S0 = #dist.layout<#mesh, [S(0), R]>
#S1 = #dist.layout<#mesh, [R, S(1)]>
#S01 = #dist.layout<#mesh, [S(0), S(1)]>
#inner = #dist.layout<#mesh, [S(0), S(0)], order = ["tp", "dp"]>
#sizes = #dist.layout<#mesh, [R, S(0, sizes = [5, 0])]>

module attributes {dist.mesh = #mesh} {
  // A partial value is reduced once for the ops that are not linear in it, and one that is gets it so as well. It keeps
  // its layout, and so does the op that made it.
  // RAN: reduced: all_reduce 1
  // CHECK-LABEL: func.func @reduced(
  // CHECK: %[[Y:.*]] = aten.mm {{.*}} -> tensor<6x5xf32, #Ptp>
  // CHECK-NEXT: %[[R:.*]] = dist.redistribute %[[Y]] : tensor<6x5xf32, #Ptp> to tensor<6x5xf32, #R>
  // CHECK-NEXT: aten.neg %[[R]]
  // CHECK-NEXT: aten.gelu %[[R]]
  // CHECK-NEXT: aten.relu %[[R]]
  func.func @reduced(%x: tensor<6x8xf32, #S1>, %w: tensor<8x5xf32, #dist.layout<#mesh, [R, S(0)]>>)
      -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
    %y = aten.mm %x, %w : (tensor<6x8xf32, #S1>, tensor<8x5xf32, #dist.layout<#mesh, [R, S(0)]>>) -> tensor<6x5xf32, #P>
    %0 = aten.neg %y : (tensor<6x5xf32, #P>) -> tensor<6x5xf32>
    %1 = aten.gelu %y : (tensor<6x5xf32, #P>) -> tensor<6x5xf32>
    %2 = aten.relu %y : (tensor<6x5xf32, #P>) -> tensor<6x5xf32>
    return %0, %1, %2 : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
  }

  // One that the program reduces already is there for all.
  // RAN: shared: all_reduce 1
  // CHECK-LABEL: func.func @shared(
  // CHECK: dist.redistribute
  // CHECK-NOT: dist.redistribute
  func.func @shared(%y: tensor<6x5xf32, #P>) -> (tensor<6x5xf32, #R>, tensor<6x5xf32>) {
    %r = dist.redistribute %y : tensor<6x5xf32, #P> to tensor<6x5xf32, #R>
    %0 = aten.gelu %y : (tensor<6x5xf32, #P>) -> tensor<6x5xf32>
    return %r, %0 : tensor<6x5xf32, #R>, tensor<6x5xf32>
  }

  // Users that need the same share it, the program's own redistribution included, whichever comes first; the mark of the
  // backward is kept.
  // RAN: same: all_gather 1
  // CHECK-LABEL: func.func @same(
  // CHECK: %[[G:.*]] = aten.gelu {{.*}} -> tensor<6x5xf32, #S1tp>
  // CHECK-NEXT: %[[W:.*]] = dist.redistribute backward %[[G]] : tensor<6x5xf32, #S1tp> to tensor<6x5xf32, #R>
  // CHECK-NEXT: %[[V:.*]] = aten.view %[[W]]
  // CHECK-NEXT: return %[[V]], %[[W]]
  func.func @same(%x: tensor<6x5xf32, #S1>) -> (tensor<5x6xf32>, tensor<6x5xf32, #R>) {
    %g = aten.gelu %x : (tensor<6x5xf32, #S1>) -> tensor<6x5xf32>
    %v = aten.view %g [5, 6] : (tensor<6x5xf32>) -> tensor<5x6xf32>
    %r = dist.redistribute backward %g : tensor<6x5xf32> to tensor<6x5xf32, #R>
    return %v, %r : tensor<5x6xf32>, tensor<6x5xf32, #R>
  }

  // A weight that is stored in shards inside of those of tensor parallelism: reduce-scattered over dp alone.
  // RAN: stored: reduce_scatter 1
  // CHECK-LABEL: func.func @stored(
  // CHECK: %[[DW:.*]] = aten.mm {{.*}} -> tensor<7x4xf32, #Pdp_S0tp>
  // CHECK-NEXT: dist.redistribute backward %[[DW]]
  func.func @stored(%dy: tensor<7x64xf32, #dist.layout<#mesh, [S(1), S(0)]>>, %x: tensor<64x4xf32, #S0>) -> tensor<7x4xf32, #inner> {
    %0 = aten.mm %dy, %x : (tensor<7x64xf32, #dist.layout<#mesh, [S(1), S(0)]>>, tensor<64x4xf32, #S0>) -> tensor<7x4xf32>
    %1 = dist.redistribute backward %0 : tensor<7x4xf32> to tensor<7x4xf32, #inner>
    return %1 : tensor<7x4xf32, #inner>
  }

  // Explicit extents with an empty shard are followed.
  // RAN: empty: no collectives
  // CHECK-LABEL: func.func @empty(
  // CHECK: aten.gelu {{.*}} -> tensor<5x3xf32, #{{.*}}>
  // CHECK-NOT: dist.redistribute
  func.func @empty(%x: tensor<5x3xf32, #sizes>) -> (tensor<5x3xf32>, tensor<5x3xf32, #sizes>) {
    %0 = aten.gelu %x : (tensor<5x3xf32, #sizes>) -> tensor<5x3xf32>
    return %0, %x : tensor<5x3xf32>, tensor<5x3xf32, #sizes>
  }

  // A wish is followed where it costs nothing. What is made from nothing is sharded where it is wished for.
  // PROPAGATED-LABEL: func.func @wishes(
  // PROPAGATED: aten.gelu {{.*}} {dist.sharding = [#sharding_S0dp_S1tp]}
  // PROPAGATED: aten.arange {{.*}} {dist.sharding = [#sharding_S0tp]}
  // RAN: wishes: no collectives
  // CHECK-LABEL: func.func @wishes(
  // CHECK: aten.gelu {{.*}} -> tensor<4x6xf32, #S0dp_S1tp>
  // CHECK: aten.arange {{.*}} : tensor<6xi64, #S0tp>
  func.func @wishes(%x: tensor<4x6xf32, #S0>) -> (tensor<4x6xf32>, tensor<6xi64>) {
    %0 = aten.gelu %x {dist.sharding = [#dist.sharding<#mesh, [?, S(1)]>]} : (tensor<4x6xf32, #S0>) -> tensor<4x6xf32>
    %1 = aten.arange [0 : 6 : 1] i64 {dist.sharding = [#dist.sharding<#mesh, [?, S(0)]>]} : tensor<6xi64>
    return %0, %1 : tensor<4x6xf32>, tensor<6xi64>
  }

  // What is given binds, partial included, and what is left open of a redistribution is what costs nothing.
  // RAN: given: all_gather 1
  // CHECK-LABEL: func.func @given(
  // CHECK: dist.redistribute backward %{{.*}} : tensor<4x6xf32, #S0dp_S1tp> to tensor<4x6xf32, #S1tp>
  func.func @given(%x: tensor<4x6xf32, #S01>) -> tensor<4x6xf32> {
    %0 = dist.redistribute backward %x {dist.sharding = [#dist.sharding<#mesh, [R, ?]>]} : tensor<4x6xf32, #S01> to tensor<4x6xf32>
    %1 = aten.gelu %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }

  // Sizes that are not known.
  // RAN: symbolic: all_reduce 1
  // CHECK-LABEL: func.func @symbolic(
  // CHECK: aten.mm {{.*}} -> tensor<4x3xf32, #Pdp>
  func.func @symbolic(%dy: tensor<?x4xf32, #S0> {dist.sizes = [#dist.size<n>, #dist.size<4>]},
                      %x: tensor<?x3xf32, #S0> {dist.sizes = [#dist.size<n>, #dist.size<3>]})
      -> tensor<4x3xf32, #R> attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
    %t = aten.permute %dy [1, 0] : (tensor<?x4xf32, #S0>) -> tensor<4x?xf32>
    %0 = aten.mm %t, %x : (tensor<4x?xf32>, tensor<?x3xf32, #S0>) -> tensor<4x3xf32>
    %1 = dist.redistribute backward %0 : tensor<4x3xf32> to tensor<4x3xf32, #R>
    return %1 : tensor<4x3xf32, #R>
  }
}

// RAN: {{^}}8 functions, 0 failures
