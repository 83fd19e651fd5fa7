// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/verify/Sequence.h"

#include "dialects/dist/FunctionAttributes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// The elements of a type, or its shape where that is not known.
static void printCount(RankedTensorType type, llvm::raw_ostream &os) {
  if (type.hasStaticShape()) {
    os << type.getNumElements();
    return;
  }
  llvm::interleave(
      type.getShape(), os,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          os << "?";
        else
          os << size;
      },
      "x");
}

static void printExtents(ArrayRef<int64_t> extents, llvm::raw_ostream &os) {
  if (extents.empty() || llvm::any_of(extents, ShapedType::isDynamic))
    return;
  os << " in [";
  llvm::interleaveComma(extents, os);
  os << "]";
}

/// What the whole group has of a tensor.
static void printTensor(CollectiveOpInterface op, unsigned tensor, llvm::raw_ostream &os) {
  switch (op.getCollectiveKind()) {
  case CollectiveKind::AllGather:
    printCount(op.getResultTensorType(tensor), os);
    break;
  case CollectiveKind::AllReduce:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::Broadcast:
    printCount(op.getOperandType(tensor), os);
    break;
  case CollectiveKind::AllToAll:
  case CollectiveKind::Permute:
    // What is sent differs from rank to rank where extents do.
    if (op.getConcatExtents(tensor).empty() && op.getSplitExtents(tensor).empty() &&
        op.getConcatDim(tensor) < 0)
      printCount(op.getOperandType(tensor), os);
    break;
  }
  if (op.getCollectiveKind() != CollectiveKind::AllToAll) {
    printExtents(op.getConcatExtents(tensor), os);
    printExtents(op.getSplitExtents(tensor), os);
  }
}

std::vector<SequenceEntry> shardc::getSequence(func::FuncOp function) {
  std::vector<SequenceEntry> sequence;
  llvm::DenseMap<Attribute, std::string> groups;
  function.walk([&](CollectiveOpInterface op) {
    if (op->getNumResults() == 0) // sends nothing
      return;
    SequenceEntry entry{op, getOrdinal(op, static_cast<int64_t>(sequence.size())), "", ""};
    llvm::raw_string_ostream what(entry.what), counts(entry.counts);
    what << StringRef(nameOf(op.getCollectiveKind()));
    if (std::optional<Reduction> reduction = op.getReductionOrNone())
      what << " " << reductionName(*reduction);
    std::string &group = groups[op.getGroup()];
    if (group.empty())
      llvm::raw_string_ostream(group) << op.getGroup().getCanonicalGroup();
    what << " over " << group;
    for (StringRef name : {"root", "pairs"}) // of broadcast and permute
      if (Attribute attribute = op->getAttr(name))
        what << " " << name << " " << attribute;
    what << " of";
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      what << (i ? ", " : " ") << op.getOperandType(i).getElementType();
      if (op.getSplitDim(i) >= 0)
        what << " cut along " << op.getSplitDim(i);
      if (op.getConcatDim(i) >= 0)
        what << " along " << op.getConcatDim(i);
      counts << (i ? ", " : "");
      printTensor(op, i, counts);
    }
    sequence.push_back(std::move(entry));
  });
  return sequence;
}

std::string shardc::hashSequence(ArrayRef<SequenceEntry> sequence) {
  llvm::SHA1 hash;
  for (const SequenceEntry &entry : sequence) {
    hash.update(entry.what);
    hash.update("\n");
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
}
