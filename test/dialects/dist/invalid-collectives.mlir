// RUN: shard-opt %s --split-input-file --verify-diagnostics

#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{has tensors and futures among its results}}
  %0:2 = dist.all_reduce sum over #g %x, %x : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, !dist.future<tensor<8xf32>>)
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: element type changes from 'f32' to 'f64'}}
  %0 = dist.all_reduce sum over #g %x : (tensor<8xf32>) -> tensor<8xf64>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 1: rank changes from 1 to 2}}
  %0:2 = dist.all_reduce sum over #g %x, %x : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8x1xf32>)
  return
}

// -----
#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
func.func @f(%x: tensor<8xf32, #R>) {
  // expected-error@+1 {{tensor 0: a collective works on local tensors, which have no layout}}
  %0 = dist.all_reduce sum over #dist.axes<#mesh, ["tp"]> %x : tensor<8xf32, #R>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: dim 0 changes from 8 to 4}}
  %0 = dist.all_reduce sum over #g %x : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xi1>) {
  // expected-error@+1 {{tensor 0: avg of booleans is not defined}}
  %0 = dist.all_reduce avg over #g %x : tensor<8xi1>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xcomplex<f32>>) {
  // expected-error@+1 {{tensor 0: max needs an ordered element type, got 'complex<f32>'}}
  %0 = dist.all_reduce max over #g %x : tensor<8xcomplex<f32>>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: dim 1 is out of range for 'tensor<8xf32>'}}
  %0 = dist.all_gather over #g %x dim 1 : (tensor<8xf32>) -> tensor<32xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: expected one extent for each of 4 positions of the group, got 2}}
  %0 = dist.all_gather over #g %x dim 0 extents [8, 8] : (tensor<8xf32>) -> tensor<16xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: extents of dim 0 sum to 14, expected 16}}
  %0 = dist.all_gather over #g %x dim 0 extents [8, 4, 2, 0] : (tensor<8xf32>) -> tensor<16xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: no position has extent 8 along dim 0}}
  %0 = dist.all_gather over #g %x dim 0 extents [7, 4, 2, 1] : (tensor<8xf32>) -> tensor<14xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{tensor 0: extent -1 is negative}}
  %0 = dist.all_gather over #g %x dim 0 extents [8, -1, 2, 1] : (tensor<8xf32>) -> tensor<10xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<3xf32>) {
  // Five over four is 2, 2, 1, 0.
  %0 = dist.reduce_scatter sum over #g %x dim 0 : (tensor<3xf32>) -> tensor<0xf32>
  // expected-error@+1 {{tensor 0: no position has extent 2 along dim 0 when 3 is chunked over 4}}
  %1 = dist.reduce_scatter sum over #g %x dim 0 : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{no position has extent 0 along dim 0 when 8 is chunked over 4}}
  %1 = dist.reduce_scatter sum over #g %x dim 0 : (tensor<8xf32>) -> tensor<0xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{must be a multiple of the group's size 4, got 6}}
  %1 = dist.all_to_all over #g %x split 0 concat 0 : tensor<6xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{cuts and concatenates one dim, so it needs the extents of both or of neither}}
  %1 = dist.all_to_all over #g %x split 0 extents [2, 4] concat 0 : tensor<6xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6x4xf32>) {
  // expected-error@+1 {{no position has extent 2 along dim 0 when 6 is chunked over 2}}
  %1 = dist.all_to_all over #g %x split 0 concat 1 : (tensor<6x4xf32>) -> tensor<2x8xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{root 2 is not a position in a group of 2}}
  %1 = dist.broadcast over #g from 2 %x : tensor<6xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{position 2 is not in a group of 2}}
  %1 = dist.permute over #g pairs [[0, 2]] %x : tensor<6xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{position 1 is the target of two pairs}}
  %1 = dist.permute over #g pairs [[0, 1], [1, 1]] %x : tensor<6xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{tensor 0: dim 0 changes from 6 to 5}}
  %1 = dist.permute over #g pairs [[0, 1]] %x : (tensor<6xf32>) -> tensor<5xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{tensor 0: no position has extent 4 along dim 0}}
  %1 = dist.permute over #g pairs [[0, 1]] %x dim 0 extents [5, 6] : (tensor<6xf32>) -> tensor<4xf32>
  return
}

// -----
#g = #dist.named_group<"0", 2>
func.func @f(%x: tensor<6xf32>) {
  // expected-error@+1 {{tensor 0: a dim and its extents go together}}
  %1 = dist.permute over #g pairs [[0, 1]] %x dim 0 : tensor<6xf32>
  return
}

// -----
#g = #dist.groups<[[0, 1]]>
func.func @f(%x: tensor<6xf32>) {
  // Less may be sent than there is, not more.
  %0 = dist.all_to_all over #g %x split 0 extents [2, 3] concat 0 extents [1, 1] : (tensor<6xf32>) -> tensor<2xf32>
  // expected-error@+1 {{tensor 0: extents of dim 0 sum to 7, more than 6}}
  %1 = dist.all_to_all over #g %x split 0 extents [2, 5] concat 0 extents [1, 1] : (tensor<6xf32>) -> tensor<2xf32>
  return
}
