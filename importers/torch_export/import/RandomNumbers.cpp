// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/RandomNumbers.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Random.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/RandomMode.h"
#include "dialects/sharding/RandomStep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace shardc::torch_export {

Value RandomNumbers::next(Location loc) {
  Emitter emit(builder, loc);
  Value value = symbolic ? emit.add(offset, symbolic) : offset;
  return fixed == 0 ? value : emit.add(value, emit.integer(fixed, builder.getI64Type()));
}

Value RandomNumbers::draw(Location loc, StringRef distribution, Type elementType,
                          ArrayRef<OpFoldResult> sizes) {
  auto state = RankedTensorType::get({}, builder.getI64Type());
  if (!areUsed()) {
    Block *block = builder.getInsertionBlock();
    auto named = [&](StringRef name) {
      return block->addArgument(state, NameLoc::get(builder.getStringAttr(name)));
    };
    seed = named(dist::kRandomSeed);
    offset = named(dist::kRandomOffset);
  }
  SmallVector<int64_t> fixedSizes;
  SmallVector<Value> dynamicSizes;
  splitMixed(sizes, fixedSizes, dynamicSizes);
  Value numbers = aten::RandomOp::create(builder, loc, distribution, seed, next(loc), fixedSizes,
                                         dynamicSizes, elementType);
  int64_t count = 1;
  for (int64_t size : fixedSizes)
    count *= ShapedType::isDynamic(size) ? 1 : size;
  if (dynamicSizes.empty()) {
    fixed += (count + kRandomStep - 1) / kRandomStep * kRandomStep;
    return numbers;
  }
  Value total = arith::ConstantIndexOp::create(builder, loc, count);
  Value step = arith::ConstantIndexOp::create(builder, loc, kRandomStep);
  for (Value size : dynamicSizes)
    total = arith::MulIOp::create(builder, loc, total, size);
  total = arith::CeilDivSIOp::create(builder, loc, total, step);
  total = arith::MulIOp::create(builder, loc, total, step);
  Emitter emit(builder, loc);
  Value drawn = emit.ofIndex(total, builder.getI64Type());
  symbolic = symbolic ? emit.add(symbolic, drawn) : drawn;
  return numbers;
}

LogicalResult RandomNumbers::describeArguments(func::FuncOp function) {
  if (!areUsed())
    return success();
  bool ok = true;
  unsigned first = cast<BlockArgument>(seed).getArgNumber();
  SmallVector<Attribute> all(first, builder.getDictionaryAttr({}));
  for (unsigned other = 0; other < first; ++other)
    if (DictionaryAttr attributes = function.getArgAttrDict(other))
      all[other] = attributes;
  const StringRef names[] = {dist::kRandomSeed, dist::kRandomOffset};
  for (StringRef name : names) {
    for (unsigned other = 0; other < first; ++other)
      if (llvm::is_contained(dist::getNames(cast<DictionaryAttr>(all[other])), name)) {
        ok = false;
        emitError(function.getLoc()) << "the model has a tensor called '" << name
                                     << "', which is the name of a state of programs with random "
                                        "numbers: call it otherwise";
      }
    NamedAttrList attributes;
    attributes.set(dist::kKindAttr, builder.getStringAttr("state"));
    attributes.set(dist::kNameAttr, builder.getStringAttr(name));
    attributes.set(dist::kInitialAttr, builder.getF64FloatAttr(0));
    all.push_back(attributes.getDictionary(builder.getContext()));
  }
  function.setArgAttrsAttr(builder.getArrayAttr(all));
  return success(ok);
}

void RandomNumbers::writeBack(Location loc, function_ref<void(Value, DictionaryAttr)> add) {
  if (!areUsed())
    return;
  NamedAttrList attributes;
  attributes.set(dist::kKindAttr, builder.getStringAttr("state_mutation"));
  attributes.set(dist::kNameAttr, builder.getStringAttr(dist::kRandomOffset));
  add(next(loc), attributes.getDictionary(builder.getContext()));
}

} // namespace shardc::torch_export
