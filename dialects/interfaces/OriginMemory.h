// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What was found out about dims of values while a function is asked for its sharding rules.
#ifndef SHARDC_DIALECTS_INTERFACES_ORIGINMEMORY_H
#define SHARDC_DIALECTS_INTERFACES_ORIGINMEMORY_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// As long as one lives, its thread remembers where dynamic sizes come from, so that rules of a
/// deep function cost no more to build than those of a shallow one. For code that changes no IR
/// meanwhile. One inside of another adds nothing.
class OriginMemory {
public:
  /// A dim of a tensor, or (-1) an index value.
  using Place = std::pair<mlir::Value, int64_t>;

  OriginMemory();
  ~OriginMemory();
  OriginMemory(const OriginMemory &) = delete;
  OriginMemory &operator=(const OriginMemory &) = delete;

  /// That of this thread; null if there is none.
  static OriginMemory *current();

  llvm::DenseMap<Place, Place> origins;

private:
  OriginMemory *outer;
};

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_ORIGINMEMORY_H
