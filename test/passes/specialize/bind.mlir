// RUN: shard-opt %s --dist-specialize=bind=batch=5 | FileCheck %s
// RUN: shard-opt %s --dist-specialize=bind-typical | FileCheck %s --check-prefix=TYPICAL
// RUN: not shard-opt %s --dist-specialize=bind=batch=65 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not shard-opt %s --dist-specialize=bind=bath=5,seq 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not shard-opt %s --dist-specialize=bind=bath=5 2>&1 | FileCheck %s --check-prefix=NAME

// A batch of five on two ranks is 3, 2: two programs, both static. Typical is the end of the range that
// is nearest to 128: 64, which is even.

#mesh = #dist.mesh<["dp" = 2]>
#S = #dist.layout<#mesh, [S(0)]>
// CHECK: dist.specializations = {forward = #dist.variants<[@forward_v0, @forward_v1], [0, 1]>}
// TYPICAL: dist.specializations = {forward = #dist.variants<[@forward], [0, 0]>}
// RANGE: error: 65 is outside the range of #dist.symbol<batch in [1, 64]>
// FORM: error: 'seq' is not the value of a symbol: expected NAME=NUMBER
// NAME: error: no symbol is named 'bath'; there are batch
module attributes {dist.mesh = #mesh} {
  // CHECK: func.func @forward_v0(
  // CHECK-SAME: tensor<3x4xf32> {dist.global_type = tensor<5x4xf32>
  // CHECK-SAME: dist.sizes = [#dist.size<5>, #dist.size<4>]
  // CHECK-NOT: dist.symbols
  // TYPICAL: func.func @forward({{.*}}tensor<32x4xf32> {dist.global_type = tensor<64x4xf32>
  func.func @forward(%x: tensor<?x4xf32> {dist.layout = #S, dist.global_type = tensor<?x4xf32>,
                                          dist.sizes = [#dist.size<batch>, #dist.size<4>]})
      -> (tensor<?xf32> {dist.layout = #S, dist.global_type = tensor<?xf32>,
                         dist.sizes = [#dist.size<batch * 4>]})
      attributes {dist.symbols = [#dist.symbol<batch in [1, 64]>]} {
    // CHECK: aten.view %{{.*}} [12] : (tensor<3x4xf32>) -> tensor<12xf32>
    // TYPICAL: aten.view %{{.*}} [128] : (tensor<32x4xf32>) -> tensor<128xf32>
    %n = dist.extent #dist.extents<batch over #mesh ["dp"]>
    %c4 = arith.constant 4 : index
    %m = arith.muli %n, %c4 : index
    %y = aten.view %x [%m] : (tensor<?x4xf32>) -> tensor<?xf32>
    return %y : tensor<?xf32>
  }
  // CHECK: func.func @forward_v1(
  // CHECK-SAME: tensor<2x4xf32>
  // CHECK: aten.view %{{.*}} [8] : (tensor<2x4xf32>) -> tensor<8xf32>
}
