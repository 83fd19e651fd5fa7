// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --dist-specialize --dist-verify-schedule --dist-verify-stage=specialized | FileCheck %s

// Ranks 0 and 1 compute, ranks 2 and 3 have the input and the output, rank 3 alone has the number that goes with them.
#mesh = #dist.mesh<["tp" = 2]>
#io = #dist.mesh<["io" = 2], devices = [2, 3]>
#one = #dist.mesh<["one" = 1], devices = [3]>
#ranks = #dist.mesh<["ranks" = 4]>
#all = #dist.axes<#ranks, ["ranks"]>
#tp = #dist.axes<#mesh, ["tp"]>
#here = #dist.layout<#mesh, [R]>
#there = #dist.layout<#io, [S(0)]>
#last = #dist.layout<#one, [R]>

// All ranks of all meshes, ascending.
// CHECK: dist.specializations = {forward = #dist.variants<[@forward_v0, @forward_v1, @forward_v2, @forward_v3], [0, 1, 2, 3]>}
module attributes {dist.mesh = #mesh, dist.meshes = {io = #io, last = #one}} {
  // A rank of the mesh runs all that is on it, and has nothing of what comes and goes.
  // CHECK-LABEL: func.func @forward_v0(
  // CHECK-SAME: %[[X:.*]]: tensor<0x0xf32> {{.*}}, %[[W:.*]]: tensor<4xf32> {{.*}}, %{{.*}}: tensor<f32>
  // CHECK-SAME: -> (tensor<0x0xf32> {{.*}}, tensor<4xf32>
  // CHECK: %[[NONE:.*]] = aten.{{.*}} -> tensor<0xf32>
  // CHECK: %[[F:.*]] = dist.all_to_all over #ranks %[[NONE]] split 0 extents [0, 0, 0, 0] concat 0 extents [0, 0, 2, 2] {dist.ordinal = 0 : i64}
  // CHECK: %[[HERE:.*]] = dist.wait %[[F]] : !dist.future<tensor<4xf32>>
  // CHECK: %[[SUM:.*]] = aten.add %[[HERE]], %[[W]]
  // CHECK: dist.all_reduce sum over #tp %[[SUM]] {dist.ordinal = 1 : i64}
  // CHECK: dist.all_to_all over #ranks %{{.*}} split 0 extents [0, 0, 2, 0] {{.*}}dist.ordinal = 2
  // CHECK-LABEL: func.func @forward_v1(

  // The others run neither its ops nor its collectives.
  // CHECK-LABEL: func.func @forward_v2(
  // CHECK-SAME: tensor<2x1xf32> {{.*}}, %{{.*}}: tensor<0xf32>
  // CHECK-SAME: -> (tensor<2x1xf32> {{.*}}, tensor<0xf32>
  // CHECK: dist.all_to_all {{.*}} extents [2, 2, 0, 0] concat 0 extents [0, 0, 0, 0] {dist.ordinal = 0
  // CHECK-NOT: aten.add
  // CHECK-NOT: dist.all_reduce
  // CHECK: dist.all_to_all {{.*}}dist.ordinal = 2
  // CHECK-NOT: unrealized
  // CHECK-LABEL: func.func @forward_v3(
  func.func @forward(%x: tensor<2x1xf32> {dist.layout = #there, dist.global_type = tensor<4x1xf32>},
                     %w: tensor<4xf32> {dist.layout = #here, dist.global_type = tensor<4xf32>},
                     %s: tensor<f32> {dist.layout = #last, dist.global_type = tensor<f32>})
      -> (tensor<2x1xf32> {dist.layout = #there, dist.global_type = tensor<4x1xf32>},
          tensor<4xf32> {dist.layout = #here, dist.global_type = tensor<4xf32>}) {
    %to0 = dist.extent #dist.extents<table [0, 0, 2, 2] over #ranks>
    %to2 = dist.extent #dist.extents<table [0, 0, 0, 0] over #ranks>
    %from2 = dist.extent #dist.extents<table [2, 2, 0, 0] over #ranks>
    %none = arith.constant 0 : index
    %flat = aten.view %x [2] : (tensor<2x1xf32>) -> tensor<2xf32>
    %twice = aten.cat %flat, %flat dim 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    %sent = dist.leave_mesh on #io %twice : tensor<4xf32> to tensor<?xf32>
    %f = dist.all_to_all over #all %sent split 0 extents [%to0, %to0, 0, 0] concat 0 extents [0, 0, %from2, %from2]
        : (tensor<?xf32>) -> !dist.future<tensor<?xf32>>
    %got = dist.wait %f : !dist.future<tensor<?xf32>>
    %here = dist.enter_mesh on #mesh %got : tensor<?xf32> to tensor<4xf32>
    %sum = aten.add %here, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %r = dist.all_reduce sum over #tp %sum : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
    %y = dist.wait %r : !dist.future<tensor<4xf32>>
    %back = dist.leave_mesh on #mesh %y : tensor<4xf32> to tensor<?xf32>
    %half = dist.extent #dist.extents<table [2, 0, 0, 0] over #ranks>
    %other = dist.extent #dist.extents<table [0, 2, 0, 0] over #ranks>
    %mine = aten.slice %y dim 0 [0 : 2 : 1] : (tensor<4xf32>) -> tensor<2xf32>
    %out = dist.leave_mesh on #mesh %mine : tensor<2xf32> to tensor<?xf32>
    %r0 = dist.extent #dist.extents<table [0, 0, 2, 0] over #ranks>
    %r1 = dist.extent #dist.extents<table [0, 0, 0, 2] over #ranks>
    %g = dist.all_to_all over #all %out split 0 extents [0, 0, %half, %other] concat 0 extents [%r0, %r1, 0, 0]
        : (tensor<?xf32>) -> !dist.future<tensor<?xf32>>
    %end = dist.wait %g : !dist.future<tensor<?xf32>>
    %there = dist.enter_mesh on #io %end : tensor<?xf32> to tensor<2xf32>
    %z = aten.view %there [2, 1] : (tensor<2xf32>) -> tensor<2x1xf32>
    return %z, %y : tensor<2x1xf32>, tensor<4xf32>
  }
}
