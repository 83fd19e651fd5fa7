// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-verify-stage=half-placed --dist-propagate --dist-verify-stage=half-placed --dist-place --dist-verify-stage=placed -o %t.placed
// RUN: FileCheck %s --input-file %t.placed --implicit-check-not=dist.sharding
// RUN: shard-opt %t.placed --dist-propagate --dist-place | diff %t.placed -
// RUN: shard-opt %s --dist-propagate -o %t.once
// RUN: shard-opt %t.once --dist-propagate | diff %t.once -
// RUN: shard-opt %t.once --dist-place | diff - %t.placed
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %s -- --dist-propagate --dist-place | FileCheck %s --check-prefix=RAN %}

// The forward is x + attention-like(q, k, v), its backward is not placed yet.
#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#P = #dist.layout<#mesh, [P(sum)]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#S2 = #dist.layout<#mesh, [S(2)]>
#heads = #dist.sharding<#mesh, [S(2)]>
#rows = #dist.sharding<#mesh, [S(1)]>
#any = #dist.sharding<#mesh, [?]>

module attributes {dist.mesh = #mesh} {
  // Tensor parallel: three partial gradients are summed, and reduced once: 2 * 5 * 12 * 4 bytes, which is the least
  // possible. The gradients of the weights are where the weights are.
  // RAN: tensor_parallel: all_reduce 1
  // CHECK-LABEL: func.func @tensor_parallel(
  // CHECK: %[[DQ:.*]] = aten.matmul {{.*}} -> tensor<2x5x12xf32, #Ptp>
  // CHECK: %[[DK:.*]] = aten.matmul {{.*}} -> tensor<2x5x12xf32, #Ptp>
  // CHECK: %[[QK:.*]] = aten.add %[[DQ]], %[[DK]] {{.*}} -> tensor<2x5x12xf32, #Ptp>
  // CHECK: %[[DV:.*]] = aten.matmul {{.*}} -> tensor<2x5x12xf32, #Ptp>
  // CHECK: %[[SUM:.*]] = aten.add %[[QK]], %[[DV]] {{.*}} -> tensor<2x5x12xf32, #Ptp>
  // CHECK-NEXT: %[[WHOLE:.*]] = dist.redistribute %[[SUM]] : tensor<2x5x12xf32, #Ptp> to tensor<2x5x12xf32, #R>
  // CHECK-NEXT: %[[GNX:.*]] = aten.mul %[[WHOLE]], %{{.*}}
  // CHECK-NEXT: %[[GS:.*]] = aten.sum %[[GNX]]
  // CHECK-NEXT: dist.redistribute backward %[[GS]] : tensor<12xf32, #R> to tensor<12xf32, #R>
  // CHECK-NEXT: aten.mul %[[WHOLE]], %{{.*}}
  // CHECK-NOT: dist.redistribute %
  // CHECK: dist.redistribute backward %{{.*}} : tensor<8x12xf32, #S0tp> to tensor<8x12xf32, #S0tp>
  // CHECK-NOT: dist.redistribute %
  func.func @tensor_parallel(%x: tensor<2x5x12xf32, #R>, %scale: tensor<12xf32, #R>,
                             %wq: tensor<8x12xf32, #S0>, %wk: tensor<8x12xf32, #S0>, %wv: tensor<8x12xf32, #S0>,
                             %g: tensor<2x5x8xf32, #S2>, %gx: tensor<2x5x12xf32, #R>)
      -> (tensor<2x5x8xf32, #S2>, tensor<2x5x12xf32>, tensor<8x12xf32, #S0>, tensor<12xf32, #R>) {
    %n = aten.mul %x, %scale : (tensor<2x5x12xf32, #R>, tensor<12xf32, #R>) -> tensor<2x5x12xf32, #R>
    %q = aten.linear %n, %wq : (tensor<2x5x12xf32, #R>, tensor<8x12xf32, #S0>) -> tensor<2x5x8xf32, #S2>
    %k = aten.linear %n, %wk : (tensor<2x5x12xf32, #R>, tensor<8x12xf32, #S0>) -> tensor<2x5x8xf32, #S2>
    %v = aten.linear %n, %wv : (tensor<2x5x12xf32, #R>, tensor<8x12xf32, #S0>) -> tensor<2x5x8xf32, #S2>
    %qk = aten.mul %q, %k : (tensor<2x5x8xf32, #S2>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32, #S2>
    %y = aten.mul %qk, %v : (tensor<2x5x8xf32, #S2>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32, #S2>
    // Backward.
    %gqk = aten.mul %g, %v {dist.sharding = [#heads]} : (tensor<2x5x8xf32, #S2>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32>
    %gv = aten.mul %g, %qk {dist.sharding = [#heads]} : (tensor<2x5x8xf32, #S2>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32>
    %gq = aten.mul %gqk, %k {dist.sharding = [#heads]} : (tensor<2x5x8xf32>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32>
    %gk = aten.mul %gqk, %q {dist.sharding = [#heads]} : (tensor<2x5x8xf32>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32>
    %nq = aten.matmul %gq, %wq {dist.sharding = [#any]} : (tensor<2x5x8xf32>, tensor<8x12xf32, #S0>) -> tensor<2x5x12xf32>
    %nk = aten.matmul %gk, %wk {dist.sharding = [#any]} : (tensor<2x5x8xf32>, tensor<8x12xf32, #S0>) -> tensor<2x5x12xf32>
    %nqk = aten.add %nq, %nk {dist.sharding = [#any]} : (tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
    %nv = aten.matmul %gv, %wv {dist.sharding = [#any]} : (tensor<2x5x8xf32>, tensor<8x12xf32, #S0>) -> tensor<2x5x12xf32>
    %gn = aten.add %nqk, %nv {dist.sharding = [#any]} : (tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
    %gnx = aten.mul %gn, %x {dist.sharding = [#any]} : (tensor<2x5x12xf32>, tensor<2x5x12xf32, #R>) -> tensor<2x5x12xf32>
    %gs0 = aten.sum %gnx dim [0, 1] {dist.sharding = [#any]} : (tensor<2x5x12xf32>) -> tensor<12xf32>
    %gs = dist.redistribute backward %gs0 : tensor<12xf32> to tensor<12xf32, #R>
    %gns = aten.mul %gn, %scale {dist.sharding = [#any]} : (tensor<2x5x12xf32>, tensor<12xf32, #R>) -> tensor<2x5x12xf32>
    %gelu = aten.gelu %gns {dist.sharding = [#any]} : (tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
    %dx = aten.add %gx, %gelu {dist.sharding = [#any]} : (tensor<2x5x12xf32, #R>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
    %gq2 = aten.view %gq [10, 8] : (tensor<2x5x8xf32>) -> tensor<10x8xf32>
    %gqt = aten.permute %gq2 [1, 0] : (tensor<10x8xf32>) -> tensor<8x10xf32>
    %n2 = aten.view %n [10, 12] : (tensor<2x5x12xf32, #R>) -> tensor<10x12xf32>
    %dw0 = aten.mm %gqt, %n2 {dist.sharding = [#dist.sharding<#mesh, [S(0)]>]} : (tensor<8x10xf32>, tensor<10x12xf32>) -> tensor<8x12xf32>
    %dw = dist.redistribute backward %dw0 : tensor<8x12xf32> to tensor<8x12xf32, #S0>
    return %y, %dx, %dw, %gs : tensor<2x5x8xf32, #S2>, tensor<2x5x12xf32>, tensor<8x12xf32, #S0>, tensor<12xf32, #R>
  }

  // Sequence parallel: what the forward gathers, the backward scatters: one reduce-scatter of the sum, beside the
  // all-gather of the forward. The gradient of the scale is a sum over the sequence, which is reduced.
  // RAN: sequence_parallel: all_gather 1, all_reduce 1, reduce_scatter 1
  // CHECK-LABEL: func.func @sequence_parallel(
  // CHECK: %[[DN:.*]] = aten.add {{.*}} -> tensor<2x5x12xf32, #Ptp>
  // CHECK-NEXT: %[[PART:.*]] = dist.redistribute backward %[[DN]] : tensor<2x5x12xf32, #Ptp> to tensor<2x5x12xf32, #S1tp>
  // CHECK: %[[GS0:.*]] = aten.sum {{.*}} -> tensor<12xf32, #Ptp>
  // CHECK: dist.redistribute backward %[[GS0]] : tensor<12xf32, #Ptp> to tensor<12xf32, #R>
  // CHECK: return %{{.*}} : tensor<2x5x8xf32, #S2tp>, tensor<2x5x12xf32, #S1tp>, tensor<12xf32, #R>
  func.func @sequence_parallel(%x: tensor<2x5x12xf32, #S1>, %scale: tensor<12xf32, #R>,
                               %wq: tensor<8x12xf32, #S0>, %wk: tensor<8x12xf32, #S0>, %g: tensor<2x5x8xf32, #S2>,
                               %gx: tensor<2x5x12xf32, #S1>)
      -> (tensor<2x5x8xf32, #S2>, tensor<2x5x12xf32>, tensor<12xf32, #R>) {
    %n = aten.mul %x, %scale : (tensor<2x5x12xf32, #S1>, tensor<12xf32, #R>) -> tensor<2x5x12xf32, #S1>
    %nr = dist.redistribute %n : tensor<2x5x12xf32, #S1> to tensor<2x5x12xf32, #R>
    %q = aten.linear %nr, %wq : (tensor<2x5x12xf32, #R>, tensor<8x12xf32, #S0>) -> tensor<2x5x8xf32, #S2>
    %k = aten.linear %nr, %wk : (tensor<2x5x12xf32, #R>, tensor<8x12xf32, #S0>) -> tensor<2x5x8xf32, #S2>
    %y = aten.mul %q, %k : (tensor<2x5x8xf32, #S2>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32, #S2>
    // Backward.
    %gq = aten.mul %g, %k {dist.sharding = [#heads]} : (tensor<2x5x8xf32, #S2>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32>
    %gk = aten.mul %g, %q {dist.sharding = [#heads]} : (tensor<2x5x8xf32, #S2>, tensor<2x5x8xf32, #S2>) -> tensor<2x5x8xf32>
    %nq = aten.matmul %gq, %wq {dist.sharding = [#any]} : (tensor<2x5x8xf32>, tensor<8x12xf32, #S0>) -> tensor<2x5x12xf32>
    %nk = aten.matmul %gk, %wk {dist.sharding = [#any]} : (tensor<2x5x8xf32>, tensor<8x12xf32, #S0>) -> tensor<2x5x12xf32>
    %gnr = aten.add %nq, %nk {dist.sharding = [#any]} : (tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
    %gn = dist.redistribute backward %gnr : tensor<2x5x12xf32> to tensor<2x5x12xf32, #S1>
    %gns = aten.mul %gn, %scale {dist.sharding = [#rows]} : (tensor<2x5x12xf32, #S1>, tensor<12xf32, #R>) -> tensor<2x5x12xf32>
    %dx = aten.add %gx, %gns {dist.sharding = [#rows]} : (tensor<2x5x12xf32, #S1>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
    %gnx = aten.mul %gn, %x {dist.sharding = [#rows]} : (tensor<2x5x12xf32, #S1>, tensor<2x5x12xf32, #S1>) -> tensor<2x5x12xf32>
    %gs0 = aten.sum %gnx dim [0, 1] {dist.sharding = [#any]} : (tensor<2x5x12xf32>) -> tensor<12xf32>
    %gs = dist.redistribute backward %gs0 : tensor<12xf32> to tensor<12xf32, #R>
    return %y, %dx, %gs : tensor<2x5x8xf32, #S2>, tensor<2x5x12xf32>, tensor<12xf32, #R>
  }

  // Data parallel with a tied, sharded weight: both partial gradients are summed, and scattered into the weight's shards
  // at once. (The forward is left out: its values come in.)
  // RAN: tied: reduce_scatter 1
  // CHECK-LABEL: func.func @tied(
  // CHECK: %[[SUM:.*]] = aten.add {{.*}} -> tensor<8x12xf32, #Ptp>
  // CHECK-NEXT: dist.redistribute backward %[[SUM]] : tensor<8x12xf32, #Ptp> to tensor<8x12xf32, #S0tp>
  func.func @tied(%a: tensor<8x160xf32, #S1>, %b: tensor<160x12xf32, #S0>, %c: tensor<8x160xf32, #S1>, %d: tensor<160x12xf32, #S0>)
      -> tensor<8x12xf32, #S0> {
    %0 = aten.mm %a, %b : (tensor<8x160xf32, #S1>, tensor<160x12xf32, #S0>) -> tensor<8x12xf32>
    %1 = aten.mm %c, %d : (tensor<8x160xf32, #S1>, tensor<160x12xf32, #S0>) -> tensor<8x12xf32>
    %2 = aten.add %0, %1 : (tensor<8x12xf32>, tensor<8x12xf32>) -> tensor<8x12xf32>
    %3 = dist.redistribute backward %2 : tensor<8x12xf32> to tensor<8x12xf32, #S0>
    return %3 : tensor<8x12xf32, #S0>
  }

  // Two redistributions of one value to one layout are one, and the users of both get it.
  // RAN: twice: all_reduce 1
  // CHECK-LABEL: func.func @twice(
  // CHECK: %[[G:.*]] = aten.mul
  // CHECK-NEXT: %[[P:.*]] = dist.redistribute backward %[[G]] : tensor<8x12xf32, #R> to tensor<8x12xf32, #Ptp>
  // CHECK-NOT: backward
  // CHECK-COUNT-2: dist.redistribute %[[P]] : tensor<8x12xf32, #Ptp> to tensor<8x12xf32, #R>
  // CHECK-NOT: backward
  func.func @twice(%a: tensor<8x12xf32, #R>) -> (tensor<8x12xf32, #R>, tensor<8x12xf32, #R>) {
    %0 = aten.mul %a, %a : (tensor<8x12xf32, #R>, tensor<8x12xf32, #R>) -> tensor<8x12xf32>
    %1 = dist.redistribute backward %0 : tensor<8x12xf32> to tensor<8x12xf32, #P>
    %2 = dist.redistribute backward %0 : tensor<8x12xf32> to tensor<8x12xf32, #P>
    %3 = aten.neg %1 : (tensor<8x12xf32, #P>) -> tensor<8x12xf32>
    %4 = aten.neg %2 : (tensor<8x12xf32, #P>) -> tensor<8x12xf32>
    %5 = dist.redistribute %3 : tensor<8x12xf32> to tensor<8x12xf32, #R>
    %6 = dist.redistribute %4 : tensor<8x12xf32> to tensor<8x12xf32, #R>
    return %5, %6 : tensor<8x12xf32, #R>, tensor<8x12xf32, #R>
  }
}

// RAN: {{^}}4 functions, 0 failures
