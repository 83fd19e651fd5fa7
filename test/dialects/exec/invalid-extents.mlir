// RUN: shard-opt %s --split-input-file --verify-diagnostics

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf64>) {
  // expected-error@+1 {{tensor 0: has the element type 'f32', but its output is 'memref<4xf64>'}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf64>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xi1>, %o0: memref<4xi1>) {
  // expected-error@+1 {{tensor 0: has the element type 'i1', but its input is 'memref<4xi1>'}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xi1>) -> (%o0 : memref<4xi1>)
      {element_types = [i1], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4x1xf32>) {
  // expected-error@+1 {{tensor 0: has 1 full extents, but its output is 'memref<4x1xf32>'}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4x1xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4x4xf32, strided<[1, 4]>>, %o0: memref<4x4xf32>) {
  // expected-error@+1 {{tensor 0: its input is not dense: 'memref<4x4xf32, strided<[1, 4]>>'}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4x4xf32, strided<[1, 4]>>) -> (%o0 : memref<4x4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4, 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: has the negative extent -4}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: -4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: all_reduce has no gather dim, got 0}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<8xf32>) {
  // expected-error@+1 {{tensor 0: gather dim -1 is out of range for 'memref<4xf32>'}}
  exec.collective all_gather over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<8xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 8>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<8xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: scatter dim 1 is out of range for 'memref<8xf32>'}}
  exec.collective reduce_scatter sum over #tp (%i0 : memref<8xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: 1>, extents = [array<i64: 8>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}
