// RUN: shard-opt %s --exec-form-kernels --verify-diagnostics --split-input-file

// All that cannot be lowered is reported, not the first alone; nothing has been changed by then.
func.func @unsupported(%x: tensor<4xf32>, %a: tensor<4x4xi64>) -> (tensor<4xf32>, tensor<4x4xi64>) {
  // expected-error@+1 {{cannot be lowered}}
  %0 = aten.opaque "my.kernel"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = aten.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{cannot be lowered}}
  %2 = aten.mm %a, %a : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  return %1, %2 : tensor<4xf32>, tensor<4x4xi64>
}
