// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-schedule-collectives="bucket flat topology=cpu-local" --exec-form-kernels --exec-assign-buffers --exec-pack-buckets --pass-statistics 2>%t.stats | FileCheck %s
// RUN: FileCheck %s --check-prefix=FLAT < %t.stats
// RUN: shard-opt %s --dist-schedule-collectives="bucket flat topology=cpu-local" --exec-form-kernels --exec-assign-buffers --exec-pack-buckets=form=packed --pass-statistics 2>&1 >/dev/null | FileCheck %s --check-prefix=PACKED

// A bucket of parameters goes to the communicator as it is stored: each shard is read where the weights are mapped, each
// weight is gathered to where its product reads it, and no byte is copied. Packed, every byte is: shards of (8 + 4 + 8) x 16
// elements in, and of four ranks out, 4 bytes each: 5 x 1280.

#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>

// Statistics of 0 are not printed.
// FLAT: exec-pack-buckets
// FLAT-NOT: copied-bytes
// FLAT: 1{{ +}}grouped
// FLAT-NOT: packed
// PACKED: exec-pack-buckets
// PACKED: 6400{{ +}}copied-bytes
// PACKED-NOT: grouped
// PACKED: 1{{ +}}packed

// CHECK-LABEL: func.func @forward(
// CHECK: %[[A:.*]] = exec.alloc : memref<32x16xf32>
// CHECK-NOT: exec.launch
// CHECK: exec.start all_gather{{.*}}(%arg1, %arg2, %arg3 : memref<8x16xf32>, memref<4x16xf32>, memref<8x16xf32>) -> (%{{.*}}, %{{.*}}, %{{.*}} : memref<32x16xf32>, memref<16x16xf32>, memref<32x16xf32>)
// CHECK-NOT: name "copy"
func.func @forward(%x: tensor<2x16xf32>,
                   %a: tensor<8x16xf32> {dist.kind = "parameter", dist.name = "a"},
                   %b: tensor<4x16xf32> {dist.kind = "parameter", dist.name = "b"},
                   %c: tensor<8x16xf32> {dist.kind = "parameter", dist.name = "c"})
    -> (tensor<2x32xf32>, tensor<2x32xf32>) {
  %wa = dist.all_gather over #dp %a dim 0 : (tensor<8x16xf32>) -> tensor<32x16xf32>
  %0 = aten.linear %x, %wa : (tensor<2x16xf32>, tensor<32x16xf32>) -> tensor<2x32xf32>
  %wb = dist.all_gather over #dp %b dim 0 : (tensor<4x16xf32>) -> tensor<16x16xf32>
  %1 = aten.linear %x, %wb : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
  %wc = dist.all_gather over #dp %c dim 0 : (tensor<8x16xf32>) -> tensor<32x16xf32>
  %2 = aten.linear %1, %wc : (tensor<2x16xf32>, tensor<32x16xf32>) -> tensor<2x32xf32>
  return %0, %2 : tensor<2x32xf32>, tensor<2x32xf32>
}
