// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --aten-differentiate="loss=los,l2,y wrt=weight,ids,*.bias,b" --split-input-file --verify-diagnostics %s

// All that is wrong with the names, at once.
// expected-error@+7 {{there is no output 'los'; the nearest is 'loss'}}
// expected-error@+6 {{there is no output 'l2'}}
// expected-error@+5 {{no argument of floats has the name 'weight'; the nearest is 'weights'}}
// expected-error@+4 {{'ids' has no gradient: it is no tensor of floats, but 'tensor<8xi64>'}}
// expected-error@+3 {{no argument of floats has the name '*.bias'}}
// expected-error@+2 {{no argument of floats has the name 'b'}}
module {
func.func @forward(%w: tensor<8xf32> {dist.kind = "parameter", dist.name = "weights"},
                   %i: tensor<8xi64> {dist.kind = "input", dist.name = "ids"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}, tensor<8xf32> {dist.kind = "output", dist.name = "y"}) {
  // expected-error@+1 {{the loss 'y', made in aten_mul (model.py:3), must be a 0-dim tensor of floats, not 'tensor<8xf32>'; sum it, or give its cotangent ('cotangents')}}
  %y = aten.mul %w, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc("aten_mul"("model.py":3:0))
  %l = aten.sum %y : (tensor<8xf32>) -> tensor<f32>
  return %l, %y : tensor<f32>, tensor<8xf32>
}
}
