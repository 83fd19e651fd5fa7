// RUN: shard-opt %s --cpu-outline-parallel --split-input-file | FileCheck %s
// RUN: shard-opt %s --cpu-outline-parallel=max-stack-bytes=100 --split-input-file | FileCheck %s --check-prefix=SMALL

// Frame and location come first. A memref is a pointer, and what its type leaves open: sizes, then strides.
// CHECK-LABEL: func.func private @signature(
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: !llvm.ptr,
// CHECK-SAME: %[[X:[^:]*]]: memref<f32> {llvm.noalias}, %[[N:[^:]*]]: index, %[[S:[^:]*]]: index,
// CHECK-SAME: %[[Y:[^:]*]]: memref<i64> {llvm.noalias}, %{{[^:]*}}: i1)
// CHECK-SAME: attributes {exec.kernel, exec.outlined}
// CHECK: memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[N]], 4], strides: [%[[S]], 1]
// CHECK: memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [3], strides: [1]
func.func private @signature(%x: memref<?x4xf32, strided<[?, 1]>>, %y: memref<3xi64>, %flag: i1)
    attributes {exec.kernel} {
  return
}

// -----
// The body gets what it uses, a range of iterations, and constants of its own. Its buffer is made once for the range.
// CHECK-LABEL: func.func private @kernel(
// CHECK: exec.parallel_call @[[BODY:[a-z_]+]](%{{.*}}) to %[[N:.*]] grain 16 : memref<f32>, index
// CHECK-NEXT: return
// CHECK: func.func private @[[BODY]](%[[P:[^:]*]]: memref<f32> {llvm.noalias}, %[[SIZE:[^:]*]]: index,
// CHECK-SAME: %[[BEGIN:[^:]*]]: index, %[[END:[^:]*]]: index)
// CHECK: arith.constant 2.000000e+00 : f32
// CHECK: %[[X:.*]] = memref.reinterpret_cast %[[P]] to offset: [0], sizes: [%[[SIZE]], 64], strides: [64, 1]
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[T:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]] step %[[ONE]]
// CHECK-NOT: memref.alloc
// CHECK: memref.store %{{.*}}, %[[X]][%[[I]], %{{.*}}]

// 64 floats are more than 100 bytes: scratch memory of the frame, which the body gets for it.
// SMALL-LABEL: func.func private @kernel(
// SMALL: %[[FRAME:.*]] = exec.frame : !llvm.ptr
// SMALL: exec.parallel_call @{{.*}}(%{{.*}}, %[[FRAME]]) to
// SMALL: func.func private @{{.*}}body(%{{.*}}: !llvm.ptr, %{{[^:]*}}: index, %{{[^:]*}}: index) {
// SMALL: exec.scratch 0 of %{{.*}} : !llvm.ptr -> memref<64xf32>
// SMALL: scf.for
func.func private @kernel(%x: memref<?x64xf32>, %unused: memref<7xf32>) attributes {exec.kernel} {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  exec.parallel %i to %n grain 16 {
    %t = memref.alloc() : memref<64xf32>
    memref.store %two, %t[%c0] : memref<64xf32>
    %v = memref.load %t[%c0] : memref<64xf32>
    memref.store %v, %x[%i, %c0] : memref<?x64xf32>
  }
  return
}

// -----
// The limit is for all buffers of a function together: of two with 64 bytes, one is on the stack.
// SMALL-LABEL: func.func private @together(
// SMALL: memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// SMALL: exec.scratch 0 of %{{.*}} : !llvm.ptr -> memref<16xf32>
func.func private @together(%x: memref<f32>) attributes {exec.kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  %v = memref.load %x[] : memref<f32>
  memref.store %v, %a[%c0] : memref<16xf32>
  memref.store %v, %b[%c0] : memref<16xf32>
  return
}

// -----
// Entries keep their interface.
// CHECK-LABEL: func.func @entry(%arg0: memref<4xf32>) attributes {exec.entry}
func.func @entry(%x: memref<4xf32>) attributes {exec.entry} {
  return
}
