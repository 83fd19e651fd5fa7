// RUN: shard-opt %s --split-input-file --verify-diagnostics --dist-verify-stage=scheduled

#tp = #dist.named_group<"tp", 4>
func.func @forward(%x: tensor<4xf32>, %in: !dist.future<tensor<4xf32>>)
    -> (tensor<4xf32>, !dist.future<tensor<4xf32>>) {
  %0 = dist.all_reduce sum over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %1 = dist.broadcast over #tp from 0 %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  // Nobody waits for this one: the runtime does, at the end.
  %2 = dist.broadcast over #tp from 1 %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  dist.all_reduce sum over #tp : () -> ()
  %3:2 = dist.wait %0, %in : !dist.future<tensor<4xf32>>, !dist.future<tensor<4xf32>>
  return %3#0, %1 : tensor<4xf32>, !dist.future<tensor<4xf32>>
}

// -----

#tp = #dist.named_group<"tp", 4>
// expected-error@+1 {{a future is waited for or returned 2 times, may be once}}
func.func @f(%x: tensor<4xf32>, %in: !dist.future<tensor<4xf32>>) -> !dist.future<tensor<4xf32>> {
  // expected-error@+1 {{'dist.all_gather' is synchronous: every collective of the stage "scheduled" is a start, with a dist.wait}}
  %0 = dist.all_gather over #tp %x dim 0 : (tensor<4xf32>) -> tensor<16xf32>
  %1 = dist.wait %in : !dist.future<tensor<4xf32>>
  // expected-error@+1 {{a future is waited for or returned 3 times, may be once}}
  %2 = dist.all_reduce sum over #tp %x : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %3 = dist.wait %2 : !dist.future<tensor<4xf32>>
  %4:2 = dist.wait %2, %2 : !dist.future<tensor<4xf32>>, !dist.future<tensor<4xf32>>
  return %in : !dist.future<tensor<4xf32>>
}

// -----

func.func @f(%in: !dist.future<tensor<4xf32>>) {
  // expected-error@+2 {{'builtin.unrealized_conversion_cast' uses a future: only dist.wait and return may}}
  // expected-error@+1 {{'builtin.unrealized_conversion_cast' is no op of the stage "scheduled"}}
  %0 = builtin.unrealized_conversion_cast %in, %in : !dist.future<tensor<4xf32>>, !dist.future<tensor<4xf32>> to tensor<4xf32>
  return
}
