// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of DLPack as arguments, and memory as tensors of DLPack.
#include "runtime/include/shardrt_dlpack.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

extern "C" int shardrtDlpackInC(void); // DlpackInC.c

namespace {

/// A float32 matrix of 2 x 3 on the host, to be spoilt.
struct Producer {
  std::array<float, 8> data{0, 1, 2, 3, 4, 5, 6, 7};
  std::array<int64_t, 2> shape{2, 3}, strides{3, 1};
  shardrt_dl_tensor tensor{data.data(),  {SHARDRT_DL_CPU, 0}, 2, {SHARDRT_DL_FLOAT, 32, 1},
                           shape.data(), strides.data(),      0};
  shardrt_dlpack_use use{SHARDRT_DL_CPU, -1, SHARDRT_GLOBAL, 0};
  shardrt_tensor view{};
  std::string message;

  shardrt_status take() {
    char text[SHARDRT_MESSAGE_BYTES] = "";
    shardrt_status status = shardrt_dlpack_view(&tensor, &use, &view, text, sizeof text);
    message = text;
    return status;
  }
  void expectRefused(const char *why) {
    EXPECT_EQ(take(), SHARDRT_INVALID_ARGUMENT);
    EXPECT_EQ(message, why);
  }
};

} // namespace

// The layout that DLPack publishes, on machines of 64 bits.
TEST(Dlpack, HasThePublishedLayout) {
  EXPECT_EQ(sizeof(shardrt_dl_type), 4u);
  EXPECT_EQ(sizeof(shardrt_dl_tensor), 48u);
  EXPECT_EQ(offsetof(shardrt_dl_tensor, device), 8u);
  EXPECT_EQ(offsetof(shardrt_dl_tensor, ndim), 16u);
  EXPECT_EQ(offsetof(shardrt_dl_tensor, dtype), 20u);
  EXPECT_EQ(offsetof(shardrt_dl_tensor, shape), 24u);
  EXPECT_EQ(offsetof(shardrt_dl_tensor, byte_offset), 40u);
  EXPECT_EQ(offsetof(shardrt_dl_managed, manager), 48u);
  EXPECT_EQ(sizeof(shardrt_dl_managed), 64u);
  EXPECT_EQ(offsetof(shardrt_dl_versioned, manager), 8u);
  EXPECT_EQ(offsetof(shardrt_dl_versioned, deleter), 16u);
  EXPECT_EQ(offsetof(shardrt_dl_versioned, flags), 24u);
  EXPECT_EQ(offsetof(shardrt_dl_versioned, tensor), 32u);
}

TEST(Dlpack, AViewHasAddressShapeAndStrides) {
  Producer p;
  p.tensor.byte_offset = 8;
  p.use.scope = SHARDRT_LOCAL;
  ASSERT_EQ(p.take(), SHARDRT_OK) << p.message;
  EXPECT_EQ(p.view.data, &p.data[2]);
  EXPECT_EQ(p.view.type, SHARDRT_F32);
  EXPECT_EQ(p.view.rank, 2);
  EXPECT_EQ(p.view.extents, p.shape.data());
  EXPECT_EQ(p.view.strides, p.strides.data());
  EXPECT_EQ(p.view.scope, SHARDRT_LOCAL);
  p.tensor.strides = nullptr;
  ASSERT_EQ(p.take(), SHARDRT_OK);
  EXPECT_EQ(p.view.strides, nullptr);
  p.tensor.ndim = 0;
  p.tensor.shape = nullptr;
  EXPECT_EQ(p.take(), SHARDRT_OK) << "a scalar";
}

