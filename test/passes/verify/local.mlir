// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=local

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
#S = #dist.layout<#mesh, [S(0), S(0)]>

// Five over 2x2: 2, 1 | 1, 1.
func.func @forward(%x: tensor<?x4xf32> {dist.layout = #S, dist.global_type = tensor<5x4xf32>},
                   %y: tensor<2x4xf32> {dist.layout = #S, dist.global_type = tensor<5x4xf32>})
    -> tensor<?x4xf32> {
  %n = dist.extent #dist.extents<5 over #mesh ["dp"]>
  %0 = aten.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = dist.all_gather over #tp %0 dim 0 full %n : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#S = #dist.layout<#mesh, [S(0), S(0)]>
// expected-error@+2 {{argument 0: no rank has extent 3 along dim 0 in its 'dist.layout'}}
// expected-error@+1 {{argument 1 has a dynamic dim, but no 'dist.layout' or 'dist.sizes' that gives its size}}
func.func @f(%x: tensor<3x4xf32> {dist.layout = #S, dist.global_type = tensor<5x4xf32>}, %y: tensor<?xf32>) {
  return
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
// expected-error@+1 {{a tensor with a layout (or another encoding)}}
func.func @f(%x: tensor<4xf32>, %l: tensor<4xf32, #dist.layout<#mesh, [R]>>) {
  // expected-error@+2 {{'dist.all_reduce' is asynchronous: futures come with the stage "scheduled"}}
  // expected-error@+1 {{a future in the stage "local"}}
  %0 = dist.all_reduce sum over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  // expected-error@+1 {{'dist.wait' is no op of the stage "local"}}
  %1 = dist.wait %0 : !dist.future<tensor<4xf32>>
  // expected-error@+1 {{'dist.constrain' is no op of the stage "local"}}
  %2 = dist.constrain %x : tensor<4xf32> to #dist.layout<#mesh, [R]>
  return
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{'scf.execute_region' is no op of the stage "local"}}
  scf.execute_region {
    // expected-error@+1 {{'dist.all_reduce' stands in a region of 'scf.execute_region': every rank must run every collective, in one order}}
    %0 = dist.all_reduce sum over #tp %x : tensor<4xf32>
    // expected-error@+1 {{'scf.yield' is no op of the stage "local"}}
    scf.yield
  }
  return
}

// -----

#mesh = #dist.mesh<["tp" = 2]>
#S0 = #dist.layout<#mesh, [S(0)]>
#S1 = #dist.layout<#mesh, [S(0, sizes = [2, 2])]>
// expected-error@+1 {{result 0 is the new value of argument 0, 'r', but has another 'dist.layout'}}
func.func @state(%r: tensor<2xf32> {dist.kind = "buffer", dist.name = "r", dist.global_type = tensor<4xf32>, dist.layout = #S0})
    -> (tensor<2xf32> {dist.kind = "buffer_mutation", dist.name = "r", dist.global_type = tensor<4xf32>, dist.layout = #S1}) {
  return %r : tensor<2xf32>
}

// -----
// What propagation leaves is for placement, which removes it.

#mesh = #dist.mesh<["tp" = 2]>
// expected-error@+1 {{an argument or result with a 'dist.sharding' in the stage "local": dist-place removes it}}
func.func @left(%x: tensor<4xf32> {dist.sharding = #dist.sharding<#mesh, [?]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'aten.neg' has a 'dist.sharding' in the stage "local": dist-place removes it}}
  %0 = aten.neg %x {dist.sharding = [#dist.sharding<#mesh, [?]>]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
