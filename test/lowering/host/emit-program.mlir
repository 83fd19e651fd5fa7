// RUN: shard-opt %s --exec-emit-program --canonicalize --cse | FileCheck %s
//
// Entries become functions of the runtime's frame. The numbers are offsets of fields in runtime/abi/shardrt_program.h:
// shardrt_frame has services at 0, runtime at 8, arena at 16, inputs at 32, parameters at 40 and outputs at 48;
// shardrt_services has start at 8, wait at 16, gemm at 40 and mark at 64.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// What traces name, in order, and the collectives with what is static about them.
// CHECK: exec.collectives = [{{.*}}kind = #exec.collective<all_gather>
// CHECK-SAME: exec.groups = [#{{[a-z0-9]+}}]
// CHECK-SAME: exec.ops = {{\[}}["linear", "{{[^"]*}}"], ["all_gather", "{{[^"]*}}"]]
// CHECK-SAME: exec.uses_blas

// CHECK-LABEL: llvm.func @entry(
// CHECK-SAME: %[[FRAME:.*]]: !llvm.ptr) -> i32
// CHECK-DAG: %[[OK:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG: %[[M:.*]] = llvm.mlir.constant(8 : i64) : i64
// CHECK-DAG: %[[N:.*]] = llvm.mlir.constant(32 : i64) : i64
// CHECK-DAG: %[[K:.*]] = llvm.mlir.constant(64 : i64) : i64
// Input 0: the first pointer of the frame's list.
// CHECK: %[[INPUTS:.*]] = llvm.getelementptr %[[FRAME]][32]
// CHECK: %[[LIST:.*]] = llvm.load %[[INPUTS]]
// CHECK: %[[X:.*]] = llvm.load %[[LIST]]
// CHECK: %[[PARAMETERS:.*]] = llvm.getelementptr %[[FRAME]][40]
// CHECK: %[[WS:.*]] = llvm.load %[[PARAMETERS]]
// CHECK: %[[W:.*]] = llvm.load %[[WS]]
// CHECK: llvm.getelementptr %[[FRAME]][48]
// The buffer at 4096 in the arena.
// CHECK: %[[ARENA:.*]] = llvm.getelementptr %[[FRAME]][16]
// CHECK: %[[BASE:.*]] = llvm.load %[[ARENA]]
// CHECK: %[[C:.*]] = llvm.getelementptr %[[BASE]][4096] {{.*}}, i8
// CHECK: llvm.getelementptr %{{.*}}[56]
// shardrt_gemm: a, b, c, bias, m, n, k.
// CHECK: llvm.store %[[X]], %[[GEMM:.*]] : !llvm.ptr, !llvm.ptr
// CHECK: %[[B:.*]] = llvm.getelementptr %[[GEMM]][8]
// CHECK: llvm.store %[[W]], %[[B]]
// CHECK: %[[R:.*]] = llvm.getelementptr %[[GEMM]][16]
// CHECK: llvm.store %[[C]], %[[R]]
// CHECK: %[[FM:.*]] = llvm.getelementptr %[[GEMM]][32]
// CHECK: llvm.store %[[M]], %[[FM]]
// CHECK: %[[FN:.*]] = llvm.getelementptr %[[GEMM]][40]
// CHECK: llvm.store %[[N]], %[[FN]]
// CHECK: %[[FK:.*]] = llvm.getelementptr %[[GEMM]][48]
// CHECK: llvm.store %[[K]], %[[FK]]
// The weight, stored N x K, is a transposed B; A is not transposed.
// CHECK: %[[TA:.*]] = llvm.getelementptr %[[GEMM]][132]
// CHECK: llvm.store %[[NO:.*]], %[[TA]] : i8
// CHECK: %[[TB:.*]] = llvm.getelementptr %[[GEMM]][133]
// CHECK: llvm.store %[[YES:.*]], %[[TB]] : i8
// A failure ends the run at once, with its code.
// CHECK: %[[SERVICE:.*]] = llvm.getelementptr %{{.*}}[40]
// CHECK: %[[STATUS:.*]] = llvm.call %{{.*}}(%{{.*}}, %[[GEMM]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
// CHECK: llvm.icmp "ne" %[[STATUS]], %[[OK]]
// CHECK: llvm.cond_br
// CHECK: llvm.return %[[STATUS]]
// The token of the start is waited for.
// CHECK: %[[TOKEN:.*]] = llvm.call %{{.*}}(%{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i64
// CHECK: %[[DONE:.*]] = llvm.call %{{.*}}(%{{.*}}, %[[TOKEN]]) : !llvm.ptr, (!llvm.ptr, i64) -> i32
// CHECK: llvm.return %[[DONE]]
// CHECK: llvm.return %[[OK]]
func.func @entry(%x: memref<8x64xf32> {exec.argument = #exec.argument<input>}, %w: memref<32x64xf32> {exec.argument = #exec.argument<parameter>},
                 %o: memref<16x32xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.arena_bytes = 5120 : i64} {
  %0 = exec.alloc at 4096 : memref<8x32xf32>
  %b = memref.reinterpret_cast %w to offset: [0], sizes: [64, 32], strides: [1, 64]
      : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
  exec.gemm %x * %b -> %0 name "linear" {beta = 0.0}
      : memref<8x64xf32> * memref<64x32xf32, strided<[1, 64]>> -> memref<8x32xf32>
  %t = exec.start all_gather over #tp (%0 : memref<8x32xf32>) -> (%o : memref<16x32xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 16, 32>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  exec.wait %t
  return
}
