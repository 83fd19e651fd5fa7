// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that asked for several blocks on a multiprocessor and had no registers left: which ones
// ptxas says they are, and that PTX loses what they asked for, and nothing else.

#include "lowering/cuda/backend/Residency.h"
#include "lowering/cuda/backend/Toolkit.h"

#include <gtest/gtest.h>

using namespace shardc::cuda;

namespace {

/// A kernel as LLVM prints it; `asks` are lines between its parameters and its body.
std::string kernelText(const std::string &name, const std::string &asks,
                       const std::string &body = "\tret;\n") {
  return ".visible .entry " + name + "(\n\t.param .u64 .ptr .align 1 " + name +
         "_param_0\n)\n.maxntid 128, 1, 1\n" + asks + "{\n" + body + "}\n\n";
}

TEST(CudaResidencyTest, OnlyTheNamedKernelsLoseTheDirective) {
  const std::string asks = ".minnctapersm 4\n";
  // One name is the beginning of the other, in both orders.
  for (bool longerFirst : {false, true}) {
    auto both = [&](const std::string &shorter, const std::string &longer) {
      std::string a = kernelText("attention", shorter), b = kernelText("attention_0", longer);
      return longerFirst ? b + a : a + b;
    };
    std::string text = both(asks, asks);
    EXPECT_EQ(dropResidency(text, {"attention"}), 1u);
    EXPECT_EQ(text, both("", asks));
    text = both(asks, asks);
    EXPECT_EQ(dropResidency(text, {"attention_0"}), 1u);
    EXPECT_EQ(text, both(asks, ""));
    EXPECT_EQ(dropResidency(text, {"attention_0", "attention"}), 1u);
    EXPECT_EQ(text, both("", ""));
  }
}

TEST(CudaResidencyTest, AKernelWithoutTheDirectiveLeavesThatOfTheNext) {
  const std::string text = kernelText("sum", "") + kernelText("attention", ".minnctapersm 2\n");
  std::string changed = text;
  EXPECT_EQ(dropResidency(changed, {"sum", "unknown"}), 0u);
  EXPECT_EQ(changed, text);
}

TEST(CudaResidencyTest, LinesAroundTheDirectiveStay) {
  std::string text = kernelText("k", ".minnctapersm 2\n.maxnreg 64\n");
  EXPECT_EQ(dropResidency(text, {"k"}), 1u);
  EXPECT_EQ(text, kernelText("k", ".maxnreg 64\n"));
}

TEST(CudaResidencyTest, OneBlockIsNotSeveral) {
  const std::string text = kernelText("k", ".minnctapersm 1\n");
  std::string changed = text;
  EXPECT_EQ(dropResidency(changed, {"k"}), 0u);
  EXPECT_EQ(changed, text);
  // Ten are, whose first digit is that of one.
  changed = kernelText("k", ".minnctapersm 10\n");
  EXPECT_EQ(dropResidency(changed, {"k"}), 1u);
  EXPECT_EQ(changed, kernelText("k", ""));
}

/// Keeps `count` numbers of each thread until it has read all of them, and sums them up backwards.
std::string crowdedBody(int count) {
  std::string text = "\t.reg .f32 %f<" + std::to_string(count + 1) +
                     ">;\n\t.reg .b64 %rd<3>;\n\t.reg .b32 %r<2>;\n"
                     "\tld.param.u64 %rd0, [crowded_param_0];\n\tmov.u32 %r0, %tid.x;\n"
                     "\tmul.wide.u32 %rd1, %r0, 4;\n\tadd.s64 %rd1, %rd0, %rd1;\n";
  for (int i = 0; i < count; ++i)
    text += "\tld.volatile.global.f32 %f" + std::to_string(i) + ", [%rd1+" +
            std::to_string(i * 4096) + "];\n";
  text += "\tmov.f32 %f" + std::to_string(count) + ", 0f00000000;\n";
  for (int i = count - 1; i >= 0; --i)
    text += "\tfma.rn.f32 %f" + std::to_string(count) + ", %f" + std::to_string(count) + ", %f" +
            std::to_string(count) + ", %f" + std::to_string(i) + ";\n";
  return text + "\tst.global.f32 [%rd1], %f" + std::to_string(count) + ";\n\tret;\n";
}

TEST(CudaResidencyTest, PtxasSaysWhichKernelsHaveFrames) {
  llvm::Expected<std::string> ptxas = findPtxas();
  if (!ptxas) {
    llvm::consumeError(ptxas.takeError());
    GTEST_SKIP() << "there is no ptxas";
  }
  // 8 blocks of 128 threads leave 64 registers of the 65536 of a multiprocessor to a thread, which
  // are too few for 150 numbers.
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n\n" +
                     kernelText("small", ".minnctapersm 8\n") +
                     kernelText("crowded", ".minnctapersm 8\n", crowdedBody(150));
  auto framesOf = [&](const std::string &ptx) -> std::vector<std::string> {
    llvm::Expected<shardc::target::ObjectCode> code = assemble(ptx, Chip{80, 70}, *ptxas);
    if (!code) {
      ADD_FAILURE() << llvm::toString(code.takeError());
      return {};
    }
    auto names = kernelsWithFrames(llvm::StringRef(code->data(), code->size()));
    if (!names) {
      ADD_FAILURE() << llvm::toString(names.takeError());
      return {};
    }
    return *names;
  };
  std::vector<std::string> names = framesOf(text);
  EXPECT_EQ(names, std::vector<std::string>{"crowded"});
  EXPECT_EQ(dropResidency(text, names), 1u);
  EXPECT_EQ(framesOf(text), std::vector<std::string>{});
}

TEST(CudaResidencyTest, WhatIsNoCodeOfAChipIsAnError) {
  auto names = kernelsWithFrames("not an ELF file");
  ASSERT_FALSE(names);
  llvm::consumeError(names.takeError());
}

} // namespace
