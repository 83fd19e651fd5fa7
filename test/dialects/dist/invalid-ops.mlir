// RUN: shard-opt %s --split-input-file --verify-diagnostics

#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
func.func @f(%x: tensor<8xf32, #R>) {
  // expected-error@+1 {{is for tensors without a layout, got 'tensor<8xf32, #dist.layout<#dist.mesh<["tp" = 4]>, [R]>>'}}
  %0 = dist.constrain %x : tensor<8xf32, #R> to #R
  return
}

// -----
#mesh = #dist.mesh<["tp" = 4]>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{axis "tp": S(1): dim 1 is out of range for a tensor of rank 1}}
  %0 = dist.constrain %x : tensor<8xf32> to #dist.layout<#mesh, [S(1)]>
  return
}

// -----
#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
func.func @f(%x: tensor<8xf32, "other">) {
  // expected-error@+1 {{is for layouts, not for other encodings, got 'tensor<8xf32, "other">' and}}
  %0 = dist.redistribute %x : tensor<8xf32, "other"> to tensor<8xf32, #R>
  return
}

// -----
#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
func.func @f(%x: tensor<8xf32, #R>) {
  // expected-error@+1 {{changes only the layout, but shape or element type differ}}
  %0 = dist.redistribute %x : tensor<8xf32, #R> to tensor<8xf64, #R>
  return
}

// -----
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{custom op 'dist.all_reduce' expected a group: #dist.axes, #dist.groups or #dist.named_group}}
  %0 = dist.all_reduce sum over 3 %x : tensor<8xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected one operand type and one result type for each of 1 tensors, got 1 and 2}}
  %0:2 = dist.all_reduce sum over #g %x : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{the full extent of dim 0 is not known from 'tensor<?xf32>': give it by 'full'}}
  %0 = dist.all_gather over #g %x dim 0 : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{the full extent of dim 0 is known, so 'full' must not be given}}
  %0 = dist.all_gather over #g %x dim 0 full %n : (tensor<?xf32>) -> tensor<10xf32>
  return
}

// -----
#g = #dist.named_group<"0", 4>
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{needs 1 index operands for its extents, got 2}}
  %0 = "dist.all_gather"(%x, %n, %n) <{dims = array<i64: 0>, group = #g, operandSegmentSizes = array<i32: 1, 2>}>
      : (tensor<?xf32>, index, index) -> tensor<?xf32>
  return
}

// -----
#mesh = #dist.mesh<["tp" = 4]>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{changes no data, but element types differ: 'tensor<8xf32>' and 'tensor<?xf64>'}}
  %0 = dist.leave_mesh on #mesh %x : tensor<8xf32> to tensor<?xf64>
  return
}

// -----
#mesh = #dist.mesh<["tp" = 4]>
func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{changes no data, but extents differ: 'tensor<8xf32>' and 'tensor<4xf32>'}}
  %0 = dist.enter_mesh on #mesh %x : tensor<8xf32> to tensor<4xf32>
  return
}

// -----
#mesh = #dist.mesh<["tp" = 4]>
#R = #dist.layout<#mesh, [R]>
func.func @f(%x: tensor<8xf32, #R>) {
  // expected-error@+1 {{is for local tensors, but a type has a layout: }}
  %0 = dist.enter_mesh on #mesh %x : tensor<8xf32, #R> to tensor<8xf32>
  return
}

// -----
func.func @f(%x: tensor<?xi64>) {
  // expected-error@+1 {{reads a list of known length, not 'tensor<?xi64>'}}
  %0 = dist.read_sizes %x at_most 8 : tensor<?xi64>
  return
}

// -----
func.func @f(%x: tensor<2xi64>) {
  // expected-error@+1 {{reads 1 numbers of 'tensor<2xi64>'}}
  %0 = "dist.read_sizes"(%x) <{at_most = 8 : i64}> : (tensor<2xi64>) -> index
  return
}

// -----
func.func @f(%x: tensor<2xi64>) {
  // expected-error@+1 {{whose value is non-negative}}
  %0:2 = dist.read_sizes %x at_most -1 : tensor<2xi64>
  return
}

// -----
func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{must be 1D tensor of 64-bit signless integer values, but got 'tensor<2xi32>'}}
  %0:2 = dist.read_sizes %x at_most 8 : tensor<2xi32>
  return
}
