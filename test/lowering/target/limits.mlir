// RUN: split-file %s %t
// RUN: shard-opt %t/arena.mlir --exec-plan-arena | FileCheck %t/arena.mlir
// RUN: shard-opt %t/kernels.mlir --exec-form-kernels | FileCheck %t/kernels.mlir
// RUN: sed 's/= 16 : i64/= 4096 : i64/' %t/kernels.mlir | shard-opt --exec-form-kernels | FileCheck %t/kernels.mlir --check-prefix=LARGE
// RUN: shard-opt %t/buckets.mlir --exec-assign-buffers --exec-pack-buckets | FileCheck %t/buckets.mlir
// RUN: sed 's/9.0 : f64/1.0e9 : f64/' %t/buckets.mlir | shard-opt --exec-assign-buffers --exec-pack-buckets | FileCheck %t/buckets.mlir --check-prefix=COSTLY
// RUN: shard-opt %t/tiles.mlir --aten-to-linalg --cpu-tile-kernels | FileCheck %t/tiles.mlir
// RUN: not shard-opt %t/unknown.mlir --exec-plan-arena 2>&1 | FileCheck %t/unknown.mlir
// RUN: not shard-opt %t/wrong.mlir --exec-form-kernels 2>&1 | FileCheck %t/wrong.mlir
// RUN: not shard-opt %t/two.mlir --exec-pack-buckets 2>&1 | FileCheck %t/two.mlir
// RUN: not shard-opt %t/none.mlir --exec-lower-to-target 2>&1 | FileCheck %t/none.mlir --check-prefix=TAIL
// RUN: not shard-opt %t/none.mlir --exec-emit-program 2>&1 | FileCheck %t/none.mlir --check-prefix=LAUNCH
// RUN: not shard-opt %t/wrong.mlir --exec-lower-to-target 2>&1 | FileCheck %t/wrong.mlir
// RUN: not shard-opt %t/arena.mlir --exec-lower-to-target 2>&1 | FileCheck %t/arena.mlir --check-prefix=TAIL
//
// Passes that all targets share take their limits from the module, whoever has registered its target.

//--- arena.mlir
// Passes of its own it has only where it is registered.
// TAIL: error: unknown target 'toy'; use 'cpu', 'cpu:NAME', 'cuda', 'cuda:sm_80,sm_90,...' or 'cuda:emulated'
// Two buffers that live at once, of 32 bytes each.
// CHECK: exec.arena_bytes = 512
// CHECK: exec.alloc at {{0|256}} : memref<8xf32>
// CHECK: exec.alloc at {{0|256}} : memref<8xf32>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"toy" = #dlti.target_device_spec<"buffer_alignment" = 256 : i64>>} {
  func.func private @k(%x: memref<8xf32>, %y: memref<8xf32>) attributes {exec.kernel} {
    return
  }
  func.func @f(%x: memref<8xf32> {exec.argument = #exec.argument<input>}, %y: memref<8xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
    %0 = exec.alloc : memref<8xf32>
    %1 = exec.alloc : memref<8xf32>
    exec.launch @k(%x, %0) : memref<8xf32>, memref<8xf32>
    exec.launch @k(%0, %1) : memref<8xf32>, memref<8xf32>
    exec.launch @k(%1, %y) : memref<8xf32>, memref<8xf32>
    return
  }
}

//--- kernels.mlir
// A row of the softmax has 64 elements, more than a temporary may have here: two kernels instead of one.
// CHECK: call @softmax_kernel
// CHECK: call @relu_kernel
// LARGE: call @softmax_relu_kernel
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"toy" = #dlti.target_device_spec<"temporary_elements" = 16 : i64>>} {
  func.func @f(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
    %0 = aten.softmax %x dim 1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %1 = aten.relu %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return %1 : tensor<8x64xf32>
  }
}

//--- buckets.mlir
// Two copies of 40 bytes each on both sides: cheap where launches cost nothing, not worth it where they do.
// CHECK: exec.collective {{.*}} over #{{[a-z0-9]+}}(%{{[a-z0-9]+}} : memref<10xf32>)
// COSTLY: exec.collective {{.*}} over #{{[a-z0-9]+}}(%{{[a-z0-9]+}}, %{{[a-z0-9]+}} : memref<5xf32>, memref<5xf32>)
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"toy" = #dlti.target_device_spec<
    "launch_ns" = 9.0 : f64, "tensor_ns" = 1000.0 : f64, "copy_bytes_per_ns" = 1000.0 : f64>>} {
  func.func @f(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
    %0:2 = dist.all_reduce sum over #tp %x, %y : (tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>)
    return %0#0, %0#1 : tensor<5xf32>, tensor<5xf32>
  }
}

//--- tiles.mlir
// 6 rows of 40: a tile is 16 elements of a row, and a task two tiles.
// CHECK-LABEL: func.func private @relu(
// CHECK: exec.parallel %{{.*}} to %{{.*}} grain 2 {
// CHECK: arith.constant 16 : index
// CHECK: memref.subview {{.*}} [1, %{{.*}}] [1, 1] : memref<6x40xf32> to memref<1x?xf32
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"toy" = #dlti.target_device_spec<"tile_elements" = 16 : i64, "task_elements" = 32 : i64>>} {
  func.func private @relu(%x: memref<6x40xf32>, %y: memref<6x40xf32>) attributes {exec.kernel} {
    %0 = bufferization.to_tensor %x restrict : memref<6x40xf32> to tensor<6x40xf32>
    %1 = aten.relu %0 : (tensor<6x40xf32>) -> tensor<6x40xf32>
    bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<6x40xf32>, memref<6x40xf32>) -> ()
    return
  }
}

//--- unknown.mlir
// CHECK: error: the target 'toy' has {{.*}}"buffer_alignement"{{.*}}: there is no limit of this name; the nearest are buffer_alignment
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"toy" = #dlti.target_device_spec<"buffer_alignement" = 256 : i64>>} {}

//--- wrong.mlir
// CHECK-DAG: error: the target 'toy' has {{.*}}"buffer_alignment"{{.*}}: it must be a power of two of type i64, at most 4096
// CHECK-DAG: error: the target 'toy' has {{.*}}"tile_elements"{{.*}}: it must be an i64 above 0, at most
// CHECK-DAG: error: the target 'toy' has {{.*}}"launch_ns"{{.*}}: it must be a floating-point number above 0
// CHECK-DAG: error: the target 'toy' has {{.*}}"vector_bytes"{{.*}}: it must be a power of two of type i64
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"toy" = #dlti.target_device_spec<
    "buffer_alignment" = 96 : i64, "tile_elements" = 0 : i64, "launch_ns" = -1.0 : f64, "vector_bytes" = "16">>} {}

//--- two.mlir
// CHECK: error: the module must name one target in 'dlti.target_system_spec', not 2
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
    "cpu" = #dlti.target_device_spec<"vector_bytes" = 64 : i64>, "toy" = #dlti.target_device_spec<"vector_bytes" = 16 : i64>>} {}

//--- none.mlir
// TAIL: error: the module names no target; exec-set-target gives it one
// LAUNCH: error: the module names no target; exec-set-target gives it one
module {
  llvm.func @k(!llvm.ptr, !llvm.ptr, !llvm.ptr) attributes {exec.kernel, exec.outlined}
  func.func @f(%x: memref<8xf32> {exec.argument = #exec.argument<input>}) attributes {exec.arena_bytes = 0 : i64, exec.entry} {
    exec.launch @k(%x) : memref<8xf32>
    return
  }
}
