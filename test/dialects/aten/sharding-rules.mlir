// RUN: shard-opt %s --test-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @mlp(%x: tensor<8x11x64xf32>, %w: tensor<256x64xf32>, %b: tensor<256xf32>) {
  // expected-remark @below {{(a)(b)(c), (d)(c), (d) -> (a)(b)(d), a = 8, b = 11, c = 64 sum, d = 256}}
  %y = aten.linear %x, %w, %b : (tensor<8x11x64xf32>, tensor<256x64xf32>, tensor<256xf32>) -> tensor<8x11x256xf32>
  // expected-remark @below {{(a)(b)(c) -> (a)(b)(c), a = 8, b = 11, c = 256}}
  %g = aten.gelu %y : (tensor<8x11x256xf32>) -> tensor<8x11x256xf32>
  return
}

func.func @heads(%x: tensor<8x11x64xf32>) {
  // expected-remark @below {{(a)(b)(c d) -> (a)(b)(c)(d), a = 8, b = 11, c = 4, d = 16}}
  %v = aten.view %x [8, 11, 4, 16] : (tensor<8x11x64xf32>) -> tensor<8x11x4x16xf32>
  // expected-remark @below {{(a)(b)(c)(d) -> (a)(c)(b)(d), a = 8, b = 11, c = 4, d = 16}}
  %t = aten.transpose %v [1, 2] : (tensor<8x11x4x16xf32>) -> tensor<8x4x11x16xf32>
  // expected-remark @below {{(a)(b)(c)(d), (a)(b)(e)(d), (a)(b)(e)(f) -> (a)(b)(c)(f), a = 8, b = 4, c = 11, d = 16 replicated, e = 11 replicated, f = 16}}
  %a = aten.scaled_dot_product_attention %t, %t, %t causal : (tensor<8x4x11x16xf32>, tensor<8x4x11x16xf32>, tensor<8x4x11x16xf32>) -> tensor<8x4x11x16xf32>
  return
}

// A query head is (key head, position in its group).
func.func @grouped_queries(%q: tensor<2x8x5x4xf32>, %k: tensor<2x2x5x4xf32>) {
  // expected-remark @below {{(a)(b c)(d)(e), (a)(b)(f)(e), (a)(b)(f)(g) -> (a)(b c)(d)(g), a = 2, b = 2, c = 4, d = 5, e = 4 replicated, f = 5 replicated, g = 4}}
  %a = aten.scaled_dot_product_attention %q, %k, %k gqa : (tensor<2x8x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x8x5x4xf32>
  return
}

// The backward has whole groups. Over sharded queries the cotangents of keys and values are sums.
func.func @flash_attention(%q: tensor<2x8x5x4xf32>, %k: tensor<2x2x5x4xf32>, %m: tensor<2x8x5x5xi1>) {
  // expected-remark @below {{(a)(b c)(d)(e), (a)(b)(f)(e), (a)(b)(f)(g), (a)(b c)(d)(f) -> (a)(b c)(d)(g), (a)(b c)(d), a = 2, b = 2, c = 4, d = 5, e = 4 replicated, f = 5 replicated, g = 4 replicated}}
  %o, %l = aten.scaled_dot_product_flash_attention %q, %k, %k mask(%m) gqa : (tensor<2x8x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x8x5x5xi1>) -> (tensor<2x8x5x4xf32>, tensor<2x8x5xf32>)
  // expected-remark @below {{a = 2, b = 2, c = 4 replicated, d = 5 sum, e = 4 replicated, f = 4 replicated, g = 5 replicated}}
  %d:3 = aten.scaled_dot_product_flash_attention_backward %o, %q, %k, %k, %o, %l mask(%m) gqa : (tensor<2x8x5x4xf32>, tensor<2x8x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x8x5x4xf32>, tensor<2x8x5xf32>, tensor<2x8x5x5xi1>) -> (tensor<2x8x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>)
  return
}

// The position of the first query is a scalar.
func.func @first_query(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x9x8xf32>, %l: tensor<2x4x5xf32>, %i: index) {
  // expected-remark @below {{(a)(b)(c)(d), (a)(b)(e)(d), (a)(b)(e)(f), scalar -> (a)(b)(c)(f), (a)(b)(c), a = 2, b = 4, c = 5, d = 8 replicated, e = 9 replicated, f = 8 replicated}}
  %o:2 = aten.scaled_dot_product_flash_attention %q, %k, %k causal first %i : (tensor<2x4x5x8xf32>, tensor<2x4x9x8xf32>, tensor<2x4x9x8xf32>, index) -> (tensor<2x4x5x8xf32>, tensor<2x4x5xf32>)
  // expected-remark @below {{a = 2, b = 4, c = 5 sum, d = 8 replicated, e = 8 replicated, f = 9 replicated}}
  %d:3 = aten.scaled_dot_product_flash_attention_backward %q, %q, %k, %k, %q, %l causal first %i : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x9x8xf32>, tensor<2x4x9x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5xf32>, index) -> (tensor<2x4x5x8xf32>, tensor<2x4x9x8xf32>, tensor<2x4x9x8xf32>)
  return
}

