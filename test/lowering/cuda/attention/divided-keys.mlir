// RUN: shard-opt %s --cuda-expand-attention | FileCheck %s
// RUN: shard-opt %s --cuda-expand-attention=multiprocessors=1 | FileCheck %s --check-prefix=ONE
// RUN: shard-opt %s --cuda-expand-attention --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS
//
// Where one or a few queries would leave multiprocessors without work, blocks divide the keys.
//
// STATS-DAG: 6{{ +}}kernels
// STATS-DAG: 3{{ +}}divided

// 8 x 8 heads of keys, and a warp for each: 132 * 4 / 64 = 8 parts of 4096 / 8 keys. A block has the 4 heads of queries that use a
// head of keys, whose rows are 128 elements apart.
// CHECK-LABEL: func.func @decode(
// CHECK: exec.launch @[[DECODE:[a-z_0-9]+]](
// CHECK-LABEL: func.func @long(
// CHECK: exec.launch @[[LONG:[a-z_0-9]+]](
// CHECK-LABEL: func.func @enough(
// CHECK: exec.launch @[[ENOUGH:[a-z_0-9]+]](
// CHECK-LABEL: func.func @short(
// CHECK: exec.launch @[[SHORT:[a-z_0-9]+]](
// CHECK-LABEL: func.func @no_heads(
// CHECK: exec.launch @[[NONE:[a-z_0-9]+]](
// CHECK-LABEL: func.func @behind(
// CHECK: exec.launch @[[BEHIND:[a-z_0-9]+]](%{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST:[a-z0-9]+]], %{{.*}}) {{.*}}, index, memref
// CHECK: func.func private @[[DECODE]](
// CHECK-DAG: %[[SUMS:[a-z_0-9]+]] = memref.alloc() : memref<8x64x4x128xf32>
// CHECK-DAG: memref.alloc() : memref<8x64x4xf32>
// CHECK: gpu.launch blocks(%{{.*}}, %[[PART:[a-z_0-9]+]], %{{[a-z0-9_]+}}) in (%{{[a-z0-9_]+}} = %c64{{[a-z_0-9]*}}, %{{[a-z0-9_]+}} = %c8{{[a-z_0-9]*}},
// CHECK-SAME: threads({{.*}}) in (%{{[a-z0-9_]+}} = %c32{{[a-z_0-9]*}},
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %c512
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// CHECK: vector.store %{{.*}}, %[[SUMS]][%[[PART]], %{{.*}}] {{.*}}memref<8x64x4x128xf32>, vector<2xf32>
// CHECK: gpu.terminator
// The second launch: parts in one order.
// CHECK: gpu.launch
// CHECK: scf.for %{{.*}} = %c0{{[a-z_0-9]*}} to %c8{{[a-z_0-9]*}} step %c1
// CHECK: scf.for %{{.*}} = %c0{{[a-z_0-9]*}} to %c8{{[a-z_0-9]*}} step %c1
// CHECK: memref.store {{.*}} : memref<8x32x1x128xbf16>
// CHECK: gpu.terminator
// CHECK-NOT: gpu.launch
// CHECK: return

// One block for each head where that keeps all multiprocessors busy.
// ONE-NOT: memref.alloc() : memref<8x64x4x128xf32>
func.func @decode(%q: memref<8x32x1x128xbf16>, %k: memref<8x8x4096x128xbf16>, %v: memref<8x8x4096x128xbf16>, %o: memref<8x32x1x128xbf16>) {
  exec.attention %q, %k, %v -> %o scale 0.088 : memref<8x32x1x128xbf16>, memref<8x8x4096x128xbf16>, memref<8x8x4096x128xbf16> -> memref<8x32x1x128xbf16>
  return
}

// The number of keys is known when the program runs: the host divides them then.
// CHECK: func.func private @[[LONG]](
// CHECK: %[[COUNT:.*]] = memref.dim %{{.*}}, %c2
// CHECK: %[[MANY:.*]] = arith.cmpi slt, %c1{{[a-z_0-9]*}}, %{{.*}} : index
// CHECK: scf.if %[[MANY]] {
// CHECK: memref.alloc(%{{.*}}) : memref<?x12x1xf32>
// CHECK-COUNT-2: gpu.launch
// CHECK: } else {
// CHECK: gpu.launch
// CHECK-NOT: gpu.launch
// CHECK: return
func.func @long(%q: memref<1x12x1x64xf32>, %k: memref<1x12x?x64xf32>, %v: memref<1x12x?x64xf32>, %o: memref<1x12x1x64xf32>) {
  exec.attention %q, %k, %v -> %o scale 0.125 : memref<1x12x1x64xf32>, memref<1x12x?x64xf32>, memref<1x12x?x64xf32> -> memref<1x12x1x64xf32>
  return
}

// CHECK: func.func private @[[ENOUGH]](
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch
// CHECK-NOT: gpu.launch
// CHECK: return
func.func @enough(%q: memref<32x16x1x64xf32>, %k: memref<32x16x?x64xf32>, %v: memref<32x16x?x64xf32>, %o: memref<32x16x1x64xf32>) {
  exec.attention %q, %k, %v -> %o scale 0.125 : memref<32x16x1x64xf32>, memref<32x16x?x64xf32>, memref<32x16x?x64xf32> -> memref<32x16x1x64xf32>
  return
}

// Fewer keys than two parts have are never divided, however many blocks there are: one launch, without a choice of the host.
// CHECK: func.func private @[[SHORT]](
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch
// CHECK-NOT: gpu.launch
// CHECK: return
func.func @short(%q: memref<?x12x128x64xf32>, %k: memref<?x12x128x64xf32>, %v: memref<?x12x128x64xf32>, %o: memref<?x12x128x64xf32>) {
  exec.attention %q, %k, %v -> %o scale 0.088 : memref<?x12x128x64xf32>, memref<?x12x128x64xf32>, memref<?x12x128x64xf32> -> memref<?x12x128x64xf32>
  return
}

// No heads of queries use the keys: the host does not divide by their number, and there are no blocks.
// CHECK: func.func private @[[NONE]](
// CHECK-NOT: arith.{{div|rem}}{{[a-z]*}} %{{.*}}, %c0{{[_ ]}}
// CHECK: gpu.launch blocks({{.*}}) in (%{{[a-z0-9_]+}} = %c0{{[a-z_0-9]*}},
// CHECK: return
func.func @no_heads(%q: memref<2x0x8x64xf32>, %k: memref<2x3x16x64xf32>, %v: memref<2x3x16x64xf32>, %o: memref<2x0x8x64xf32>) {
  exec.attention %q, %k, %v -> %o scale 0.125 : memref<2x0x8x64xf32>, memref<2x3x16x64xf32>, memref<2x3x16x64xf32> -> memref<2x0x8x64xf32>
  return
}

// Queries from some position on: keys behind the last one are in no part.
// CHECK: func.func private @[[BEHIND]](
// CHECK-SAME: %[[AT:[a-z0-9]+]]: index
// CHECK: %[[SEEN:.*]] = arith.addi %[[AT]], %c8
// CHECK: arith.minsi %[[SEEN]], %c4096
// CHECK: scf.if
func.func @behind(%q: memref<1x12x8x64xf32>, %k: memref<1x12x4096x64xf32>, %v: memref<1x12x4096x64xf32>, %i: index, %o: memref<1x12x8x64xf32>) {
  exec.attention %q, %k, %v -> %o causal first %i scale 0.125 : memref<1x12x8x64xf32>, memref<1x12x4096x64xf32>, memref<1x12x4096x64xf32> -> memref<1x12x8x64xf32>
  return
}
