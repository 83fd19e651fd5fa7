// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shardc explain %s | FileCheck %s
// RUN: shardc explain %s --format json | FileCheck %s --check-prefix=JSON

// Of five rows of three floats, ranks 0 to 3 have rows 0 and 1, row 2, row 3 and row 4. Ranks 0 and 2 are to have rows 0 to 2, ranks 1 and 3
// the others. Rank 2 gets the most: three rows, 36 bytes. A person reads what is moved and who needs it, not how messages are cut.
// CHECK: 1 all_to_all dp,tp 36 B 36 B f32
// CHECK: parts of 'x' go to the ranks that need and lack them; the output 'y' reads what they make up
// CHECK-NOT: aten.
// CHECK: 1 collectives, 36 B sent per rank in one step

// JSON: "bytes_per_rank": 36,
// JSON: "why": "parts of 'x' go to the ranks that need and lack them; the output 'y' reads what they make up"

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#from = #dist.layout<#mesh, [S(0), S(0)]>
#to = #dist.layout<#mesh, [R, S(0)]>
module attributes {dist.mesh = #mesh} {
func.func @forward(%x: tensor<5x3xf32, #from> {dist.kind = "input", dist.name = "x"}) -> (tensor<5x3xf32, #to> {dist.name = "y"}) {
  %y = dist.redistribute %x by exchange : tensor<5x3xf32, #from> to tensor<5x3xf32, #to>
  return %y : tensor<5x3xf32, #to>
}
}
