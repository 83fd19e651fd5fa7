// RUN: shard-opt %s "--shardc-place=mesh=dp=2,tp=4 place=input:0=dp:S(0) place=module:up=colwise" | FileCheck %s
// RUN: shard-opt %s "--dist-apply-plan=mesh=dp=2,tp=4 place=input:0=dp:S(0) place=module:up=colwise" --dist-propagate | FileCheck %s --check-prefix=PROPAGATED
// RUN: shard-opt %s "--dist-apply-plan=mesh=dp=2,tp=4 place=input:0=dp:S(0) place=module:up=colwise" --dist-propagate --dist-place --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// STATS: dist-place
// STATS-NEXT: 2 redistributions

// Naming the first weight alone gives the Megatron program: the second is row-parallel, one reduction.
// CHECK: func.func @forward(%[[X:.*]]: tensor<8x64xf32, #S0dp>
// CHECK-SAME: %[[W1:.*]]: tensor<256x64xf32, #S0tp>
// CHECK-SAME: %[[B1:.*]]: tensor<256xf32, #S0tp>
// CHECK-SAME: %[[W2:.*]]: tensor<64x256xf32, #S1tp>
// CHECK-SAME: %[[B2:.*]]: tensor<64xf32, #R>
// CHECK-SAME: -> (tensor<8x64xf32, #S0dp>
// CHECK: %[[UP:.*]] = aten.linear %[[X]], %[[W1]], %[[B1]] {{.*}} -> tensor<8x256xf32, #S0dp_S1tp>
// CHECK: %[[GELU:.*]] = aten.gelu %[[UP]] {{.*}} -> tensor<8x256xf32, #S0dp_S1tp>
// A bias counts once under a sharded contraction (G1).
// CHECK: %[[ONCE:.*]] = dist.redistribute %[[B2]] : tensor<64xf32, #R> to tensor<64xf32, #Ptp>
// CHECK: %[[DOWN:.*]] = aten.linear %[[GELU]], %[[W2]], %[[ONCE]] {{.*}} -> tensor<8x64xf32, #S0dp_Ptp>
// CHECK: %[[SUM:.*]] = dist.redistribute %[[DOWN]] : tensor<8x64xf32, #S0dp_Ptp> to tensor<8x64xf32, #S0dp>
// CHECK: aten.add %[[X]], %[[SUM]]
// CHECK-NOT: dist.sharding

// PROPAGATED: aten.linear {{.*}} {dist.sharding = [#sharding_S0dp_S1tp]}
// PROPAGATED: aten.linear {{.*}} {dist.sharding = [#sharding_S0dp]}

func.func @forward(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"},
                   %w1: tensor<256x64xf32> {dist.kind = "parameter", dist.name = "up.weight"},
                   %b1: tensor<256xf32> {dist.kind = "parameter", dist.name = "up.bias"},
                   %w2: tensor<64x256xf32> {dist.kind = "parameter", dist.name = "down.weight"},
                   %b2: tensor<64xf32> {dist.kind = "parameter", dist.name = "down.bias"})
    -> (tensor<8x64xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w1, %b1 : (tensor<8x64xf32>, tensor<256x64xf32>, tensor<256xf32>) -> tensor<8x256xf32> loc(fused<"up">["linear"("m.py":3:0)])
  %1 = aten.gelu %0 : (tensor<8x256xf32>) -> tensor<8x256xf32> loc("gelu"("m.py":4:0))
  %2 = aten.linear %1, %w2, %b2 : (tensor<8x256xf32>, tensor<64x256xf32>, tensor<64xf32>) -> tensor<8x64xf32> loc(fused<"down">["linear_1"("m.py":5:0)])
  %3 = aten.add %x, %2 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32> loc("add"("m.py":6:0))
  return %3 : tensor<8x64xf32>
}
