// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: shardc explain %s --mesh tp=2 --place "param:up=tp:S(0)" --place "param:down=tp:S(1)" --gradients loss -o %t.txt
// RUN: FileCheck %s --input-file %t.txt
// RUN: FileCheck %s --input-file %t.txt --check-prefix=RANGE
// RUN: shardc explain %s --mesh tp=2 --place "param:up=tp:S(0)" --place "param:down=tp:S(1)" --gradients loss --entry gradients | FileCheck %s --check-prefix=ONE
// RUN: shardc explain %s --mesh tp=2 --place "param:up=tp:S(0)" --place "param:down=tp:S(1)" --gradients loss --format json --entry gradients | FileCheck %s --check-prefix=JSON
// RUN: not shardc explain %s --mesh tp=2 --gradients loss --entry train 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: shardc explain %s --mesh tp=2 --place "param:up=tp:S(0)" --place "param:down=tp:S(1)" | FileCheck %s --check-prefix=FORWARD
// RANGE: predicted for gradients
// RANGE-NEXT: as placed:
// RANGE-NEXT: {{[0-9.]+}} to {{[0-9.]+}} us on networks up to twice as slow, with kernels 20 % off, with a late rank

// An all-reduce of 8 x 16 floats over two ranks sends 512 bytes: that of `down` in the forward, and that of the gradient of what `up`
// reads in the backward, in one bucket with the loss. Kept are what the gradients of `up` and `down` are products with (8 x 16 on each rank,
// 512 bytes), the total of `down`, which is squared, and a constant.
// CHECK: mesh tp=2: 2 ranks
// CHECK: entry forward
// CHECK: 2 collectives, 516 B sent per rank in one step
// CHECK-NOT: kept
// CHECK: entry gradients
// CHECK: 2 collectives, 1.0 KiB sent per rank in one step
// CHECK: {{^}} module collectives sent predicted exposed compute kept for the backward
// CHECK-NEXT: {{^}} pos forward 0 0 B {{.*}} us 512 B{{$}}
// CHECK-NEXT: {{^}} up forward 0 0 B {{.*}} us 0 B{{$}}
// CHECK-NEXT: {{^}} up backward 1 512 B {{.*}} us{{$}}
// CHECK-NEXT: {{^}} act forward 0 0 B {{.*}} us 512 B{{$}}
// CHECK-NEXT: {{^}} act backward 0 0 B {{.*}} us{{$}}
// CHECK-NEXT: {{^}} down forward 1 512 B {{.*}} us 512 B{{$}}
// CHECK-NEXT: {{^}} down backward 0 0 B {{.*}} us{{$}}
// CHECK-NEXT: {{^}} (no module) forward 1 4 B {{.*}} us 4 B{{$}}
// CHECK-NEXT: {{^}} (no module) backward 0 0 B {{.*}} us{{$}}
// CHECK-NEXT: predicted for forward
// CHECK: predicted for gradients

// ONE-NOT: entry
// ONE: 2 collectives, 1.0 KiB sent
// ONE: backward
// ONE-NOT: predicted for forward
// ONE: predicted for gradients
// ONE-NOT: predicted for

// JSON: "backward": true,
// JSON-NEXT: "bytes": 512,
// JSON: "entry": "gradients",
// JSON: "modules": [
// JSON: "backward": true,
// JSON-NEXT: "bytes_per_rank": 512,
// JSON-NEXT: "collectives": 1,
// JSON-NEXT: "compute_us":
// JSON-NEXT: "entry": "gradients",
// JSON-NEXT: "exposed_us":
// JSON-NEXT: "kept_bytes": 0,
// JSON-NEXT: "module": "up",
// JSON-NEXT: "predicted_us":
// JSON: "predicted": {
// JSON-NEXT: "exposed_before_us"

// UNKNOWN: error: there is no entry 'train'; entries are forward, gradients

// Without a backward there is no table of modules.
// FORWARD-NOT: entry
// FORWARD: 2 collectives, 516 B sent
// FORWARD-NOT: kept
// FORWARD: predicted for forward
func.func @forward(%x: tensor<8x16xf32> {dist.kind = "input", dist.name = "x"},
                   %p: tensor<8x16xf32> {dist.kind = "parameter", dist.name = "position"},
                   %up: tensor<32x16xf32> {dist.kind = "parameter", dist.name = "up"},
                   %down: tensor<16x32xf32> {dist.kind = "parameter", dist.name = "down"})
    -> (tensor<f32> {dist.kind = "output", dist.name = "loss"}) {
  %0 = aten.add %x, %p : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc(fused<"pos">["add"("m.py":1:0)])
  %1 = aten.linear %0, %up : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32> loc(fused<"up">["up"("m.py":2:0)])
  %2 = aten.relu %1 : (tensor<8x32xf32>) -> tensor<8x32xf32> loc(fused<"act">["relu"("m.py":3:0)])
  %3 = aten.linear %2, %down : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32> loc(fused<"down">["down"("m.py":4:0)])
  %4 = aten.mul %3, %3 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc("mul"("m.py":5:0))
  %5 = aten.sum %4 : (tensor<8x16xf32>) -> tensor<f32> loc("sum"("m.py":5:0))
  return %5 : tensor<f32>
}
