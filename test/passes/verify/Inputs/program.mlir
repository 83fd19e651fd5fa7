// One rank of a small model: static and symbolic sizes, products, attention, a bucket, a collective in flight.
#mesh = #dist.mesh<["tp" = 2]>
#tp = #dist.axes<#mesh, ["tp"]>

module attributes {dist.mesh = #mesh} {
func.func @fixed(%x: tensor<2x4x16x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x4x16x8xf32> {
  %q = aten.linear %x, %w : (tensor<2x4x16x8xf32>, tensor<8x8xf32>) -> tensor<2x4x16x8xf32>
  %k = aten.linear %q, %w : (tensor<2x4x16x8xf32>, tensor<8x8xf32>) -> tensor<2x4x16x8xf32>
  %a = aten.scaled_dot_product_attention %q, %k, %k causal scale 0.5
      : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  %f = dist.all_reduce sum over #tp %a : (tensor<2x4x16x8xf32>) -> !dist.future<tensor<2x4x16x8xf32>>
  %r = aten.softmax %k dim 3 : (tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  %g = aten.linear %r, %w : (tensor<2x4x16x8xf32>, tensor<8x8xf32>) -> tensor<2x4x16x8xf32>
  %s = dist.wait %f : !dist.future<tensor<2x4x16x8xf32>>
  %h:2 = dist.all_reduce sum over #tp %g, %s : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
      -> (!dist.future<tensor<2x4x16x8xf32>>, !dist.future<tensor<2x4x16x8xf32>>)
  %b:2 = dist.wait %h#0, %h#1 : !dist.future<tensor<2x4x16x8xf32>>, !dist.future<tensor<2x4x16x8xf32>>
  %o = aten.add %b#0, %b#1 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  %l = aten.linear %o, %w : (tensor<2x4x16x8xf32>, tensor<8x8xf32>) -> tensor<2x4x16x8xf32>
  %m = aten.linear %l, %w : (tensor<2x4x16x8xf32>, tensor<8x8xf32>) -> tensor<2x4x16x8xf32>
  return %m : tensor<2x4x16x8xf32>
}

func.func @symbolic(%x: tensor<?x8xf32> {dist.sizes = [#dist.size<n>, #dist.size<8>]}, %w: tensor<8x8xf32>)
    -> (tensor<?x8xf32> {dist.sizes = [#dist.size<3 * n>, #dist.size<8>]}) attributes {dist.symbols = [#dist.symbol<n in [1, 64]>]} {
  %n = aten.sym_size %x dim 0 : (tensor<?x8xf32>) -> index
  %a = aten.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %f = dist.all_gather over #tp %a dim 0 extents [%n, %n] : (tensor<?x8xf32>) -> !dist.future<tensor<?x8xf32>>
  %r = aten.softmax %a dim 1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %b = aten.linear %r, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %g = dist.wait %f : !dist.future<tensor<?x8xf32>>
  %c = aten.cat %g, %b dim 0 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d = aten.linear %c, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %d : tensor<?x8xf32>
}
}
