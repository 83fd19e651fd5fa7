// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move elements along a sharded dim (PiecesOpInterface), and redistributions behind them.
// Where such ops and redistributions follow each other, and nothing else uses what is between them,
// elements go straight from the rank that has them at first to the one that needs them at last.
#ifndef SHARDC_PASSES_LOCALIZE_REARRANGEMENTS_H
#define SHARDC_PASSES_LOCALIZE_REARRANGEMENTS_H

#include "passes/localize/Models.h"
#include "passes/localize/MovePieces.h"

namespace shardc {

/// The dims along which the present op moves elements and that an operand or a result has sharded.
llvm::SmallVector<int64_t> shardedMovedDims(Localizer &localizer);

/// Whether an operand of the present op is itself the work of ops that move elements along `dim`,
/// or of redistributions of that dim, which nothing else needs.
bool isBehindMoves(Localizer &localizer, int64_t dim);

/// What a dim of an operand of the present op is made of by ops that move elements along it, and
/// by redistributions of that dim, which nothing else needs. Nothing where it is the work of none.
struct MovedOperand {
  Pieces pieces;
  llvm::SmallVector<PieceSource> sources;
};
/// Whether there is such a thing.
bool isMovedOperand(Localizer &localizer, int64_t dim, unsigned operand = 0);
std::optional<MovedOperand> movedOperand(Localizer &localizer, mlir::OpBuilder &builder,
                                         int64_t dim, unsigned operand = 0);

/// The results of the present op, of which the elements have moved along `dims`; along other moved
/// dims they are as the operand has them. Refuses what is not known.
LocalValues moveAlong(Localizer &localizer, mlir::OpBuilder &builder, mlir::ValueRange operands,
                      llvm::ArrayRef<int64_t> dims);

/// The result of a redistribution of one dim that is behind ops that move elements along it, or of
/// one that tells all ranks what is at one position. Null for any other.
mlir::Value moveBehindOps(Localizer &localizer, mlir::OpBuilder &builder, dist::RedistributeOp op);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_REARRANGEMENTS_H
