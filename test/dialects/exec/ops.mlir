// RUN: shard-opt %s --allow-unregistered-dialect | FileCheck %s
// RUN: shard-opt %s --allow-unregistered-dialect | shard-opt --allow-unregistered-dialect | FileCheck %s
// RUN: shard-opt %s --allow-unregistered-dialect --emit-bytecode | shard-opt --allow-unregistered-dialect | FileCheck %s
// RUN: shard-opt %s --allow-unregistered-dialect --mlir-print-op-generic | shard-opt --allow-unregistered-dialect | FileCheck %s

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// CHECK-LABEL: func.func private @kernel(
func.func private @kernel(%x: memref<8x?xf32, strided<[?, 2]>>, %y: memref<8x64xf32>) attributes {exec.kernel} {
  return
}

func.func private @nothing() attributes {exec.kernel} {
  return
}

// CHECK-LABEL: func.func @entry(
// CHECK-SAME: %[[N:.*]]: index) attributes {exec.entry}
func.func @entry(%n: index) attributes {exec.entry} {
  // CHECK: exec.argument input 0 : memref<8x64xf32>
  %x = exec.argument input 0 : memref<8x64xf32>
  %w = exec.argument parameter 1 : memref<64x32xf32, strided<[1, 64]>>
  %b = exec.argument parameter 2 : memref<32xf32>
  // CHECK: exec.alloc : memref<8x32xf32>
  %0 = exec.alloc : memref<8x32xf32>
  // CHECK: exec.alloc at 4096 : memref<8x32xf32>
  %1 = exec.alloc at 4096 : memref<8x32xf32>
  // CHECK: exec.alloc(%[[N]], %[[N]]) slot 3 : memref<?x4x?xf32>
  %2 = exec.alloc(%n, %n) slot 3 : memref<?x4x?xf32>

  // CHECK: exec.gemm %{{.*}} * %{{.*}} + %{{.*}} -> %{{.*}} name "linear" :
  // CHECK-SAME: memref<8x64xf32> * memref<64x32xf32, strided<[1, 64]>> + memref<32xf32> -> memref<8x32xf32>
  exec.gemm %x * %w + %b -> %0 name "linear"
      : memref<8x64xf32> * memref<64x32xf32, strided<[1, 64]>> + memref<32xf32> -> memref<8x32xf32>
  // CHECK: exec.gemm %{{.*}} * %{{.*}} -> %{{.*}} {alpha = 5.000000e-01 : f64, beta = 2.000000e+00 : f64} :
  exec.gemm %x * %w -> %1 {alpha = 0.5, beta = 2.0}
      : memref<8x64xf32> * memref<64x32xf32, strided<[1, 64]>> -> memref<8x32xf32>

  // The type of a kernel's argument has no offset.
  %v = memref.reinterpret_cast %x to offset: [%n], sizes: [8, %n], strides: [%n, 2]
      : memref<8x64xf32> to memref<8x?xf32, strided<[?, 2], offset: ?>>
  // CHECK: exec.launch @kernel(%{{.*}}, %{{.*}}) name "add+relu" :
  // CHECK-SAME: memref<8x?xf32, strided<[?, 2], offset: ?>>, memref<8x64xf32>
  exec.launch @kernel(%v, %x) name "add+relu" : memref<8x?xf32, strided<[?, 2], offset: ?>>, memref<8x64xf32>

  // CHECK: exec.collective all_reduce sum over #tp(%{{.*}} : memref<8x32xf32>) -> (%{{.*}} : memref<8x32xf32>)
  exec.collective all_reduce sum over #tp (%0 : memref<8x32xf32>) -> (%1 : memref<8x32xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>,
       extents = [array<i64: 8, 32>], gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // CHECK: %[[T:.*]] = exec.start all_gather over #{{[a-z]+}}(%{{.*}}) -> (%{{.*}}) sizes(%[[N]], %[[N]], %[[N]])
  %3 = exec.alloc : memref<2x4x32xf32>
  %t = exec.start all_gather over #dist.groups<[[0, 2], [1, 3]]> (%3 : memref<2x4x32xf32>) -> (%2 : memref<?x4x?xf32>)
      sizes (%n, %n, %n)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>,
       extents = [array<i64: -9223372036854775808, 4, -9223372036854775808>],
       gather_extents = [array<i64: 2, -9223372036854775808>], scatter_extents = [array<i64>], pairs = array<i64>}
  // CHECK: exec.wait %[[T]]
  exec.wait %t

  // Booleans are bytes in memory; positions 0 and 1 exchange, without a list of extents.
  %p = exec.alloc : memref<6xi8>
  %q = exec.alloc : memref<6xi8>
  // CHECK: exec.collective permute over #tp(%{{.*}} : memref<6xi8>) -> (%{{.*}} : memref<6xi8>)
  exec.collective permute over #tp (%p : memref<6xi8>) -> (%q : memref<6xi8>)
      {element_types = [i1], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 6>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64: 0, 1, 1, 0>}
  // CHECK: exec.collective broadcast over #tp(%{{.*}} : memref<6xi8>) -> (%{{.*}} : memref<6xi8>) {{.*}}root = 1 : i64
  exec.collective broadcast over #tp (%p : memref<6xi8>) -> (%p : memref<6xi8>)
      {element_types = [ui8], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 6>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, root = 1 : i64}
  // Five rows in chunks are three and two.
  // CHECK: exec.collective reduce_scatter max over #tp
  %r = exec.alloc : memref<5x4xf32>
  %s = exec.alloc : memref<2x4xf32>
  exec.collective reduce_scatter max over #tp (%r : memref<5x4xf32>) -> (%s : memref<2x4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: 0>, extents = [array<i64: 5, 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  // CHECK: exec.collective all_to_all over #tp
  %u = exec.alloc : memref<2x5xf32>
  %v1 = exec.alloc : memref<4x3xf32>
  exec.collective all_to_all over #tp (%u : memref<2x5xf32>) -> (%v1 : memref<4x3xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 1>, extents = [array<i64: 4, 5>],
       gather_extents = [array<i64>], scatter_extents = [array<i64: 3, 2>], pairs = array<i64>}

  // Within one dim: two of the three elements go to position 0, none to position 1, and five arrive.
  // CHECK: exec.collective all_to_all over #tp(%{{.*}} : memref<3xf32>) -> (%{{.*}} : memref<5xf32>)
  %e0 = exec.alloc : memref<3xf32>
  %e1 = exec.alloc : memref<5xf32>
  exec.collective all_to_all over #tp (%e0 : memref<3xf32>) -> (%e1 : memref<5xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 3>],
       gather_extents = [array<i64: 2, 3>], scatter_extents = [array<i64: 2, 0>], pairs = array<i64>}

  // Nothing is passed, nothing is sent.
  // CHECK: exec.launch @nothing()
  exec.launch @nothing()
  // CHECK: exec.launch @nothing() name "nothing" {note = 1 : i64}
  exec.launch @nothing() name "nothing" {note = 1 : i64}
  // CHECK: exec.collective all_reduce sum over #tp() -> ()
  exec.collective all_reduce sum over #tp () -> ()
      {element_types = [], gather_dims = array<i64>, scatter_dims = array<i64>, extents = [], gather_extents = [],
       scatter_extents = [], pairs = array<i64>}
  return
}

