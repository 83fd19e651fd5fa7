// RUN: shard-opt %s --cuda-expand-attention | FileCheck %s
// RUN: shard-opt %s --cuda-expand-attention --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
// RUN: shard-opt %s --cuda-expand-attention | FileCheck %s --check-prefix=MATRIX
// RUN: shard-opt %s --cuda-expand-attention | FileCheck %s --check-prefix=DYNAMIC
//
// The pass alone, with no other that would have loaded the dialects of the kernels.
//
// STATS-DAG: 6{{ +}}expanded
// STATS-DAG: 5{{ +}}kernels

// Two layers share a kernel; another scale, a causal one and other types have their own.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<2x4x70x64xf32>, %[[K:[a-z0-9]+]]: memref<2x2x64x64xf32>, %[[V:[a-z0-9]+]]: memref<2x2x64x64xf32>, %[[O:[a-z0-9]+]]:
// CHECK: exec.launch @[[A:attention[a-z_0-9]*]](%[[Q]], %[[K]], %[[V]], %[[O]]) name "first"
// CHECK: exec.launch @[[A]](%[[Q]], %[[K]], %[[V]], %[[O]]) name "second"
// CHECK: exec.launch @[[B:attention[a-z_0-9]*]](
// CHECK: exec.launch @[[C:attention[a-z_0-9]*]](
// CHECK-NOT: exec.attention
func.func @layers(%q: memref<2x4x70x64xf32>, %k: memref<2x2x64x64xf32>, %v: memref<2x2x64x64xf32>, %o: memref<2x4x70x64xf32>) {
  exec.attention %q, %k, %v -> %o scale 0.125 name "first" : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
  exec.attention %q, %k, %v -> %o scale 0.125 name "second" : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
  exec.attention %q, %k, %v -> %o scale 0.5 : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
  exec.attention %q, %k, %v -> %o causal scale 0.125 : memref<2x4x70x64xf32>, memref<2x2x64x64xf32>, memref<2x2x64x64xf32> -> memref<2x4x70x64xf32>
  return
}

// f32: 2 x 4 heads of 2 tiles of 64 queries, 16 x 16 threads that have 4 x 4 scores each. Queries, keys, values and weights are in
// shared memory; rows are 17 times 16 bytes apart.
// CHECK: func.func private @[[A]](
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<2x4x70x64xf32>) attributes {exec.kernel, exec.writes = array<i64: 3>}
// CHECK: gpu.launch
// CHECK-SAME: workgroup(%{{[a-z0-9]+}} : memref<1x64x68xf32, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<1x64x68xf32, #gpu.address_space<workgroup>>,
// CHECK-SAME: %{{[a-z0-9]+}} : memref<1x64x68xf32, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<64x68xf32, #gpu.address_space<workgroup>>)
// Whole pieces of 16 bytes where memory is aligned, else single elements.
// CHECK: memref.extract_aligned_pointer_as_index
// CHECK: nvgpu.device_async_copy {{.*}}, 4 {bypassL1} : {{.*}}
// CHECK: gpu.shuffle
// CHECK: memref.load
// CHECK: gpu.barrier
// CHECK-COUNT-64: math.fma
// CHECK-NOT: math.fma
// CHECK: scf.yield
// CHECK: math.exp2
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-64: math.fma
// CHECK-NOT: math.fma
// CHECK: gpu.terminator
// CHECK: func.func private @[[B]](
// CHECK: func.func private @[[C]](

