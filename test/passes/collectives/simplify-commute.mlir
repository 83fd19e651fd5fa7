// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-simplify-collectives %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s --tolerance 0 -- --dist-simplify-collectives %}
// RUN: shard-opt --dist-simplify-collectives --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s

// STATS-DAG: 3 casts
// STATS-DAG: 7 views
// STATS-DAG: 2 permutes
// STATS-DAG: 4 duplicates

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>

// The narrow type travels.
// CHECK-LABEL: func.func @casts(
// CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<3xbf16>) -> tensor<12xbf16>
// CHECK: dist.all_to_all over #tp %{{.*}} split 0 concat 1 : (tensor<4x2xbf16>) -> tensor<1x8xbf16>
// CHECK: aten.to_copy %{{.*}} to f32 : (tensor<1x8xbf16>)
// CHECK: dist.permute over #tp pairs {{.*}} %{{.*}} : tensor<5xi1>
func.func @casts(%x: tensor<3xf32>, %y: tensor<4x2xbf16>, %z: tensor<5xf32>)
    -> (tensor<12xbf16>, tensor<12xbf16>, tensor<1x8xf32>, tensor<5xi1>) {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<3xf32>) -> tensor<12xf32>
  %c = aten.to_copy %g to bf16 : (tensor<12xf32>) -> tensor<12xbf16>
  %d = aten.to_copy %g to bf16 : (tensor<12xf32>) -> tensor<12xbf16>
  %w = aten.to_copy %y to f32 : (tensor<4x2xbf16>) -> tensor<4x2xf32>
  %a = dist.all_to_all over #tp %w split 0 concat 1 : (tensor<4x2xf32>) -> tensor<1x8xf32>
  %p = dist.permute over #tp pairs [[0, 1]] %z : tensor<5xf32>
  %b = aten.to_copy %p to i1 : (tensor<5xf32>) -> tensor<5xi1>
  return %c, %d, %a, %b : tensor<12xbf16>, tensor<12xbf16>, tensor<1x8xf32>, tensor<5xi1>
}

// Someone needs the wide type; a cast to a wider one comes after.
// CHECK-LABEL: func.func @no_casts(
// CHECK-NEXT: dist.all_gather over #tp %arg0 dim 0 : (tensor<3xf32>) -> tensor<12xf32>
// CHECK-NEXT: aten.to_copy
// CHECK-NEXT: dist.all_gather over #tp %arg1 dim 0 : (tensor<3xbf16>) -> tensor<12xbf16>
func.func @no_casts(%x: tensor<3xf32>, %y: tensor<3xbf16>) -> (tensor<12xbf16>, tensor<12xf32>, tensor<12xf32>) {
  %g = dist.all_gather over #tp %x dim 0 : (tensor<3xf32>) -> tensor<12xf32>
  %c = aten.to_copy %g to bf16 : (tensor<12xf32>) -> tensor<12xbf16>
  %h = dist.all_gather over #tp %y dim 0 : (tensor<3xbf16>) -> tensor<12xbf16>
  %d = aten.to_copy %h to f32 : (tensor<12xbf16>) -> tensor<12xf32>
  return %c, %g, %d : tensor<12xbf16>, tensor<12xf32>, tensor<12xf32>
}

// A weight is gathered as it is stored, once, however it is looked at.
// CHECK-LABEL: func.func @views(
// CHECK-NEXT: %[[G:.*]] = dist.all_gather over #tp %arg0 dim 0 : (tensor<3x10xf32>) -> tensor<12x10xf32>
// CHECK-DAG: aten.transpose %[[G]] [0, 1]
// CHECK-DAG: aten.view %[[G]] [120]
// CHECK-DAG: %[[P:.*]] = aten.permute %[[G]] [1, 0]
// CHECK-NOT: dist.all_gather
func.func @views(%w: tensor<3x10xf32>) -> (tensor<10x12xf32>, tensor<120xf32>, tensor<10x12xf32>) {
  %t = aten.transpose %w [0, 1] : (tensor<3x10xf32>) -> tensor<10x3xf32>
  %a = dist.all_gather over #tp %t dim 1 : (tensor<10x3xf32>) -> tensor<10x12xf32>
  %v = aten.view %w [30] : (tensor<3x10xf32>) -> tensor<30xf32>
  %b = dist.all_gather over #tp %v dim 0 : (tensor<30xf32>) -> tensor<120xf32>
  %p = aten.permute %w [1, 0] : (tensor<3x10xf32>) -> tensor<10x3xf32>
  %c = dist.all_gather over #tp %p dim 1 : (tensor<10x3xf32>) -> tensor<10x12xf32>
  return %a, %b, %c : tensor<10x12xf32>, tensor<120xf32>, tensor<10x12xf32>
}

