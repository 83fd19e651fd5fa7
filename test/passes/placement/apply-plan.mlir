// RUN: shard-opt %s "--dist-apply-plan=mesh=dp=2,tp=4 place=input:0=dp:S(0) place=module:up=colwise place=module:down=rowwise place=module:mid=tp:S(1) place=output:y=R" | FileCheck %s
// A plan file says the same as these flags, and a flag adds to it.
// RUN: printf 'mesh: {dp: 2, tp: 4}\ninputs: {0: {dp: S(0)}}\nmodules: {up: colwise, down: rowwise, mid: {tp: S(1)}}\n' > %t.yaml
// RUN: shard-opt %s "--dist-apply-plan=plan=%t.yaml place=output:y=R" | FileCheck %s --check-prefix=FILE
// RUN: not shard-opt %s "--dist-apply-plan=mesh=dp=2,tp=4 place=module:upp=colwise place=param:up.weight=ep:S(0) place=input:x=tp:S(2)" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not shard-opt %s --dist-apply-plan 2>&1 | FileCheck %s --check-prefix=NOMESH
// RUN: not shard-opt %s --dist-apply-plan=plan=%t.absent.yaml 2>&1 | FileCheck %s --check-prefix=NOFILE

// FILE: module attributes {dist.mesh = #mesh}
// FILE: dist.annotation = #dist.layout<#mesh, [S(0), ?]>, dist.kind = "input", dist.name = "x"
// FILE-SAME: {dist.annotation = #dist.layout<#mesh, [?, S(0)]>, dist.kind = "parameter", dist.name = "up.weight"
// FILE-SAME: {dist.annotation = #open_dp_S1tp, dist.kind = "parameter", dist.name = "down.weight"
// FILE-SAME: -> (tensor<8x64xf32> {dist.annotation = #R, dist.name = "y"

// The mesh goes onto the module; axes that nobody mentioned stay open.
// CHECK: module attributes {dist.mesh = #mesh}
// CHECK: func.func @forward(%[[X:.*]]: tensor<8x64xf32> {dist.annotation = #dist.layout<#mesh, [S(0), ?]>, dist.kind = "input", dist.name = "x", dist.origin = ["--place input:0=dp:S(0)", ""]
// A column-parallel Linear [out, in] is sharded on its rows, and its bias with it.
// CHECK-SAME: {dist.annotation = #dist.layout<#mesh, [?, S(0)]>, dist.kind = "parameter", dist.name = "up.weight"
// CHECK-SAME: dist.strength = ["normal", "pinned"]
// CHECK-SAME: {dist.annotation = #dist.layout<#mesh, [?, S(0)]>, dist.kind = "parameter", dist.name = "up.bias"
// A row-parallel one on its columns; its bias is replicated.
// CHECK-SAME: {dist.annotation = #open_dp_S1tp, dist.kind = "parameter", dist.name = "down.weight"
// CHECK-SAME: {dist.annotation = #dist.layout<#mesh, [?, R]>, dist.kind = "parameter", dist.name = "down.bias"
// CHECK-SAME: -> (tensor<8x64xf32> {dist.annotation = #R, dist.name = "y"
// The output of a module is constrained for those that use it.
// CHECK: %[[GELU:.*]] = aten.gelu
// CHECK: %[[MID:.*]] = dist.constrain %[[GELU]]
// CHECK-SAME: to #open_dp_S1tp
// CHECK: aten.linear %[[MID]]

// All mistakes at once, with the nearest names.
// WRONG: error: --place module:upp=colwise: 'upp' matches no module of the model; the nearest are up
// WRONG: error: --place param:up.weight=ep:S(0): the mesh has no axis 'ep'; it has dp, tp
// WRONG: error: --place input:x=tp:S(2): tp:S(2) does not fit 'x'

// NOMESH: error: no mesh is given
// NOFILE: error: cannot read the plan

func.func @forward(%x: tensor<8x64xf32> {dist.kind = "input", dist.name = "x"},
                   %w1: tensor<256x64xf32> {dist.kind = "parameter", dist.name = "up.weight"},
                   %b1: tensor<256xf32> {dist.kind = "parameter", dist.name = "up.bias"},
                   %w2: tensor<64x256xf32> {dist.kind = "parameter", dist.name = "down.weight"},
                   %b2: tensor<64xf32> {dist.kind = "parameter", dist.name = "down.bias"})
    -> (tensor<8x64xf32> {dist.name = "y"}) {
  %0 = aten.linear %x, %w1, %b1 : (tensor<8x64xf32>, tensor<256x64xf32>, tensor<256xf32>) -> tensor<8x256xf32> loc(fused<"up">["linear"("m.py":3:0)])
  %1 = aten.gelu %0 : (tensor<8x256xf32>) -> tensor<8x256xf32> loc(fused<"mid">["gelu"("m.py":4:0)])
  %2 = aten.linear %1, %w2, %b2 : (tensor<8x256xf32>, tensor<64x256xf32>, tensor<64xf32>) -> tensor<8x64xf32> loc(fused<"down">["linear_1"("m.py":5:0)])
  %3 = aten.add %x, %2 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32> loc("add"("m.py":6:0))
  return %3 : tensor<8x64xf32>
}
