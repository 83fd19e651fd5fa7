// RUN: shard-opt %s --dist-specialize --split-input-file --verify-diagnostics

// expected-error@+1 {{'builtin.module' op has no 'dist.mesh': which devices run the program is not known}}
module {
}

// -----

// Nothing says what a dynamic dim is; all such values are reported.
module attributes {dist.mesh = #dist.mesh<["tp" = 2]>} {
  // expected-error@+1 {{argument 0 still has a dynamic dim after specialisation, but the function has no symbols that could give its size}}
  func.func @f(%x: tensor<?xf32>) {
    // expected-error@+1 {{a result of 'aten.relu' still has a dynamic dim after specialisation}}
    %0 = aten.relu %x : (tensor<?xf32>) -> tensor<?xf32>
    return
  }
}

// -----

// What is wrong on some devices is reported for all of them, each with its devices: the extents are 2, 2, 2, 1.
#mesh = #dist.mesh<["tp" = 4]>
#S = #dist.layout<#mesh, [S(1)]>
module attributes {dist.mesh = #mesh} {
  func.func @f(%x: tensor<4x?xf32> {dist.layout = #S, dist.global_type = tensor<4x7xf32>}, %a: tensor<2x3xf32>, %b: tensor<1x3xf32>) {
    // expected-error@+2 {{contracted dims differ: 1 and 2}}
    // expected-note@+1 {{on device 3}}
    %y = aten.matmul %x, %a : (tensor<4x?xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    // expected-error@+2 {{contracted dims differ: 2 and 1}}
    // expected-note@+1 {{on devices 0, 1, 2}}
    %z = aten.matmul %x, %b : (tensor<4x?xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
    return
  }
}

// -----

// An error of each device alone is said once, and that of many classes does not take forever.
#mesh = #dist.mesh<["tp" = 64]>
#tp = #dist.axes<#mesh, ["tp"]>
module attributes {dist.mesh = #mesh} {
  func.func @f(%x: tensor<1x2xf32>) {
    %c0 = arith.constant 0 : index
    %i = dist.axis_index over #tp
    %n = arith.divui %i, %c0 : index
    // expected-error@+2 {{a result of 'aten.expand' still has a dynamic dim after specialisation}}
    // expected-note@+1 {{on devices 0, 1, 2, 3, 4, 5, 6, 7 and 24 more; not all devices were looked at}}
    %y = aten.expand %x [%n, 2] : (tensor<1x2xf32>) -> tensor<?x2xf32>
    return
  }
}

// -----

// The ranks of a named group are not known, and so not a rank's position in it.
module attributes {dist.mesh = #dist.mesh<["tp" = 2]>} {
  func.func @f(%x: tensor<3xf32>) {
    // expected-error@+1 {{a result of 'dist.reduce_scatter' still has a dynamic dim after specialisation}}
    %0 = dist.reduce_scatter sum over #dist.named_group<"0", 2> %x dim 0 : (tensor<3xf32>) -> tensor<?xf32>
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<["tp" = 2]>} {
  // expected-error@+1 {{is referred to by name: it cannot become several functions}}
  func.func @f() {
    return
  }
  func.func @g() {
    call @f() : () -> ()
    return
  }
}

// -----

// expected-error@+1 {{'dist.specializations' must be a dictionary, on a module with a 'dist.mesh', got 3}}
module attributes {dist.specializations = 3} {
}

// -----

// expected-error@+1 {{'dist.specializations': expected one position for each of 2 devices, got 1 for "f"}}
module attributes {dist.mesh = #dist.mesh<["tp" = 2]>, dist.specializations = {f = #dist.variants<[@f], [0]>}} {
}

// -----

// expected-error@+1 {{'dist.specializations': expected #dist.variants for "f", got 1}}
module attributes {dist.mesh = #dist.mesh<["tp" = 2]>, dist.specializations = {f = 1}} {
}

// -----

// expected-error@+1 {{a position runs variant 1, but there are 1}}
#v = #dist.variants<[@f], [0, 1]>
