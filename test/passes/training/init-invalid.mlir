// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not shard-opt %s --aten-init-parameters="train={init: [{parameters: 'fc.wait', distribution: normal}, {parameters: '*.weight', distribution: kaiming_normal}, {parameters: count, distribution: uniform}, {parameters: flag, distribution: constant, value: 2}]}" 2>&1 | FileCheck %s --check-prefix=VALUES
// RUN: not shard-opt %s --aten-init-parameters="train={init: [{parameters: '*', distribution: eye, gain: 1}, {distribution: normal, sd: 1}, {parameters: a, distribution: normal, std: x}]}" 2>&1 | FileCheck %s --check-prefix=KEYS
// RUN: not shard-opt %s --aten-init-parameters="train={init: zeros}" 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not shard-opt %s --aten-init-parameters="function=forward train={init: [{parameters: '*', distribution: zeros}]}" 2>&1 | FileCheck %s --check-prefix=FUNCTION

// VALUES-DAG: error: train: init[0]: no parameter or buffer matches 'fc.wait'; did you mean fc.weight
// VALUES-DAG: error: train: init[1]: 'ln.weight' has 1 dim, but 'kaiming_normal' goes by the numbers of inputs and outputs
// VALUES-DAG: error: train: init[2]: 'count' cannot begin so: it has integers, but the distribution has other numbers
// VALUES-DAG: error: train: init[3]: 'flag' cannot begin so: it has integers, of which the value is none
// VALUES-DAG: error: train: init: no entry says what these begin with: fc.bias, ln.bias. Add one
// KEYS-DAG: error: train: init[0].distribution 'eye' is not supported: it is made for matrices that keep their input
// KEYS-DAG: error: {{.*}}an entry of init has no key 'sd'; did you mean std?
// KEYS-DAG: error: {{.*}}an entry of init needs the patterns of its parameters
// KEYS-DAG: error: {{.*}}expected a number here, not 'x'
// LIST: error: {{.*}}init is a list, e.g.
// FUNCTION: error: there is no function 'forward' whose parameters could be initialised

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
module attributes {dist.mesh = #mesh} {
  func.func @train_step(%w: tensor<3x5xf32, #R> {dist.kind = "parameter", dist.name = "fc.weight"},
                        %b: tensor<3xf32, #R> {dist.kind = "parameter", dist.name = "fc.bias"},
                        %n: tensor<3xf32, #R> {dist.kind = "parameter", dist.name = "ln.weight"},
                        %m: tensor<3xf32, #R> {dist.kind = "parameter", dist.name = "ln.bias"},
                        %count: tensor<i64, #R> {dist.kind = "buffer", dist.name = "count"},
                        %flag: tensor<2xi1, #R> {dist.kind = "buffer", dist.name = "flag"}) {
    return
  }
}