// Four warps of 32 queries, products of which an operand of the right is used twice, exponentials in one instruction.
// MATRIX-LABEL: func.func @matrix_units(
// MATRIX: exec.launch @[[A:attention[a-z_0-9]*]](
// MATRIX: func.func private @[[A]]({{.*}} attributes {exec.kernel, exec.writes = array<i64: 3, 4>}
// MATRIX: gpu.launch {{.*}} workgroup(%{{[a-z0-9]+}} : memref<1x128x72xbf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<1x64x72xbf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<1x64x72xbf16, #gpu.address_space<workgroup>>)
// MATRIX: nvgpu.ldmatrix {{.*}}numTiles = 4 : i32, transpose = false
// MATRIX-COUNT-64: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// MATRIX: llvm.nvvm.ex2.approx
// MATRIX: nvgpu.ldmatrix {{.*}}transpose = true
// MATRIX: memref.store {{.*}}memref<1x4x200xf32>
// MATRIX: gpu.terminator
// Registers are divided for two blocks of a multiprocessor.
// MATRIX: nvvm.minctasm = 2 : i32
func.func @matrix_units(%q: memref<1x4x200x64xbf16>, %k: memref<1x4x200x64xbf16>, %v: memref<1x4x200x64xbf16>, %o: memref<1x4x200x64xbf16>, %l: memref<1x4x200xf32>) {
  exec.attention %q, %k, %v -> %o logsumexp %l causal scale 0.125
      : memref<1x4x200x64xbf16>, memref<1x4x200x64xbf16>, memref<1x4x200x64xbf16> -> memref<1x4x200x64xbf16> logsumexp memref<1x4x200xf32>
  return
}

// The backward: a temporary, and three launches. The cotangents of keys and values have two stages of tiles of queries.
// DYNAMIC-LABEL: func.func @dynamic(
// DYNAMIC: exec.launch @[[A:attention_backward[a-z_0-9]*]](
// DYNAMIC: func.func private @[[A]]({{.*}} attributes {exec.kernel, exec.writes = array<i64: 7, 8, 9>}
// DYNAMIC: memref.alloc(%{{.*}}, %{{.*}}) : memref<?x4x?xf32>
// DYNAMIC: gpu.launch
// DYNAMIC-COUNT-5: gpu.shuffle
// DYNAMIC: gpu.launch {{.*}} workgroup(%{{[a-z0-9]+}} : memref<1x128x56xf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<1x128x56xf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<2x32x56xf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<2x32x56xf16, #gpu.address_space<workgroup>>)
// No 16 bytes at once: rows of 33.
// DYNAMIC-NOT: nvgpu.device_async_copy
// DYNAMIC: memref.load {{.*}} : memref<?x?xi8, strided<[?, 0], offset: ?>>
// DYNAMIC: gpu.launch {{.*}} workgroup(%{{[a-z0-9]+}} : memref<1x64x56xf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<1x64x56xf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<2x64x56xf16, #gpu.address_space<workgroup>>, %{{[a-z0-9]+}} : memref<2x64x56xf16, #gpu.address_space<workgroup>>)
// DYNAMIC-NOT: gpu.launch
// DYNAMIC: return
func.func @dynamic(%g: memref<?x4x?x33xf16>, %q: memref<?x4x?x33xf16, strided<[?, ?, ?, 1]>>, %k: memref<?x2x?x33xf16>, %v: memref<?x2x?x33xf16>, %o: memref<?x4x?x33xf16>,
                   %l: memref<?x4x?xf32>, %m: memref<?x4x?x?xi8, strided<[?, 0, ?, 0]>>, %dq: memref<?x4x?x33xf16>, %dk: memref<?x2x?x33xf16>, %dv: memref<?x2x?x33xf16>) {
  exec.attention_backward %g, %q, %k, %v, %o, %l mask %m -> %dq, %dk, %dv scale 0.2
      : memref<?x4x?x33xf16>, memref<?x4x?x33xf16, strided<[?, ?, ?, 1]>>, memref<?x2x?x33xf16>, memref<?x2x?x33xf16>, memref<?x4x?x33xf16>, memref<?x4x?xf32>
        mask memref<?x4x?x?xi8, strided<[?, 0, ?, 0]>> -> memref<?x4x?x33xf16>, memref<?x2x?x33xf16>, memref<?x2x?x33xf16>
  return
}
