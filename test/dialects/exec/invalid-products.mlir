// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: memref<4xf32>) {
  // expected-error@+1 {{has a result of 1 dims, not 2 or 3}}
  exec.gemm %x * %x -> %x : memref<4xf32> * memref<4xf32> -> memref<4xf32>
  return
}

// -----
func.func @f(%a: memref<2x4x4xf32>, %b: memref<4x4xf32>) {
  // expected-error@+1 {{has operands of 3 and 2 dims for a result of 3}}
  exec.gemm %a * %b -> %a : memref<2x4x4xf32> * memref<4x4xf32> -> memref<2x4x4xf32>
  return
}

// -----
func.func @f(%a: memref<4x4xf32>, %b: memref<4x4xf64>) {
  // expected-error@+1 {{mixes element types}}
  exec.gemm %a * %b -> %a : memref<4x4xf32> * memref<4x4xf64> -> memref<4x4xf32>
  return
}

// -----
func.func @f(%a: memref<4x5xf32>, %b: memref<6x7xf32>, %c: memref<4x7xf32>) {
  // expected-error@+1 {{has shapes that do not multiply: 'memref<4x5xf32>', 'memref<6x7xf32>' -> 'memref<4x7xf32>'}}
  exec.gemm %a * %b -> %c : memref<4x5xf32> * memref<6x7xf32> -> memref<4x7xf32>
  return
}

// -----
func.func @f(%a: memref<2x4x5xf32>, %b: memref<3x5x7xf32>, %c: memref<2x4x7xf32>) {
  // expected-error@+1 {{has different batch sizes}}
  exec.gemm %a * %b -> %c : memref<2x4x5xf32> * memref<3x5x7xf32> -> memref<2x4x7xf32>
  return
}

// -----
func.func @f(%a: memref<4x4xf32>, %bias: memref<3xf32>) {
  // expected-error@+1 {{has a bias of type 'memref<3xf32>' for 'memref<4x4xf32>'}}
  exec.gemm %a * %a + %bias -> %a : memref<4x4xf32> * memref<4x4xf32> + memref<3xf32> -> memref<4x4xf32>
  return
}

// -----
func.func @f(%a: memref<4x4xi32>) {
  // expected-error@+1 {{multiplies floating-point matrices, not ones of 'i32'}}
  exec.gemm %a * %a -> %a : memref<4x4xi32> * memref<4x4xi32> -> memref<4x4xi32>
  return
}

// -----
func.func @f(%a: memref<4x4xf32, strided<[8, 2]>>, %c: memref<4x4xf32>) {
  // expected-error@+1 {{has the operand 'memref<4x4xf32, strided<[8, 2]>>', of which neither matrix stride is 1}}
  exec.gemm %c * %a -> %c : memref<4x4xf32> * memref<4x4xf32, strided<[8, 2]>> -> memref<4x4xf32>
  return
}

// -----
func.func @f(%a: memref<4x4xf32>, %c: memref<4x4xf32, strided<[1, 4]>>) {
  // expected-error@+1 {{has the result 'memref<4x4xf32, strided<[1, 4]>>', whose last stride is not 1}}
  exec.gemm %a * %a -> %c : memref<4x4xf32> * memref<4x4xf32> -> memref<4x4xf32, strided<[1, 4]>>
  return
}

// -----
// A stride of one element says nothing, and one that is not known may be 1.
func.func @f(%a: memref<4x1xf32, strided<[8, 2]>>, %b: memref<1x4xf32, strided<[?, ?]>>, %c: memref<4x4xf32>) {
  exec.gemm %a * %b -> %c : memref<4x1xf32, strided<[8, 2]>> * memref<1x4xf32, strided<[?, ?]>> -> memref<4x4xf32>
  return
}

// -----
func.func @f(%q: memref<4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{takes memory of 4 dims (batch, heads, rows, columns), not 'memref<4x5x8xf32>'}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32> -> memref<2x4x5x6xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xi32>, %k: memref<2x4x5x8xi32>, %v: memref<2x4x5x8xi32>, %o: memref<2x4x5x8xi32>) {
  // expected-error@+1 {{works on floating-point numbers, not on 'i32'}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<2x4x5x8xi32>, memref<2x4x5x8xi32>, memref<2x4x5x8xi32> -> memref<2x4x5x8xi32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf64>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{mixes the element types 'f32' and 'f64'}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf64> -> memref<2x4x5x6xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<3x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{has different batch sizes: 'memref<2x4x5x8xf32>' and 'memref<3x2x7x8xf32>'}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<3x2x7x8xf32>, memref<2x2x7x6xf32> -> memref<2x4x5x6xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<2x2x7x9xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{has queries and keys of different depth: 'memref<2x4x5x8xf32>' and 'memref<2x2x7x9xf32>'}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<2x2x7x9xf32>, memref<2x2x7x6xf32> -> memref<2x4x5x6xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x6x6xf32>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{has another number of keys than of values: 'memref<2x2x7x8xf32>' and 'memref<2x2x6x6xf32>'}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x6x6xf32> -> memref<2x4x5x6xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %o: memref<2x4x5x7xf32>) {
  // expected-error@+1 {{has a result of 'memref<2x4x5x7xf32>' for 'memref<2x4x5x8xf32>' and 'memref<2x2x7x6xf32>'}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32> -> memref<2x4x5x7xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<2x3x7x8xf32>, %v: memref<2x3x7x6xf32>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{has 4 heads of queries, no multiple of the 3 heads of keys}}
  exec.attention %q, %k, %v -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<2x3x7x8xf32>, memref<2x3x7x6xf32> -> memref<2x4x5x6xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %m: memref<2x4x5x7xi32>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{has a mask of 'i32', not of i8 or floating-point numbers}}
  exec.attention %q, %k, %v mask %m -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32> mask memref<2x4x5x7xi32> -> memref<2x4x5x6xf32>
  return
}

// -----
func.func @f(%q: memref<2x4x5x8xf32>, %k: memref<2x2x7x8xf32>, %v: memref<2x2x7x6xf32>, %m: memref<2x4x5x8xi8>, %o: memref<2x4x5x6xf32>) {
  // expected-error@+1 {{has a mask of 'memref<2x4x5x8xi8>' for 'memref<2x4x5x8xf32>' and 'memref<2x2x7x8xf32>'}}
  exec.attention %q, %k, %v mask %m -> %o scale 1.0 : memref<2x4x5x8xf32>, memref<2x2x7x8xf32>, memref<2x2x7x6xf32> mask memref<2x4x5x8xi8> -> memref<2x4x5x6xf32>
  return
}
