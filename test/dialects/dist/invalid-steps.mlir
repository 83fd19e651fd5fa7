// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --split-input-file --verify-diagnostics

// Steps that do not lead from the one layout to the other.

func.func @unknown(%x: tensor<8x4xf32, #dist.layout<#dist.mesh<["dp" = 2]>, [S(0)]>>) {
  // expected-error @+1 {{'teleport' is no step of a redistribution}}
  %0 = dist.redistribute %x by teleport : tensor<8x4xf32> to tensor<8x4xf32>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [P(sum), R]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [R, R]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{all_gather does not lead from P(sum) to R on axis "dp"}}
  %0 = dist.redistribute %x by all_gather : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [P(sum), R]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [R, R]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{exchange leaves partial axes as they are}}
  %0 = dist.redistribute %x by exchange : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), S(0)]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), S(0)], order = ["tp", "dp"]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{slice does not change the order of axes}}
  %0 = dist.redistribute %x by slice : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), R]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0, blocks = 3), R]>
func.func @refused(%x: tensor<?x4xf32, #from>) {
  // expected-error @+1 {{exchange takes blocks only where sizes are known: it needs the size of dim 0}}
  %0 = dist.redistribute %x by exchange : tensor<?x4xf32, #from> to tensor<?x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), S(0)]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), S(0)]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{slice changes nothing here}}
  %0 = dist.redistribute %x by slice : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), S(0)]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [R, R]>
func.func @refused(%x: tensor<?x4xf32, #from>) {
  // expected-error @+1 {{all_gather takes several axes only where the size is known and there are no blocks}}
  %0 = dist.redistribute %x by all_gather : tensor<?x4xf32, #from> to tensor<?x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), S(0)]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [R, S(0)]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{has no step all_gather from [S(0), S(0)] to [R, S(0)]: all_gather changes only the innermost axes of a dim, and nothing else}}
  %0 = dist.redistribute %x by all_gather : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [R, R]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), S(0)]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{slice changes one axis at a time}}
  %0 = dist.redistribute %x by slice : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), R]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [P(max), R]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{zero_fill leads to P(sum) only}}
  %0 = dist.redistribute %x by zero_fill : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), R]>
#to = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0, blocks = 2), R]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{all_to_all leads from one dim to another}}
  %0 = dist.redistribute %x by all_to_all : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), R]>
#to = #dist.layout<#dist.mesh<["x" = 3]>, [R]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{all_gather stays on one mesh}}
  %0 = dist.redistribute %x by all_gather : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [P(sum), R]>
#to = #dist.layout<#dist.mesh<["x" = 3]>, [R]>
func.func @refused(%x: tensor<8x4xf32, #from>) {
  // expected-error @+1 {{exchange takes no partial values to another mesh}}
  %0 = dist.redistribute %x by exchange : tensor<8x4xf32, #from> to tensor<8x4xf32, #to>
  return
}

// -----

#from = #dist.layout<#dist.mesh<["dp" = 2, "tp" = 2]>, [S(0), R]>
#to = #dist.layout<#dist.mesh<["x" = 3]>, [R]>
func.func @refused(%x: tensor<?x4xf32, #from>) {
  // expected-error @+1 {{exchange needs the size of dim 0}}
  %0 = dist.redistribute %x by exchange : tensor<?x4xf32, #from> to tensor<?x4xf32, #to>
  return
}
