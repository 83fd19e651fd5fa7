// RUN: shard-opt %s --exec-verify-sequence --split-input-file --verify-diagnostics
// RUN: shard-opt %s --exec-verify-sequence --split-input-file --verify-diagnostics --pass-statistics -o /dev/null 2>&1 | FileCheck %s
// CHECK: exec-verify-sequence
// CHECK: 7 collectives-compared

// Extents may differ.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>}} {
  func.func @f0(%x: memref<4xf32> {exec.argument = #exec.argument<input>}, %y: memref<7xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
    exec.collective all_gather over #tp (%x : memref<4xf32>) -> (%y : memref<7xf32>)
        {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 7>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @f1(%x: memref<3xf32> {exec.argument = #exec.argument<input>}, %y: memref<7xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry} {
    exec.collective all_gather over #tp (%x : memref<3xf32>) -> (%y : memref<7xf32>)
        {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 7>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1, @f2, @f3, @f4, @f5, @f6, @f7], [0, 1]>}} {
  func.func @f0(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    exec.collective all_reduce sum over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @f1(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    // expected-error@+1 {{'f0' and 'f1', which are one function on different ranks, do not agree about collective 0: the reductions differ}}
    exec.collective all_reduce max over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  // expected-error@+1 {{'f0' and 'f2', which are one function on different ranks, have 1 and 0 collectives}}
  func.func @f2(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    return
  }
  func.func @f3(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    // expected-error@+1 {{'f0' and 'f3', which are one function on different ranks, do not agree about collective 0: it is started on one and runs to its end on the other}}
    %t = exec.start all_reduce sum over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    exec.wait %t
    return
  }
  func.func @f4(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    // expected-error@+1 {{do not agree about collective 0: the kinds differ}}
    exec.collective broadcast over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @f5(%x: memref<4xi32>, %y: memref<4xi32>) attributes {exec.entry} {
    // expected-error@+1 {{do not agree about collective 0: the element types or the numbers of tensors differ}}
    exec.collective all_reduce sum over #tp (%x : memref<4xi32>) -> (%y : memref<4xi32>)
        {element_types = [i32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @f6(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    // expected-error@+1 {{do not agree about collective 0: the groups differ}}
    exec.collective all_reduce sum over #dist.groups<[[0], [1]]> (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @f7(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    exec.collective all_reduce sum over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
}

// -----
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>
module attributes {dist.mesh = #mesh, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 1]>,
                                                               g = #dist.variants<[@g0, @g1], [0, 1]>}} {
  func.func @f0(%x: memref<4x2xf32>, %y: memref<8x2xf32>) attributes {exec.entry} {
    exec.collective all_gather over #tp (%x : memref<4x2xf32>) -> (%y : memref<8x2xf32>)
        {element_types = [f32], gather_dims = array<i64: 0>, scatter_dims = array<i64: -1>, extents = [array<i64: 8, 2>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @f1(%x: memref<8x1xf32>, %y: memref<8x2xf32>) attributes {exec.entry} {
    // expected-error@+1 {{do not agree about collective 0: the dims differ}}
    exec.collective all_gather over #tp (%x : memref<8x1xf32>) -> (%y : memref<8x2xf32>)
        {element_types = [f32], gather_dims = array<i64: 1>, scatter_dims = array<i64: -1>, extents = [array<i64: 8, 2>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @g0(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    exec.collective broadcast over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>}
    return
  }
  func.func @g1(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    // expected-error@+1 {{do not agree about collective 0: the sources differ}}
    exec.collective broadcast over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], root = 1 : i64, pairs = array<i64>}
    return
  }
}

// -----

// Ranks that run a part of the sequence are compared by its numbers.
#mesh = #dist.mesh<["tp" = 2]>
#io = #dist.mesh<["io" = 1], devices = [2]>
#tp = #dist.axes<#mesh, ["tp"]>
#all = #dist.axes<#dist.mesh<["ranks" = 3]>, ["ranks"]>
module attributes {dist.mesh = #mesh, dist.meshes = {io = #io}, dist.specializations = {f = #dist.variants<[@f0, @f1], [0, 0, 1]>}} {
  func.func @f0(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    exec.collective all_reduce sum over #tp (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, dist.ordinal = 0 : i64}
    exec.collective all_reduce max over #all (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, dist.ordinal = 1 : i64}
    exec.collective all_reduce max over #all (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, dist.ordinal = 2 : i64}
    return
  }
  func.func @f1(%x: memref<4xf32>, %y: memref<4xf32>) attributes {exec.entry} {
    exec.collective all_reduce max over #all (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, dist.ordinal = 1 : i64}
    // expected-error@+1 {{do not agree about collective 2: the reductions differ}}
    exec.collective all_reduce sum over #all (%x : memref<4xf32>) -> (%y : memref<4xf32>)
        {element_types = [f32], gather_dims = array<i64: -1>, scatter_dims = array<i64: -1>, extents = [array<i64: 4>],
         gather_extents = [array<i64>], scatter_extents = [array<i64>], pairs = array<i64>, dist.ordinal = 2 : i64}
    return
  }
}
