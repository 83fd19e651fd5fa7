// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-rewrite-partial-gradients --dist-verify-stage=placed -o %t.rewritten
// RUN: FileCheck %s --input-file %t.rewritten --implicit-check-not=dist.sharding
// RUN: shard-opt %t.rewritten --dist-rewrite-partial-gradients | diff %t.rewritten -
// RUN: shard-opt %s --dist-rewrite-partial-gradients=gradients=off | FileCheck %s --check-prefix=OFF
// RUN: shard-opt %s --dist-rewrite-partial-gradients=gradients=cheapest --dist-verify-stage=placed | FileCheck %s --check-prefix=CHEAPEST
// RUN: shard-opt %s --dist-rewrite-partial-gradients --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// STATS: dist-rewrite-partial-gradients
// STATS-DAG: 10 rewritten
// Counted by hand; in @gathered, the rank without a row receives all five (160 bytes).
// STATS-DAG: 1304 bytes-saved

// Rewritten or not, the ranks hold what one device computes.
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-rewrite-partial-gradients=gradients=off | FileCheck %s --check-prefix=RAN %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-rewrite-partial-gradients | FileCheck %s --check-prefixes=RAN,REPLICATED %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-rewrite-partial-gradients=gradients=cheapest | FileCheck %s --check-prefix=RAN %}

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#P = #dist.layout<#mesh, [P(sum)]>
#max = #dist.layout<#mesh, [P(max)]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>

