// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt %s --aten-differentiate="function=to_replicated into=to_replicated cotangents=0 wrt=* outputs=false" --aten-differentiate="function=to_sharded into=to_sharded cotangents=0 wrt=* outputs=false" --aten-differentiate="function=to_partial into=to_partial cotangents=0 wrt=* outputs=false" --aten-differentiate="function=partial_cotangent into=partial_cotangent cotangents=0 wrt=* outputs=false" --aten-differentiate="function=partial_input into=partial_input cotangents=0 wrt=* outputs=false" --aten-differentiate="function=factors into=factors cotangents=0 wrt=* outputs=false" --aten-differentiate="function=mean into=mean cotangents=0 wrt=* outputs=false" --aten-differentiate="function=largest into=largest cotangents=0 wrt=* outputs=false" -o %t
// RUN: shard-opt %t --dist-propagate --dist-place --dist-rewrite-partial-gradients --dist-verify-stage=placed | FileCheck %s
// RUN: shard-opt %t --dist-propagate --dist-place --dist-rewrite-partial-gradients=gradients=off --dist-verify-stage=placed | FileCheck %s --check-prefix=OFF

// The gradients of each case, whatever becomes of partial ones: what the ranks hold is what one device computes.
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %t -- --dist-propagate --dist-place --dist-rewrite-partial-gradients=gradients=off | FileCheck %s --check-prefix=RAN %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %t -- --dist-propagate --dist-place --dist-rewrite-partial-gradients | FileCheck %s --check-prefixes=RAN,REPLICATED %}
// RUN: %if torch %{ %python -W ignore %root/test/reference/compare_placed.py %build/bin/shard-opt %t -- --dist-propagate --dist-place --dist-rewrite-partial-gradients=gradients=cheapest | FileCheck %s --check-prefix=RAN %}

#mesh = #dist.mesh<["dp" = 2, "tp" = 2]>
#RR = #dist.layout<#mesh, [R, R]>
#SR = #dist.layout<#mesh, [S(0), R]>
#SS = #dist.layout<#mesh, [S(0), S(1)]>
#RS0 = #dist.layout<#mesh, [R, S(0)]>
#RS1 = #dist.layout<#mesh, [R, S(1)]>
#SP = #dist.layout<#mesh, [S(0), P(sum)]>
#RP = #dist.layout<#mesh, [R, P(sum)]>
#PP = #dist.layout<#mesh, [P(sum), P(sum)]>
#nested = #dist.layout<#mesh, [S(0), S(0)]>
#prod = #dist.layout<#mesh, [R, P(prod)]>
#max = #dist.layout<#mesh, [P(max), P(max)]>

