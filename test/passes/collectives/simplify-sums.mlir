// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-simplify-collectives %s | FileCheck %s
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_local.py %build/bin/shard-opt %s -- --dist-simplify-collectives %}
// RUN: shard-opt --dist-simplify-collectives --pass-statistics %s -o /dev/null 2>&1 | FileCheck --check-prefix=STATS %s

// STATS-DAG: 4 sums
// STATS-DAG: 1 chains
// STATS-DAG: 2 averages

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
#dp = #dist.axes<#mesh, ["dp"]>

// Partial input gradients of q, k and v are summed before they are reduced, not after: a third of the bytes.
// CHECK-LABEL: func.func @siblings(
// CHECK-NEXT: %[[A:.*]] = aten.mm %arg0, %arg1
// CHECK-NEXT: %[[B:.*]] = aten.mm %arg0, %arg2
// CHECK-NEXT: %[[C:.*]] = aten.mm %arg0, %arg3
// CHECK-NEXT: %[[AB:.*]] = aten.add %[[A]], %[[B]]
// CHECK-NEXT: %[[ABC:.*]] = aten.add %[[AB]], %[[C]]
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce sum over #tp %[[ABC]]
// CHECK-NEXT: return %[[R]]
func.func @siblings(%g: tensor<6x4xf32>, %q: tensor<4x8xf32>, %k: tensor<4x8xf32>, %v: tensor<4x8xf32>) -> tensor<6x8xf32> {
  %a = aten.mm %g, %q : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %ar = dist.all_reduce sum over #tp %a : tensor<6x8xf32>
  %b = aten.mm %g, %k : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %br = dist.all_reduce sum over #tp %b : tensor<6x8xf32>
  %c = aten.mm %g, %v : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %cr = dist.all_reduce sum over #tp %c : tensor<6x8xf32>
  %ab = aten.add %ar, %br : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %abc = aten.add %ab, %cr : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %abc : tensor<6x8xf32>
}

