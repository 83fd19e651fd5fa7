#mesh = #dist.mesh<["dp" = 4]>
#dp = #dist.axes<#mesh, ["dp"]>
func.func @forward(%x: tensor<64xf32>) -> tensor<64xf32> {
  %p = dist.permute over #dp pairs [[0, 1]] %x : tensor<64xf32>
  return %p : tensor<64xf32>
}