// CHECK-LABEL: func.func @attention(
func.func @attention(%q: memref<2x8x16x64xf32>, %k: memref<2x2x32x64xf32, strided<[?, ?, 64, 1], offset: ?>>,
                     %m: memref<2x8x16x32xi8, strided<[0, 0, 32, 1]>>, %o: memref<2x8x16x64xf32>) {
  // CHECK: exec.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} -> %{{.*}} scale 1.250000e-01 name "attention" :
  // CHECK-SAME: memref<2x8x16x64xf32>, memref<2x2x32x64xf32, strided<[?, ?, 64, 1], offset: ?>>,
  // CHECK-SAME: mask memref<2x8x16x32xi8, strided<[0, 0, 32, 1]>> -> memref<2x8x16x64xf32>
  exec.attention %q, %k, %k mask %m -> %o scale 1.250000e-01 name "attention"
      : memref<2x8x16x64xf32>, memref<2x2x32x64xf32, strided<[?, ?, 64, 1], offset: ?>>,
        memref<2x2x32x64xf32, strided<[?, ?, 64, 1], offset: ?>> mask memref<2x8x16x32xi8, strided<[0, 0, 32, 1]>>
        -> memref<2x8x16x64xf32>
  // CHECK: exec.attention %{{.*}}, %{{.*}}, %{{.*}} -> %{{.*}} causal scale 1.000000e+00 :
  exec.attention %q, %q, %q -> %o causal scale 1.0
      : memref<2x8x16x64xf32>, memref<2x8x16x64xf32>, memref<2x8x16x64xf32> -> memref<2x8x16x64xf32>
  return
}

