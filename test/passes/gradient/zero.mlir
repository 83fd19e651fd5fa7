// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate="into=forward loss=loss wrt=*" --split-input-file %s 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=NONE --input-file %t --implicit-check-not=remark

// What the loss depends on through zero derivatives alone has the gradient zero, and no op between is differentiated.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: tensor<8xf32> {dist.kind = "gradient", dist.name = "signs"}
// CHECK-SAME: tensor<8xf32> {dist.kind = "gradient", dist.name = "quotient"}
// CHECK-SAME: tensor<8xf32> {dist.kind = "gradient", dist.name = "both"}
// CHECK-SAME: tensor<f32> {dist.kind = "gradient", dist.name = "scalar"}
// CHECK-SAME: tensor<8xf32> {dist.kind = "gradient", dist.name = "power"}
// CHECK-SAME: tensor<8xf32> {dist.kind = "gradient", dist.name = "overwritten"}
// CHECK: %[[L:.*]] = aten.sum %{{.*}} : (tensor<8xf32>) -> tensor<f32>
// CHECK-NEXT: %[[ONE:.*]] = aten.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[ONES:.*]] = aten.expand %[[ONE]] [8]
// CHECK-NEXT: %[[Z0:.*]] = aten.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[SIGNS:.*]] = aten.expand %[[Z0]] [8]
// CHECK-NEXT: %[[Z1:.*]] = aten.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[QUOTIENT:.*]] = aten.expand %[[Z1]] [8]
// CHECK-NEXT: %[[SCALAR:.*]] = aten.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[Z2:.*]] = aten.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[POWER:.*]] = aten.expand %[[Z2]] [8]
// CHECK-NEXT: %[[Z3:.*]] = aten.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[OVERWRITTEN:.*]] = aten.expand %[[Z3]] [8]
// CHECK-NEXT: return %[[L]], %[[SIGNS]], %[[QUOTIENT]], %[[ONES]], %[[SCALAR]], %[[POWER]], %[[OVERWRITTEN]]
func.func @forward(%a: tensor<8xf32> {dist.kind = "parameter", dist.name = "signs"},
                   %b: tensor<8xf32> {dist.kind = "parameter", dist.name = "quotient"},
                   %c: tensor<8xf32> {dist.kind = "parameter", dist.name = "both"},
                   %d: tensor<f32> {dist.kind = "parameter", dist.name = "scalar"},
                   %e: tensor<8xf32> {dist.kind = "parameter", dist.name = "power"},
                   %f0: tensor<8xf32> {dist.kind = "parameter", dist.name = "overwritten"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %double = aten.exp %a : (tensor<8xf32>) -> tensor<8xf32>
  %s = aten.sign %double : (tensor<8xf32>) -> tensor<8xf32>
  %q = aten.div %s, %b {rounding_mode = "floor"} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %f = aten.floor %c : (tensor<8xf32>) -> tensor<8xf32>
  %r = aten.round %d : (tensor<f32>) -> tensor<f32>
  %zero = aten.constant dense<0.0> : tensor<f32>
  %p = aten.pow %e, %zero : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %0 = aten.add %q, %f : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = aten.add %0, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = aten.add %1, %r : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = aten.add %2, %p : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %w = aten.copy %f0, %q : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = aten.add %3, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %l = aten.sum %4 : (tensor<8xf32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Detached, compared, as integers, counted, or for its size alone: no gradient, which is not zero.
// NONE: remark: the loss does not depend on 'detached': it has no gradient
// NONE: remark: the loss does not depend on 'compared': it has no gradient
// NONE: remark: the loss does not depend on 'integers': it has no gradient
// NONE: remark: the loss does not depend on 'counted': it has no gradient
// NONE: remark: the loss does not depend on 'size': it has no gradient
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}, tensor<?xf32> {dist.kind = "gradient", dist.name = "floored"
// CHECK: aten.sum
// CHECK: %[[N:.*]] = aten.sym_size %arg5 dim 0
// CHECK: %[[ZEROS:.*]] = aten.expand %{{.*}} [%[[N]]]
// CHECK: return %{{.*}}, %[[ZEROS]]
func.func @forward(%a: tensor<8xf32> {dist.kind = "parameter", dist.name = "detached"},
                   %b: tensor<8xf32> {dist.kind = "parameter", dist.name = "compared"},
                   %c: tensor<8xf32> {dist.kind = "parameter", dist.name = "integers"},
                   %d: tensor<8xf32> {dist.kind = "parameter", dist.name = "counted"},
                   %e: tensor<?xf32> {dist.kind = "parameter", dist.name = "size", dist.sizes = [#dist.size<n>]},
                   %f: tensor<?xf32> {dist.kind = "parameter", dist.name = "floored", dist.sizes = [#dist.size<n>]})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %one = aten.alias %a {detached} : (tensor<8xf32>) -> tensor<8xf32>
  %greater = aten.gt %b, %one : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %two = aten.to_copy %greater to f32 : (tensor<8xi1>) -> tensor<8xf32>
  %i = aten.to_copy %c to i64 : (tensor<8xf32>) -> tensor<8xi64>
  %three = aten.mul %two, %i : (tensor<8xf32>, tensor<8xi64>) -> tensor<8xf32>
  %four = aten.linalg_vector_norm %d {ord = 0.0 : f64} : (tensor<8xf32>) -> tensor<f32>
  %n = aten.sym_size %e dim 0 : (tensor<?xf32>) -> index
  %five = aten.expand %four [%n] : (tensor<f32>) -> tensor<?xf32>
  %six = aten.floor %f : (tensor<?xf32>) -> tensor<?xf32>
  %seven = aten.add %five, %six : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %0 = aten.sum %three : (tensor<8xf32>) -> tensor<f32>
  %1 = aten.sum %seven : (tensor<?xf32>) -> tensor<f32>
  %l = aten.add %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %l : tensor<f32>
}
