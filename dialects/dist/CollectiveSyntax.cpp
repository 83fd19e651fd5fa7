// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text form of the collectives: one grammar for all kinds.
//
//   op      := reduction? 'over' group ('from' root)? ('pairs' pairs)? tensors? attr-dict ':' types
//   tensor  := operand ('dim' d | 'split' d) ('extents' list)? ('concat' d ('extents' list)?)?
//              ('full' operand)?
//   list    := '[' (integer | operand), ... ']'
//   types   := type-list            where results have the types of the operands
//            | functional-type
// Which clauses a kind has follows from what it is. The group comes first because an attribute
// written out in full must not stand before a colon: MLIR would take what follows for the
// attribute's type.

#include "dialects/dist/Dist.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {
/// The clauses of a kind.
struct Grammar {
  bool reduction = false;
  llvm::StringLiteral splitKeyword = "";  ///< before the dim that is cut, if there is one
  llvm::StringLiteral concatKeyword = ""; ///< before the dim that is concatenated, if there is one
  bool dimIsOptional = false;             ///< a permute has a dim only where extents differ
};

using Operand = OpAsmParser::UnresolvedOperand;

/// What is written for one tensor.
struct TensorClauses {
  Operand tensor;
  SMLoc loc;
  int64_t splitDim = -1, concatDim = -1;
  SmallVector<int64_t> splitExtents, concatExtents;
  SmallVector<Operand> sizes; ///< operands of the extent lists, then full
  bool full = false;
};
} // namespace

static Grammar grammarOf(CollectiveKind kind) {
  Grammar grammar;
  grammar.reduction = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
  if (kind == CollectiveKind::AllGather || kind == CollectiveKind::Permute)
    grammar.concatKeyword = "dim";
  if (kind == CollectiveKind::ReduceScatter)
    grammar.splitKeyword = "dim";
  if (kind == CollectiveKind::AllToAll) {
    grammar.splitKeyword = "split";
    grammar.concatKeyword = "concat";
  }
  grammar.dimIsOptional = kind == CollectiveKind::Permute;
  return grammar;
}

//===------------------------------------------------------------------------------------------===//
// Parsing
//===------------------------------------------------------------------------------------------===//

/// `[3, %n]`: integers into `values`, operands into `sizes` with `kDynamic` in their place.
static ParseResult parseMixedList(OpAsmParser &parser, SmallVectorImpl<int64_t> &values,
                                  SmallVectorImpl<Operand> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    Operand operand;
    OptionalParseResult dynamic = parser.parseOptionalOperand(operand);
    if (!dynamic.has_value())
      return parser.parseInteger(values.emplace_back());
    sizes.push_back(operand);
    values.push_back(ShapedType::kDynamic);
    return *dynamic;
  });
}

static ParseResult parseDimClause(OpAsmParser &parser, StringRef keyword, bool optional,
                                  int64_t &dim, SmallVectorImpl<int64_t> &extents,
                                  SmallVectorImpl<Operand> &sizes) {
  if (optional && failed(parser.parseOptionalKeyword(keyword)))
    return success();
  if ((!optional && parser.parseKeyword(keyword)) || parser.parseInteger(dim))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("extents")))
    return parseMixedList(parser, extents, sizes);
  return success();
}

static ParseResult parseClauses(OpAsmParser &parser, const Grammar &grammar,
                                TensorClauses &clauses) {
  if (!grammar.splitKeyword.empty() &&
      parseDimClause(parser, grammar.splitKeyword, /*optional=*/false, clauses.splitDim,
                     clauses.splitExtents, clauses.sizes))
    return failure();
  if (!grammar.concatKeyword.empty()) {
    if (parseDimClause(parser, grammar.concatKeyword, grammar.dimIsOptional, clauses.concatDim,
                       clauses.concatExtents, clauses.sizes))
      return failure();
    clauses.full = succeeded(parser.parseOptionalKeyword("full"));
    if (clauses.full && parser.parseOperand(clauses.sizes.emplace_back()))
      return failure();
  }
  return success();
}

