// RUN: shard-opt %s --split-input-file --verify-diagnostics
//
// Collectives whose lists of tensors, element types, dims and extents do not fit.

#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>) {
  // expected-error@+1 {{has 0 outputs for 1 inputs}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> ()
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{has 2 element types for 1 inputs}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32, f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{has 0 gather dims for 1 inputs}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{has 2 scatter dims for 1 inputs}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1, -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{has 2 lists of extents for 1 inputs}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>, array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{has 2 lists of gather extents for 1 inputs}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>, array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xf32>, %o0: memref<4xf32>) {
  // expected-error@+1 {{has 2 lists of scatter extents for 1 inputs}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xf32>) -> (%o0 : memref<4xf32>)
      {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>, array<i64>], pairs = array<i64>}
  return
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

func.func @f(%i0: memref<4xcomplex<f32>>, %o0: memref<4xcomplex<f32>>) {
  // expected-error@+1 {{tensor 0: has the element type 'complex<f32>', which the runtime does not have}}
  exec.collective all_reduce sum over #tp (%i0 : memref<4xcomplex<f32>>) -> (%o0 : memref<4xcomplex<f32>>)
      {element_types = [complex<f32>], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
       gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
  return
}
