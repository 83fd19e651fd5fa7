// RUN: shard-opt %s --exec-emit-program --canonicalize --cse | FileCheck %s
//
// Entries become functions of the runtime's frame. The numbers are offsets of fields in runtime/abi/shardrt_program.h:
// shardrt_frame has services at 0, runtime at 8, arena at 16, inputs at 32, parameters at 40 and outputs at 48;
// shardrt_services has start at 8, wait at 16, gemm at 40 and mark at 56.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

// What traces name, in order, and the collectives with what is static about them.
// CHECK: exec.collectives = [{{.*}}kind = #exec.collective<all_gather>
// CHECK-SAME: exec.groups = [#{{[a-z0-9]+}}]
// CHECK-SAME: exec.ops = {{\[}}["linear", "{{[^"]*}}"], ["all_gather", "{{[^"]*}}"], ["linear", "{{[^"]*}}"]]
// CHECK-SAME: exec.uses_blas

// What is known of the product is constant data: m, n, k; leading dimensions; one of a batch; alpha and beta; the type; and
// the weight, stored N x K, is a transposed B, while A is not transposed.
// CHECK: llvm.mlir.global internal constant @[[PRODUCT:gemm_[0-9a-f]+]]([8, 32, 64, 64, 64, 32, 1, 0, 0, 0, 1.0{{.*}}, 0.0{{.*}}, 1 : i32, 0 : i8, 1 : i8, 0 : i8, 0 : i8])

// CHECK-LABEL: llvm.func @entry(
// CHECK-SAME: %[[FRAME:.*]]: !llvm.ptr) -> i32
// CHECK-DAG: %[[FIELDS:.*]] = llvm.mlir.addressof @[[PRODUCT]]
// CHECK-DAG: %[[OK:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG: %[[FIRST:.*]] = llvm.mlir.constant(1 : i32) : i32
// Fields of the frame, and addresses of services, are loaded once, at the beginning.
// CHECK: %[[INPUTS:.*]] = llvm.getelementptr %[[FRAME]][32]
// CHECK: %[[XS:.*]] = llvm.load %[[INPUTS]]
// CHECK: %[[PARAMETERS:.*]] = llvm.getelementptr %[[FRAME]][40]
// CHECK: %[[WS:.*]] = llvm.load %[[PARAMETERS]]
// CHECK: llvm.getelementptr %[[FRAME]][48]
// CHECK: %[[ARENA:.*]] = llvm.getelementptr %[[FRAME]][16]
// CHECK: %[[BASE:.*]] = llvm.load %[[ARENA]]
// CHECK: %[[RUNTIME_AT:.*]] = llvm.getelementptr %[[FRAME]][8]
// CHECK: %[[RUNTIME:.*]] = llvm.load %[[RUNTIME_AT]]
// CHECK: %[[SERVICES:.*]] = llvm.load %[[FRAME]]
// CHECK: %[[MARK_AT:.*]] = llvm.getelementptr %[[SERVICES]][56]
// CHECK: %[[MARK:.*]] = llvm.load %[[MARK_AT]]
// CHECK: %[[GEMM_AT:.*]] = llvm.getelementptr %[[SERVICES]][40]
// CHECK: %[[GEMM:.*]] = llvm.load %[[GEMM_AT]]
// CHECK: %[[START_AT:.*]] = llvm.getelementptr %[[SERVICES]][8]
// CHECK: %[[START:.*]] = llvm.load %[[START_AT]]
// CHECK: %[[WAIT_AT:.*]] = llvm.getelementptr %[[SERVICES]][16]
// CHECK: %[[WAIT:.*]] = llvm.load %[[WAIT_AT]]
// Input 0: the first pointer of the frame's list.
// CHECK: %[[X:.*]] = llvm.load %[[XS]]
// CHECK: %[[W:.*]] = llvm.load %[[WS]]
// The buffer at 4096 in the arena.
// CHECK: %[[C:.*]] = llvm.getelementptr %[[BASE]][4096] {{.*}}, i8
// CHECK: llvm.call %[[MARK]](%[[RUNTIME]], %[[OK]])
// shardrt_gemm: what is known, at 32; in front of it a, b, c and bias.
// CHECK: %[[M:.*]] = llvm.getelementptr %[[ARGUMENT:.*]][32]
// CHECK: "llvm.intr.memcpy.inline"(%[[M]], %[[FIELDS]]) <{{.*}}len = 104
// CHECK: llvm.store %[[X]], %[[ARGUMENT]] : !llvm.ptr, !llvm.ptr
// CHECK: %[[B:.*]] = llvm.getelementptr %[[ARGUMENT]][8]
// CHECK: llvm.store %[[W]], %[[B]]
// CHECK: %[[R:.*]] = llvm.getelementptr %[[ARGUMENT]][16]
// CHECK: llvm.store %[[C]], %[[R]]
// CHECK: llvm.getelementptr %[[ARGUMENT]][24]
// A failure ends the run at once, with its code.
// CHECK: %[[STATUS:.*]] = llvm.call %[[GEMM]](%[[RUNTIME]], %[[ARGUMENT]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
// CHECK: llvm.icmp "ne" %[[STATUS]], %[[OK]]
// CHECK: llvm.cond_br %{{.*}}, ^[[FAILED:.*]](%[[STATUS]] : i32), ^
// CHECK: llvm.call %[[MARK]](%[[RUNTIME]], %[[FIRST]])
// The token of the start is waited for.
// CHECK: %[[TOKEN:.*]] = llvm.call %[[START]](%[[RUNTIME]], {{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i64
// CHECK: %[[DONE:.*]] = llvm.call %[[WAIT]](%[[RUNTIME]], %[[TOKEN]]) : !llvm.ptr, (!llvm.ptr, i64) -> i32
// CHECK: llvm.cond_br %{{.*}}, ^[[FAILED]](%[[DONE]] : i32), ^
// CHECK: llvm.return %[[OK]]
// CHECK: ^[[FAILED]](%[[CODE:.*]]: i32):
// CHECK: llvm.return %[[CODE]]
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

// What is known at the run only is stored over the constant data: here m, at 32.
// CHECK-LABEL: llvm.func @rows_of_a_rank(
// CHECK: "llvm.intr.memcpy.inline"(%[[ROWS:[0-9]+]], %{{.*}}) <{{.*}}len = 104
// CHECK-NEXT: llvm.store %{{.*}}, %[[ROWS]] : i64, !llvm.ptr
// CHECK-NOT: i64
// CHECK: llvm.call
func.func @rows_of_a_rank(%w: memref<64x32xf32> {exec.argument = #exec.argument<parameter>}, %o: memref<16x32xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.arena_bytes = 5120 : i64} {
  %n = dist.axis_index over #tp
  %x = memref.reinterpret_cast %w to offset: [0], sizes: [%n, 64], strides: [64, 1] : memref<64x32xf32> to memref<?x64xf32, strided<[64, 1]>>
  %y = memref.reinterpret_cast %o to offset: [0], sizes: [%n, 32], strides: [32, 1] : memref<16x32xf32> to memref<?x32xf32, strided<[32, 1]>>
  exec.gemm %x * %w -> %y name "linear" {beta = 0.0} : memref<?x64xf32, strided<[64, 1]>> * memref<64x32xf32> -> memref<?x32xf32, strided<[32, 1]>>
  return
}
