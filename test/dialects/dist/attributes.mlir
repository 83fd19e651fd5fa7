// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s | shard-opt | FileCheck %s
// RUN: shard-opt %s --emit-bytecode | shard-opt | FileCheck %s

// Aliases say what happens on which axis; an axis that replicates is left out.

#mesh = #dist.mesh<["dp" = 2, "tp" = 4]>
#line = #dist.mesh<["tp" = 4], devices = [0, 2, 4, 6]>

// CHECK-DAG: #[[MESH:mesh[0-9]*]] = #dist.mesh<["dp" = 2, "tp" = 4]>
// CHECK-DAG: #[[LINE:mesh[0-9]*]] = #dist.mesh<["tp" = 4], devices = [0, 2, 4, 6]>
// CHECK-DAG: #R = #dist.layout<#[[MESH]], [R, R]>
// CHECK-DAG: #S0dp = #dist.layout<#[[MESH]], [S(0), R]>
// CHECK-DAG: #S0dp_S1tp = #dist.layout<#[[MESH]], [S(0), S(1)]>
// CHECK-DAG: #S0dp_S0tp = #dist.layout<#[[MESH]], [S(0), S(0)]>
// CHECK-DAG: #S0tp_S0dp = #dist.layout<#[[MESH]], [S(0), S(0)], order = ["tp", "dp"]>
// CHECK-DAG: #S0x3tp = #dist.layout<#[[MESH]], [R, S(0, blocks = 3)]>
// CHECK-DAG: #S0by64tp = #dist.layout<#[[MESH]], [R, S(0, granule = 64)]>
// CHECK-DAG: #S0_5_3_0_2_tp = #dist.layout<#[[MESH]], [R, S(0, sizes = [5, 3, 0, 2])]>
// CHECK-DAG: #Pdp_S0tp = #dist.layout<#[[MESH]], [P(sum), S(0)]>
// CHECK-DAG: #Pmax_tp = #dist.layout<#[[MESH]], [R, P(max)]>
// CHECK-DAG: #Ptp = #dist.layout<#[[LINE]], [P(sum)]>

// CHECK-LABEL: func.func private @layouts(
// CHECK-SAME: tensor<8x12xf32, #R>, tensor<8x12xf32, #S0dp>, tensor<8x12xf32, #S0dp_S1tp>
func.func private @layouts(
    tensor<8x12xf32, #dist.layout<#mesh, [R, R]>>,
    tensor<8x12xf32, #dist.layout<#mesh, [S(0), R]>>,
    tensor<8x12xf32, #dist.layout<#mesh, [S(0), S(1)]>>)

// CHECK-LABEL: func.func private @splits(
// CHECK-SAME: tensor<5xf32, #S0dp_S0tp>, tensor<5xf32, #S0tp_S0dp>, tensor<1536xf32, #S0x3tp>
// CHECK-SAME: tensor<384xf32, #S0by64tp>, tensor<10xf32, #S0_5_3_0_2_tp>, tensor<?xf32, #S0dp>
func.func private @splits(
    tensor<5xf32, #dist.layout<#mesh, [S(0), S(0)]>>,
    tensor<5xf32, #dist.layout<#mesh, [S(0), S(0)], order = ["tp", "dp"]>>,
    tensor<1536xf32, #dist.layout<#mesh, [R, S(0, blocks = 3)]>>,
    tensor<384xf32, #dist.layout<#mesh, [R, S(0, granule = 64)]>>,
    tensor<10xf32, #dist.layout<#mesh, [R, S(0, sizes = [5, 3, 0, 2])]>>,
    tensor<?xf32, #dist.layout<#mesh, [S(0), R]>>)

// The order of axes that do not share a dim says nothing: it is left out.
// CHECK-LABEL: func.func private @partials(
// CHECK-SAME: tensor<8xf32, #Pdp_S0tp>, tensor<f32, #Pmax_tp>, tensor<0xf32, #Ptp>, tensor<8x12xf32, #S0dp_S1tp>
func.func private @partials(
    tensor<8xf32, #dist.layout<#mesh, [P(sum), S(0)]>>,
    tensor<f32, #dist.layout<#mesh, [R, P(max)]>>,
    tensor<0xf32, #dist.layout<#line, [P(sum)]>>,
    tensor<8x12xf32, #dist.layout<#mesh, [S(0), S(1)], order = ["tp", "dp"]>>)

// CHECK-LABEL: module @others attributes
module @others attributes {
  // CHECK-SAME: test.axes = [#tp, #tp_dp, #dist.axes<#[[MESH]], []>]
  test.axes = [#dist.axes<#mesh, ["tp"]>, #dist.axes<#mesh, ["tp", "dp"]>, #dist.axes<#mesh, []>],
  // CHECK-SAME: test.extents = [#dist.extents<10 over #[[MESH]] ["dp", "tp"]>,
  // CHECK-SAME: #dist.extents<1536 over #[[MESH]] ["tp"(blocks = 3, granule = 64)]>,
  // CHECK-SAME: #dist.extents<batch * seq over #[[MESH]] ["dp"]>,
  // CHECK-SAME: #dist.extents<10 over #[[MESH]] ["tp"(sizes = [5, 3, 0, 2])]>,
  // CHECK-SAME: #dist.extents<table [4, 4, 3, 0] over #[[LINE]]>, #dist.extents<batch>]
  test.extents = [
    #dist.extents<10 over #mesh ["dp", "tp"]>,
    #dist.extents<1536 over #mesh ["tp"(blocks = 3, granule = 64)]>,
    #dist.extents<batch * seq over #mesh ["dp"]>,
    #dist.extents<10 over #mesh ["tp"(sizes = [5, 3, 0, 2])]>,
    #dist.extents<table [4, 4, 3, 0] over #line>,
    #dist.extents<batch>],
  // CHECK-SAME: test.groups = [#group, #dist.named_group<"0", 64>]
  test.groups = [#dist.groups<[[0, 2, 4, 6], [1, 3, 5, 7]]>, #dist.named_group<"0", 64>],
  // CHECK-SAME: test.symbols = [#dist.symbol<batch in [1, 64]>, #dist.symbol<seq in [2, ?]>]
  test.symbols = [#dist.symbol<batch in [1, 64]>, #dist.symbol<seq in [2, ?]>]
} {}

// Sizes are canonical: equal expressions are one attribute.
// CHECK-LABEL: module @sizes attributes
// CHECK-SAME: test.a = [#dist.size<128>, #dist.size<batch * seq>, #dist.size<batch * seq>]
// CHECK-SAME: test.b = [#dist.size<seq * 2 + 1>, #dist.size<seq * 2 + 1>]
// CHECK-SAME: test.c = [#dist.size<seq - 1>, #dist.size<(seq + 3) floordiv 4>,
// CHECK-SAME: #dist.size<(seq mod 8) * (batch ceildiv 2)>, #dist.size<seq - batch>]
module @sizes attributes {
  test.a = [#dist.size<64 * 2>, #dist.size<batch * seq>, #dist.size<seq * batch>],
  test.b = [#dist.size<seq + 1 + seq>, #dist.size<2 * seq + 1>],
  test.c = [#dist.size<seq - 1>, #dist.size<(seq + 3) floordiv 4>, #dist.size<(seq mod 8) * (batch ceildiv 2)>,
            #dist.size<seq - batch>]
} {}
