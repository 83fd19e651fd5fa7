// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-delay-gradient-sums --split-input-file | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#PR = #dist.layout<#mesh, [P(sum), R]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
#RR = #dist.layout<#mesh, [R, R]>

// What both functions add is a sum over tp too: the step reduces over both axes at once, also what something else reads.
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: -> (tensor<4xf32, #[[PP:[A-Za-z_]*]]> {dist.kind = "state_mutation"
// CHECK-NEXT: %[[C:.*]] = aten.to_copy %arg0 to f32 : (tensor<4xbf16, #[[PP]]>) -> tensor<4xf32, #[[PP]]>
// CHECK-NEXT: %[[N:.*]] = aten.add %arg1, %[[C]]
// CHECK-NEXT: return %[[N]]
func.func @accumulate(%g: tensor<4xbf16, #PP> {dist.kind = "input", dist.name = "g"},
                      %s: tensor<4xf32, #PR> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "gradient.w", dist.unsaved})
    -> (tensor<4xf32, #PR> {dist.kind = "state_mutation", dist.name = "gradient.w"}) {
  %r = dist.redistribute %g : tensor<4xbf16, #PP> to tensor<4xbf16, #PR>
  %c = aten.to_copy %r to f32 : (tensor<4xbf16, #PR>) -> tensor<4xf32, #PR>
  %n = aten.add %s, %c : (tensor<4xf32, #PR>, tensor<4xf32, #PR>) -> tensor<4xf32, #PR>
  return %n : tensor<4xf32, #PR>
}
// CHECK-LABEL: func.func @train_step
// CHECK: %[[N:.*]] = aten.add %arg1, %arg0 : (tensor<4xf32, #[[PP]]>, tensor<4xf32, #[[PP]]>) -> tensor<4xf32, #[[PP]]>
// CHECK: %[[OLD:.*]] = dist.redistribute %[[N]] : tensor<4xf32, #[[PP]]> to tensor<4xf32, #[[PR:.*]]>
// CHECK: %[[ALL:.*]] = dist.redistribute %[[N]] : tensor<4xf32, #[[PP]]> to tensor<4xf32, #R>
// CHECK: %[[TWICE:.*]] = aten.add %[[OLD]], %[[OLD]]
// CHECK: %[[NEXT:.*]] = dist.redistribute %{{.*}} : tensor<4xf32, #R> to tensor<4xf32, #[[PP]]>
// CHECK: return %[[ALL]], %[[TWICE]], %[[NEXT]]
func.func @train_step(%g: tensor<4xf32, #PP> {dist.kind = "input", dist.name = "g"},
                      %s: tensor<4xf32, #PR> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "gradient.w", dist.unsaved})
    -> (tensor<4xf32, #RR> {dist.kind = "output", dist.name = "y"}, tensor<4xf32, #PR> {dist.kind = "output", dist.name = "twice"},
        tensor<4xf32, #PR> {dist.kind = "state_mutation", dist.name = "gradient.w"}) {
  %r = dist.redistribute %g : tensor<4xf32, #PP> to tensor<4xf32, #PR>
  %n = aten.add %s, %r : (tensor<4xf32, #PR>, tensor<4xf32, #PR>) -> tensor<4xf32, #PR>
  %all = dist.redistribute %n : tensor<4xf32, #PR> to tensor<4xf32, #RR>
  %twice = aten.add %n, %n : (tensor<4xf32, #PR>, tensor<4xf32, #PR>) -> tensor<4xf32, #PR>
  %zero = aten.constant dense<0.0> : tensor<4xf32> -> tensor<4xf32, #RR>
  %next = dist.redistribute %zero : tensor<4xf32, #RR> to tensor<4xf32, #PR>
  return %all, %twice, %next : tensor<4xf32, #RR>, tensor<4xf32, #PR>, tensor<4xf32, #PR>
}

// -----

// One of the functions adds what is whole over tp: nothing changes.
#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#PR = #dist.layout<#mesh, [P(sum), R]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
// CHECK-LABEL: func.func @accumulate
// CHECK: dist.redistribute %arg0
func.func @accumulate(%g: tensor<4xf32, #PP> {dist.kind = "input", dist.name = "g"},
                      %s: tensor<4xf32, #PR> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "gradient.w", dist.unsaved})
    -> (tensor<4xf32, #PR> {dist.kind = "state_mutation", dist.name = "gradient.w"}) {
  %r = dist.redistribute %g : tensor<4xf32, #PP> to tensor<4xf32, #PR>
  %n = aten.add %s, %r : (tensor<4xf32, #PR>, tensor<4xf32, #PR>) -> tensor<4xf32, #PR>
  return %n : tensor<4xf32, #PR>
}
func.func @train_step(%g: tensor<4xf32, #PR> {dist.kind = "input", dist.name = "g"},
                      %s: tensor<4xf32, #PR> {dist.initial = 0.0 : f64, dist.kind = "state", dist.name = "gradient.w", dist.unsaved})
    -> (tensor<4xf32, #PR> {dist.kind = "state_mutation", dist.name = "gradient.w"}) {
  %n = aten.add %s, %g : (tensor<4xf32, #PR>, tensor<4xf32, #PR>) -> tensor<4xf32, #PR>
  return %n : tensor<4xf32, #PR>
}
