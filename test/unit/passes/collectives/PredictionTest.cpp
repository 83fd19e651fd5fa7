// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/Predict.h"

#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;

namespace {

Prediction twoSpans() {
  Prediction prediction;
  prediction.costModel = "cpu-local";
  prediction.stepUs = 7.5;
  prediction.exposedUs = 2.5;
  prediction.peakBytes = 4096;
  prediction.spans = {{"linear", "fc (model.py:3)", Prediction::Stream::Compute, 0, 5},
                      {"gather", "", Prediction::Stream::Waiting, 5, 2.5}};
  return prediction;
}

/// The attribute with one entry changed, or left out where `value` is null.
std::optional<Prediction> withEntry(DictionaryAttr timeline, StringRef name, Attribute value) {
  NamedAttrList entries(timeline);
  value ? (void)entries.set(name, value) : (void)entries.erase(name);
  return predictionOf(entries.getDictionary(timeline.getContext()));
}

TEST(Prediction, AttributeHoldsAllOfIt) {
  MLIRContext context;
  Prediction expected = twoSpans();
  std::optional<Prediction> read = predictionOf(toAttribute(&context, expected));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->costModel, expected.costModel);
  EXPECT_EQ(read->stepUs, expected.stepUs);
  EXPECT_EQ(read->exposedUs, expected.exposedUs);
  EXPECT_EQ(read->peakBytes, expected.peakBytes);
  ASSERT_EQ(read->spans.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->spans[i].name, expected.spans[i].name);
    EXPECT_EQ(read->spans[i].location, expected.spans[i].location);
    EXPECT_EQ(read->spans[i].stream, expected.spans[i].stream);
    EXPECT_EQ(read->spans[i].startUs, expected.spans[i].startUs);
    EXPECT_EQ(read->spans[i].durationUs, expected.spans[i].durationUs);
  }
}

TEST(Prediction, AnotherFormIsNoPrediction) {
  MLIRContext context;
  Builder b(&context);
  DictionaryAttr timeline = toAttribute(&context, twoSpans());
  for (NamedAttribute entry : timeline) {
    EXPECT_FALSE(withEntry(timeline, entry.getName(), {})) << entry.getName().str();
    EXPECT_FALSE(withEntry(timeline, entry.getName(), b.getUnitAttr())) << entry.getName().str();
  }
  // Lists of another length, each alone.
  for (StringRef name : {"names", "places"})
    EXPECT_FALSE(withEntry(timeline, name, b.getStrArrayAttr({"one"}))) << name.str();
  for (StringRef name : {"starts_us", "durations_us"})
    EXPECT_FALSE(withEntry(timeline, name, b.getDenseF64ArrayAttr({1}))) << name.str();
  EXPECT_FALSE(withEntry(timeline, "streams", b.getDenseI32ArrayAttr({0})));
  // Streams that there are not, and names that are no text.
  EXPECT_FALSE(withEntry(timeline, "streams", b.getDenseI32ArrayAttr({0, 3})));
  EXPECT_FALSE(withEntry(timeline, "streams", b.getDenseI32ArrayAttr({-1, 0})));
  EXPECT_FALSE(withEntry(timeline, "names", b.getI64ArrayAttr({1, 2})));
  EXPECT_FALSE(withEntry(timeline, "places", b.getI64ArrayAttr({1, 2})));
}

} // namespace