module attributes {dist.mesh = #mesh} {
  // P -> R behind a row-parallel product over the sub-group tp, with rows over dp: the gradient passes through.
  // CHECK-LABEL: func.func @to_replicated(
  // CHECK-NOT: backward {{.*}} to tensor<5x6xf32, #S0dp_Ptp>
  // CHECK: return
  // OFF-LABEL: func.func @to_replicated(
  // OFF: dist.redistribute backward %{{.*}} to tensor<5x6xf32, #S0dp_Ptp>
  func.func @to_replicated(%x: tensor<5x7xf32, #SS> {dist.kind = "input", dist.name = "x"}, %w: tensor<7x6xf32, #RS0> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<5x6xf32, #SR> {dist.kind = "output", dist.name = "y"}) {
    %p = aten.mm %x, %w : (tensor<5x7xf32, #SS>, tensor<7x6xf32, #RS0>) -> tensor<5x6xf32, #SP>
    %r = dist.redistribute %p : tensor<5x6xf32, #SP> to tensor<5x6xf32, #SR>
    %y = aten.tanh %r : (tensor<5x6xf32, #SR>) -> tensor<5x6xf32, #SR>
    return %y : tensor<5x6xf32, #SR>
  }

  // P -> S(0): a reduce-scatter of rows that are over dp already, 5 as 2, 1 | 1, 1; the gradient is gathered over tp, undivided.
  // CHECK-LABEL: func.func @to_sharded(
  // CHECK: dist.redistribute backward %{{.*}} : tensor<5x6xf32, #S0dp_S0tp> to tensor<5x6xf32, #S0dp>
  func.func @to_sharded(%x: tensor<5x7xf32, #SS> {dist.kind = "input", dist.name = "x"}, %w: tensor<7x6xf32, #RS0> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<5x6xf32, #nested> {dist.kind = "output", dist.name = "y"}) {
    %p = aten.mm %x, %w : (tensor<5x7xf32, #SS>, tensor<7x6xf32, #RS0>) -> tensor<5x6xf32, #SP>
    %s = dist.redistribute %p : tensor<5x6xf32, #SP> to tensor<5x6xf32, #nested>
    %y = aten.tanh %s : (tensor<5x6xf32, #nested>) -> tensor<5x6xf32, #nested>
    return %y : tensor<5x6xf32, #nested>
  }

  // A redistribution to Partial that the model wrote (R -> P), a sum that stays partial (P -> P), and its reduction.
  // CHECK-LABEL: func.func @to_partial(
  // CHECK: return
  func.func @to_partial(%b: tensor<6xf32, #RR> {dist.kind = "parameter", dist.name = "b"}, %x: tensor<5x7xf32, #RS1> {dist.kind = "input", dist.name = "x"},
                        %w: tensor<7x6xf32, #RS0> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<5x6xf32, #RR> {dist.kind = "output", dist.name = "y"}) {
    %p = aten.mm %x, %w : (tensor<5x7xf32, #RS1>, tensor<7x6xf32, #RS0>) -> tensor<5x6xf32, #RP>
    %c = dist.redistribute %b : tensor<6xf32, #RR> to tensor<6xf32, #RP>
    %s = aten.add %p, %c : (tensor<5x6xf32, #RP>, tensor<6xf32, #RP>) -> tensor<5x6xf32, #RP>
    %r = dist.redistribute %s : tensor<5x6xf32, #RP> to tensor<5x6xf32, #RR>
    %y = aten.tanh %r : (tensor<5x6xf32, #RR>) -> tensor<5x6xf32, #RR>
    return %y : tensor<5x6xf32, #RR>
  }

  // The output is partial over both axes, and so is the cotangent that is given for it.
  // CHECK-LABEL: func.func @partial_cotangent(
  // CHECK-SAME: tensor<5x6xf32, #Pdp_Ptp> {dist.kind = "input", dist.name = "cotangent_y"}
  func.func @partial_cotangent(%x: tensor<5x7xf32, #RR> {dist.kind = "input", dist.name = "x"}, %w: tensor<7x6xf32, #PP> {dist.kind = "parameter", dist.name = "w"})
      -> (tensor<5x6xf32, #PP> {dist.kind = "output", dist.name = "y"}) {
    %y = aten.mm %x, %w : (tensor<5x7xf32, #RR>, tensor<7x6xf32, #PP>) -> tensor<5x6xf32, #PP>
    return %y : tensor<5x6xf32, #PP>
  }

  // The gradient of a partial input is replicated, and undivided; it is made partial only where nothing is rewritten.
  // REPLICATED: partial_input: no collectives
  // CHECK-LABEL: func.func @partial_input(
  // CHECK-SAME: -> (tensor<5x6xf32, #R> {dist.kind = "gradient", dist.name = "x"})
  // OFF-LABEL: func.func @partial_input(
  // OFF-SAME: -> (tensor<5x6xf32, #Pdp_Ptp> {dist.kind = "gradient", dist.name = "x"})
  func.func @partial_input(%x: tensor<5x6xf32, #PP> {dist.kind = "input", dist.name = "x"}, %m: tensor<5x6xi1, #RR> {dist.kind = "input", dist.name = "m"})
      -> (tensor<5x6xf32, #RR> {dist.kind = "output", dist.name = "y"}) {
    %r = dist.redistribute %x : tensor<5x6xf32, #PP> to tensor<5x6xf32, #RR>
    %y = aten.mul %r, %m : (tensor<5x6xf32, #RR>, tensor<5x6xi1, #RR>) -> tensor<5x6xf32, #RR>
    return %y : tensor<5x6xf32, #RR>
  }

  // No value becomes the factors of a product: the cotangent of one is replicated, also where nothing is rewritten.
  // OFF-LABEL: func.func @factors(
  // OFF-SAME: tensor<5xf32, #R> {dist.kind = "input", dist.name = "cotangent_y"}
  // OFF-NOT: to tensor<5xf32, #Pprodtp>
  // OFF: return
  func.func @factors(%x: tensor<5x3xf32, #RS1> {dist.kind = "input", dist.name = "x"}) -> (tensor<5xf32, #RR> {dist.kind = "output", dist.name = "y"}) {
    %p = aten.prod %x dim [1] : (tensor<5x3xf32, #RS1>) -> tensor<5xf32, #prod>
    %y = dist.redistribute %p : tensor<5xf32, #prod> to tensor<5xf32, #RR>
    return %y : tensor<5xf32, #RR>
  }

  // The mean of five rows over two axes (2, 1 | 1, 1) divides by five (G4, G6).
  func.func @mean(%x: tensor<5x3xf32, #nested> {dist.kind = "input", dist.name = "x"}) -> (tensor<3xf32, #RR> {dist.kind = "output", dist.name = "y"}) {
    %s = aten.mean %x dim [0] : (tensor<5x3xf32, #nested>) -> tensor<3xf32, #PP>
    %y = dist.redistribute %s : tensor<3xf32, #PP> to tensor<3xf32, #RR>
    return %y : tensor<3xf32, #RR>
  }

  // The largest of five rows is routed to by comparison with the reduced value (G4).
  func.func @largest(%x: tensor<5x3xf32, #nested> {dist.kind = "input", dist.name = "x"}) -> (tensor<3xf32, #RR> {dist.kind = "output", dist.name = "y"}) {
    %s = aten.amax %x dim [0] : (tensor<5x3xf32, #nested>) -> tensor<3xf32, #max>
    %y = dist.redistribute %s : tensor<3xf32, #max> to tensor<3xf32, #RR>
    return %y : tensor<3xf32, #RR>
  }
}

// RAN: {{^}}8 functions, 0 failures
