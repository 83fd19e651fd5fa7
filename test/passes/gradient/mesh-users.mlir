// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s "--aten-differentiate=loss=loss wrt=x,w" -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: shard-opt %t.mlir --dist-propagate --dist-place --dist-rewrite-partial-gradients --dist-verify-stage=placed -o /dev/null
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %t.mlir -- --dist-propagate --dist-place --dist-rewrite-partial-gradients | FileCheck %s --check-prefix=RAN %}

// An input on another mesh that several redistributions of the program take: its cotangents are added on the mesh of the
// program, and the sum alone goes back. What comes from a third mesh is first brought to the program's.

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#io = #dist.mesh<["io" = 2], devices = [4, 1]>
#line = #dist.mesh<["r" = 4], devices = [3, 2, 1, 0]>
#S0io = #dist.layout<#io, [S(0)]>
#S1line = #dist.layout<#line, [S(1)]>
#R = #dist.layout<#mesh, [R, R]>
#S0dp = #dist.layout<#mesh, [S(0), R]>
#S1tp = #dist.layout<#mesh, [R, S(1)]>
module attributes {dist.mesh = #mesh, dist.meshes = {line = #line, readers = #io}} {

// CHECK-LABEL: func.func @gradients(
// CHECK: %[[D:.*]] = dist.redistribute backward %{{.*}} : tensor<5x6xf32> to tensor<5x6xf32, #S1tp>
// CHECK: %[[B:.*]] = dist.redistribute backward %{{.*}} : tensor<5x6xf32> to tensor<5x6xf32, #S0dp>
// CHECK: %[[A:.*]] = aten.matmul {{.*}} -> tensor<5x6xf32>
// CHECK-NOT: #S0io
// CHECK: %[[LINE:.*]] = dist.redistribute backward %[[D]] : tensor<5x6xf32, #S1tp> to tensor<5x6xf32, #S1r>
// CHECK: %[[HERE:.*]] = dist.redistribute backward %[[LINE]] : tensor<5x6xf32, #S1r> to tensor<5x6xf32, #R>
// CHECK: %[[TWO:.*]] = aten.add %[[HERE]], %[[B]] : (tensor<5x6xf32, #R>, tensor<5x6xf32, #S0dp>) -> tensor<5x6xf32>
// CHECK: %[[SUM:.*]] = aten.add %[[TWO]], %[[A]] : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
// CHECK: %[[BACK:.*]] = dist.redistribute backward %[[SUM]] : tensor<5x6xf32> to tensor<5x6xf32, #S0io>
// CHECK: %[[GRADIENT:.*]] = dist.redistribute %[[BACK]] : tensor<5x6xf32, #S0io> to tensor<5x6xf32, #S0io>
// CHECK: return %{{.*}}, %[[GRADIENT]], %{{.*}} : tensor<f32, #R>, tensor<5x6xf32, #S0io>,

// RAN: forward:
// RAN: gradients:
// RAN: 2 functions, 0 failures
func.func @forward(%x: tensor<5x6xf32, #S0io> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<3x6xf32, #R> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<f32, #R> {dist.name = "loss"}) {
  %a = dist.redistribute %x : tensor<5x6xf32, #S0io> to tensor<5x6xf32, #R>
  %b = dist.redistribute %x : tensor<5x6xf32, #S0io> to tensor<5x6xf32, #S0dp>
  %c = dist.redistribute %x : tensor<5x6xf32, #S0io> to tensor<5x6xf32, #S1line>
  %d = dist.redistribute %c : tensor<5x6xf32, #S1line> to tensor<5x6xf32, #S1tp>
  %y = aten.linear %a, %w : (tensor<5x6xf32, #R>, tensor<3x6xf32, #R>) -> tensor<5x3xf32, #R>
  %y2 = aten.mul %y, %y : (tensor<5x3xf32, #R>, tensor<5x3xf32, #R>) -> tensor<5x3xf32, #R>
  %l = aten.sum %y2 : (tensor<5x3xf32, #R>) -> tensor<f32, #R>
  %b2 = dist.redistribute %b : tensor<5x6xf32, #S0dp> to tensor<5x6xf32, #R>
  %q = aten.exp %b2 : (tensor<5x6xf32, #R>) -> tensor<5x6xf32, #R>
  %m = aten.sum %q : (tensor<5x6xf32, #R>) -> tensor<f32, #R>
  %d2 = dist.redistribute %d : tensor<5x6xf32, #S1tp> to tensor<5x6xf32, #R>
  %p = aten.sin %d2 : (tensor<5x6xf32, #R>) -> tensor<5x6xf32, #R>
  %n = aten.sum %p : (tensor<5x6xf32, #R>) -> tensor<f32, #R>
  %lm = aten.add %l, %m : (tensor<f32, #R>, tensor<f32, #R>) -> tensor<f32, #R>
  %loss = aten.add %lm, %n : (tensor<f32, #R>, tensor<f32, #R>) -> tensor<f32, #R>
  return %loss : tensor<f32, #R>
}
}
