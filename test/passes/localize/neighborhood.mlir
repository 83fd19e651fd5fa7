// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-localize --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#mesh = #dist.mesh<["sp" = 2]>
#S1 = #dist.layout<#mesh, [S(1)]>

// Of 8 keys rank 0 sees 0 to 5 and rank 1 sees 2 to 7: each gets two of the other's. The op is told where the part lies.
// CHECK-LABEL: func.func @qk
// CHECK-DAG: %[[KEY:.*]] = dist.extent #dist.extents<table [0, 2]
// CHECK-DAG: %[[QUERY:.*]] = dist.extent #dist.extents<table [0, 4]
// CHECK: dist.all_to_all
// CHECK: aten.neighborhood_qk %{{.*}}, %{{.*}} kernel [5] stride [1] dilation [1] causal [false] place [8, %[[QUERY]], %[[KEY]], 6] : (tensor<1x4x2x4xf32>, tensor<1x6x2x4xf32>, index, index) -> tensor<1x4x2x5xf32>
func.func @qk(%q: tensor<1x8x2x4xf32, #S1>, %k: tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x5xf32, #S1> {
  %0 = aten.neighborhood_qk %q, %k kernel [5] stride [1] dilation [1] causal [false] place []
      : (tensor<1x8x2x4xf32, #S1>, tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x5xf32, #S1>
  return %0 : tensor<1x8x2x5xf32, #S1>
}

// A causal window of 3: rank 1 gets two values, rank 0 none.
// CHECK-LABEL: func.func @causal
// CHECK: dist.all_to_all
// CHECK: aten.neighborhood_av {{.*}} kernel [3] stride [1] dilation [1] causal [true] place [8, %{{.*}}, %{{.*}}, %{{.*}}] : (tensor<1x4x2x3xf32>, tensor<1x?x2x4xf32>, index, index, index) -> tensor<1x4x2x4xf32>
func.func @causal(%w: tensor<1x8x2x3xf32, #S1>, %v: tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x4xf32, #S1> {
  %0 = aten.neighborhood_av %w, %v kernel [3] stride [1] dilation [1] causal [true] place []
      : (tensor<1x8x2x3xf32, #S1>, tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x4xf32, #S1>
  return %0 : tensor<1x8x2x4xf32, #S1>
}

// What is made for keys of the other rank goes there, and is added.
// CHECK-LABEL: func.func @adjoint
// CHECK: %[[ALL:.*]] = aten.neighborhood_adjoint {{.*}} : (tensor<1x4x2x5xf32>, tensor<1x4x2x4xf32>, index, index) -> tensor<1x6x2x4xf32>
// CHECK: dist.all_to_all
// CHECK: %[[SUM:.*]] = aten.add {{.*}} : (tensor<1x?x2x4xf32>, tensor<1x?x2x4xf32>) -> tensor<1x?x2x4xf32>
// CHECK: aten.cat %[[SUM]], {{.*}} -> tensor<1x4x2x4xf32>
func.func @adjoint(%w: tensor<1x8x2x5xf32, #S1>, %q: tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x4xf32, #S1> {
  %0 = aten.neighborhood_adjoint %w, %q kernel [5] stride [1] dilation [1] causal [false] place []
      : (tensor<1x8x2x5xf32, #S1>, tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x4xf32, #S1>
  return %0 : tensor<1x8x2x4xf32, #S1>
}

// A window of one key before a query and two behind it, cut off at the border: rank 0 gets two keys, rank 1 one.
// CHECK-LABEL: func.func @cut
// CHECK-DAG: %[[FIRST:.*]] = dist.extent #dist.extents<table [0, 3]
// CHECK-DAG: %[[COUNT:.*]] = dist.extent #dist.extents<table [6, 5]
// CHECK: dist.all_to_all
// CHECK: aten.neighborhood_qk {{.*}} kernel [4] stride [1] dilation [1] causal [false] cut [2] place [8, %{{.*}}, %[[FIRST]], %[[COUNT]]] : (tensor<1x4x2x4xf32>, tensor<1x?x2x4xf32>, index, index, index) -> tensor<1x4x2x4xf32>
func.func @cut(%q: tensor<1x8x2x4xf32, #S1>, %k: tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x4xf32, #S1> {
  %0 = aten.neighborhood_qk %q, %k kernel [4] stride [1] dilation [1] causal [false] cut [2] place []
      : (tensor<1x8x2x4xf32, #S1>, tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x4xf32, #S1>
  return %0 : tensor<1x8x2x4xf32, #S1>
}

// -----

#mesh = #dist.mesh<["sp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S1 = #dist.layout<#mesh, [S(1)]>

func.func @unlike(%q: tensor<1x8x2x4xf32, #R>, %k: tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x5xf32, #S1> {
  // expected-error @below {{the queries and what belongs to them are sharded in different ways along a spatial dim; shard both alike}}
  %0 = aten.neighborhood_qk %q, %k kernel [5] stride [1] dilation [1] causal [false] place []
      : (tensor<1x8x2x4xf32, #R>, tensor<1x8x2x4xf32, #S1>) -> tensor<1x8x2x5xf32, #S1>
  return %0 : tensor<1x8x2x5xf32, #S1>
}

// -----

func.func @outside(%q: tensor<1x4x2x4xf32>, %k: tensor<1x8x2x4xf32>) {
  // expected-error @below {{has a place that is not within the whole, along spatial dim 0}}
  // expected-error @below {{failed to infer returned types}}
  %0 = aten.neighborhood_qk %q, %k kernel [5] stride [1] dilation [1] causal [false] place [10, 7, 0, 8]
      : (tensor<1x4x2x4xf32>, tensor<1x8x2x4xf32>) -> tensor<1x4x2x5xf32>
  return
}

// -----

func.func @cut_behind_the_window(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{has a window of 3 keys, 3 of which are behind its query: there are from 0 to 2, or -1 for a window that is not cut off}}
  // expected-error @below {{failed to infer returned types}}
  %0 = aten.neighborhood_qk %q, %q kernel [3] stride [1] dilation [1] causal [false] cut [3] place []
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> tensor<1x8x2x3xf32>
  return
}

// -----

func.func @cut_with_a_stride(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{has a window that is cut off at the border, which must not have a stride or be causal}}
  // expected-error @below {{failed to infer returned types}}
  %0 = aten.neighborhood_qk %q, %q kernel [3] stride [2] dilation [1] causal [false] cut [1] place []
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> tensor<1x8x2x3xf32>
  return
}

// -----

func.func @cut_of_another_number_of_dims(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{cut must be one entry for each of 1 spatial dims, not 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = aten.neighborhood_qk %q, %q kernel [3] stride [1] dilation [1] causal [false] cut [1, 1] place []
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> tensor<1x8x2x3xf32>
  return
}
