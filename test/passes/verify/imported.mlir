// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=imported
// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=stage=imported
// RUN: not shard-opt %s --split-input-file --dist-verify-stage=unknown 2>&1 | FileCheck %s
// CHECK: Cannot find option named 'unknown'

func.func @forward(%x: tensor<8x4xf32>, %n: index) -> tensor<8x4xf32> {
  %0 = dist.constrain %x : tensor<8x4xf32> to #dist.layout<#dist.mesh<["tp" = 4]>, [?]>
  %1 = aten.relu %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = arith.addi %n, %n : index
  return %1 : tensor<8x4xf32>
}

// -----

#R = #dist.layout<#dist.mesh<["tp" = 4]>, [R]>
// expected-error@+1 {{a tensor with a layout (or another encoding)}}
func.func @f(%x: tensor<8xf32, #R>) {
  // expected-error@+1 {{'dist.redistribute' is no op of the stage "imported"}}
  %0 = dist.redistribute %x : tensor<8xf32, #R> to tensor<8xf32, #R>
  return
}

// -----

// expected-error@+1 {{a future in the stage "imported"}}
func.func @f(%x: !dist.future<tensor<8xf32>>) {
  return
}

// -----

// Places are named as in the model.
// expected-error@+1 {{a tensor without a rank}}
func.func @f(%x: tensor<*xf32>, %n: index) {
  // expected-error@unknown {{'tensor.from_elements' is no op of the stage "imported" (in model.layers.0.mlp)}}
  %0 = tensor.from_elements %n : tensor<1xindex> loc(fused<"model.layers.0.mlp">["node"])
  // expected-note@unknown {{also here, in model.layers.1.mlp}}
  %1 = tensor.from_elements %n : tensor<1xindex> loc(fused<"model.layers.1.mlp">["node"])
  return
}
