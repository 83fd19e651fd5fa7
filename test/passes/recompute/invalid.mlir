// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: not shard-opt --dist-recompute="modules=layer.* modules=nowhere" %s 2>&1 | FileCheck --check-prefix=MODULE %s
// RUN: not shard-opt --dist-recompute="memory-limit=lots topology=nowhere" %s 2>&1 | FileCheck --check-prefix=OPTIONS %s
// RUN: not shard-opt --dist-recompute %s 2>&1 | FileCheck --check-prefix=FLIGHT %s
// RUN: sed 's/backward of exp/exp/' %s | shard-opt --dist-recompute="modules=layers.*" -o /dev/null 2>&1 | FileCheck --check-prefix=FORWARD %s
// FORWARD: warning: recompute: no function has a backward of known modules: nothing is computed again
// Wrong patterns are all reported.
// MODULE: error: recompute: 'layer.*' matches no module of the model; the nearest are layers.0 or layers
// MODULE: error: recompute: 'nowhere' matches no module of the model
// OPTIONS: error: topology: no target named 'nowhere' and no such file
// OPTIONS: error: memory-limit: 'lots' is not a number of bytes, e.g. 2GiB
// FLIGHT: error: {{.*}}'dist.all_reduce' op is no op of the stage "local": what is kept for the backward is chosen before collectives are scheduled

#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
func.func @gradients(%x: tensor<4xf32>) -> tensor<4xf32> {
  %f = dist.all_reduce sum over #dp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>> loc(fused<"layers.0">["all_reduce"])
  %y = dist.wait %f : !dist.future<tensor<4xf32>>
  %z = aten.exp %y : (tensor<4xf32>) -> tensor<4xf32> loc("backward of exp")
  return %z : tensor<4xf32>
}
