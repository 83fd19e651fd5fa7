// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads of pools of one to three spatial dims, and their backward.
#include "importers/torch_export/import/Adjoint.h"
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"
#include "importers/torch_export/import/Spatial.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Inference.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// A pool by its op, of which the overload gives the arguments.
struct Pool {
  Call &call;
  bool isMax, isAdaptive;
  int64_t spatial;
  Value self;
  SmallVector<NamedAttribute> attributes;

  static FailureOr<Pool> of(Call &call) {
    StringRef packet = StringRef(call.schema.overload).split('.').first;
    // The dims stand in the name: _adaptive_avg_pool3d_backward.
    size_t at = packet.find("pool");
    Pool pool{
        call, packet.contains("max_pool"), packet.contains("adaptive"), packet[at + 4] - '0', {},
        {}};
    FailureOr<Value> self = call.tensor("self");
    if (failed(self) || failed(pool.read()))
      return failure();
    pool.self = *self;
    return pool;
  }

  LogicalResult read() {
    if (isAdaptive) {
      if (call.schema.find("output_size"))
        return add("output_size");
      // Of a backward: as many parts as the cotangent has elements.
      FailureOr<Value> grad = call.tensor("grad_output");
      if (failed(grad))
        return failure();
      attributes.push_back(
          call.integersAttr("output_size", aten::shapeOf(*grad).take_back(spatial)));
      return success();
    }
    for (StringRef name : {"kernel_size", "stride", "padding", "dilation"})
      if (call.schema.find(name) && failed(add(name)))
        return failure();
    for (StringRef name : {"ceil_mode", "count_include_pad"}) {
      if (!call.schema.find(name))
        continue;
      FailureOr<bool> flag = call.boolean(name);
      if (failed(flag))
        return failure();
      if (*flag)
        attributes.push_back(call.builder.getNamedAttr(name, call.builder.getUnitAttr()));
    }
    if (!call.schema.find("divisor_override"))
      return success();
    FailureOr<std::optional<int64_t>> divisor = call.integer("divisor_override");
    if (failed(divisor))
      return failure();
    if (*divisor)
      attributes.push_back(call.integerAttr("divisor_override", **divisor));
    return success();
  }

  /// A list of numbers, of which one stands for all dims; no stride is that of the kernel.
  LogicalResult add(StringRef name) {
    FailureOr<std::optional<SmallVector<int64_t>>> list = call.integers(name);
    if (failed(list))
      return failure();
    if (!*list)
      return call.error() << "the argument '" << name << "' is missing";
    attributes.push_back(call.integersAttr(name, spread(**list, spatial)));
    return success();
  }

  /// Parts of equal lengths are windows beside each other. (Of a whole dim there is one part, and
  /// what ranks have of that is summed.)
  void makePlain() {
    ArrayRef<int64_t> image = aten::shapeOf(self).take_back(spatial);
    auto parts = cast<DenseI64ArrayAttr>(attributes.front().getValue()).asArrayRef();
    SmallVector<int64_t> lengths;
    for (auto [size, count] : llvm::zip_equal(image, parts)) {
      bool isWhole = count < 1 || (count == 1 && size != 1);
      if (ShapedType::isDynamic(size) || isWhole || size == 0 || size % count != 0)
        return;
      lengths.push_back(size / count);
    }
    isAdaptive = false;
    SmallVector<int64_t> zeros(spatial, 0), ones(spatial, 1);
    attributes = {call.integersAttr("kernel_size", lengths), call.integersAttr("stride", lengths),
                  call.integersAttr("padding", zeros)};
    if (isMax)
      attributes.push_back(call.integersAttr("dilation", ones));
  }

  FailureOr<Value> build(bool positions = false) {
    if (isAdaptive)
      makePlain();
    std::string name = isAdaptive ? "aten.adaptive_" : "aten.";
    name += isMax ? "max_pool" : "avg_pool";
    if (positions)
      name += "_positions";
    return call.buildOne(name, {{"self", {self}}}, attributes);
  }
};

} // namespace

FailureOr<Results> buildPool(Call &call) {
  FailureOr<Pool> pool = Pool::of(call);
  if (failed(pool))
    return failure();
  FailureOr<Value> value = pool->build();
  if (failed(value))
    return failure();
  Results results{*value};
  if (call.results.size() < 2)
    return results;
  results.push_back({});
  if (call.isUsed(1)) {
    FailureOr<Value> positions = pool->build(/*positions=*/true);
    if (failed(positions))
      return failure();
    results[1] = *positions;
  }
  return results;
}

FailureOr<Results> buildPoolBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output");
  FailureOr<Pool> pool = Pool::of(call);
  if (failed(grad) || failed(pool))
    return failure();
  FailureOr<Value> forward = pool->build();
  if (failed(forward))
    return failure();
  return adjointOf(call, forward->getDefiningOp(), *grad, {0});
}

// Each element goes to its place in the row of all places of its image and channel; of several that
// go to one, the last one stays.
FailureOr<Results> buildUnpool(Call &call) {
  FailureOr<Value> self = call.tensor("self"), indices = call.tensor("indices");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(indices) || failed(sizes))
    return failure();
  int64_t spatial = call.schema.overload == "max_unpool2d.default" ? 2 : 3;
  auto leading = aten::typeOf(*self).getRank() - spatial;
  auto rows = [&](ArrayRef<OpFoldResult> list) {
    SmallVector<OpFoldResult> row(list.take_front(leading));
    OpFoldResult count = call.builder.getIndexAttr(1);
    for (OpFoldResult size : list.drop_front(leading))
      count = multiplySizes(call.builder, call.loc, count, size);
    row.push_back(count);
    return row;
  };
  Emitter emit(call.builder, call.loc);
  SmallVector<OpFoldResult> read = rows(sizesOf(call.builder, call.loc, *self));
  FailureOr<Value> written =
      call.buildOne("aten.scatter",
                    {{"self", {emit.zeros(rows(*sizes), aten::elementTypeOf(*self))}},
                     {"index", {emit.view(*indices, read)}},
                     {"src", {emit.view(*self, read)}}},
                    {call.integerAttr("dim", leading),
                     call.builder.getNamedAttr("reduce", call.builder.getStringAttr("assign"))});
  if (failed(written))
    return failure();
  return Results{emit.view(*written, *sizes)};
}

} // namespace shardc::torch_export