func.func @rows(%x: tensor<8x11x64xf32>, %w: tensor<64xf32>) {
  // expected-remark @below {{(a)(b)(c), (c), (c) -> (a)(b)(c), a = 8, b = 11, c = 64 cooperative}}
  %n = aten.layer_norm %x [64] weight(%w) bias(%w) : (tensor<8x11x64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<8x11x64xf32>
  // expected-remark @below {{(a)(b)(c) -> (a)(b)(), a = 8, b = 11, c = 64 sum}}
  %m = aten.mean %n dim [2] keepdim : (tensor<8x11x64xf32>) -> tensor<8x11x1xf32>
  // expected-remark @below {{(a)(b)(c), (a)(b)() -> (a)(b)(c), a = 8, b = 11, c = 64}}
  %s = aten.mul %n, %m : (tensor<8x11x64xf32>, tensor<8x11x1xf32>) -> tensor<8x11x64xf32>
  return
}

// Rows of the table are reduced over: a rank looks up its own.
func.func @embedding(%w: tensor<1003x64xf32>, %i: tensor<8x11xi64>) {
  // expected-remark @below {{(a)(b), (c)(d) -> (c)(d)(b), a = 1003 sum in one piece, b = 64, c = 8, d = 11}}
  %e = aten.embedding %w at %i : (tensor<1003x64xf32>, tensor<8x11xi64>) -> tensor<8x11x64xf32>
  return
}

// Equal parts leave what is inside a part shardable.
func.func @fused(%x: tensor<8x192xf32>) {
  // expected-remark @below {{(a)(b c) -> (a)(c), (a)(c), (a)(c), a = 8, b = 3 replicated, c = 64}}
  %p:3 = aten.split_with_sizes %x [64, 64, 64] dim 1 : (tensor<8x192xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>)
  // expected-remark @below {{(a)(b), (a)(b) -> (a)(c b), a = 8, b = 64, c = 2 replicated}}
  %c = aten.cat %p#0, %p#1 dim 1 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  return
}

// Sizes made of the operand's own sizes keep their factors apart.
func.func @symbolic(%x: tensor<?x?x384xf32>) {
  // expected-remark @below {{(a)(b)(c) -> scalar, a = ?, b = ?, c = 384}}
  %b = aten.sym_size %x dim 0 : (tensor<?x?x384xf32>) -> index
  // expected-remark @below {{-> scalar}}
  %s = aten.sym_size %x dim 1 : (tensor<?x?x384xf32>) -> index
  // expected-remark @below {{(a)(b)(c d), scalar, scalar -> (a)(b)(c)(d), a = ?, b = ?, c = 12, d = 32}}
  %v = aten.view %x [%b, %s, 12, 32] : (tensor<?x?x384xf32>) -> tensor<?x?x12x32xf32>
  return
}

// Channels of a convolution: output channels and batch freely, input channels into a sum, height and width by the rows that ranks exchange.
func.func @convolution(%x: tensor<8x6x9x9xf32>, %w: tensor<4x6x3x3xf32>, %b: tensor<4xf32>, %d: tensor<12x2x3x3xf32>, %c: tensor<6xf32>) {
  // expected-remark @below {{(a)(b)(c)(d), (e)(b)(f)(g), (e) -> (a)(e)(c)(d), a = 8, b = 6 sum, c = 9 halo 0:1.29 in one piece, d = 9 halo 0:1.29 in one piece, e = 4, f = 3 replicated, g = 3 replicated}}
  %0 = aten.convolution %x, %w bias(%b) stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<8x6x9x9xf32>, tensor<4x6x3x3xf32>, tensor<4xf32>) -> tensor<8x4x7x7xf32>
  // Whole groups.
  // expected-remark @below {{(a)(b c)(d)(e), (b f)(c)(g)(h) -> (a)(b f)(d)(e), a = 8, b = 3, c = 2 replicated, d = 9 halo 0:0.5 in one piece, e = 9 halo 0:0.5 in one piece, f = 4 replicated, g = 3 replicated, h = 3 replicated}}
  %1 = aten.convolution %x, %d stride [1, 1] padding [1, 1] dilation [1, 1] groups 3 : (tensor<8x6x9x9xf32>, tensor<12x2x3x3xf32>) -> tensor<8x12x9x9xf32>
  // expected-remark @below {{(a)(b)(c)(d) -> (a)(b)(c)(d), a = 8, b = 6, c = 9 halo 0:2.25 in one piece, d = 9 halo 0:2.25 in one piece}}
  %2 = aten.max_pool %x kernel [3, 3] stride [2] padding [0] dilation [1] : (tensor<8x6x9x9xf32>) -> tensor<8x6x4x4xf32>
  // expected-remark @below {{(a)(b)(c)(d), (b), (b) -> (a)(b)(c)(d), a = 8, b = 6, c = 9, d = 9}}
  %3 = aten.batch_norm %x mean(%c) variance(%c) eps 1.0e-5 : (tensor<8x6x9x9xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<8x6x9x9xf32>
  return
}

// A part of a dim has blocks in common with it only where it begins at one of them; of any other part ranks exchange what
// they lack. Of two ranks the first would send the second 2 of the result's 4 elements, half of the factor's 12.
func.func @slices(%x: tensor<4x12xf32>, %y: tensor<4x24xf32>) {
  // expected-remark @below {{(a)(b c) -> (a)(c), a = 4, b = 3 replicated, c = 4}}
  %0 = aten.slice %x dim 1 [4 : 8 : 1] : (tensor<4x12xf32>) -> tensor<4x4xf32>
  // expected-remark @below {{(a)(b) -> (a)(b), a = 4, b = 12 halo 0:6 in one piece}}
  %1 = aten.slice %x dim 1 [2 : 6 : 1] : (tensor<4x12xf32>) -> tensor<4x4xf32>
  // What is cut from the end is no block, though it divides the dim: there would be many.
  // expected-remark @below {{(a)(b) -> (a)(b), a = 4, b = 24 halo 0:12 in one piece}}
  %end = aten.slice %y dim 1 [22 : 24 : 1] : (tensor<4x24xf32>) -> tensor<4x2xf32>
  // expected-remark @below {{(a)(b) -> (a)(b), a = 4, b = 12}}
  %2 = aten.slice %x dim 1 [-12 : 99 : 1] : (tensor<4x12xf32>) -> tensor<4x12xf32>
  // Each rank has what it is to have.
  // expected-remark @below {{(a)(b) -> (a)(b), a = 4, b = 12 halo 0:0 in one piece}}
  %3 = aten.slice %x dim 1 [1 : 12 : 2] : (tensor<4x12xf32>) -> tensor<4x6xf32>
  // Of two ranks each lacks 2 of the 6 that it is to have.
  // expected-remark @below {{(a)(b) -> (a)(b), (a)(b), a = 4, b = 12 halo 0:6 in one piece}}
  %4:2 = aten.split_with_sizes %x [4, 8] dim 1 : (tensor<4x12xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>)
  // expected-remark @below {{(a)(b) -> (a)(b), a = 4, b = 12 halo 0:3 in one piece}}
  %5 = aten.flip %x [1] : (tensor<4x12xf32>) -> tensor<4x12xf32>
  return
}

// Of a sharded dim the first elements of each rank are enough, where it has as many.
func.func @sorts(%x: tensor<4x8xf32>, %y: tensor<4x?xf32>) {
  // expected-remark @below {{(a)(b) -> (a)(c), (a)(d), a = 4, b = 8 cooperative in one piece, c = 2 replicated, d = 2 replicated}}
  %v, %i = aten.sort %x dim 1 count 2 : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  // expected-remark @below {{(a)(b) -> (a)(c), (a)(d), a = 4, b = ? replicated, c = 2 replicated, d = 2 replicated}}
  %w, %j = aten.sort %y dim 1 count 2 : (tensor<4x?xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return
}