static ParseResult parseTensors(OpAsmParser &parser, const Grammar &grammar,
                                SmallVectorImpl<TensorClauses> &tensors) {
  do {
    TensorClauses clauses;
    clauses.loc = parser.getCurrentLocation();
    OptionalParseResult operand = parser.parseOptionalOperand(clauses.tensor);
    if (!operand.has_value()) {
      if (tensors.empty())
        return success();
      return parser.emitError(clauses.loc, "expected a tensor operand");
    }
    if (*operand || parseClauses(parser, grammar, clauses))
      return failure();
    tensors.push_back(std::move(clauses));
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

static ParseResult parseTypes(OpAsmParser &parser, SmallVectorImpl<Type> &operands,
                              SmallVectorImpl<Type> &results) {
  if (parser.parseColon())
    return failure();
  if (succeeded(parser.parseOptionalLParen())) {
    if (failed(parser.parseOptionalRParen()) &&
        (parser.parseTypeList(operands) || parser.parseRParen()))
      return failure();
    return parser.parseArrowTypeList(results);
  }
  if (parser.parseTypeList(operands))
    return failure();
  results.assign(operands.begin(), operands.end());
  return success();
}

/// The size operands of a tensor must be those that its types call for: in the list of all of them
/// nothing says which tensor one belongs to.
static ParseResult checkSizes(OpAsmParser &parser, const Grammar &grammar,
                              const TensorClauses &clauses, Type result) {
  RankedTensorType type = getDeliveredType(result);
  if (!type)
    return success(); // for the verifier to report
  bool needsFull = !grammar.dimIsOptional && needsFullExtent(clauses.splitDim, clauses.concatDim,
                                                             !clauses.concatExtents.empty(), type);
  if (needsFull && !clauses.full)
    return parser.emitError(clauses.loc, "the full extent of dim ")
           << clauses.concatDim << " is not known from " << type << ": give it by 'full'";
  if (clauses.full && !needsFull)
    return parser.emitError(clauses.loc, "the full extent of dim ")
           << clauses.concatDim << " is known, so 'full' must not be given";
  return success();
}

static void addLists(Builder &builder, ArrayRef<SmallVector<int64_t>> lists, StringRef name,
                     NamedAttrList &attributes) {
  if (llvm::all_of(lists, [](const auto &list) { return list.empty(); }))
    return;
  SmallVector<Attribute> entries;
  for (ArrayRef<int64_t> list : lists)
    entries.push_back(builder.getDenseI64ArrayAttr(list));
  attributes.set(name, builder.getArrayAttr(entries));
}

static ParseResult parsePairs(OpAsmParser &parser, NamedAttrList &attributes) {
  SmallVector<int64_t> pairs;
  auto parsePair = [&]() -> ParseResult {
    return failure(parser.parseLSquare() || parser.parseInteger(pairs.emplace_back()) ||
                   parser.parseComma() || parser.parseInteger(pairs.emplace_back()) ||
                   parser.parseRSquare());
  };
  if (parser.parseKeyword("pairs") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePair))
    return failure();
  attributes.set("pairs", parser.getBuilder().getDenseI64ArrayAttr(pairs));
  return success();
}

static ParseResult parseGroup(OpAsmParser &parser, NamedAttrList &attributes) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute group;
  if (parser.parseKeyword("over") || parser.parseAttribute(group))
    return failure();
  if (!isa<GroupAttrInterface>(group))
    return parser.emitError(loc, "expected a group: #dist.axes, #dist.groups or "
                                 "#dist.named_group");
  attributes.set("group", group);
  return success();
}

/// Dims and extents of all tensors as attributes. Only an all-to-all has two dims for each.
static void addDims(Builder &builder, CollectiveKind kind, ArrayRef<TensorClauses> tensors,
                    NamedAttrList &attributes) {
  SmallVector<int64_t> splitDims, concatDims;
  SmallVector<SmallVector<int64_t>> splitExtents, concatExtents;
  for (const TensorClauses &clauses : tensors) {
    splitDims.push_back(clauses.splitDim);
    concatDims.push_back(clauses.concatDim);
    splitExtents.push_back(clauses.splitExtents);
    concatExtents.push_back(clauses.concatExtents);
  }
  bool both = kind == CollectiveKind::AllToAll;
  if (both || kind == CollectiveKind::ReduceScatter) {
    attributes.set(both ? "split_dims" : "dims", builder.getDenseI64ArrayAttr(splitDims));
    addLists(builder, splitExtents, both ? "split_extents" : "extents", attributes);
  }
  if (both || kind == CollectiveKind::AllGather || kind == CollectiveKind::Permute) {
    attributes.set(both ? "concat_dims" : "dims", builder.getDenseI64ArrayAttr(concatDims));
    addLists(builder, concatExtents, both ? "concat_extents" : "extents", attributes);
  }
}

