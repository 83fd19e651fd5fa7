// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @no_pairs(%x: tensor<8x30xf32>) -> tensor<8x30xf32> {
  // expected-error@below {{'aten.fft_c2c' op needs a last dim of 2, for the real part and the imaginary one}}
  // expected-error@below {{failed to infer returned types}}
  %y = "aten.fft_c2c"(%x) <{dim = 0 : i64}> : (tensor<8x30xf32>) -> tensor<8x30xf32>
  return %y : tensor<8x30xf32>
}

// -----

func.func @of_the_pairs(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  // expected-error@below {{'aten.fft_c2c' op has no dim 1 to transform}}
  // expected-error@below {{failed to infer returned types}}
  %y = "aten.fft_c2c"(%x) <{dim = 1 : i64}> : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// -----

func.func @nothing(%x: tensor<0x8xf32>) -> tensor<0x8x2xf32> {
  // expected-error@below {{'aten.fft_r2c' op has no elements to transform}}
  // expected-error@below {{failed to infer returned types}}
  %y = "aten.fft_r2c"(%x) <{dim = 0 : i64}> : (tensor<0x8xf32>) -> tensor<0x8x2xf32>
  return %y : tensor<0x8x2xf32>
}

// -----

func.func @normalization(%x: tensor<4x8xf32>) -> tensor<4x8x2xf32> {
  // expected-error@below {{'aten.fft_r2c' op normalization must be 0, 1 or 2, not 3}}
  // expected-error@below {{failed to infer returned types}}
  %y = "aten.fft_r2c"(%x) <{dim = 0 : i64, normalization = 3 : i64}> : (tensor<4x8xf32>) -> tensor<4x8x2xf32>
  return %y : tensor<4x8x2xf32>
}

// -----

func.func @half(%x: tensor<4x2xf32>) -> tensor<8xf32> {
  // expected-error@below {{'aten.fft_c2r' op elements of half of the transform and of the operand differ: 5 and 4}}
  // expected-error@below {{failed to infer returned types}}
  %y = "aten.fft_c2r"(%x) <{dim = 0 : i64, static_last_dim_size = array<i64: 8>}> : (tensor<4x2xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
