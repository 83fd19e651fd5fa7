// RUN: shard-opt %s --cpu-convert-to-llvm --split-input-file --verify-diagnostics | FileCheck %s

// A thread's buffer comes from the frame's services. Where there is no memory the function is left at once: the runtime knows.
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: %[[FRAME:[^:]*]]: !llvm.ptr
func.func private @kernel(%frame: !llvm.ptr, %location: !llvm.ptr, %n: index) attributes {exec.kernel, exec.outlined} {
  %f = exec.frame : !llvm.ptr
  // CHECK: %[[SLOT:.*]] = llvm.mlir.constant(3 : i32)
  // CHECK: %[[MEMORY:.*]] = llvm.call %{{.*}}(%{{.*}}, %[[SLOT]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, i64) -> (!llvm.ptr {llvm.noalias})
  // CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
  // CHECK: %[[NONE:.*]] = llvm.icmp "eq" %[[MEMORY]], %[[NULL]]
  // CHECK: llvm.cond_br %[[NONE]], ^[[LEAVE:.*]], ^[[GO:.*]]
  // CHECK: ^[[LEAVE]]:
  // CHECK-NEXT: llvm.return
  // CHECK: ^[[GO]]:
  %t = exec.scratch 3 of %f(%n) : !llvm.ptr -> memref<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  // CHECK: llvm.store
  memref.store %zero, %t[%c0, %c0] : memref<?x8xf32>
  return
}

// -----

func.func @sizes(%frame: !llvm.ptr) {
  // expected-error@+1 {{has 0 sizes for a type with 1 dynamic dims}}
  %t = exec.scratch 0 of %frame : !llvm.ptr -> memref<?xf32>
  return
}

// -----

func.func @dense(%frame: !llvm.ptr) {
  // expected-error@+1 {{makes dense row-major buffers only}}
  %t = exec.scratch 0 of %frame : !llvm.ptr -> memref<4xf32, strided<[2]>>
  return
}

// -----

func.func @body(%x: memref<f32>) {
  // expected-error@+1 {{is in no kernel}}
  %f = exec.frame : !llvm.ptr
  return
}
