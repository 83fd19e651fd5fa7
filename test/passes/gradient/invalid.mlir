// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not shard-opt --aten-differentiate="loss=los,y wrt=weight,ids,*.bias" %s 2>&1 | FileCheck %s --check-prefix=NAMES
// RUN: not shard-opt --aten-differentiate="loss=loss" %s 2>&1 | FileCheck %s --check-prefix=OPS
// RUN: not shard-opt --aten-differentiate %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not shard-opt --aten-differentiate="function=backward" %s 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not shard-opt --aten-differentiate="loss=loss into=taken" %s 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not shard-opt --aten-differentiate="loss=loss wrt=steps" %s 2>&1 | FileCheck %s --check-prefix=WRITTEN
// RUN: not shard-opt --aten-differentiate="cotangents=2" %s 2>&1 | FileCheck %s --check-prefix=INTEGERS
// RUN: not shard-opt --aten-differentiate="loss=y,los wrt=weights" %s 2>&1 | FileCheck %s --check-prefix=ALL --implicit-check-not=error:
// RUN: not shard-opt --aten-differentiate="loss=free" %s 2>&1 | FileCheck %s --check-prefix=NOTHING

// All names that are wrong, and a loss that is no scalar, at once.
// NAMES: error: there is no output 'los'; the nearest is 'loss'
// NAMES: error: the loss 'y', made in beside (model.py:5), must be a 0-dim tensor of floats, not 'tensor<8xf32>'; sum it, or give its cotangent ('cotangents')
// NAMES: error: no argument of floats has the name 'weight'; the nearest is 'weights'
// NAMES: error: 'ids' has no gradient: it is no tensor of floats, but 'tensor<8xi64>'
// NAMES: error: no argument of floats has the name '*.bias'

// All ops without a derivative, and all values that are written back, at once; not the opaque op beside the way.
// OPS: error: 'aten.opaque' op in up (model.py:4), on the way to the loss, has no derivative; detach its operands, or write it as other ops
// OPS: error: 'aten.opaque' op in down (model.py:5), on the way to the loss, has no derivative
// OPS: error: 'mean' is written back, in down (model.py:6), and the loss depends on what is written: compute it from a detached value
// OPS: error: 'aten.scaled_dot_product_attention' op in inner (model.py:2), on the way to the loss, has dropout: export the model in eval mode
// OPS-NOT: error

// What is wrong with the names, and with the ops that the others lead to, at once. An op without a derivative does not hide
// what those before it refuse.
// ALL: error: there is no output 'los'
// ALL: error: the loss 'y', made in beside (model.py:5), must be a 0-dim tensor of floats
// ALL: error: 'aten.opaque' op in beside (model.py:5), on the way to the loss, has no derivative
// ALL: error: 'aten.scaled_dot_product_attention' op in inner (model.py:2), on the way to the loss, has dropout

// NONE: error: no output is marked as a loss: say which one is, with 'loss'; there are loss, y, n, free
// FUNCTION: error: there is no function 'backward' of one block to differentiate
// TAKEN: error: there is a function 'taken' already; name another with 'into'
// WRITTEN: error: 'steps' is written back, in {{.*}}, and its gradient is asked for: leave it out of 'wrt'
// INTEGERS: error: the output 'n', made in {{.*}}, has no cotangent: it is no tensor of floats, but 'tensor<8xi64>'
// NOTHING: remark: the loss does not depend on 'weights': it has no gradient
// NOTHING: error: the loss depends on nothing that is differentiated

func.func private @taken()

func.func @forward(%w: tensor<8xf32> {dist.kind = "parameter", dist.name = "weights"},
                   %i: tensor<8xi64> {dist.kind = "input", dist.name = "ids"},
                   %s: tensor<8xf32> {dist.kind = "buffer", dist.name = "steps"},
                   %m: tensor<8xf32> {dist.kind = "buffer", dist.name = "mean"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}, tensor<8xf32> {dist.kind = "output", dist.name = "y"},
        tensor<8xi64> {dist.kind = "output", dist.name = "n"}, tensor<f32> {dist.kind = "output", dist.name = "free"},
        tensor<8xf32> {dist.kind = "buffer_mutation", dist.name = "steps"},
        tensor<8xf32> {dist.kind = "buffer_mutation", dist.name = "mean"}) {
  %q = aten.view %w [4, 2] : (tensor<8xf32>) -> tensor<4x2xf32>
  %k = aten.scaled_dot_product_attention %q, %q, %q {dropout_p = 0.5 : f64} : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32> loc(fused<"inner">["attention"("model.py":2:0)])
  %v = aten.view %k [8] : (tensor<4x2xf32>) -> tensor<8xf32>
  %y = aten.mul %v, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc(fused<"up">["mul"("model.py":3:0)])
  %a = aten.opaque "my.op"(%y) : (tensor<8xf32>) -> tensor<8xf32> loc(fused<"up">["op"("model.py":4:0)])
  %b = aten.opaque "my.op"(%a) : (tensor<8xf32>) -> tensor<8xf32> loc(fused<"down">["op"("model.py":5:0)])
  %c = aten.opaque "my.op"(%y) : (tensor<8xf32>) -> tensor<8xf32> loc(fused<"beside">["op"("model.py":5:0)])
  %d = aten.add %m, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc(fused<"down">["add"("model.py":6:0)])
  %l = aten.sum %d : (tensor<8xf32>) -> tensor<f32>
  %n = aten.add %s, %s : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %f = aten.sum %s : (tensor<8xf32>) -> tensor<f32>
  return %l, %c, %i, %f, %n, %d : tensor<f32>, tensor<8xf32>, tensor<8xi64>, tensor<f32>, tensor<8xf32>, tensor<8xf32>
}