// The arguments of an entry, and what is known of them.
// CHECK: func.func @arguments(%{{.*}}: memref<?xf32> {exec.argument = #exec.argument<input>, exec.extents = [#dist.extents<n>]},
// CHECK-SAME: {exec.argument = #exec.argument<parameter>, exec.index = 3 : i64}, {{.*}}#exec.argument<output>
func.func @arguments(%x: memref<?xf32> {exec.argument = #exec.argument<input>, exec.extents = [#dist.extents<n>]},
                     %w: memref<f32> {exec.argument = #exec.argument<parameter>, exec.index = 3 : i64},
                     %o: memref<f32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.plan = @plan, exec.slots = 2 : i64, dist.symbols = [#dist.symbol<n in [1, ?]>]} {
  return
}

// CHECK: "test.kind"() {kind = #exec.collective<all_to_all>}
func.func @kinds() {
  "test.kind"() {kind = #exec.collective<all_to_all>} : () -> ()
  return
}

// CHECK-LABEL: func.func @loops(
// CHECK-SAME: %[[N:.*]]: index, %[[C:.*]]: i1, %[[IDS:.*]]: memref<?xi64>
func.func @loops(%n: index, %c: i1, %ids: memref<?xi64>) {
  // CHECK: exec.parallel %{{.*}} to %[[N]] grain 4 {
  exec.parallel %i to %n grain 4 {
    // CHECK: exec.fail_if %[[C]], "index out of range"
    exec.fail_if %c, "index out of range"
  }
  // CHECK: exec.parallel_call @range(%[[C]]) to %[[N]] grain 16 : i1
  exec.parallel_call @range(%c) to %n grain 16 : i1
  // CHECK: exec.parallel_call @range_alone() to %[[N]] grain 1{{$}}
  exec.parallel_call @range_alone() to %n grain 1
  // CHECK: exec.check_range %[[IDS]] in[%[[N]], %[[N]]), "no such row" : memref<?xi64>
  exec.check_range %ids in [%n, %n), "no such row" : memref<?xi64>
  return
}
func.func private @range_alone(%begin: index, %end: index) {
  return
}
func.func private @range(%c: i1, %begin: index, %end: index) {
  return
}

// CHECK-LABEL: func.func private @plan(
func.func private @plan(%n: index) attributes {exec.plan} {
  // CHECK: exec.set_offset %{{.*}} slot 1
  exec.set_offset %n slot 1
  // CHECK: exec.set_arena_bytes %{{.*}}
  exec.set_arena_bytes %n
  return
}

// Five elements over four ranks: 2, 2, 1 and 0, whichever rank this is.
// CHECK-LABEL: func.func @chunks(
func.func @chunks(%a: memref<2xf32>, %b: memref<1xf32>, %c: memref<0xf32>, %o: memref<5xf32>) {
  // CHECK-COUNT-3: exec.collective all_gather
  exec.collective all_gather over #dist.axes<#dist.mesh<["tp" = 4]>, ["tp"]> (%a : memref<2xf32>) -> (%o : memref<5xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 5>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.collective all_gather over #dist.axes<#dist.mesh<["tp" = 4]>, ["tp"]> (%b : memref<1xf32>) -> (%o : memref<5xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 5>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.collective all_gather over #dist.axes<#dist.mesh<["tp" = 4]>, ["tp"]> (%c : memref<0xf32>) -> (%o : memref<5xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 5>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// CHECK-LABEL: func.func @read_sizes(
func.func @read_sizes(%counts: memref<2xi64>) -> (index, index) {
  // CHECK: %{{.*}}:2 = exec.read_sizes %{{.*}} at_most 100 : memref<2xi64>
  %n:2 = exec.read_sizes %counts at_most 100 : memref<2xi64>
  return %n#0, %n#1 : index, index
}