static ParseResult parseCollective(OpAsmParser &parser, OperationState &state,
                                   CollectiveKind kind) {
  Builder &builder = parser.getBuilder();
  Grammar grammar = grammarOf(kind);
  if (grammar.reduction) {
    shardc::Reduction reduction;
    if (parseReductionKeyword(parser, reduction))
      return failure();
    state.addAttribute("reduction", ReductionAttr::get(builder.getContext(), reduction));
  }
  if (parseGroup(parser, state.attributes))
    return failure();
  if (kind == CollectiveKind::Broadcast) {
    int64_t root;
    if (parser.parseKeyword("from") || parser.parseInteger(root))
      return failure();
    state.addAttribute("root", builder.getI64IntegerAttr(root));
  }
  if (kind == CollectiveKind::Permute && parsePairs(parser, state.attributes))
    return failure();
  SmallVector<TensorClauses> tensors;
  SMLoc loc = parser.getCurrentLocation();
  if (parseTensors(parser, grammar, tensors))
    return failure();
  SmallVector<Type> operandTypes, resultTypes;
  if (parser.parseOptionalAttrDict(state.attributes) ||
      parseTypes(parser, operandTypes, resultTypes))
    return failure();
  if (operandTypes.size() != tensors.size() || resultTypes.size() != tensors.size())
    return parser.emitError(loc, "expected one operand type and one result type for each of ")
           << tensors.size() << " tensors, got " << operandTypes.size() << " and "
           << resultTypes.size();
  addDims(builder, kind, tensors, state.attributes);
  SmallVector<Operand> sizes;
  for (auto [clauses, operand, result] : llvm::zip_equal(tensors, operandTypes, resultTypes)) {
    if (checkSizes(parser, grammar, clauses, result) ||
        parser.resolveOperand(clauses.tensor, operand, state.operands))
      return failure();
    sizes.append(clauses.sizes);
  }
  if (parser.resolveOperands(sizes, builder.getIndexType(), state.operands))
    return failure();
  if (kind != CollectiveKind::AllReduce && kind != CollectiveKind::Broadcast)
    state.addAttribute("operandSegmentSizes",
                       builder.getDenseI32ArrayAttr({static_cast<int32_t>(tensors.size()),
                                                     static_cast<int32_t>(sizes.size())}));
  state.addTypes(resultTypes);
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Printing
//===------------------------------------------------------------------------------------------===//

static void printMixedList(OpAsmPrinter &printer, ArrayRef<int64_t> values, ValueRange dynamic) {
  printer << " extents [";
  llvm::interleaveComma(values, printer, [&](int64_t value) {
    if (!ShapedType::isDynamic(value)) {
      printer << value;
      return;
    }
    printer << dynamic.front();
    dynamic = dynamic.drop_front();
  });
  printer << "]";
}

static void printDimClause(OpAsmPrinter &printer, StringRef keyword, int64_t dim,
                           ArrayRef<int64_t> extents, ValueRange dynamic) {
  if (keyword.empty() || dim < 0)
    return;
  printer << " " << keyword << " " << dim;
  if (!extents.empty())
    printMixedList(printer, extents, dynamic);
}

static void printTensors(OpAsmPrinter &printer, CollectiveOpInterface op, const Grammar &grammar) {
  SmallVector<TensorSizes> sizes = getTensorSizes(op);
  printer << (op.getTensors().empty() ? "" : " ");
  llvm::interleaveComma(llvm::enumerate(op.getTensors()), printer, [&](auto entry) {
    unsigned i = entry.index();
    const TensorSizes &tensorSizes = sizes[i];
    printer << entry.value();
    printDimClause(printer, grammar.splitKeyword, op.getSplitDim(i), op.getSplitExtents(i),
                   tensorSizes.splitExtents);
    printDimClause(printer, grammar.concatKeyword, op.getConcatDim(i), op.getConcatExtents(i),
                   tensorSizes.concatExtents);
    if (tensorSizes.full)
      printer << " full " << tensorSizes.full;
  });
}

static void printCollective(OpAsmPrinter &printer, CollectiveOpInterface op) {
  Grammar grammar = grammarOf(op.getCollectiveKind());
  if (grammar.reduction)
    printer << " " << reductionName(*op.getReductionOrNone());
  printer << " over " << op.getGroup();
  if (auto broadcast = dyn_cast<BroadcastOp>(op.getOperation()))
    printer << " from " << broadcast.getRoot();
  if (auto permute = dyn_cast<PermuteOp>(op.getOperation())) {
    ArrayRef<int64_t> pairs = permute.getPairs();
    printer << " pairs [";
    llvm::interleaveComma(llvm::seq<size_t>(0, pairs.size() / 2), printer, [&](size_t i) {
      printer << "[" << pairs[2 * i] << ", " << pairs[2 * i + 1] << "]";
    });
    printer << "]";
  }
  printTensors(printer, op, grammar);
  printer.printOptionalAttrDict(
      op->getAttrs(), {"reduction", "group", "root", "pairs", "dims", "extents", "split_dims",
                       "concat_dims", "split_extents", "concat_extents", "operandSegmentSizes"});
  printer << " : ";
  TypeRange operands = op.getTensors().getTypes();
  if (!operands.empty() && operands == op->getResultTypes()) {
    llvm::interleaveComma(operands, printer);
    return;
  }
  printer.printFunctionalType(operands, op->getResultTypes());
}

// Each op parses and prints by the one grammar.
#define SHARDC_COLLECTIVE_SYNTAX(OP, KIND)                                                         \
  ParseResult OP::parse(OpAsmParser &parser, OperationState &state) {                              \
    return parseCollective(parser, state, CollectiveKind::KIND);                                   \
  }                                                                                                \
  void OP::print(OpAsmPrinter &printer) { printCollective(printer, *this); }

SHARDC_COLLECTIVE_SYNTAX(AllReduceOp, AllReduce)
SHARDC_COLLECTIVE_SYNTAX(AllGatherOp, AllGather)
SHARDC_COLLECTIVE_SYNTAX(ReduceScatterOp, ReduceScatter)
SHARDC_COLLECTIVE_SYNTAX(AllToAllOp, AllToAll)
SHARDC_COLLECTIVE_SYNTAX(BroadcastOp, Broadcast)
SHARDC_COLLECTIVE_SYNTAX(PermuteOp, Permute)
