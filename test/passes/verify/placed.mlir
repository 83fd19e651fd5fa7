// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=placed

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>

func.func @row_parallel(%x: tensor<8x64xf32, #S1>, %w: tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #R> {
  %y = aten.linear %x, %w : (tensor<8x64xf32, #S1>, tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #P>
  %r = dist.redistribute %y : tensor<8x32xf32, #P> to tensor<8x32xf32, #R>
  return %r : tensor<8x32xf32, #R>
}

// -----
// Everything wrong is said at once; what is wrong alike, once.

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
#S1 = #dist.layout<#mesh, [S(1)]>
#P = #dist.layout<#mesh, [P(sum)]>
func.func @many(%x: tensor<8x64xf32, #S1>, %w: tensor<32x64xf32, #S1>, %p: tensor<8xf32, #P>) {
  // expected-error@+1 {{'aten.linear' axis "tp": result 0 is R, but must be P(sum): the axis shards what the op reduces over}}
  %y = aten.linear %x, %w : (tensor<8x64xf32, #S1>, tensor<32x64xf32, #S1>) -> tensor<8x32xf32, #R>
  // expected-error@+1 {{'aten.relu' axis "tp": operand 0 is P(sum), but the op is not linear in it: reduce it first}}
  %1 = aten.relu %p : (tensor<8xf32, #P>) -> tensor<8xf32, #P>
  // expected-note@+1 {{also here}}
  %2 = aten.relu %1 : (tensor<8xf32, #P>) -> tensor<8xf32, #P>
  // expected-note@+1 {{also here}}
  %3 = aten.relu %2 : (tensor<8xf32, #P>) -> tensor<8xf32, #P>
  return
}

// -----

// expected-error@+1 {{a tensor without a layout}}
func.func @no_layout(%x: tensor<8xf32>) {
  return
}

// -----

// expected-error@+1 {{a tensor without a layout}}
func.func private @declared(tensor<8xf32>)

// -----

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
func.func @other_ops(%x: tensor<8xf32, #R>) {
  // expected-error@+1 {{'tensor.cast' is no op of the stage "placed"}}
  %0 = tensor.cast %x : tensor<8xf32, #R> to tensor<?xf32, #R>
  // expected-error@+1 {{'dist.axis_index' is no op of the stage "placed"}}
  %1 = dist.axis_index over #dist.axes<#mesh, ["tp"]>
  return
}

// -----

#mesh = #dist.mesh<["tp" = 4]>
#line = #dist.mesh<["pp" = 4]>
func.func @meshes(%x: tensor<8xf32, #dist.layout<#mesh, [R]>>, %y: tensor<8xf32, #dist.layout<#line, [R]>>) {
  // expected-error@+1 {{'aten.add' operand 1 is on mesh ["pp" = 4], but operand 0 on ["tp" = 4]}}
  %0 = aten.add %x, %y : (tensor<8xf32, #dist.layout<#mesh, [R]>>, tensor<8xf32, #dist.layout<#line, [R]>>) -> tensor<8xf32, #dist.layout<#mesh, [R]>>
  return
}

// -----
// The next run starts from what this one wrote.

#mesh = #dist.mesh<["tp" = 2]>
#R = #dist.layout<#mesh, [R]>
#S0 = #dist.layout<#mesh, [S(0)]>
// expected-error@+1 {{result 1 is the new value of argument 0, 'r', but has the type tensor<4xf32, #dist.layout<#dist.mesh<["tp" = 2]>, [S(0)]>>, not tensor<4xf32, #dist.layout<#dist.mesh<["tp" = 2]>, [R]>>}}
func.func @state(%r: tensor<4xf32, #R> {dist.kind = "buffer", dist.name = ["r", "tied"]}, %x: tensor<4xf32, #S0> {dist.kind = "input", dist.name = "r"})
    -> (tensor<4xf32, #S0> {dist.name = "y"}, tensor<4xf32, #S0> {dist.kind = "buffer_mutation", dist.name = "tied"}) {
  return %x, %x : tensor<4xf32, #S0>, tensor<4xf32, #S0>
}

// -----
// A query head is (key head, position in its group). One rank has all positions of each group, the other none: keys are whole.

#mesh = #dist.mesh<["tp" = 2]>
#Q = #dist.layout<#mesh, [S(1, blocks = 3, sizes = [2, 0])]>
#R = #dist.layout<#mesh, [R]>
func.func @one_rank_has_all_queries(%q: tensor<2x6x5x4xf32, #Q>, %k: tensor<2x3x5x4xf32, #R>, %v: tensor<2x3x5x4xf32, #R>) -> tensor<2x6x5x4xf32, #Q> {
  %y = aten.scaled_dot_product_attention %q, %k, %v {enable_gqa} : (tensor<2x6x5x4xf32, #Q>, tensor<2x3x5x4xf32, #R>, tensor<2x3x5x4xf32, #R>) -> tensor<2x6x5x4xf32, #Q>
  return %y : tensor<2x6x5x4xf32, #Q>
}