// What is repeated travels once.
// CHECK-LABEL: func.func @repeated(
// CHECK-NEXT: %[[G:.*]] = dist.all_gather over #tp %arg0 dim 0 : (tensor<3x5xf32>) -> tensor<12x5xf32>
// CHECK-NEXT: %[[U:.*]] = aten.unsqueeze %[[G]] dim 1
// CHECK-NEXT: %[[E:.*]] = aten.expand %[[U]] [12, 2, 5]
// CHECK: aten.view %{{.*}} [24, 5]
func.func @repeated(%x: tensor<3x5xf32>) -> tensor<24x5xf32> {
  %u = aten.unsqueeze %x dim 1 : (tensor<3x5xf32>) -> tensor<3x1x5xf32>
  %e = aten.expand %u [3, 2, 5] : (tensor<3x1x5xf32>) -> tensor<3x2x5xf32>
  %c = aten.clone %e : (tensor<3x2x5xf32>) -> tensor<3x2x5xf32>
  %v = aten.view %c [6, 5] : (tensor<3x2x5xf32>) -> tensor<6x5xf32>
  %g = dist.all_gather over #tp %v dim 0 : (tensor<6x5xf32>) -> tensor<24x5xf32>
  return %g : tensor<24x5xf32>
}

// A dim that only the repetition has is gathered behind it.
// CHECK-LABEL: func.func @repeated_along(
// CHECK-NEXT: aten.expand
// CHECK-NEXT: dist.all_gather
func.func @repeated_along(%x: tensor<1x5xf32>) -> tensor<12x5xf32> {
  %e = aten.expand %x [3, 5] : (tensor<1x5xf32>) -> tensor<3x5xf32>
  %g = dist.all_gather over #tp %e dim 0 : (tensor<3x5xf32>) -> tensor<12x5xf32>
  return %g : tensor<12x5xf32>
}

// Blocks of a fused weight are a dim of their own, which the weight has not: [3, 2] are not the rows of [6].
// CHECK-LABEL: func.func @no_view(
// CHECK-NEXT: aten.view %arg0 [3, 2, 4]
// CHECK-NEXT: dist.all_gather over #tp %{{.*}} dim 1
// CHECK-NEXT: aten.view
func.func @no_view(%w: tensor<6x4xf32>) -> tensor<24x4xf32> {
  %v = aten.view %w [3, 2, 4] : (tensor<6x4xf32>) -> tensor<3x2x4xf32>
  %g = dist.all_gather over #tp %v dim 1 : (tensor<3x2x4xf32>) -> tensor<3x8x4xf32>
  %y = aten.view %g [24, 4] : (tensor<3x8x4xf32>) -> tensor<24x4xf32>
  return %y : tensor<24x4xf32>
}

// 0 -> 1 -> 2; position 3 sends to 0, which sends nothing on.
// CHECK-LABEL: func.func @permutes(
// CHECK-NEXT: %[[P:.*]] = dist.permute over #tp pairs {{\[}}[0, 2]] %arg0 : tensor<5xf32>
// CHECK-NEXT: return %[[P]], %arg1
func.func @permutes(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %a = dist.permute over #tp pairs [[0, 1], [3, 0]] %x : tensor<5xf32>
  %b = dist.permute over #tp pairs [[1, 2], [2, 3]] %a : tensor<5xf32>
  %c = dist.permute over #tp pairs [[0, 1], [1, 2], [2, 3], [3, 0]] %y : tensor<5xf32>
  %d = dist.permute over #tp pairs [[1, 0], [2, 1], [3, 2], [0, 3]] %c : tensor<5xf32>
  return %b, %d : tensor<5xf32>, tensor<5xf32>
}

// The same gather, written with axes and with ranks; of a bucket only what is new stays.
// CHECK-LABEL: func.func @duplicates(
// CHECK-NEXT: %[[A:.*]] = dist.all_gather over #tp %arg0 dim 0
// CHECK-NEXT: %[[B:.*]] = dist.all_gather over #tp %arg1 dim 0
// CHECK-NEXT: %[[C:.*]] = dist.all_gather over #tp %arg0 dim 1
// CHECK-NEXT: return %[[A]], %[[A]], %[[A]], %[[B]], %[[C]]
func.func @duplicates(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>)
    -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<2x12xf32>) {
  %a = dist.all_gather over #tp %x dim 0 : (tensor<2x3xf32>) -> tensor<8x3xf32>
  %b = dist.all_gather over #dist.groups<[[0, 1, 2, 3]]> %x dim 0 : (tensor<2x3xf32>) -> tensor<8x3xf32>
  %c:2 = dist.all_gather over #tp %x dim 0, %y dim 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
  %d = dist.all_gather over #tp %x dim 1 : (tensor<2x3xf32>) -> tensor<2x12xf32>
  return %a, %b, %c#0, %c#1, %d : tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<2x12xf32>
}
