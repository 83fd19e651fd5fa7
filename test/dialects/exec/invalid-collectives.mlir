// RUN: shard-opt %s --split-input-file --verify-diagnostics

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{'all_gahter' is no kind of collective: expected one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, permute}}
  exec.collective all_gahter over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{expected kind of collective: one of all_reduce}}
  exec.collective "all_gather" over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{'summ' is no reduction: expected one of sum, avg, min, max, prod}}
  exec.collective all_reduce summ over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{'over' is no reduction: expected one of sum, avg, min, max, prod}}
  %t = exec.start all_reduce over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%x: memref<4xf32>) {
  // expected-error@+1 {{all_reduce needs a reduction}}
  "exec.collective"(%x, %x) <{kind = #exec.collective<all_reduce>, group = #tp, operandSegmentSizes = array<i32: 1, 1, 0>,
      element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
      gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}> : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%x: memref<4xf32>) {
  // expected-error@+1 {{broadcast combines nothing, but has a reduction}}
  "exec.collective"(%x, %x) <{kind = #exec.collective<broadcast>, reduction = #dist.reduction<sum>, group = #tp,
      operandSegmentSizes = array<i32: 1, 1, 0>, element_types = [f32], gather_dims = array<i64: -1>,
      scatter_dims = array<i64: -1>, extents = [array<i64: 4>], gather_extents = [array<i64>],
      scatter_extents = [array<i64>], pairs = array<i64>}> : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{all_reduce has no root, but 'root' is 1}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, root = 1 : i64}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{root 2 is not a position in a group of 2}}
  exec.collective broadcast over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, root = 2 : i64}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{root -1 is not a position in a group of 2}}
  exec.collective broadcast over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, root = -1 : i64}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{broadcast has no pairs, but 'pairs' has 2 entries}}
  exec.collective broadcast over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64: 0, 1>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{pairs must be source and target positions, got an odd number of entries}}
  exec.collective permute over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64: 0>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{position 2 is not in a group of 2}}
  exec.collective permute over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64: 0, 2>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{position 1 is the target of two pairs}}
  exec.collective permute over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64: 0, 1, 1, 1>}
  return
}
