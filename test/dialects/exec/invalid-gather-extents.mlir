// RUN: shard-opt %s --split-input-file --verify-diagnostics
//
// Extents of gather and scatter dims, sizes and tokens that do not fit.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: has gather extents without a gather dim}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64: 2, 2>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<8xf32>) {
  // expected-error@+1 {{tensor 0: expected one gather extent for each of 2 positions of the group, got 3}}
  exec.collective all_gather over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<8xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 8>],
       gather_extents = [array<i64: 4, 2, 2>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<8xf32>) {
  // expected-error@+1 {{tensor 0: has the negative extent -4}}
  exec.collective all_gather over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<8xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 8>],
       gather_extents = [array<i64: 12, -4>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<8xf32>) {
  // expected-error@+1 {{tensor 0: gather extents sum to 7, expected 8}}
  exec.collective all_gather over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<8xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 8>],
       gather_extents = [array<i64: 4, 3>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<3xf32>, %o0: memref<8xf32>) {
  // expected-error@+1 {{tensor 0: no position has extent 3 along dim 0 of its input}}
  exec.collective all_gather over #tp (%i0 : memref<3xf32>) -> (%o0 : memref<8xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 8>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<8xf32>) {
  // expected-error@+1 {{tensor 0: no position has extent 4 along dim 0 of its input}}
  exec.collective all_gather over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<8xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 8>],
       gather_extents = [array<i64: 5, 3>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<8xf32>, %o0: memref<3xf32>) {
  // expected-error@+1 {{tensor 0: no position has extent 3 along dim 0 of its output}}
  exec.collective reduce_scatter sum over #tp (%i0 : memref<8xf32>) -> (%o0 : memref<3xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: 0>, extents = [array<i64: 8>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<3xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{tensor 0: no position has extent 3 along dim 0 of its input}}
  exec.collective permute over #tp (%i0 : memref<3xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<9xf32>) {
  // expected-error@+1 {{tensor 0: dim 0 of its output is 9, but the full extent is 8}}
  exec.collective all_gather over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<9xf32>)
      {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 8>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<5xf32>, %i1: memref<4xf32>, %o0: memref<5xf32>, %o1: memref<5xf32>) {
  // expected-error@+1 {{tensor 1: dim 0 of its input is 4, but the full extent is 5}}
  exec.collective all_reduce sum over #tp (%i0, %i1 : memref<5xf32>, memref<4xf32>) -> (%o0, %o1 : memref<5xf32>, memref<5xf32>)
      {element_types = [f32, f32], gather_dims = array<i64: -1, -1>, scatter_dims = array<i64: -1, -1>, extents = [array<i64: 5>, array<i64: 5>],
       gather_extents = [array<i64>, array<i64>], scatter_extents = [array<i64>, array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<?xf32>, %o0: memref<?xf32>, %n: index) {
  // expected-error@+1 {{needs 1 sizes for its extents, got 2}}
  exec.collective all_reduce sum over #tp (%i0 : memref<?xf32>) -> (%o0 : memref<?xf32>) sizes (%n, %n)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: -9223372036854775808>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
// expected-note@+1 {{prior use here}}
func.func @f(%t: i64) {
  // expected-error@+1 {{expects different type than prior uses: '!exec.token' vs 'i64'}}
  exec.wait %t
  return
}

// -----
func.func @f(%t: !exec.token) {
  // expected-error@+1 {{waits for a token that no exec.start makes}}
  exec.wait %t
  return
}
