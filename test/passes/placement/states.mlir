// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --shardc-place=mesh=tp=2 --split-input-file --verify-diagnostics %s | FileCheck %s

// A buffer that follows sharded activations is sharded as they are, and so is its new value: nothing is gathered.
#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @mean(
  // CHECK-SAME: %{{.*}}: tensor<6xf32, #S0tp> {dist.kind = "buffer"
  // CHECK-SAME: -> (tensor<6xf32, #S0tp> {dist.kind = "buffer_mutation"
  // CHECK-NOT: dist.redistribute
  func.func @mean(%m: tensor<6xf32> {dist.kind = "buffer", dist.name = "m"},
                  %y: tensor<6xf32> {dist.kind = "input", dist.name = "y", dist.annotation = #dist.layout<#mesh, [S(0)]>})
      -> (tensor<6xf32> {dist.kind = "buffer_mutation", dist.name = "m"}) {
    %0 = aten.neg %m : (tensor<6xf32>) -> tensor<6xf32>
    %1 = aten.add %0, %y : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    return %1 : tensor<6xf32>
  }
}

// -----
// One that changes by itself stays whole, whoever uses it: a rank takes its part for free.

#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh} {
  // CHECK-LABEL: func.func @alone(
  // CHECK-SAME: %[[M:.*]]: tensor<6xf32, #R> {dist.kind = "buffer"
  // CHECK-SAME: -> (tensor<6xf32, #R> {dist.kind = "buffer_mutation"
  // CHECK: dist.redistribute %[[M]] : tensor<6xf32, #R> to tensor<6xf32, #S0tp>
  func.func @alone(%m: tensor<6xf32> {dist.kind = "buffer", dist.name = "m"},
                   %y: tensor<6xf32> {dist.kind = "input", dist.name = "y", dist.annotation = #dist.layout<#mesh, [S(0)]>})
      -> (tensor<6xf32> {dist.kind = "buffer_mutation", dist.name = "m"}, tensor<6xf32>) {
    %0 = aten.neg %m : (tensor<6xf32>) -> tensor<6xf32>
    %1 = aten.add %m, %y : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    return %0, %1 : tensor<6xf32>, tensor<6xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{result 0 is the new value of argument 0: it must have its type, and its layout is asked for on the argument}}
  func.func @asked(%m: tensor<6xf32> {dist.kind = "buffer", dist.name = "m"})
      -> (tensor<6xf32> {dist.kind = "buffer_mutation", dist.name = "m", dist.annotation = #dist.layout<#mesh, [S(0)]>}) {
    return %m : tensor<6xf32>
  }
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
module attributes {dist.mesh = #mesh} {
  // expected-error @+1 {{result 0 is the new value of argument 0, 'm', but has the type tensor<1xf32>, not tensor<6xf32>}}
  func.func @types(%m: tensor<6xf32> {dist.kind = "buffer", dist.name = "m"}, %y: tensor<1xf32> {dist.kind = "input"})
      -> (tensor<1xf32> {dist.kind = "buffer_mutation", dist.name = "m"}) {
    return %y : tensor<1xf32>
  }
}
