// RUN: shard-opt %s --exec-assign-buffers --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{is not in a kernel: run exec-form-kernels first}}
  %0 = aten.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// expected-error@+1 {{has an argument that is no tensor: 'index'}}
func.func @f(%n: index) {
  return
}

// -----
// expected-error@+1 {{has a result that is no tensor: 'index'}}
func.func @f() -> index {
  %c = arith.constant 1 : index
  return %c : index
}

// -----
// expected-error@+1 {{has an argument whose dim 0 is dynamic, but no 'dist.sizes' that says its size: 'tensor<?xf32>'}}
func.func @f(%x: tensor<?xf32>) {
  return
}

// -----
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{calls a function that is no kernel}}
  %0 = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @g(tensor<4xf32>) -> tensor<4xf32>

// -----
// What a rank receives has the extent that the sender has.
#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func @f(%x: tensor<?xf32> {dist.sizes = [#dist.size<n>]}, %n: tensor<?xf32> {dist.sizes = [#dist.size<n>]}) -> tensor<?xf32>
    attributes {dist.symbols = [#dist.symbol<n in [1, 8]>]} {
  // expected-error@+1 {{gives a rank an extent that depends on who sends: run dist-specialize before lowering}}
  %0 = dist.permute over #tp pairs [[0, 1]] %x dim 0 extents [2, 2, 1, 0] : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
