// RUN: not shard-opt %s --cuda-expand-attention 2>&1 | FileCheck %s
//
// What no kernel is made for is refused at once, all of it.
// CHECK-DAG: error: 'exec.attention' op has heads of queries and keys of size 264; CUDA kernels take sizes up to 256
// CHECK-DAG: error: 'exec.attention' op has heads of values whose size is only known when it runs, which CUDA kernels do not take
// CHECK-NOT: error
func.func @refused(%q: memref<1x1x4x264xf32>, %k: memref<1x1x4x264xf32>, %v: memref<1x1x4x8xf32>, %o: memref<1x1x4x8xf32>,
                   %x: memref<1x1x4x16xf32>, %w: memref<1x1x4x?xf32>, %r: memref<1x1x4x?xf32>) {
  exec.attention %q, %k, %v -> %o scale 0.125 : memref<1x1x4x264xf32>, memref<1x1x4x264xf32>, memref<1x1x4x8xf32> -> memref<1x1x4x8xf32>
  exec.attention %x, %x, %w -> %r scale 0.125 : memref<1x1x4x16xf32>, memref<1x1x4x16xf32>, memref<1x1x4x?xf32> -> memref<1x1x4x?xf32>
  exec.attention %x, %x, %v -> %o scale 0.125 : memref<1x1x4x16xf32>, memref<1x1x4x16xf32>, memref<1x1x4x8xf32> -> memref<1x1x4x8xf32>
  return
}
