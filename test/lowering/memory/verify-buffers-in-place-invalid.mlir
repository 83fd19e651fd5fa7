// RUN: shard-opt %s --exec-verify-buffers --split-input-file --verify-diagnostics

// Parameters that are updated in place: who reads the old value comes before the write.

func.func @late(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>}, %x: memref<4xf32> {exec.argument = #exec.argument<input>},
                %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                %y: memref<4xf32> {exec.argument = #exec.argument<output>}) attributes {exec.entry, exec.in_place} {
  exec.commit
  exec.launch @k(%x, %new) : memref<4xf32>, memref<4xf32>
  // expected-error@+1 {{'exec.launch' reads the old value of argument 0, which its new value may have overwritten}}
  exec.launch @k(%w, %y) : memref<4xf32>, memref<4xf32>
  return
}
// The new value may be read, and so may what is not written yet.
func.func @parts(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>}, %x: memref<2xf32> {exec.argument = #exec.argument<input>},
                 %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64},
                 %y: memref<2xf32> {exec.argument = #exec.argument<output>}, %z: memref<2xf32> {exec.argument = #exec.argument<output>})
    attributes {exec.entry, exec.in_place} {
  %new0 = memref.reinterpret_cast %new to offset: [0], sizes: [2], strides: [1] : memref<4xf32> to memref<2xf32, strided<[1]>>
  %w1 = memref.reinterpret_cast %w to offset: [2], sizes: [2], strides: [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
  %w2 = memref.reinterpret_cast %w to offset: [1], sizes: [2], strides: [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
  exec.commit
  exec.launch @half(%x, %new0) : memref<2xf32>, memref<2xf32, strided<[1]>>
  exec.launch @halves(%new0, %y) : memref<2xf32, strided<[1]>>, memref<2xf32>
  exec.launch @halves(%w1, %z) : memref<2xf32, strided<[1], offset: 2>>, memref<2xf32>
  // expected-note@+1 {{also here}}
  exec.launch @halves(%w2, %z) : memref<2xf32, strided<[1], offset: 1>>, memref<2xf32>
  return
}
func.func @early(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>}, %x: memref<4xf32> {exec.argument = #exec.argument<input>},
                 %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64}) attributes {exec.entry, exec.in_place} {
  // expected-error@+1 {{'exec.launch' writes the new value of argument 0 in front of 'exec.commit'}}
  exec.launch @k(%x, %new) : memref<4xf32>, memref<4xf32>
  return
}
// A kernel that is not in place must not get one memory twice; one that is must find the old value.
func.func @twice(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>}, %x: memref<4xf32> {exec.argument = #exec.argument<input>},
                 %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64}) attributes {exec.entry, exec.in_place} {
  exec.commit
  // expected-error@+1 {{'exec.launch' writes memory that it uses through another operand, too}}
  exec.launch @k(%w, %new) : memref<4xf32>, memref<4xf32>
  // expected-note@+1 {{also here}}
  exec.launch @update(%new) : memref<4xf32>
  return
}
func.func private @k(memref<4xf32>, memref<4xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
func.func private @half(memref<2xf32>, memref<2xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
func.func private @halves(memref<2xf32>, memref<2xf32>) attributes {exec.kernel, exec.writes = array<i64: 1>}
func.func private @update(memref<4xf32>) attributes {exec.kernel, exec.in_place = array<i64: 0>, exec.writes = array<i64: 0>}

// -----
#mesh = #dist.mesh<["dp" = 2]>
#dp = #dist.axes<#mesh, ["dp"]>
func.func @in_flight(%w: memref<4xf32> {exec.argument = #exec.argument<parameter>}, %y: memref<8xf32> {exec.argument = #exec.argument<output>},
                     %new: memref<4xf32> {exec.argument = #exec.argument<output>, exec.updates = 0 : i64}) attributes {exec.entry, exec.in_place} {
  exec.commit
  %t = exec.start all_gather over #dp (%w : memref<4xf32>) -> (%y : memref<8xf32>)
      {element_types = [f32], extents = [array<i64: 8>], gather_dims = array<i64: 0>, gather_extents = [array<i64>],
       pairs = array<i64>, scatter_dims = array<i64: -1>, scatter_extents = [array<i64>]}
  // expected-error@+1 {{'exec.launch' overwrites argument 0, which a collective in flight reads}}
  exec.launch @update(%new) : memref<4xf32>
  exec.wait %t
  return
}
func.func private @update(memref<4xf32>) attributes {exec.kernel, exec.in_place = array<i64: 0>, exec.writes = array<i64: 0>}
