// RUN: shard-opt %s | shard-opt | FileCheck %s
// RUN: shard-opt %s --emit-bytecode | shard-opt | FileCheck %s

// CHECK-LABEL: func.func private @future(!dist.future<tensor<4x?xf32>>) -> !dist.future<tensor<f32>>
func.func private @future(!dist.future<tensor<4x?xf32>>) -> !dist.future<tensor<f32>>
