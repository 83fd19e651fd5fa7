// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All-to-alls of rows whose numbers the program computes when it runs.
#ifndef SHARDC_PASSES_LOCALIZE_ROWEXCHANGE_H
#define SHARDC_PASSES_LOCALIZE_ROWEXCHANGE_H

#include "passes/localize/Models.h"

namespace shardc {

class RowExchange {
public:
  /// Over the ranks that differ on these axes only, `ranks` of them; the first axis is the
  /// outermost.
  RowExchange(Localizer &localizer, mlir::OpBuilder &builder, llvm::ArrayRef<unsigned> axes,
              int64_t ranks)
      : localizer(localizer), builder(builder), axes(axes), ranks(ranks) {}

  /// How many rows this rank sends to each rank, and gets of each, as index values.
  struct Counts {
    llvm::SmallVector<mlir::Value> sent, arriving;
  };
  /// `sent` are the numbers of rows of this rank for each rank, i64.
  Counts count(mlir::Value sent, int64_t most);
  /// From the numbers of all: [from, to].
  Counts read(mlir::Value all, int64_t most);

  /// One row of `row`, a list of i64, of each rank: [ranks, length].
  mlir::Value gather(mlir::Value row);

  /// The rows, those for the first rank first; what is behind them all stays. The result has room
  /// for `room` rows, and zeros behind those that arrive.
  mlir::Value send(mlir::Value rows, llvm::ArrayRef<mlir::Value> sent,
                   llvm::ArrayRef<mlir::Value> arriving, int64_t room);

private:
  Localizer &localizer;
  mlir::OpBuilder &builder;
  llvm::SmallVector<unsigned> axes;
  int64_t ranks;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_ROWEXCHANGE_H
