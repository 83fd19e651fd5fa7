// RUN: shard-opt %s --dist-specialize --split-input-file | FileCheck %s
// RUN: shard-opt %s --dist-specialize --split-input-file --pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STAT
// STAT: dist-specialize
// STAT-NEXT: (S) 7 extents-folded - dist.extent ops that became constants
// STAT-NEXT: (S) 18 variants - Functions after specialisation

// Seven rows over four ranks: 2, 2, 2, 1. Names and places of the module's other symbols are kept.

#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#S = #dist.layout<#mesh, [S(0)]>
#R = #dist.layout<#mesh, [R]>
// CHECK: module attributes
// CHECK-SAME: dist.specializations = {forward = #dist.variants<[@forward_v0, @forward_v1], [0, 0, 0, 1]>}
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func @forward_v0(
  // CHECK-SAME: tensor<2x4xf32> {dist.global_type = tensor<7x4xf32>, dist.layout = #S0tp}
  // CHECK-SAME: -> (tensor<2x4xf32> {{.*}}, tensor<7x4xf32>
  func.func @forward(%x: tensor<?x4xf32> {dist.layout = #S, dist.global_type = tensor<7x4xf32>})
      -> (tensor<?x4xf32> {dist.layout = #S, dist.global_type = tensor<7x4xf32>}, tensor<7x4xf32>) {
    // CHECK-NEXT: %[[Y:.*]] = aten.relu %{{.*}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %y = aten.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK-NOT: dist.extent
    // CHECK: %[[V:.*]] = aten.view %[[Y]] [2, 2, 2] : (tensor<2x4xf32>) -> tensor<2x2x2xf32>
    %n = dist.extent #dist.extents<7 over #mesh ["tp"]>
    %v = aten.view %y [%n, 2, 2] : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
    // CHECK: aten.view %[[V]] [8] : (tensor<2x2x2xf32>) -> tensor<8xf32>
    %c4 = arith.constant 4 : index
    %m = arith.muli %n, %c4 : index
    %w = aten.view %v [%m] : (tensor<?x2x2xf32>) -> tensor<?xf32>
    // CHECK: dist.all_gather over #tp %[[Y]] dim 0 : (tensor<2x4xf32>) -> tensor<7x4xf32>
    %g = dist.all_gather over #tp %y dim 0 : (tensor<?x4xf32>) -> tensor<7x4xf32>
    return %y, %g : tensor<?x4xf32>, tensor<7x4xf32>
  }
  // CHECK: func.func @forward_v1(
  // CHECK-SAME: tensor<1x4xf32> {{.*}} -> (tensor<1x4xf32>
  // CHECK: aten.view %{{.*}} [1, 2, 2] : (tensor<1x4xf32>) -> tensor<1x2x2xf32>
  // CHECK: aten.view %{{.*}} [4] : (tensor<1x2x2xf32>) -> tensor<4xf32>
  // CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<1x4xf32>) -> tensor<7x4xf32>
}

// -----

// Even: one function, under its own name.
#mesh = #dist.mesh<["tp" = 4]>
#S = #dist.layout<#mesh, [S(0)]>
// CHECK: dist.specializations = {forward = #dist.variants<[@forward], [0, 0, 0, 0]>}
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func @forward(%{{.*}}: tensor<2xf32>
  func.func @forward(%x: tensor<2xf32> {dist.layout = #S, dist.global_type = tensor<8xf32>}) {
    return
  }
  // CHECK: func.func private @declared
  func.func private @declared()
}

// -----

// Nested chunks on a mesh that lists its devices: positions of the mesh, not ranks, are what counts.
// 5 over dp is 3, 2; the groups of tp gather 3 or 2; a rank has 2, 1 or 1, 1.
#mesh = #dist.mesh<["dp" = 2, "tp" = 2], devices = [3, 1, 2, 0]>
#tp = #dist.axes<#mesh, ["tp"]>
#S = #dist.layout<#mesh, [S(0), S(0)]>
// CHECK: [@f_v0, @f_v1, @f_v2], [0, 1, 2, 2]
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func @f_v0(
  // CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<2xf32>) -> !dist.future<tensor<3xf32>>
  // CHECK: dist.wait %{{.*}} : !dist.future<tensor<3xf32>>
  // CHECK: aten.relu %{{.*}} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: func.func @f_v1(
  // CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<1xf32>) -> !dist.future<tensor<3xf32>>
  // CHECK: func.func @f_v2(
  // CHECK: dist.all_gather over #tp %{{.*}} dim 0 : (tensor<1xf32>) -> !dist.future<tensor<2xf32>>
  func.func @f(%x: tensor<?xf32> {dist.layout = #S, dist.global_type = tensor<5xf32>}) -> tensor<?xf32> {
    %n = dist.extent #dist.extents<5 over #mesh ["dp"]>
    %f = dist.all_gather over #tp %x dim 0 full %n : (tensor<?xf32>) -> !dist.future<tensor<?xf32>>
    %y = dist.wait %f : !dist.future<tensor<?xf32>>
    %z = aten.relu %y : (tensor<?xf32>) -> tensor<?xf32>
    return %z : tensor<?xf32>
  }
}

// -----

// Extents that are written nowhere, but follow from a rank's position in a group: the shape of the
// reduce-scatter splits the devices; that of the permute splits those that the argument left together.
#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
#S = #dist.layout<#mesh, [S(0, sizes = [1, 1, 1, 3])]>
// CHECK: f = #dist.variants<[@f_v0, @f_v1], [0, 0, 0, 1]>, g = #dist.variants<[@g_v0, @g_v1, @g_v2], [0, 1, 1, 2]>
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func @f_v0(
  // CHECK: reduce_scatter {{.*}} -> tensor<2xf32>
  // CHECK: func.func @f_v1(
  // CHECK: reduce_scatter {{.*}} -> tensor<0xf32>
  func.func @f(%x: tensor<6xf32>) {
    %0 = dist.reduce_scatter sum over #tp %x dim 0 : (tensor<6xf32>) -> tensor<?xf32>
    return
  }
  // CHECK: func.func @g_v0(%{{.*}}: tensor<1xf32>
  // CHECK: permute {{.*}} : (tensor<1xf32>) -> tensor<3xf32>
  // CHECK: func.func @g_v1(%{{.*}}: tensor<1xf32>
  // CHECK: permute {{.*}} : tensor<1xf32>
  // CHECK: func.func @g_v2(%{{.*}}: tensor<3xf32>
  // CHECK: permute {{.*}} : (tensor<3xf32>) -> tensor<1xf32>
  func.func @g(%x: tensor<?xf32> {dist.layout = #S, dist.global_type = tensor<6xf32>}) {
    %0 = dist.permute over #tp pairs [[3, 0], [0, 3]] %x dim 0 extents [1, 1, 1, 3] : (tensor<?xf32>) -> tensor<?xf32>
    return
  }
}

// -----

// An index that cannot be followed for all devices at once, as here where one of them would divide by zero, is a constant on each device alone: the first and
// the last one have a variant of their own although they are alike.
#mesh = #dist.mesh<["tp" = 4]>
#tp = #dist.axes<#mesh, ["tp"]>
// CHECK: f = #dist.variants<[@f_v0, @f_v1, @f_v2, @f_v3], [0, 1, 2, 3]>
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func @f_v0(
  // CHECK: aten.expand %{{.*}} [4, 2] : (tensor<1x2xf32>) -> tensor<4x2xf32>
  // CHECK: func.func @f_v1(
  // CHECK: aten.expand %{{.*}} [12, 2] : (tensor<1x2xf32>) -> tensor<12x2xf32>
  // CHECK: func.func @f_v2(
  // CHECK: aten.expand %{{.*}} [6, 2] : (tensor<1x2xf32>) -> tensor<6x2xf32>
  // CHECK: func.func @f_v3(
  // CHECK: aten.expand %{{.*}} [4, 2] : (tensor<1x2xf32>) -> tensor<4x2xf32>
  func.func @f(%x: tensor<1x2xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c12 = arith.constant 12 : index
    %i = dist.axis_index over #tp
    %first = arith.cmpi eq, %i, %c0 : index
    %q = arith.divui %c12, %i : index
    %n = arith.select %first, %c4, %q : index
    %y = aten.expand %x [%n, 2] : (tensor<1x2xf32>) -> tensor<?x2xf32>
    return
  }
}

// -----

// What depends on a symbol stays; the rank's own index stays too.
#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
#S = #dist.layout<#mesh, [S(0)]>
// CHECK: forward = #dist.variants<[@forward], [0, 0]>
module attributes {dist.mesh = #mesh} {
  func.func @forward(%x: tensor<?x4xf32> {dist.layout = #S, dist.global_type = tensor<?x4xf32>,
                                          dist.sizes = [#dist.size<batch>, #dist.size<4>]}) -> (tensor<?xf32>, index)
      attributes {dist.symbols = [#dist.symbol<batch in [1, 64]>]} {
    // CHECK: %[[N:.*]] = dist.extent #dist.extents<batch over #mesh ["dp"]>
    %n = dist.extent #dist.extents<batch over #mesh ["dp"]>
    // CHECK: %[[I:.*]] = dist.axis_index
    %i = dist.axis_index over #dp
    %c4 = arith.constant 4 : index
    // CHECK: %[[M:.*]] = arith.muli %[[N]]
    %m = arith.muli %n, %c4 : index
    // CHECK: aten.view %{{.*}} [%[[M]]] : (tensor<?x4xf32>) -> tensor<?xf32>
    %v = aten.view %x [%m] : (tensor<?x4xf32>) -> tensor<?xf32>
    return %v, %i : tensor<?xf32>, index
  }
}

// -----

// Where a slice begins differs between all four ranks, its extent only between two kinds: 2, 2, 2, 1. The offset is looked up.
#mesh = #dist.mesh<["tp" = 4]>
#S = #dist.layout<#mesh, [S(0)]>
#R = #dist.layout<#mesh, [R]>
// CHECK: dist.specializations = {forward = #dist.variants<[@forward_v0, @forward_v1], [0, 0, 0, 1]>}
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func @forward_v0(%[[X:.*]]: tensor<7x4xf32>
  func.func @forward(%x: tensor<7x4xf32> {dist.layout = #R, dist.global_type = tensor<7x4xf32>}) -> (tensor<?x4xf32>, tensor<f32>) {
    // CHECK: %[[AT:.*]] = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh{{.*}}>
    %begin = dist.extent #dist.extents<table [0, 2, 4, 6] over #mesh>
    // CHECK: %[[END:.*]] = dist.extent #dist.extents<table [2, 4, 6, 7] over #mesh{{.*}}>
    %end = dist.extent #dist.extents<table [2, 4, 6, 7] over #mesh>
    // CHECK: aten.slice %[[X]] dim 0 [%[[AT]] : %[[END]] : 1] : (tensor<7x4xf32>) -> tensor<2x4xf32>
    %y = aten.slice %x dim 0 [%begin : %end : 1] : (tensor<7x4xf32>) -> tensor<?x4xf32>
    // CHECK-NOT: arith.subi
    // CHECK: aten.view %{{.*}} [8] : (tensor<2x4xf32>) -> tensor<8xf32>
    %rows = arith.subi %end, %begin : index
    %c4 = arith.constant 4 : index
    %m = arith.muli %rows, %c4 : index
    %z = aten.view %y [%m] : (tensor<?x4xf32>) -> tensor<?xf32>
    %s = aten.sum %z dim [0] to f32 : (tensor<?xf32>) -> tensor<f32>
    return %y, %s : tensor<?x4xf32>, tensor<f32>
  }
  // CHECK: func.func @forward_v1(
  // CHECK: aten.slice %{{.*}} dim 0 [6 : 7 : 1] : (tensor<7x4xf32>) -> tensor<1x4xf32>
  // CHECK: aten.view %{{.*}} [4] : (tensor<1x4xf32>) -> tensor<4xf32>
}
