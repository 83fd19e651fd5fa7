// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shard-opt --dist-predict-timeline=topology=h100-8 %s | FileCheck %s

// What causal attention costs is what the queries of that rank see whose queries are last: 8192 to 10239 keys here.
// CHECK: func.func @known({{.*}}step_us = [[US:[0-9.e+]+]] : f64
// CHECK: func.func @by_rank({{.*}}step_us = [[US]] : f64
// Without a table that says so, as if they ended with the last key: 14337 to 16384.
// CHECK: func.func @last({{.*}}step_us = [[LAST:[0-9.e+]+]] : f64
// CHECK: func.func @unknown({{.*}}step_us = [[LAST]] : f64
// All queries see all keys.
// CHECK: func.func @behind({{.*}}step_us = [[ALL:[0-9.e+]+]] : f64
// CHECK: func.func @whole({{.*}}step_us = [[ALL]] : f64
#mesh = #dist.mesh<["sp" = 4]>
module attributes {dist.mesh = #mesh} {
  func.func @known(%q: tensor<1x16x2048x128xbf16>, %k: tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16> {
    %y = aten.scaled_dot_product_attention %q, %k, %k causal first 8192
        : (tensor<1x16x2048x128xbf16>, tensor<1x16x16384x128xbf16>, tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16>
    return %y : tensor<1x16x2048x128xbf16>
  }
  func.func @by_rank(%q: tensor<1x16x2048x128xbf16>, %k: tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16> {
    %i = dist.extent #dist.extents<table [0, 8192, 4096, 2048] over #mesh>
    %y = aten.scaled_dot_product_attention %q, %k, %k causal first %i
        : (tensor<1x16x2048x128xbf16>, tensor<1x16x16384x128xbf16>, tensor<1x16x16384x128xbf16>, index) -> tensor<1x16x2048x128xbf16>
    return %y : tensor<1x16x2048x128xbf16>
  }
  func.func @last(%q: tensor<1x16x2048x128xbf16>, %k: tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16> {
    %y = aten.scaled_dot_product_attention %q, %k, %k causal first 14336
        : (tensor<1x16x2048x128xbf16>, tensor<1x16x16384x128xbf16>, tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16>
    return %y : tensor<1x16x2048x128xbf16>
  }
  func.func @unknown(%q: tensor<1x16x2048x128xbf16>, %k: tensor<1x16x16384x128xbf16>, %i: index) -> tensor<1x16x2048x128xbf16> {
    %y = aten.scaled_dot_product_attention %q, %k, %k causal first %i
        : (tensor<1x16x2048x128xbf16>, tensor<1x16x16384x128xbf16>, tensor<1x16x16384x128xbf16>, index) -> tensor<1x16x2048x128xbf16>
    return %y : tensor<1x16x2048x128xbf16>
  }
  func.func @behind(%q: tensor<1x16x2048x128xbf16>, %k: tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16> {
    %y = aten.scaled_dot_product_attention %q, %k, %k causal first 16384
        : (tensor<1x16x2048x128xbf16>, tensor<1x16x16384x128xbf16>, tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16>
    return %y : tensor<1x16x2048x128xbf16>
  }
  func.func @whole(%q: tensor<1x16x2048x128xbf16>, %k: tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16> {
    %y = aten.scaled_dot_product_attention %q, %k, %k
        : (tensor<1x16x2048x128xbf16>, tensor<1x16x16384x128xbf16>, tensor<1x16x16384x128xbf16>) -> tensor<1x16x2048x128xbf16>
    return %y : tensor<1x16x2048x128xbf16>
  }
}
