// RUN: shard-opt %s --exec-update-in-place --exec-verify-buffers --split-input-file | FileCheck %s
// RUN: shard-opt %s --exec-update-in-place --split-input-file --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: exec-update-in-place
// STATS-DAG: (S) 144 copied-bytes
// STATS-DAG: (S) 3 in-place-launches

// A step of Adam's kind: three values are written where they are read, and the kernel has lost three arguments.
// CHECK-LABEL: func.func @adam
// CHECK-SAME: exec.in_place
// CHECK-NEXT: exec.commit
// CHECK-NEXT: exec.launch @step_0(%arg3, %arg4, %arg5, %arg6) name "step"
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @step_0
// CHECK-SAME: exec.in_place = array<i64: 1, 2, 3>, exec.kernel, exec.writes = array<i64: 1, 2, 3>
// CHECK-DAG: %[[W:.*]] = bufferization.to_tensor %arg1 restrict
// CHECK-DAG: %[[M:.*]] = bufferization.to_tensor %arg2 restrict
// CHECK: aten.add %[[M]],
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %arg1
func.func @adam(%w: memref<4x3xf32> {exec.argument = #exec.argument<parameter>}, %m: memref<4x3xf32> {exec.argument = #exec.argument<parameter>},
                %v: memref<4x3xf32> {exec.argument = #exec.argument<parameter>}, %g: memref<4x3xf32> {exec.argument = #exec.argument<input>},
                %nw: memref<4x3xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                %nm: memref<4x3xf32> {exec.argument = #exec.argument<output>, exec.updates = 1 : i64},
                %nv: memref<4x3xf32> {exec.argument = #exec.argument<output>, exec.updates = 2 : i64}) attributes {exec.entry} {
  exec.launch @step(%w, %m, %v, %g, %nw, %nm, %nv) name "step"
      : memref<4x3xf32>, memref<4x3xf32>, memref<4x3xf32>, memref<4x3xf32>, memref<4x3xf32>, memref<4x3xf32>, memref<4x3xf32>
  return
}
func.func private @step(%w: memref<4x3xf32>, %m: memref<4x3xf32>, %v: memref<4x3xf32>, %g: memref<4x3xf32>,
                        %nw: memref<4x3xf32>, %nm: memref<4x3xf32>, %nv: memref<4x3xf32>) attributes {exec.kernel, exec.writes = array<i64: 4, 5, 6>} {
  %0 = bufferization.to_tensor %w restrict : memref<4x3xf32> to tensor<4x3xf32>
  %1 = bufferization.to_tensor %m restrict : memref<4x3xf32> to tensor<4x3xf32>
  %2 = bufferization.to_tensor %v restrict : memref<4x3xf32> to tensor<4x3xf32>
  %3 = bufferization.to_tensor %g restrict : memref<4x3xf32> to tensor<4x3xf32>
  %4 = aten.add %1, %3 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %5 = aten.mul %3, %3 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %6 = aten.add %2, %5 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %7 = aten.div %4, %6 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %8 = aten.sub %0, %7 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  bufferization.materialize_in_destination %8 in restrict writable %nw : (tensor<4x3xf32>, memref<4x3xf32>) -> ()
  bufferization.materialize_in_destination %4 in restrict writable %nm : (tensor<4x3xf32>, memref<4x3xf32>) -> ()
  bufferization.materialize_in_destination %6 in restrict writable %nv : (tensor<4x3xf32>, memref<4x3xf32>) -> ()
  return
}

// -----

// An output is the old value, and a product reads it: both come first. What needs the new value stays behind it.
// CHECK-LABEL: func.func @readers
// CHECK: exec.launch @copy(%arg0, %arg3)
// CHECK-NEXT: exec.gemm %arg1 * %arg0 -> %arg4
// CHECK-NEXT: exec.commit
// CHECK-NEXT: exec.launch @add_0(%arg1, %arg2)
// CHECK-NEXT: exec.launch @copy(%arg2, %arg5)
func.func @readers(%w: memref<4x4xf32> {exec.argument = #exec.argument<parameter>}, %x: memref<4x4xf32> {exec.argument = #exec.argument<input>},
                   %new: memref<4x4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                   %old: memref<4x4xf32> {exec.argument = #exec.argument<output>}, %y: memref<4x4xf32> {exec.argument = #exec.argument<output>},
                   %same: memref<4x4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  exec.launch @add(%w, %x, %new) : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>
  exec.launch @copy(%new, %same) : memref<4x4xf32>, memref<4x4xf32>
  exec.launch @copy(%w, %old) : memref<4x4xf32>, memref<4x4xf32>
  exec.gemm %x * %w -> %y : memref<4x4xf32> * memref<4x4xf32> -> memref<4x4xf32>
  return
}
func.func private @copy(%x: memref<4x4xf32>, %y: memref<4x4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}
func.func private @add(%w: memref<4x4xf32>, %x: memref<4x4xf32>, %new: memref<4x4xf32>) attributes {exec.kernel, exec.writes = array<i64: 2>} {
  %0 = bufferization.to_tensor %w restrict : memref<4x4xf32> to tensor<4x4xf32>
  %1 = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  %2 = aten.add %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  bufferization.materialize_in_destination %2 in restrict writable %new : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

// A gather reads the shard until it is waited for: the write moves behind the wait, the other collective does not.
// CHECK-LABEL: func.func @in_flight
// CHECK: %[[T:.*]] = exec.start all_gather
// CHECK-NEXT: exec.collective all_reduce
// CHECK-NEXT: exec.wait %[[T]]
// CHECK-NEXT: exec.commit
// CHECK-NEXT: exec.launch @double_0(%arg1)
#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
func.func @in_flight(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>},
                     %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                     %y: memref<8xf32> {exec.argument = #exec.argument<output>},
                     %x: memref<4xf32> {exec.argument = #exec.argument<input>}, %z: memref<4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  %t = exec.start all_gather over #dp (%w : memref<4xf32>) -> (%y : memref<8xf32>)
      {element_types = [f32], extents = [array<i64: 8>], gather_dims = array<i64: 0>, gather_extents = [array<i64>],
       pairs = array<i64>, scatter_dims = array<i64: -1>, scatter_extents = [array<i64>]}
  exec.launch @double(%w, %new) : memref<4xf32>, memref<4xf32>
  exec.collective all_reduce sum over #dp (%x : memref<4xf32>) -> (%z : memref<4xf32>)
      {element_types = [f32], extents = [array<i64: 4>], gather_dims = array<i64: -1>, gather_extents = [array<i64>],
       pairs = array<i64>, scatter_dims = array<i64: -1>, scatter_extents = [array<i64>]}
  exec.wait %t
  return
}
func.func private @double(%w: memref<4xf32>, %new: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %w restrict : memref<4xf32> to tensor<4xf32>
  %1 = aten.add %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %1 in restrict writable %new : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

// Two parameters that exchange their values: one of them goes through the arena. One that becomes its own transpose does, too.
// CHECK-LABEL: func.func @exchange
// CHECK-DAG: %[[C:.*]] = exec.alloc : memref<4x4xf32>
// CHECK-DAG: %[[A:.*]] = exec.alloc : memref<4x4xf32>
// CHECK: exec.launch @copy(%arg1, %[[NEW_A:.*]]) :
// CHECK: exec.commit
// CHECK: exec.launch @copy(%arg0, %arg4)
// CHECK: exec.launch @transpose(%arg2, %[[NEW_C:.*]]) :
// CHECK: exec.launch @copy_{{.}}(%[[NEW_A]], %arg3)
// CHECK: exec.launch @copy_{{.}}(%[[NEW_C]], %arg5)
func.func @exchange(%a: memref<4x4xf32> {exec.argument = #exec.argument<parameter>}, %b: memref<4x4xf32> {exec.argument = #exec.argument<parameter>},
                    %c: memref<4x4xf32> {exec.argument = #exec.argument<parameter>},
                    %na: memref<4x4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                    %nb: memref<4x4xf32> {exec.argument = #exec.argument<output>, exec.updates = 1 : i64},
                    %nc: memref<4x4xf32> {exec.argument = #exec.argument<output>, exec.updates = 2 : i64}) attributes {exec.entry} {
  exec.launch @copy(%b, %na) : memref<4x4xf32>, memref<4x4xf32>
  exec.launch @copy(%a, %nb) : memref<4x4xf32>, memref<4x4xf32>
  exec.launch @transpose(%c, %nc) : memref<4x4xf32>, memref<4x4xf32>
  return
}
func.func private @copy(%x: memref<4x4xf32>, %y: memref<4x4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}
func.func private @transpose(%x: memref<4x4xf32>, %y: memref<4x4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  %1 = aten.transpose %0 [0, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = aten.neg %1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

// The old value has another reader in the kernel than its new one: a target may run that behind the write.
// CHECK-LABEL: func.func @both
// CHECK: %[[A:.*]] = exec.alloc : memref<4xf32>
// CHECK: exec.launch @both_kernel(%arg0, %[[A]], %arg2)
func.func @both(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>},
                %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                %y: memref<4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  exec.launch @both_kernel(%w, %new, %y) : memref<4xf32>, memref<4xf32>, memref<4xf32>
  return
}
func.func private @both_kernel(%w: memref<4xf32>, %new: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1, 2>} {
  %0 = bufferization.to_tensor %w restrict : memref<4xf32> to tensor<4xf32>
  %1 = aten.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = aten.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %1 in restrict writable %new : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %2 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

// A value that stays as it is needs nothing, and who reads the new one reads the old one.
// CHECK-LABEL: func.func @unchanged
// CHECK-NEXT: exec.launch @copy(%arg0, %arg2)
// CHECK-NEXT: return
func.func @unchanged(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>},
                     %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                     %y: memref<4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
  exec.launch @copy(%w, %new) : memref<4xf32>, memref<4xf32>
  exec.launch @copy(%new, %y) : memref<4xf32>, memref<4xf32>
  return
}
func.func private @copy(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
  bufferization.materialize_in_destination %0 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
