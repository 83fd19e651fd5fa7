// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tree over which ranks gather and spread, with rank 0 at its root.
#ifndef SHARDC_RUNTIME_CONTROL_TREE_H
#define SHARDC_RUNTIME_CONTROL_TREE_H

#include <algorithm>
#include <cstdint>

namespace shardc::rt {

constexpr uint32_t treeArity = 4;

/// Of a rank other than 0.
constexpr uint32_t treeParent(uint32_t rank) { return (rank - 1) / treeArity; }
/// The children of `rank` are firstChild ... endChild - 1.
constexpr uint32_t firstChild(uint32_t rank, uint32_t worldSize) {
  return uint32_t(std::min<uint64_t>(uint64_t(rank) * treeArity + 1, worldSize));
}
constexpr uint32_t endChild(uint32_t rank, uint32_t worldSize) {
  return uint32_t(std::min<uint64_t>(uint64_t(rank) * treeArity + 1 + treeArity, worldSize));
}
/// Whether `rank` is `root` or below it.
constexpr bool inSubtree(uint32_t rank, uint32_t root) {
  while (rank > root)
    rank = treeParent(rank);
  return rank == root;
}
constexpr uint32_t subtreeSize(uint32_t root, uint32_t worldSize) {
  uint32_t size = 0;
  // The ranks of one depth below `root` follow each other.
  for (uint64_t begin = root, end = uint64_t(root) + 1; begin < worldSize;
       begin = begin * treeArity + 1, end = (end - 1) * treeArity + treeArity + 1)
    size += uint32_t(std::min<uint64_t>(end, worldSize) - begin);
  return size;
}

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_TREE_H
