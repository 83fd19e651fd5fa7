// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ReferenceMemory.h"

#include <gtest/gtest.h>

using namespace shardc::recompute;

namespace {

/// Ops with one result each, by the number of their storage.
struct Builder {
  Program program;

  StorageId op(double us, uint64_t bytes, std::vector<StorageId> reads,
               Choice choice = Choice::IfCheap, uint32_t region = none) {
    StorageId made = program.addStorage(bytes);
    StorageId makes[] = {made};
    program.addOp({us, choice, false, region}, reads, makes);
    return made;
  }
  StorageId late(uint64_t bytes, std::vector<StorageId> reads) {
    StorageId made = program.addStorage(bytes);
    StorageId makes[] = {made};
    program.addOp({1, Choice::Never, true, none}, reads, makes);
    return made;
  }
};

std::vector<OpId> owners(const Result &result) {
  std::vector<OpId> list;
  for (const Reason &reason : result.reasons)
    list.push_back(reason.op);
  return list;
}

/// Layers of a product (kept by its successor) and an elementwise op on it, then the backward.
Program layers(unsigned count, double productUs = 100, double elementUs = 1) {
  Builder b;
  std::vector<StorageId> products, elements;
  StorageId x = none;
  for (unsigned i = 0; i != count; ++i) {
    products.push_back(b.op(productUs, 100, x == none ? std::vector<StorageId>{} : std::vector{x}));
    x = b.op(elementUs, 100, {products.back()});
    elements.push_back(x);
  }
  StorageId g = b.late(10, {x});
  for (unsigned i = count; i-- > 0;)
    g = b.late(10, {g, products[i], elements[i]});
  return b.program;
}

TEST(Recompute, WithoutALimitNothingIsChosen) {
  Program program = layers(4);
  Result result = choose(program, {});
  EXPECT_TRUE(result.again.empty());
  EXPECT_EQ(result.peakBefore, result.peakAfter);
  EXPECT_EQ(result.peakAfter, ReferenceMemory(program, result).peak);
}

TEST(Recompute, WhatFitsStays) {
  Program program = layers(4);
  uint64_t peak = choose(program, {}).peakBefore;
  EXPECT_TRUE(choose(program, {peak}).again.empty());
  EXPECT_FALSE(choose(program, {peak - 1}).again.empty());
}

TEST(Recompute, CheapOpsComeFirst) {
  Program program = layers(4);
  Result result = choose(program, {choose(program, {}).peakBefore - 250});
  // Elementwise ops are odd. Those of the first layers are held longest.
  EXPECT_EQ(owners(result), (std::vector<OpId>{1, 3, 5}));
  EXPECT_DOUBLE_EQ(result.addedUs, 3);
  EXPECT_EQ(result.again.front().op, 5u); // the backward comes to the last layer first
}

TEST(Recompute, ProductsComeLast) {
  Program program = layers(4);
  Result result = choose(program, {450});
  EXPECT_LE(result.peakAfter, 450u);
  EXPECT_GT(result.addedUs, 100);
  ReferenceMemory reference(program, result);
  EXPECT_EQ(reference.error, "");
  EXPECT_LE(reference.peak, result.peakAfter);
}

TEST(Recompute, ConstantBytesCount) {
  Program program = layers(4);
  program.constantBytes = 1000;
  EXPECT_EQ(choose(program, {}).peakBefore, choose(layers(4), {}).peakBefore + 1000);
  EXPECT_FALSE(choose(program, {1000 + choose(layers(4), {}).peakBefore - 1}).again.empty());
}

TEST(Recompute, WhatMayNotBeRepeatedIsKept) {
  Builder b;
  StorageId x = b.op(1, 100, {}, Choice::Never);
  StorageId y = b.op(1, 10, {x}, Choice::Never);
  b.late(1, {b.late(1, {y}), x});
  EXPECT_TRUE(choose(b.program, {1}).again.empty());
}

TEST(Recompute, OutputsAreKept) {
  Builder b;
  StorageId x = b.op(1, 100, {});
  b.program.pin(x);
  StorageId y = b.op(1, 10, {x});
  b.late(1, {b.late(1, {y}), x});
  for (const Again &again : choose(b.program, {1}).again)
    EXPECT_NE(again.op, b.program.maker(x));
}

TEST(Recompute, AChainIsComputedWithItsOwner) {
  Builder b;
  StorageId kept = b.op(50, 100, {}, Choice::Never);
  StorageId gone = b.op(1, 100, {kept}); // the backward does not read it
  StorageId held = b.op(1, 100, {gone});
  StorageId end = b.op(1, 10, {held});
  StorageId filler = b.op(1, 300, {end}, Choice::Never);
  StorageId g = b.late(10, {filler});
  b.late(10, {g, held, kept});
  Result result = choose(b.program, {b.program.constantBytes + 420});
  EXPECT_EQ(owners(result), (std::vector<OpId>{2}));
  ASSERT_EQ(result.again.size(), 2u);
  EXPECT_EQ(result.again[0].op, b.program.maker(gone));
  EXPECT_EQ(result.again[0].owner, b.program.maker(held));
  EXPECT_EQ(result.again[1].op, b.program.maker(held));
  EXPECT_DOUBLE_EQ(result.addedUs, 2);
  EXPECT_EQ(ReferenceMemory(b.program, result).error, "");
}

TEST(Recompute, ASmallOperandIsKept) {
  Builder b;
  StorageId wide = b.op(50, 400, {}, Choice::Never);
  StorageId small = b.op(1, 10, {wide}); // a statistic of a row
  StorageId held = b.op(1, 100, {small});
  StorageId filler = b.op(1, 400, {held}, Choice::Never);
  StorageId g = b.late(10, {filler});
  b.late(10, {g, held});
  Result result = choose(b.program, {450});
  EXPECT_EQ(owners(result), (std::vector<OpId>{2}));
  EXPECT_EQ(result.again.size(), 1u); // `wide` is gone, and `small` is not computed from it
  EXPECT_EQ(ReferenceMemory(b.program, result).error, "");
}

TEST(Recompute, WhatHelpsNowhereElseIsLeft) {
  // The peak is in the forward alone: nothing is held there for the backward.
  Builder b;
  StorageId a = b.op(1, 1000, {}), c = b.op(1, 10, {a}), d = b.op(1, 10, {c});
  StorageId g = b.late(10, {d});
  b.late(10, {g, c});
  EXPECT_TRUE(choose(b.program, {500}).again.empty());
}

TEST(Recompute, ModulesKeepTheirInputsAndOutputs) {
  Builder b;
  StorageId input = b.op(1, 100, {});
  StorageId inner = b.op(7, 100, {input}, Choice::Required, 0);
  StorageId output = b.op(9, 100, {inner}, Choice::Required, 0);
  StorageId next = b.op(1, 100, {output});
  StorageId g = b.late(10, {next});
  g = b.late(10, {g, output});
  g = b.late(10, {g, inner});
  b.late(10, {g, input});
  Result result = choose(b.program, {});
  EXPECT_EQ(owners(result), (std::vector<OpId>{b.program.maker(inner)}));
  EXPECT_EQ(result.again.front().before, 6u);
  EXPECT_TRUE(result.reasons.front().required);
  EXPECT_EQ(result.reasons.front().bytes, 100u);
  EXPECT_DOUBLE_EQ(result.addedUs, 7);
  EXPECT_EQ(ReferenceMemory(b.program, result).error, "");
}

TEST(Recompute, WhatAModuleNeedsInsideIsComputedOnceForAll) {
  Builder b;
  StorageId input = b.op(1, 100, {});
  StorageId shared = b.op(7, 100, {input}, Choice::Required, 0); // read inside alone
  StorageId one = b.op(2, 100, {shared}, Choice::Required, 0);
  StorageId two = b.op(3, 100, {shared}, Choice::Required, 0);
  StorageId output = b.op(9, 100, {one, two}, Choice::Required, 0);
  StorageId next = b.op(1, 100, {output});
  StorageId g = b.late(10, {next});
  g = b.late(10, {g, two});
  b.late(10, {g, one});
  Result result = choose(b.program, {});
  EXPECT_EQ(result.again.size(), 3u);
  EXPECT_DOUBLE_EQ(result.addedUs, 12);
  EXPECT_EQ(ReferenceMemory(b.program, result).error, "");
  // The input is kept for it, although the backward itself does not read it.
  EXPECT_EQ(ReferenceMemory(b.program, result).peak, result.peakAfter);
}

TEST(Recompute, ManyOps) {
  Program program = layers(100000);
  uint64_t peak = choose(program, {}).peakBefore;
  Result result = choose(program, {peak / 2 + 1000});
  EXPECT_LE(result.peakAfter, peak / 2 + 1000);
  EXPECT_GT(result.reasons.size(), 99000u);
}

} // namespace
