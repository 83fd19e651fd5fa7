// RUN: shard-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{mesh axis "a" is named twice}}
#m = #dist.mesh<["a" = 2, "a" = 4]>

// -----
// expected-error@+1 {{mesh axis "a" has size 0, expected at least 1}}
#m = #dist.mesh<["a" = 0]>

// -----
// expected-error@+1 {{the mesh lists 3 device ids, but its axes need 2}}
#m = #dist.mesh<["a" = 2], devices = [0, 1, 2]>

// -----
// expected-error@+1 {{the mesh has 4611686018427387904 devices, at most 1048576 are supported}}
#m = #dist.mesh<["a" = 4611686018427387904]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{expected a placement: R, S(dim), P(reduction) or ?}}
#l = #dist.layout<#mesh, [R, X]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{expected blocks, granule or sizes, got 'size'}}
#l = #dist.layout<#mesh, [R, S(0, size = 3)]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{expected sum, avg, min, max or prod, got 'mean'}}
#l = #dist.layout<#mesh, [R, P(mean)]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{the mesh has 2 axes, but 1 placements are given}}
#l = #dist.layout<#mesh, [R]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{the mesh has no axis "c"}}
#l = #dist.layout<#mesh, [S(0), S(0)], order = ["c", "a"]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{the order must name every mesh axis once}}
#l = #dist.layout<#mesh, [S(0), S(0)], order = ["a", "a"]>

// -----
// What depends on the shape is checked where the layout meets it: in the type.
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "b": S(2): dim 2 is out of range for a tensor of rank 2}}
func.func private @f(tensor<8x8xf32, #dist.layout<#mesh, [R, S(2)]>>)

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "b": the placement is open, expected R, S or P}}
func.func private @f(tensor<8x8xf32, #dist.layout<#mesh, [R, ?]>>)

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "b": S(0, blocks = 3): 3 blocks do not divide dim 0 of 8}}
func.func private @f(tensor<8x8xf32, #dist.layout<#mesh, [R, S(0, blocks = 3)]>>)

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a": S(0, sizes = [5, 2]): sizes sum to 7, but dim 0 of 8 needs 8}}
func.func private @f(tensor<8x8xf32, #dist.layout<#mesh, [S(0, sizes = [5, 2]), R]>>)

// -----
#mesh = #dist.mesh<["a" = 2]>
// expected-error@+1 {{dim 0 has no fixed size, so its shards cannot have explicit sizes}}
func.func private @f(tensor<?xf32, #dist.layout<#mesh, [S(0, sizes = [5, 2])]>>)

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{the mesh has no axis "c"; its axes are ["a" = 2, "b" = 4]}}
#g = #dist.axes<#mesh, ["c"]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a" is listed twice}}
#g = #dist.axes<#mesh, ["a", "a"]>

// -----
// expected-error@+1 {{all groups must have one size: expected 2 ranks, got 1}}
#g = #dist.groups<[[0, 1], [2]]>

// -----
// expected-error@+1 {{rank 1 is listed twice}}
#g = #dist.groups<[[0, 1], [2, 1]]>

// -----
// expected-error@+1 {{expected at least one group, and no empty one}}
#g = #dist.groups<[]>

// -----
// expected-error@+1 {{rank -1 is out of range}}
#g = #dist.groups<[[-1]]>

// -----
// expected-error@+1 {{group "x" has size 0, expected 1 to 1048576}}
#g = #dist.named_group<"x", 0>

// -----
// expected-error@+1 {{a size must not be negative, got -3}}
#s = #dist.size<-3>

// -----
// expected-error@+1 {{a divisor must be at least 1, got 0}}
#s = #dist.size<n floordiv 0>

// -----
// expected-error@+1 {{expected a size: an integer, a symbol or '('}}
#s = #dist.size<n + >

// -----
// expected-error@+1 {{"over" is not a name for a symbol}}
#s = #dist.size<over + 1>

// -----
// expected-error@+1 {{symbol "n": [3, 2] is not a range of sizes}}
#s = #dist.symbol<n in [3, 2]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{the table has 3 entries, expected one for each position of the mesh}}
#e = #dist.extents<table [1, 2, 3] over #mesh>

// -----
#mesh = #dist.mesh<["a" = 2]>
// expected-error@+1 {{an extent must not be negative}}
#e = #dist.extents<table [1, -2] over #mesh>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a" is listed twice}}
#e = #dist.extents<8 over #mesh ["a", "a"]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{axis "a": S(0, blocks = 3): 3 blocks do not divide dim 0 of 8}}
#e = #dist.extents<8 over #mesh ["a"(blocks = 3)]>

// -----
#mesh = #dist.mesh<["a" = 2, "b" = 4]>
// expected-error@+1 {{expected both a mesh and axes to split over, or neither}}
#e = #dist.extents<8 over #mesh []>

// -----
// expected-error@+1 {{the expression is nested too deeply}}
#s = #dist.size<(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((n)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))>
