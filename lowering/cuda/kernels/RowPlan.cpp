// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RowPlan.h"

#include <algorithm>
#include <bit>

namespace shardc::cuda {
namespace {

constexpr int64_t kLanes = 32;
constexpr int64_t kBlock = 128;
constexpr int64_t kLargestTeam = 512;
/// Values of the row that one thread may have in registers, next to what it computes with.
constexpr int64_t kRegisterValues = 64;
constexpr int64_t kRegisterElements = 32;
/// Ops of one thread's code.
constexpr int64_t kUnrolledOps = 6000;
/// Shared memory that all supported devices have for a block, less what reductions take.
constexpr int64_t kSharedBytes = 96 * 1024;
/// Threads that keep a large device busy, and those of few rows that are worth a second launch.
constexpr int64_t kEnoughThreads = 128 * 1024;
constexpr int64_t kSplitElements = 64 * 1024;
constexpr int64_t kLongRow = 16 * 1024;
constexpr int64_t kLongColumn = 1024;
constexpr int64_t kMostSplits = 512;

int64_t powerOfTwoFrom(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, value))));
}

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Planner {
public:
  explicit Planner(const RowShape &shape) : shape(shape) {
    plan.vector = shape.vector;
    plan.columns = shape.columns;
    known = shape.length != kUnknownSize;
    int64_t slack = shape.alignedRows ? 0 : shape.vector - 1;
    accesses = known && shape.length > 0 ? divideUp(shape.length + slack, shape.vector) : 0;
  }

  RowPlan run() {
    if (isSplit())
      return plan;
    if (shape.columns)
      planColumns();
    else
      planAlongRows();
    return plan;
  }

private:
  int64_t rowsOr(int64_t other) const { return shape.rows == kUnknownSize ? other : shape.rows; }

  /// Few rows that are long.
  bool isSplit() {
    if (shape.scan)
      return false;
    int64_t rows = rowsOr(1024);
    // A length that is not known may be long where there is one row, or few.
    int64_t length = known ? shape.length : (rows <= 16 ? 16 * kSplitElements : 1024);
    if (length < (shape.columns ? kLongColumn : kLongRow) || rows * length < kSplitElements)
      return false;
    int64_t perRow = shape.columns ? 8 : std::min<int64_t>(length / 16, kLargestTeam);
    if (rows * perRow * 2 > kEnoughThreads)
      return false;
    if (!shape.columns && rows >= 132)
      return false;
    plan.form = RowPlan::Form::Split;
    plan.team = shape.columns ? 8 : 256;
    plan.rowsOfBlock = shape.columns ? kLanes : 1;
    int64_t ofBlock = plan.team * plan.vector * 8;
    int64_t useful = divideUp(kEnoughThreads, std::max<int64_t>(1, rows * plan.team));
    int64_t most = known ? divideUp(shape.length, ofBlock) : kMostSplits;
    plan.splits = std::clamp<int64_t>(std::min(most, useful), 1, kMostSplits);
    return plan.splits > 1;
  }

  /// Whether a thread can have that many elements in registers.
  bool fits(int64_t elements) const {
    int64_t values = std::max<int64_t>(1, shape.keptValues);
    return elements <= kRegisterElements && elements * values <= kRegisterValues &&
           elements * shape.elementOps <= kUnrolledOps;
  }

  void planColumns() {
    plan.vector = 1;
    plan.rowsOfBlock = kLanes;
    int64_t length = known ? shape.length : 256;
    plan.team = shape.scan ? 1 : std::min<int64_t>(powerOfTwoFrom(divideUp(length, 4)), 32);
    while (plan.threads() < kBlock)
      plan.rowsOfBlock *= 2;
    int64_t each = known ? divideUp(shape.length, plan.team) : kUnknownSize;
    if (known && !shape.scan && fits(each) && each <= 8) {
      plan.form = RowPlan::Form::Registers;
      plan.chunks = each;
    }
  }

  void planAlongRows() {
    if (!known) {
      plan.team = shape.scan ? 256 : kLargestTeam / 2;
      return;
    }
    // As few threads as have the row in registers: then warps do not wait for each other. Few rows
    // get more threads.
    int64_t most = std::max<int64_t>(shape.vector, kRegisterElements);
    while (most > shape.vector && !fits(most))
      most /= 2;
    bool isFew = rowsOr(kEnoughThreads) * kLanes < kEnoughThreads;
    int64_t wanted = isFew ? std::max<int64_t>(shape.vector, most / 4) : most;
    wanted = divideUp(wanted, shape.vector);
    plan.team = std::min(powerOfTwoFrom(divideUp(accesses, wanted)), kLargestTeam);
    plan.rowsOfBlock = plan.team <= kLanes ? kBlock / plan.team : 1;
    if (shape.scan)
      return;
    int64_t chunks = divideUp(accesses, plan.team);
    if (fits(chunks * shape.vector)) {
      plan.form = RowPlan::Form::Registers;
      plan.chunks = chunks;
    } else if (shape.keptBytes > 0 && (accesses * shape.vector) * shape.keptBytes <= kSharedBytes &&
               plan.rowsOfBlock == 1) {
      plan.form = RowPlan::Form::Shared;
    }
  }

  const RowShape &shape;
  RowPlan plan;
  bool known;
  int64_t accesses;
};

} // namespace

RowPlan planRows(const RowShape &shape) { return Planner(shape).run(); }

} // namespace shardc::cuda