module attributes {dist.mesh = #mesh} {
  // P -> R in the forward (a row-parallel product): the gradient passes through, and the all-reduce that the op behind
  // needed is gone.
  // REPLICATED: through: no collectives
  // CHECK-LABEL: func.func @through(
  // CHECK-NEXT: %[[DX:.*]] = aten.mm %arg0, %arg1 {{.*}} -> tensor<6x12xf32, #S1tp>
  // CHECK-NEXT: return %[[DX]]
  // OFF-LABEL: func.func @through(
  // OFF-NEXT: dist.redistribute backward %arg0 : tensor<6x8xf32, #R> to tensor<6x8xf32, #Ptp>
  // CHEAPEST-LABEL: func.func @through(
  // CHEAPEST-NOT: dist.redistribute
  // CHEAPEST: return
  func.func @through(%g: tensor<6x8xf32, #R>, %w: tensor<8x12xf32, #S1>) -> tensor<6x12xf32, #S1> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #R> to tensor<6x8xf32, #P>
    %r = dist.redistribute %p : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
    %dx = aten.mm %r, %w : (tensor<6x8xf32, #R>, tensor<8x12xf32, #S1>) -> tensor<6x12xf32, #S1>
    return %dx : tensor<6x12xf32, #S1>
  }

  // P -> S(d) in the forward (a reduce-scatter, of five rows over four ranks): the gradient is gathered, undivided.
  // REPLICATED: gathered: all_gather 1
  // CHECK-LABEL: func.func @gathered(
  // CHECK-NEXT: %[[G:.*]] = dist.redistribute backward %arg0 : tensor<5x8xf32, #S0tp> to tensor<5x8xf32, #R>
  // CHECK-NEXT: aten.mm %[[G]], %arg1
  func.func @gathered(%g: tensor<5x8xf32, #S0>, %w: tensor<8x12xf32, #S1>) -> tensor<5x12xf32, #S1> {
    %p = dist.redistribute backward %g : tensor<5x8xf32, #S0> to tensor<5x8xf32, #P>
    %r = dist.redistribute %p : tensor<5x8xf32, #P> to tensor<5x8xf32, #R>
    %dx = aten.mm %r, %w : (tensor<5x8xf32, #R>, tensor<8x12xf32, #S1>) -> tensor<5x12xf32, #S1>
    return %dx : tensor<5x12xf32, #S1>
  }

  // A gradient that is partial already stays so (P -> P), up to where something needs it whole. (R -> P in the forward: it
  // is reduced.)
  // REPLICATED: stays: all_reduce 1
  // CHECK-LABEL: func.func @stays(
  // CHECK-NEXT: %[[S:.*]] = aten.add %arg0, %arg1 {{.*}} -> tensor<6x8xf32, #Ptp>
  // CHECK-NEXT: dist.redistribute backward %[[S]] : tensor<6x8xf32, #Ptp> to tensor<6x8xf32, #R>
  func.func @stays(%g: tensor<6x8xf32, #P>, %h: tensor<6x8xf32, #P>) -> tensor<6x8xf32, #R> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #P> to tensor<6x8xf32, #P>
    %s = aten.add %p, %h : (tensor<6x8xf32, #P>, tensor<6x8xf32, #P>) -> tensor<6x8xf32, #P>
    %r = dist.redistribute backward %s : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
    %i = dist.redistribute backward %r : tensor<6x8xf32, #R> to tensor<6x8xf32, #P>
    %o = dist.redistribute %i : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
    return %o : tensor<6x8xf32, #R>
  }

  // The gradient of a partial input is replicated: the type of the result follows.
  // REPLICATED: input: no collectives
  // CHECK-LABEL: func.func @input(
  // CHECK-SAME: -> tensor<6x8xf32, #R>
  // CHECK-NEXT: return %arg0
  func.func @input(%g: tensor<6x8xf32, #R>) -> tensor<6x8xf32, #P> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #R> to tensor<6x8xf32, #P>
    return %p : tensor<6x8xf32, #P>
  }

  // Whatever the reduction: amax over a sharded dim routes by comparison with the reduced value, which is the op's own.
  // REPLICATED: largest: no collectives
  // CHECK-LABEL: func.func @largest(
  // CHECK-NOT: dist.redistribute backward
  // CHECK: return %{{.*}} : tensor<6x8xf32, #S1tp>
  func.func @largest(%g: tensor<6x1xf32, #R>, %is: tensor<6x8xf32, #S1>) -> tensor<6x8xf32, #S1> {
    %p = dist.redistribute backward %g : tensor<6x1xf32, #R> to tensor<6x1xf32, #max>
    %r = dist.redistribute %p : tensor<6x1xf32, #max> to tensor<6x1xf32, #R>
    %dx = aten.mul %is, %r : (tensor<6x8xf32, #S1>, tensor<6x1xf32, #R>) -> tensor<6x8xf32, #S1>
    return %dx : tensor<6x8xf32, #S1>
  }

  // A mean divides by the global count, which is the op's own: nothing is divided here.
  // REPLICATED: mean: no collectives
  // CHECK-LABEL: func.func @mean(
  // CHECK-NOT: dist.redistribute backward
  // CHECK: return %{{.*}} : tensor<6x5xf32, #S1tp>
  func.func @mean(%g: tensor<6x1xf32, #R>, %fifth: tensor<1x5xf32, #R>) -> tensor<6x5xf32, #S1> {
    %p = dist.redistribute backward %g : tensor<6x1xf32, #R> to tensor<6x1xf32, #P>
    %r = dist.redistribute %p : tensor<6x1xf32, #P> to tensor<6x1xf32, #R>
    %f = dist.redistribute %fifth : tensor<1x5xf32, #R> to tensor<1x5xf32, #S1>
    %dx = aten.mul %r, %f : (tensor<6x1xf32, #R>, tensor<1x5xf32, #S1>) -> tensor<6x5xf32, #S1>
    return %dx : tensor<6x5xf32, #S1>
  }

  // What follows a target up to the next backward redistribution is placed again, and what follows that one stays as it
  // is: there the parameter's layout is, and results of the function keep theirs.
  // REPLICATED: follows: reduce_scatter 1
  // CHECK-LABEL: func.func @follows(
  // CHECK: aten.gelu %arg0 {{.*}} #R>
  // CHECK-NOT: #Ptp
  // CHECK: aten.mm {{.*}} -> tensor<8x12xf32, #Ptp>
  // CHECK-NEXT: %[[DW:.*]] = dist.redistribute backward %{{.*}} : tensor<8x12xf32, #Ptp> to tensor<8x12xf32, #S0tp>
  // CHECK-NEXT: aten.neg %[[DW]]
  func.func @follows(%g: tensor<6x8xf32, #R>, %xt: tensor<8x400xf32, #S1>, %z: tensor<400x12xf32, #S0>)
      -> (tensor<6x8xf32, #R>, tensor<8x12xf32, #S0>) {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #R> to tensor<6x8xf32, #P>
    %r = dist.redistribute %p : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
    %h = aten.gelu %r : (tensor<6x8xf32, #R>) -> tensor<6x8xf32, #R>
    %dw0 = aten.mm %xt, %z : (tensor<8x400xf32, #S1>, tensor<400x12xf32, #S0>) -> tensor<8x12xf32, #P>
    %dw = dist.redistribute backward %dw0 : tensor<8x12xf32, #P> to tensor<8x12xf32, #S0>
    %n = aten.neg %dw : (tensor<8x12xf32, #S0>) -> tensor<8x12xf32, #S0>
    return %h, %n : tensor<6x8xf32, #R>, tensor<8x12xf32, #S0>
  }

  // A redistribution to Partial that is no cotangent is what somebody asked for.
  // REPLICATED: written: all_reduce 1
  // CHECK-LABEL: func.func @written(
  // CHECK: dist.redistribute %arg0 : tensor<6x8xf32, #R> to tensor<6x8xf32, #Ptp>
  func.func @written(%x: tensor<6x8xf32, #R>, %y: tensor<6x8xf32, #P>) -> tensor<6x8xf32, #R> {
    %p = dist.redistribute %x : tensor<6x8xf32, #R> to tensor<6x8xf32, #P>
    %s = aten.add %p, %y : (tensor<6x8xf32, #P>, tensor<6x8xf32, #P>) -> tensor<6x8xf32, #P>
    %r = dist.redistribute %s : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
    return %r : tensor<6x8xf32, #R>
  }

  // Its own followers may need a change as well: the second target is partial only because the first was.
  // REPLICATED: chain: no collectives
  // CHECK-LABEL: func.func @chain(
  // CHECK-NOT: #Ptp
  // CHECK: return
  func.func @chain(%g: tensor<6x8xf32, #R>) -> tensor<6x8xf32, #R> {
    %p = dist.redistribute backward %g : tensor<6x8xf32, #R> to tensor<6x8xf32, #P>
    %n = aten.neg %p : (tensor<6x8xf32, #P>) -> tensor<6x8xf32, #P>
    %q = dist.redistribute backward %n : tensor<6x8xf32, #P> to tensor<6x8xf32, #P>
    %r = dist.redistribute %q : tensor<6x8xf32, #P> to tensor<6x8xf32, #R>
    %h = aten.gelu %r : (tensor<6x8xf32, #R>) -> tensor<6x8xf32, #R>
    return %h : tensor<6x8xf32, #R>
  }

  // Sharded, and used sharded: replicate gathers it; the cheapest leaves it where it is.
  // CHECK-LABEL: func.func @elementwise(
  // CHECK: dist.redistribute backward %arg0 : tensor<8x6xf32, #S0tp> to tensor<8x6xf32, #R>
  // CHEAPEST-LABEL: func.func @elementwise(
  // CHEAPEST-NEXT: aten.gelu %arg0 {{.*}} -> tensor<8x6xf32, #S0tp>
  // CHEAPEST-NEXT: return
  func.func @elementwise(%g: tensor<8x6xf32, #S0>) -> tensor<8x6xf32, #S0> {
    %p = dist.redistribute backward %g : tensor<8x6xf32, #S0> to tensor<8x6xf32, #P>
    %s = dist.redistribute %p : tensor<8x6xf32, #P> to tensor<8x6xf32, #S0>
    %h = aten.gelu %s : (tensor<8x6xf32, #S0>) -> tensor<8x6xf32, #S0>
    return %h : tensor<8x6xf32, #S0>
  }
}

// RAN: {{^}}10 functions, 0 failures
