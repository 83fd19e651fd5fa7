// RUN: shard-opt %s --split-input-file --verify-diagnostics | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func private @imported(tensor<8x4xf32> {dist.annotation = #S0dp_open_tp, dist.kind = "parameter", dist.name = ["wte.weight", "lm_head.weight"]}
  func.func private @imported(
      tensor<8x4xf32> {dist.name = ["wte.weight", "lm_head.weight"], dist.kind = "parameter",
                       dist.annotation = #dist.layout<#mesh, [S(0), ?]>},
      tensor<?x16xi64> {dist.name = "ids", dist.kind = "input",
                        dist.sizes = [#dist.size<batch * 2>, #dist.size<16>]})
      -> (tensor<f32> {dist.kind = "loss"})
      attributes {dist.symbols = [#dist.symbol<batch in [1, 64]>]}
  // CHECK: func.func private @local(tensor<?x2xf32> {dist.global_type = tensor<5x8xf32>, dist.layout = #S0dp_S1tp})
  func.func private @local(
      tensor<?x2xf32> {dist.layout = #dist.layout<#mesh, [S(0), S(1)]>,
                       dist.global_type = tensor<5x8xf32>})
}

// -----
// expected-error@+1 {{argument 0: 'dist.name' must be a name or a list of names, got []}}
func.func private @f(tensor<2xf32> {dist.name = []})

// -----
// expected-error@+1 {{argument 0: 'dist.kind' must be one of parameter, buffer, constant, state, input; got "output"}}
func.func private @f(tensor<2xf32> {dist.kind = "output"})

// -----
// expected-error@+1 {{result 0: 'dist.kind' must be one of output, loss, parameter_mutation, buffer_mutation, state_mutation, input_mutation, gradient; got "input"}}
func.func private @f() -> (tensor<2xf32> {dist.kind = "input"})

// -----
// expected-error@+1 {{argument 0: 'dist.frozen' must be a unit attribute, or a list of names in 'dist.name', got ["c"]}}
func.func private @f(tensor<2xf32> {dist.frozen = ["c"], dist.name = ["a", "b"]})

// -----
// expected-error@+1 {{argument 1: unknown attribute 'dist.nmae'; known are dist.name,}}
func.func private @f(tensor<2xf32>, tensor<2xf32> {dist.nmae = "x"})

// -----
#mesh = #dist.mesh<["a" = 2]>
// expected-error@+1 {{'dist.annotation' is a #dist.layout for a tensor, got #dist.layout<#dist.mesh<["a" = 2]>, [R]> for 'index'}}
func.func private @f(index {dist.annotation = #dist.layout<#mesh, [R]>})

// -----
#mesh = #dist.mesh<["a" = 2]>
#R = #dist.layout<#mesh, [R]>
// expected-error@+1 {{'dist.annotation' asks for a layout, but the type already has one}}
func.func private @f(tensor<2xf32, #R> {dist.annotation = #R})

// -----
#mesh = #dist.mesh<["a" = 2]>
// expected-error@+1 {{'dist.annotation': axis "a": S(3): dim 3 is out of range for a tensor of rank 1}}
func.func private @f(tensor<2xf32> {dist.annotation = #dist.layout<#mesh, [S(3)]>})

// -----
#mesh = #dist.mesh<["a" = 2]>
// expected-error@+1 {{'dist.layout' needs 'dist.global_type'}}
func.func private @f(tensor<2xf32> {dist.layout = #dist.layout<#mesh, [S(0)]>})

// -----
// expected-error@+1 {{'dist.global_type' needs 'dist.layout'}}
func.func private @f(tensor<2xf32> {dist.global_type = tensor<4xf32>})

// -----
#mesh = #dist.mesh<["a" = 2]>
// expected-error@+1 {{'dist.global_type' 'tensor<4x2xf32>' differs in rank or element type from 'tensor<2xf32>'}}
func.func private @f(tensor<2xf32> {dist.layout = #dist.layout<#mesh, [S(0)]>, dist.global_type = tensor<4x2xf32>})

// -----
#mesh = #dist.mesh<["a" = 2]>
// expected-error@+1 {{'dist.layout': axis "a": the placement is open}}
func.func private @f(tensor<2xf32> {dist.layout = #dist.layout<#mesh, [?]>, dist.global_type = tensor<4xf32>})

// -----
// expected-error@+1 {{'dist.sizes' must list one #dist.size for each of 2 dims, got [#dist.size<2>]}}
func.func private @f(tensor<2x2xf32> {dist.sizes = [#dist.size<2>]})

// -----
// expected-error@+1 {{'dist.sizes': #dist.size<3> is not the size of dim 0 of 'tensor<2xf32>'}}
func.func private @f(tensor<2xf32> {dist.sizes = [#dist.size<3>]})

// -----
// expected-error@+1 {{'dist.sizes': the function's 'dist.symbols' does not declare "n"}}
func.func private @f(tensor<?xf32> {dist.sizes = [#dist.size<n>]})

// -----
// expected-error@+1 {{'dist.symbols' declares "n" twice}}
func.func private @f() attributes {dist.symbols = [#dist.symbol<n in [1, 2]>, #dist.symbol<n in [1, 3]>]}

// -----
// expected-error@+1 {{'dist.symbols' must be a function's list of #dist.symbol, got 3}}
func.func private @f() attributes {dist.symbols = 3}

// -----
// expected-error@+1 {{'dist.mesh' must be a module's #dist.mesh, got 3}}
module attributes {dist.mesh = 3} {}

// -----

// expected-error@+1 {{argument 0: 'dist.origin' needs a 'dist.annotation', and one string per mesh axis}}
func.func @origin_alone(%x: tensor<8xf32> {dist.origin = ["plan.yaml:1"]}) {
  return
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
// expected-error@+1 {{argument 0: 'dist.strength' must be a list of strings out of pinned, normal, weak, got ["strong"]}}
func.func @strength(%x: tensor<8xf32> {dist.annotation = #dist.layout<#mesh, [S(0)]>, dist.strength = ["strong"]}) {
  return
}

// -----

// expected-error@+1 {{argument 0: 'dist.layout' must be a #dist.layout, got 3 : i64}}
func.func private @f(tensor<2xf32> {dist.layout = 3, dist.global_type = tensor<4xf32>})

// -----

// expected-error@+1 {{argument 0: 'dist.sizes' is for tensors, got 'index'}}
func.func private @f(index {dist.sizes = [#dist.size<2>]})

// -----

// expected-error@+1 {{argument 0: 'dist.sizes': expected a #dist.size for dim 1, got 2 : i64}}
func.func private @f(tensor<2x2xf32> {dist.sizes = [#dist.size<2>, 2]})

// -----

// expected-error@+1 {{'dist.constraints' must be an array, on a function}}
func.func private @f() attributes {dist.constraints = 3}

// -----

// expected-error@+1 {{'dist.constraints': expected a relation and two expressions of integers and declared symbols, got ["=>", "n", 8]}}
func.func private @f() attributes {dist.symbols = [#dist.symbol<n in [1, 9]>], dist.constraints = [["=>", "n", 8]]}

// -----

// expected-error@+1 {{'dist.constraints': expected a relation and two expressions of integers and declared symbols, got ["<=", "m", 8]}}
func.func private @f() attributes {dist.symbols = [#dist.symbol<n in [1, 9]>], dist.constraints = [["<=", "m", 8]]}

// -----

// expected-error@+1 {{'dist.meshes' must be a dictionary of #dist.mesh by name, on a module with a 'dist.mesh', got 3}}
module attributes {dist.mesh = #dist.mesh<["tp" = 2]>, dist.meshes = 3} {}

// -----

// expected-error@+1 {{'dist.meshes' must be a dictionary of #dist.mesh by name, on a module with a 'dist.mesh', got {a = 3 : i64}}}
module attributes {dist.mesh = #dist.mesh<["tp" = 2]>, dist.meshes = {a = 3}} {}

// -----

// expected-error@+1 {{'dist.meshes' must be a dictionary of #dist.mesh by name, on a module with a 'dist.mesh', got}}
module attributes {dist.meshes = {a = #dist.mesh<["tp" = 2]>}} {}

// -----

func.func @ordinal(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dist.ordinal' must be a number (i64) that is not negative, got -1}}
  %0 = dist.all_reduce sum over #dist.axes<#dist.mesh<["tp" = 2]>, ["tp"]> %x {dist.ordinal = -1} : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{argument 0: an argument of kind state needs 'dist.initial'}}
func.func private @f(tensor<2xf32> {dist.kind = "state"})

// -----

// expected-error@+1 {{argument 0: 'dist.initial' must be a number (f64) of an argument of kind state, got 1.000000e+00 : f64}}
func.func private @f(tensor<2xf32> {dist.kind = "buffer", dist.initial = 1.0 : f64})

// -----

// expected-error@+1 {{argument 0: 'dist.unsaved' must be a unit attribute of an argument of kind state, got unit}}
func.func private @f(tensor<2xf32> {dist.kind = "parameter", dist.unsaved})
