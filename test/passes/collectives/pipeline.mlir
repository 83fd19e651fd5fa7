// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --shardc-optimize-collectives="topology=h100-64 memory-limit=1MB" %s | FileCheck %s
// RUN: shard-opt --shardc-optimize-collectives="topology=h100-64 memory-limit=1MB" --dist-specialize --dist-verify-schedule %s | FileCheck --check-prefix=RANKS %s
// RUN: not shard-opt --dist-specialize --dist-schedule-collectives %s 2>&1 | FileCheck --check-prefix=ORDER %s
// RUN: not shard-opt --shardc-optimize-collectives="memory-limit=100" %s 2>&1 | FileCheck --check-prefix=LIMIT %s
// RUN: shard-opt --shardc-optimize-collectives="memory-limit=100 best-effort" %s | FileCheck --check-prefix=EFFORT %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- "--shardc-optimize-collectives=topology=h100-64 memory-limit=1000000" %}

// From one rank's program to starts and waits. Two weights, 10 rows over four ranks, are gathered in one bucket; each
// rank's clone has the same sequence, hence the same hash.

// ORDER: has one function for each kind of rank already: the order of collectives is decided in the one function that all ranks share
// Arguments take 240 bytes; the second product has operands of 80 and 400 bytes and a result of 80.
// LIMIT: error: 'func.func' op the memory limit of 100 bytes cannot be met: in every order 800 bytes are live at once, when 'aten.linear_1' runs; the program takes 800 bytes at its peak, and the least that was found is 800; allow at least that much
// LIMIT: pipeline.mlir:[[# @LINE + 29]]:{{[0-9]+}}: note: in every order so much is live when this runs

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>
#S0 = #dist.layout<#mesh, [S(0)]>
#R = #dist.layout<#mesh, [R]>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: dist.sequence_hash = "[[HASH:[0-9a-f]+]]"
// CHECK: %[[F:.*]]:2 = dist.all_gather over #dp %arg1 dim 0, %arg2 dim 0 {dist.bucket
// CHECK: %[[W:.*]]:2 = dist.wait %[[F]]#0, %[[F]]#1
// CHECK: aten.linear %arg0, %[[W]]#0
// CHECK-NOT: dist.all_gather
// RANKS: dist.specializations = {forward = #dist.variants<[@forward_v0, @forward_v1], [0, 0, 0, 1]>}
// RANKS: func.func @forward_v0({{.*}}dist.sequence_hash = "[[HASH:[0-9a-f]+]]"
// RANKS: dist.all_gather {{.*}} : (tensor<3x6xf32>, tensor<3x10xf32>) -> (!dist.future<tensor<10x6xf32>>, !dist.future<tensor<10x10xf32>>)
// RANKS: func.func @forward_v1({{.*}}dist.sequence_hash = "[[HASH]]"
// RANKS: dist.all_gather {{.*}} : (tensor<1x6xf32>, tensor<1x10xf32>) -> (!dist.future<tensor<10x6xf32>>, !dist.future<tensor<10x10xf32>>)
// EFFORT-LABEL: func.func @forward(
// EFFORT-COUNT-2: dist.all_gather
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<2x6xf32> {dist.global_type = tensor<2x6xf32>, dist.layout = #R},
                     %a: tensor<?x6xf32> {dist.global_type = tensor<10x6xf32>, dist.layout = #S0},
                     %b: tensor<?x10xf32> {dist.global_type = tensor<10x10xf32>, dist.layout = #S0})
      -> (tensor<2x10xf32> {dist.global_type = tensor<2x10xf32>, dist.layout = #R}) {
    %wa = dist.all_gather over #dp %a dim 0 : (tensor<?x6xf32>) -> tensor<10x6xf32>
    %y = aten.linear %x, %wa : (tensor<2x6xf32>, tensor<10x6xf32>) -> tensor<2x10xf32>
    %r = aten.relu %y : (tensor<2x10xf32>) -> tensor<2x10xf32>
    %wb = dist.all_gather over #dp %b dim 0 : (tensor<?x10xf32>) -> tensor<10x10xf32>
    %z = aten.linear %r, %wb : (tensor<2x10xf32>, tensor<10x10xf32>) -> tensor<2x10xf32>
    return %z : tensor<2x10xf32>
  }
}