TEST(Dlpack, ElementTypes) {
  struct {
    uint8_t code, bits;
    shardrt_type type;
  } const all[] = {{2, 32, SHARDRT_F32},  {2, 64, SHARDRT_F64}, {2, 16, SHARDRT_F16},
                   {4, 16, SHARDRT_BF16}, {0, 64, SHARDRT_I64}, {0, 32, SHARDRT_I32},
                   {0, 16, SHARDRT_I16},  {0, 8, SHARDRT_I8},   {1, 8, SHARDRT_U8},
                   {6, 8, SHARDRT_BOOL}};
  Producer p;
  for (const auto &one : all) {
    p.tensor.dtype = {one.code, one.bits, 1};
    ASSERT_EQ(p.take(), SHARDRT_OK) << p.message;
    EXPECT_EQ(p.view.type, one.type);
  }
  p.tensor.dtype = {SHARDRT_DL_COMPLEX, 64, 1};
  p.expectRefused("its element type (code 5, 64 bits) is none of f32, f64, f16, bf16, i64, i32, "
                  "i16, i8, u8 and bool");
  p.tensor.dtype = {SHARDRT_DL_UINT, 32, 1};
  p.expectRefused("its element type (code 1, 32 bits) is none of f32, f64, f16, bf16, i64, i32, "
                  "i16, i8, u8 and bool");
  p.tensor.dtype = {SHARDRT_DL_FLOAT, 32, 4};
  p.expectRefused("its elements are vectors of 4 lanes, and programs have scalars only");
}

TEST(Dlpack, Devices) {
  Producer p;
  for (int32_t type : {SHARDRT_DL_CPU, SHARDRT_DL_CUDA_HOST, SHARDRT_DL_CUDA_MANAGED}) {
    p.tensor.device = {type, 3};
    EXPECT_EQ(p.take(), SHARDRT_OK) << type << ": " << p.message;
  }
  p.tensor.device = {SHARDRT_DL_CUDA, 1};
  p.expectRefused("it lies on CUDA device 1, and the program computes on the CPU");
  p.use.device_type = SHARDRT_DL_CUDA;
  EXPECT_EQ(p.take(), SHARDRT_OK) << p.message;
  p.use.device_id = 1;
  EXPECT_EQ(p.take(), SHARDRT_OK) << p.message;
  p.use.device_id = 0;
  p.expectRefused("it lies on CUDA device 1, and the program computes on device 0");
  p.tensor.device = {10, 0};
  p.expectRefused("it lies on ROCm (device type 10), and programs use memory of the CPU and of "
                  "CUDA");
  p.tensor.device = {77, 0};
  p.expectRefused("it lies on an unknown device (device type 77), and programs use memory of the "
                  "CPU and of CUDA");
}

TEST(Dlpack, WhatCannotBeAnArgument) {
  Producer p;
  p.tensor.byte_offset = 2;
  EXPECT_EQ(p.take(), SHARDRT_INVALID_ARGUMENT);
  EXPECT_NE(p.message.find(" is no multiple of the 4 bytes of f32"), std::string::npos);
  p.tensor.byte_offset = 0;
  p.tensor.ndim = SHARDRT_MAX_RANK + 1;
  p.expectRefused("it has 17 dims, and programs have at most 16");
  p.tensor.ndim = 2;
  p.tensor.shape = nullptr;
  p.expectRefused("it has 2 dims, and no shape");
  p.tensor.shape = p.shape.data();
  p.shape[1] = -3;
  p.expectRefused("dim 1 has -3 elements");
  p.shape[1] = 3;
  p.tensor.data = nullptr;
  p.expectRefused("its data is a null pointer");
  p.shape[1] = 0;
  EXPECT_EQ(p.take(), SHARDRT_OK) << "without elements it needs none";
  EXPECT_EQ(shardrt_dlpack_view(nullptr, &p.use, &p.view, nullptr, 0), SHARDRT_INVALID_ARGUMENT);
}

// The runtime copies views of inputs that repeat or go backwards. Outputs have an element once.
TEST(Dlpack, StridesOfOutputs) {
  Producer p;
  p.strides = {0, 1};
  EXPECT_EQ(p.take(), SHARDRT_OK);
  p.use.is_output = 1;
  p.expectRefused("it is an output, and dim 0 has stride 0");
  p.strides = {1, 2};
  EXPECT_EQ(p.take(), SHARDRT_OK) << "a transposed output is copied";
}

