// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_PLACEMENT_CORE_WORKLIST_H
#define SHARDC_PASSES_PLACEMENT_CORE_WORKLIST_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardc {

/// Ops to visit, each at most once at a time: in ascending order of their numbers as long as there
/// are larger ones than the last, then in descending order, and so on. Logarithmic time.
class Worklist {
public:
  explicit Worklist(size_t size) : waiting(size, false) {}

  void add(unsigned op) {
    if (waiting[op])
      return;
    waiting[op] = true;
    push(op);
  }

  std::optional<unsigned> next() {
    if (heap(forward).empty())
      forward = !forward;
    std::vector<unsigned> &h = heap(forward);
    if (h.empty()) {
      forward = true;
      last.reset();
      return std::nullopt;
    }
    std::pop_heap(h.begin(), h.end(), Order{forward});
    last = h.back();
    h.pop_back();
    waiting[*last] = false;
    return last;
  }

private:
  struct Order {
    bool ascending;
    bool operator()(unsigned a, unsigned b) const { return ascending ? a > b : a < b; }
  };
  std::vector<unsigned> &heap(bool ascending) { return ascending ? up : down; }
  void push(unsigned op) {
    // Ahead of the current sweep, or behind it.
    bool ascending = !last || (op > *last) == forward ? forward : !forward;
    std::vector<unsigned> &h = heap(ascending);
    h.push_back(op);
    std::push_heap(h.begin(), h.end(), Order{ascending});
  }

  std::vector<bool> waiting;
  std::vector<unsigned> up, down;
  std::optional<unsigned> last;
  bool forward = true;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_WORKLIST_H
