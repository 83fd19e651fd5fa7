// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predictions as attributes: columns, so that long programs stay readable.

#include "passes/collectives/Predict.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;

DictionaryAttr shardc::toAttribute(MLIRContext *context, const Prediction &prediction) {
  Builder b(context);
  SmallVector<StringRef> names, places;
  SmallVector<int32_t> streams;
  SmallVector<double> starts, durations;
  for (const Prediction::Span &span : prediction.spans) {
    names.push_back(span.name);
    places.push_back(span.location);
    streams.push_back(static_cast<int32_t>(span.stream));
    starts.push_back(span.startUs);
    durations.push_back(span.durationUs);
  }
  return b.getDictionaryAttr(
      {b.getNamedAttr("cost_model", b.getStringAttr(prediction.costModel)),
       b.getNamedAttr("step_us", b.getF64FloatAttr(prediction.stepUs)),
       b.getNamedAttr("exposed_us", b.getF64FloatAttr(prediction.exposedUs)),
       b.getNamedAttr("peak_bytes", b.getI64IntegerAttr(int64_t(prediction.peakBytes))),
       b.getNamedAttr("names", b.getStrArrayAttr(names)),
       b.getNamedAttr("places", b.getStrArrayAttr(places)),
       b.getNamedAttr("streams", b.getDenseI32ArrayAttr(streams)),
       b.getNamedAttr("starts_us", b.getDenseF64ArrayAttr(starts)),
       b.getNamedAttr("durations_us", b.getDenseF64ArrayAttr(durations))});
}

std::optional<Prediction> shardc::predictionOf(DictionaryAttr timeline) {
  auto model = timeline.getAs<StringAttr>("cost_model");
  auto step = timeline.getAs<FloatAttr>("step_us");
  auto exposed = timeline.getAs<FloatAttr>("exposed_us");
  auto peak = timeline.getAs<IntegerAttr>("peak_bytes");
  auto names = timeline.getAs<ArrayAttr>("names");
  auto places = timeline.getAs<ArrayAttr>("places");
  auto streams = timeline.getAs<DenseI32ArrayAttr>("streams");
  auto starts = timeline.getAs<DenseF64ArrayAttr>("starts_us");
  auto durations = timeline.getAs<DenseF64ArrayAttr>("durations_us");
  if (!model || !step || !exposed || !peak || !names || !places || !streams || !starts ||
      !durations)
    return std::nullopt;
  size_t count = names.size();
  auto isText = [](Attribute attribute) { return isa<StringAttr>(attribute); };
  if (places.size() != count || size_t(streams.size()) != count || size_t(starts.size()) != count ||
      size_t(durations.size()) != count || !llvm::all_of(names, isText) ||
      !llvm::all_of(places, isText) ||
      llvm::any_of(streams.asArrayRef(), [](int32_t s) { return s < 0 || s > 2; }))
    return std::nullopt;
  Prediction prediction;
  prediction.costModel = model.str();
  prediction.stepUs = step.getValueAsDouble();
  prediction.exposedUs = exposed.getValueAsDouble();
  prediction.peakBytes = uint64_t(peak.getInt());
  for (size_t i = 0; i < count; ++i)
    prediction.spans.push_back({cast<StringAttr>(names[i]).str(), cast<StringAttr>(places[i]).str(),
                                static_cast<Prediction::Stream>(streams[i]), starts[i],
                                durations[i]});
  return prediction;
}
