// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file %s | FileCheck %s

// What an exchange of blocks becomes.

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#S00 = #dist.layout<#mesh, [S(0), S(0)]>
#S00r = #dist.layout<#mesh, [S(0), S(0)], order = ["tp", "dp"]>
#S01 = #dist.layout<#mesh, [S(0), S(1)]>
#S10 = #dist.layout<#mesh, [S(1), S(0)]>
#RS0 = #dist.layout<#mesh, [R, S(0)]>

// Every rank's shard goes to one other as it is.
// CHECK-LABEL: func.func @order
// CHECK-NEXT: dist.permute over #dp_tp pairs {{\[\[}}0, 0], [2, 1], [1, 2], [3, 3]] %arg0 : tensor<2x4xf32>
// CHECK-NEXT: return
func.func @order(%x: tensor<8x4xf32, #S00>) -> tensor<8x4xf32, #S00r> {
  %y = dist.redistribute %x by exchange : tensor<8x4xf32, #S00> to tensor<8x4xf32, #S00r>
  return %y : tensor<8x4xf32, #S00r>
}

// CHECK-LABEL: func.func @transpose
// CHECK-NEXT: dist.permute over #dp_tp pairs {{\[\[}}0, 0], [2, 1], [1, 2], [3, 3]] %arg0 : tensor<4x2xf32>
// CHECK-NEXT: return
func.func @transpose(%x: tensor<8x4xf32, #S01>) -> tensor<8x4xf32, #S10> {
  %y = dist.redistribute %x by exchange : tensor<8x4xf32, #S01> to tensor<8x4xf32, #S10>
  return %y : tensor<8x4xf32, #S10>
}

// Rows 0 and 1, 2, 3, 4 become 0 to 2 and 3, 4, on both ranks of dp. A rank that has a row keeps it.
// CHECK-LABEL: func.func @misaligned
// CHECK-NOT: dist.all_gather
// CHECK: %[[SENT:.*]] = aten.cat {{.*}} dim 0
// CHECK: %[[ALL:.*]] = dist.all_to_all over #dp_tp %[[SENT]] split 0 extents [{{.*}}] concat 0 extents [{{.*}}] : tensor<?xf32>
// CHECK: aten.slice %[[ALL]] dim 0
// CHECK: %[[R:.*]] = aten.cat {{.*}} dim 0 : {{.*}} -> tensor<?x3xf32>
// CHECK: return %[[R]]
func.func @misaligned(%x: tensor<5x3xf32, #S00>) -> tensor<5x3xf32, #RS0> {
  %y = dist.redistribute %x by exchange : tensor<5x3xf32, #S00> to tensor<5x3xf32, #RS0>
  return %y : tensor<5x3xf32, #RS0>
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>
#blocks = #dist.layout<#mesh, [S(0, blocks = 3)]>

// Rows of a dim whose size is not known go along as they are.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[N:.*]] = dist.extent #dist.extents<n>
// CHECK: dist.all_to_all over #tp
// CHECK: return %{{.*}} : tensor<6x?xf32>
func.func @blocks(%x: tensor<12x?xf32, #S0> {dist.sizes = [#dist.size<12>, #dist.size<n>]}) -> tensor<12x?xf32, #blocks> attributes {dist.symbols = [#dist.symbol<n in [0, 100]>]} {
  %y = dist.redistribute %x by exchange : tensor<12x?xf32, #S0> to tensor<12x?xf32, #blocks>
  return %y : tensor<12x?xf32, #blocks>
}