TEST(Dlpack, VersionedTensors) {
  Producer p;
  char message[256] = "";
  shardrt_dl_versioned versioned{{1, 2}, nullptr, nullptr, SHARDRT_DL_READ_ONLY, p.tensor};
  auto take = [&] {
    return shardrt_dlpack_view_versioned(&versioned, &p.use, &p.view, message, sizeof message);
  };
  EXPECT_EQ(take(), SHARDRT_OK);
  EXPECT_EQ(p.view.data, p.data.data());
  p.use.is_output = 1;
  EXPECT_EQ(take(), SHARDRT_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "it is an output, and read-only");
  versioned.version = {2, 1};
  EXPECT_EQ(take(), SHARDRT_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "it is of DLPack 2.1, and this knows 1.x");
  shardrt_dl_managed managed{p.tensor, nullptr, nullptr};
  EXPECT_EQ(shardrt_dlpack_view_managed(&managed, &p.use, &p.view, message, sizeof message),
            SHARDRT_OK);
}

TEST(Dlpack, MemoryAsATensor) {
  std::vector<int16_t> data(6);
  const int64_t extents[] = {2, 3}, strides[] = {1, 2};
  int released = 0;
  auto release = [](void *context, void *) { ++*static_cast<int *>(context); };
  for (bool dense : {true, false}) {
    shardrt_tensor view{};
    view.data = data.data();
    view.type = SHARDRT_I16;
    view.rank = 2;
    view.extents = extents;
    view.strides = dense ? nullptr : strides;
    auto check = [&](const shardrt_dl_tensor &tensor) {
      EXPECT_EQ(tensor.data, data.data());
      EXPECT_EQ(tensor.device.device_type, SHARDRT_DL_CUDA);
      EXPECT_EQ(tensor.device.device_id, 2);
      EXPECT_EQ(tensor.dtype.code, SHARDRT_DL_INT);
      EXPECT_EQ(tensor.dtype.bits, 16);
      EXPECT_EQ(tensor.dtype.lanes, 1);
      EXPECT_EQ((std::vector<int64_t>(tensor.shape, tensor.shape + 2)),
                (std::vector<int64_t>{2, 3}));
      EXPECT_EQ((std::vector<int64_t>(tensor.strides, tensor.strides + 2)),
                dense ? (std::vector<int64_t>{3, 1}) : (std::vector<int64_t>{1, 2}));
      EXPECT_EQ(tensor.byte_offset, 0u);
    };
    released = 0;
    shardrt_dl_managed *managed = nullptr;
    shardrt_dl_versioned *versioned = nullptr;
    ASSERT_EQ(
        shardrt_dlpack_wrap(&view, {SHARDRT_DL_CUDA, 2}, release, &released, &managed, nullptr),
        SHARDRT_OK);
    ASSERT_EQ(
        shardrt_dlpack_wrap(&view, {SHARDRT_DL_CUDA, 2}, release, &released, nullptr, &versioned),
        SHARDRT_OK);
    check(managed->tensor);
    check(versioned->tensor);
    EXPECT_EQ(versioned->version.major, 1u);
    EXPECT_EQ(versioned->flags, 0u);
    EXPECT_EQ(released, 0);
    managed->deleter(managed);
    EXPECT_EQ(released, 1);
    versioned->deleter(versioned);
    EXPECT_EQ(released, 2);
    EXPECT_EQ(shardrt_dlpack_wrap(&view, {1, 0}, release, &released, nullptr, nullptr),
              SHARDRT_INVALID_ARGUMENT);
    view.type = 99;
    EXPECT_EQ(shardrt_dlpack_wrap(&view, {1, 0}, release, &released, &managed, nullptr),
              SHARDRT_INVALID_ARGUMENT);
    EXPECT_EQ(released, 2);
  }
}

TEST(Dlpack, TheHeaderIsC) { EXPECT_EQ(shardrtDlpackInC(), 1); }
