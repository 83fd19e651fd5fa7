// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's part in exchanges: parts of its subtree come together and go to its parent; the root
// spreads all of them. Does not communicate.
#ifndef SHARDC_RUNTIME_CONTROL_TREEEXCHANGE_H
#define SHARDC_RUNTIME_CONTROL_TREEEXCHANGE_H

#include "runtime/control/Message.h"

namespace shardc::rt {

class TreeExchange {
public:
  TreeExchange(uint32_t rank, uint32_t worldSize) : rank(rank), worldSize(worldSize) {}

  /// Takes what this rank (`from` is itself) or a child gives. Returns what is wrong with it, or
  /// nothing. `disagree` is set if it is fine but for another topic than the others'.
  std::optional<std::string> add(uint32_t from, Gathered gathered, bool &disagree);
  /// Whether this rank and all of its children have given their parts: then `gathered` is sent to
  /// the parent, or, at the root, `spread` to the children.
  bool complete() const { return givers == wanted(); }
  const Gathered &gathered() const { return current; }
  Spread spread() const;
  /// Takes what the root spreads; returns what is wrong with it, or nothing. The next exchange may
  /// then begin.
  std::optional<std::string> finish(const Spread &spread);
  /// Ranks of the subtree whose parts are not here.
  std::vector<uint32_t> missing() const;
  uint64_t number() const { return current.number; }

private:
  uint32_t wanted() const;

  const uint32_t rank, worldSize;
  Gathered current;
  uint32_t givers = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_TREEEXCHANGE_H
