// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s "--dist-apply-plan=mesh=dp=2,tp=2 other-mesh={{readers:io=2,devices=[4,1]}} place={{input:x=mesh:readers,io:S(0)},{param:w=tp:S(0)},{output:loss=mesh:readers}}" --dist-propagate --dist-place "--aten-differentiate=loss=loss wrt=x,w" -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: shard-opt %t.mlir --dist-propagate --dist-place --dist-rewrite-partial-gradients --dist-verify-stage=placed | FileCheck %s --check-prefix=PLACED
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %t.mlir -- --dist-propagate --dist-place --dist-rewrite-partial-gradients | FileCheck %s --check-prefix=RAN %}

// The cotangent of what came from another mesh goes back there, into the layout that it came from (G2). The loss is read
// elsewhere, too; its cotangent begins on the mesh of the program.
// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: tensor<5x6xf32, #S0io> {dist.kind = "input", dist.name = "x"}
// CHECK: %[[X:.*]] = dist.redistribute %arg0 : tensor<5x6xf32, #S0io> to tensor<5x6xf32, #R{{.*}}>
// CHECK: %[[BACK:.*]] = dist.redistribute backward %{{.*}} : tensor<5x6xf32> to tensor<5x6xf32, #S0io>
// CHECK: %[[GRADIENT:.*]] = dist.redistribute %[[BACK]] : tensor<5x6xf32, #S0io> to tensor<5x6xf32, #S0io>
// CHECK: return %{{.*}}, %[[GRADIENT]], %{{.*}} : tensor<f32, #{{.*}}>, tensor<5x6xf32, #S0io>,

// PLACED-LABEL: func.func @gradients(
// PLACED: dist.redistribute backward %{{.*}} : tensor<5x6xf32, #{{.*}}> to tensor<5x6xf32, #S0io>

// RAN: forward:
// RAN: gradients:
// RAN: 2 functions, 0 failures

func.func @forward(%x: tensor<5x6xf32> {dist.kind = "input", dist.name = "x"},
                   %w: tensor<3x6xf32> {dist.kind = "parameter", dist.name = "w"}) -> (tensor<f32> {dist.name = "loss"}) {
  %y = aten.linear %x, %w : (tensor<5x6xf32>, tensor<3x6xf32>) -> tensor<5x3xf32>
  %s = aten.mul %y, %y : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %loss = aten.mean %s : (tensor<5x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
