// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{the mesh has 2 axes, but 1 entries are given}}
#s = #dist.sharding<#mesh, [R]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{expected given, pinned, weak, storage, fixed or level, got 'strong'}}
#s = #dist.sharding<#mesh, [S(0) strong, ?]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{'given' is written twice}}
#s = #dist.sharding<#mesh, [S(0) given given, ?]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{a sharding has one strength, 'pinned' or 'weak'}}
#s = #dist.sharding<#mesh, [S(0) weak pinned, ?]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "b": ?: nothing is asked, so no word may follow}}
#s = #dist.sharding<#mesh, [R, ? weak]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a": R: 'storage', 'fixed' and 'level' are words about shards}}
#s = #dist.sharding<#mesh, [R storage, ?]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a": S(0): storage chunks whatever is left, so it has no extents of its own}}
#s = #dist.sharding<#mesh, [S(0) storage fixed, ?]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a": S(0, granule = 2): storage chunks whatever is left, so it has no extents of its own}}
#s = #dist.sharding<#mesh, [S(0, granule = 2) storage, ?]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a": S(0): levels are less than the number of mesh axes, 2}}
#s = #dist.sharding<#mesh, [S(0) level 2, ?]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{argument 0: 'dist.sharding' is a #dist.sharding for a tensor, got #dist.sharding<#dist.mesh<["a" = 2, "b" = 4]>, [?, ?]> for 'index'}}
func.func private @f(index {dist.sharding = #dist.sharding<#mesh, [?, ?]>})

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{result 0: 'dist.sharding' is a #dist.sharding for a tensor, got "S(0)" for 'tensor<8xf32>'}}
func.func private @f() -> (tensor<8xf32> {dist.sharding = "S(0)"})

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{argument 0: 'dist.sharding' is what a tensor is to become, but its type has a layout already: }}
func.func private @f(tensor<8xf32, #dist.layout<#mesh, [R, R]>> {dist.sharding = #dist.sharding<#mesh, [?, ?]>})

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{argument 0: 'dist.sharding': axis "a": S(1): dim 1 is out of range for a tensor of rank 1}}
func.func private @f(tensor<8xf32> {dist.sharding = #dist.sharding<#mesh, [S(1), ?]>})

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{argument 0: 'dist.sharding': axis "b": S(0, blocks = 3): 3 blocks do not divide dim 0 of 8}}
func.func private @f(tensor<8xf32> {dist.sharding = #dist.sharding<#mesh, [?, S(0, blocks = 3)]>})

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'aten.neg' op 'dist.sharding' must be a list with one #dist.sharding for each result, got #dist.sharding}}
  %0 = aten.neg %x {dist.sharding = #dist.sharding<#mesh, [?, ?]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'aten.neg' op 'dist.sharding' must be a list with one #dist.sharding for each result, got [}}
  %0 = aten.neg %x {dist.sharding = [#dist.sharding<#mesh, [?, ?]>, #dist.sharding<#mesh, [?, ?]>]} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'aten.neg' op result 0: 'dist.sharding': axis "a": S(2): dim 2 is out of range for a tensor of rank 1}}
  %0 = aten.neg %x {dist.sharding = [#dist.sharding<#mesh, [S(2), ?]>]} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{'func.func' op 'dist.sharding' must be a list with one #dist.sharding for each result}}
func.func private @f(tensor<8xf32>) attributes {dist.sharding = []}
