// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/Dist.h"

#include "dialects/dist/Aliases.h"
#include "dialects/dist/Ordering.h"
#include "dialects/interfaces/IdentityOpInterface.h"
#include "dialects/sharding/Sharding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

#include "dialects/dist/Dialect.cpp.inc"

#include "dialects/dist/GroupInterface.cpp.inc"

#include "dialects/dist/CollectiveInterface.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/Attributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/dist/Types.cpp.inc"

llvm::hash_code shardc::hash_value(const DimSplit &split) {
  llvm::hash_code hash = llvm::hash_value(split.axes.size());
  for (const AxisSplit &axis : split.axes)
    hash = llvm::hash_combine(hash, axis.axis, axis.count, axis.blocks, axis.granule,
                              llvm::hash_combine_range(axis.sizes.begin(), axis.sizes.end()));
  return hash;
}

llvm::hash_code shardc::hash_value(const Sharding &sharding) { return sharding.hash(); }

LayoutAttr shardc::dist::getLayout(Type type) {
  auto tensorType = dyn_cast<RankedTensorType>(type);
  return tensorType ? dyn_cast_or_null<LayoutAttr>(tensorType.getEncoding()) : LayoutAttr();
}

RankedTensorType shardc::dist::getDeliveredType(Type tensorOrFuture) {
  if (auto future = dyn_cast<FutureType>(tensorOrFuture))
    return future.getTensorType();
  return dyn_cast<RankedTensorType>(tensorOrFuture);
}

namespace {
template <typename Op>
struct IdentityModel : IdentityOpInterface::ExternalModel<IdentityModel<Op>, Op> {};
} // namespace

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/Attributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dist/Types.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/Ops.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/Ordering.cpp.inc"
      >();
  addInterfaces<AliasInterface>();
  RedistributeOp::attachInterface<IdentityModel<RedistributeOp>>(*getContext());
  ConstrainOp::attachInterface<IdentityModel<ConstrainOp>>(*getContext());
}

Operation *DistDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location loc) {
  auto typed = dyn_cast<TypedAttr>(value);
  if (!typed || typed.getType() != type)
    return nullptr;
  return arith::ConstantOp::create(builder, loc, typed);
}
