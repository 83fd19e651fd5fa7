// RUN: shard-opt %s --split-input-file --verify-diagnostics
//
// All-to-alls whose lists of extents do not fit their tensors or their group.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: gathers and scatters dim 0, so it needs the extents of both or of neither}}
  exec.collective all_to_all over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 4>],
       gather_extents = [array<i64: 2, 2>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<5xf32>, %o0: memref<5xf32>) {
  // expected-error@+1 {{tensor 0: without extents, a dim that is both gathered and scattered must be a multiple of the group's size 2, got 5}}
  exec.collective all_to_all over #tp (%i0 : memref<5xf32>) -> (%o0 : memref<5xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 5>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: scatter extents sum to 5, more than 4}}
  exec.collective all_to_all over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 4>],
       gather_extents = [array<i64: 2, 2>], scatter_extents = [array<i64: 2, 3>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<5xf32>) {
  // expected-error@+1 {{tensor 0: dim 0 of its output is 5, but the full extent is 4}}
  exec.collective all_to_all over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<5xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 4>],
       gather_extents = [array<i64: 2, 2>], scatter_extents = [array<i64: 2, 2>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<6xf32>) {
  // expected-error@+1 {{tensor 0: dim 0 of its output is 6, but the full extent is 4}}
  exec.collective all_to_all over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<6xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<3xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: dim 0 of its input is 3, but the full extent is 4}}
  exec.collective all_to_all over #tp (%i0 : memref<3xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 4>],
       gather_extents = [array<i64: 2, 2>], scatter_extents = [array<i64: 1, 2>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: has the negative extent -2}}
  exec.collective all_to_all over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: 0>, extents = [array<i64: 4>],
       gather_extents = [array<i64: -2, 6>], scatter_extents = [array<i64: 2, 2>], pairs = array<i64>}
  return
}