// Micro-batches: each scaled by the same number on all ranks, accumulated, reduced once.
// CHECK-LABEL: func.func @accumulation(
// CHECK: aten.mul %arg0
// CHECK: aten.transpose %arg1
// CHECK: aten.div
// CHECK: aten.sub
// CHECK: dist.all_reduce avg over #dp
// CHECK-NOT: dist.all_reduce
func.func @accumulation(%g0: tensor<3x5xf32>, %g1: tensor<5x3xf32>) -> tensor<3x5xf32> {
  %half = aten.constant dense<0.5> : tensor<f32>
  %r0 = dist.all_reduce avg over #dp %g0 : tensor<3x5xf32>
  %r1 = dist.all_reduce avg over #dp %g1 : tensor<5x3xf32>
  %s0 = aten.mul %r0, %half : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %t1 = aten.transpose %r1 [0, 1] : (tensor<5x3xf32>) -> tensor<3x5xf32>
  %s1 = aten.div %t1, %half : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %a = aten.sub %s0, %s1 {alpha = 3.0 : f64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %a : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @scattered(
// CHECK-NEXT: %[[S:.*]] = aten.add %arg0, %arg1
// CHECK-NEXT: dist.reduce_scatter sum over #tp %[[S]] dim 1
// CHECK-NEXT: return
func.func @scattered(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x?xf32> {
  %a = dist.reduce_scatter sum over #tp %x dim 1 : (tensor<3x5xf32>) -> tensor<3x?xf32>
  %b = dist.reduce_scatter sum over #tp %y dim 1 : (tensor<3x5xf32>) -> tensor<3x?xf32>
  %s = aten.add %a, %b : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
  return %s : tensor<3x?xf32>
}

// An average and a sum, two groups, a maximum, a reduced value that is needed itself, a product of reduced
// values, a scale that differs from rank to rank, a bias that is broadcast.
// CHECK-LABEL: func.func @no_sum(
// CHECK-COUNT-13: dist.all_reduce
// CHECK-NOT: dist.all_reduce
func.func @no_sum(%x: tensor<4xf32>, %y: tensor<4xf32>, %s: tensor<f32>, %z: tensor<3x4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>) {
  %avg = dist.all_reduce avg over #tp %x : tensor<4xf32>
  %sum = dist.all_reduce sum over #tp %y : tensor<4xf32>
  %0 = aten.add %avg, %sum : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %nx = aten.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %odp = dist.all_reduce sum over #dp %nx : tensor<4xf32>
  %otp = dist.all_reduce sum over #tp %nx : tensor<4xf32>
  %1 = aten.add %odp, %otp : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %ny = aten.neg %y : (tensor<4xf32>) -> tensor<4xf32>
  %m = dist.all_reduce max over #tp %ny : tensor<4xf32>
  %n = dist.all_reduce max over #tp %nx : tensor<4xf32>
  %2 = aten.add %m, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xy = aten.mul %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %kept = dist.all_reduce sum over #tp %xy : tensor<4xf32>
  %r = aten.relu %xy : (tensor<4xf32>) -> tensor<4xf32>
  %other = dist.all_reduce sum over #tp %r : tensor<4xf32>
  %3 = aten.add %kept, %other : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = dist.all_reduce prod over #tp %x : tensor<4xf32>
  %q = dist.all_reduce prod over #tp %y : tensor<4xf32>
  %4 = aten.add %p, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %rx = aten.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %ry = aten.relu %y : (tensor<4xf32>) -> tensor<4xf32>
  %rrx = dist.all_reduce sum over #tp %rx : tensor<4xf32>
  %rry = dist.all_reduce sum over #tp %ry : tensor<4xf32>
  %scaled = aten.mul %rrx, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = aten.add %scaled, %rry : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %rz = dist.all_reduce sum over #tp %z : tensor<3x4xf32>
  %6 = aten.add %rz, %3 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %0, %1, %2, %3, %4, %5, %kept, %6 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>
}

// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: dist.all_reduce max over #{{.*}} %arg0
// CHECK-NEXT: return
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dist.all_reduce max over #tp %x : tensor<4xf32>
  %b = dist.all_reduce max over #dp %a : tensor<4xf32>
  return %b : tensor<4xf32>
}

// An average of sums is neither; a value in between that is needed stays.
// CHECK-LABEL: func.func @no_chain(
// CHECK-COUNT-4: dist.all_reduce
func.func @no_chain(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = dist.all_reduce sum over #tp %x : tensor<4xf32>
  %b = dist.all_reduce avg over #dp %a : tensor<4xf32>
  %c = dist.all_reduce sum over #tp %y : tensor<4xf32>
  %d = dist.all_reduce sum over #dp %c : tensor<4xf32>
  return %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Divided by the number of ranks: whoever writes the sum divides it.
// CHECK-LABEL: func.func @averages(
// CHECK-NEXT: %[[A:.*]] = dist.all_reduce avg over #tp %arg0 : tensor<5xf16>
// CHECK-NEXT: %[[B:.*]] = dist.reduce_scatter avg over #tp %arg1 dim 0 : (tensor<6xf32>) -> tensor<3xf32>
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @averages(%x: tensor<5xf16>, %y: tensor<6xf32>) -> (tensor<5xf16>, tensor<3xf32>) {
  %two16 = aten.constant dense<2.0> : tensor<f16>
  %two = aten.constant dense<2.0> : tensor<f32>
  %a = dist.all_reduce sum over #tp %x : tensor<5xf16>
  %0 = aten.div %a, %two16 : (tensor<5xf16>, tensor<f16>) -> tensor<5xf16>
  %b = dist.reduce_scatter sum over #tp %y dim 0 : (tensor<6xf32>) -> tensor<3xf32>
  %1 = aten.div %b, %two : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0, %1 : tensor<5xf16>, tensor<3xf32>
}

// By another number, by a rounded quotient, of a maximum, of integers.
// CHECK-LABEL: func.func @no_averages(
// CHECK-NOT: avg
func.func @no_averages(%x: tensor<5xf32>, %y: tensor<6xi64>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<6xf32>) {
  %two = aten.constant dense<2.0> : tensor<f32>
  %four = aten.constant dense<4.0> : tensor<f32>
  %a = dist.all_reduce sum over #tp %x : tensor<5xf32>
  %0 = aten.div %a, %four : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %nx = aten.neg %x : (tensor<5xf32>) -> tensor<5xf32>
  %b = dist.all_reduce sum over #tp %nx : tensor<5xf32>
  %1 = aten.div %b, %two {rounding_mode = "floor"} : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %c = dist.all_reduce max over #tp %nx : tensor<5xf32>
  %2 = aten.div %c, %two : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %d = dist.all_reduce sum over #tp %y : tensor<6xi64>
  %3 = aten.div %d, %two : (tensor<6xi64>, tensor<f32>) -> tensor<6xf32>
  return %0, %1, %2, %3 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<6xf32>
}
