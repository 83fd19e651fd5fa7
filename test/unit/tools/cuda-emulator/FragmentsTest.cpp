// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync and ldmatrix against products of matrices, by the layouts of the PTX ISA (tables of
// mma.m16n8k16 and m16n8k8 for .f16 and .bf16), and math functions against libm.
#include "test/unit/tools/cuda-emulator/EmulatedDevice.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace {

class EmulatedFragments : public EmulatedDevice {};

uint16_t bf16(float x) { return uint16_t(std::bit_cast<uint32_t>(x) >> 16); } // of small integers

/// f16 of an integer from -2048 to 2048.
uint16_t f16(int x) {
  if (x == 0)
    return 0;
  uint16_t sign = x < 0 ? 0x8000 : 0;
  unsigned magnitude = std::abs(x);
  int exponent = std::bit_width(magnitude) - 1;
  return sign | uint16_t((exponent + 15) << 10) | uint16_t((magnitude << 10 >> exponent) & 0x3ff);
}

/// A kernel that loads four words of A, two of B, and stores four words of D, for K of 16 (C = 0).
/// Its operands are stored by lane: word w of lane l at 32 * w + l.
std::string product(const std::string &name, const std::string &type, int a, int b) {
  std::string text = "declare { float, float, float, float } @llvm.nvvm." + name + "(";
  for (int i = 0; i < a + b; ++i)
    text += type + ", ";
  text += "float, float, float, float)\n"
          "define ptx_kernel void @k(ptr %out, ptr %in) {\n"
          "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
          "  %i = zext i32 %t to i64\n";
  std::string arguments;
  for (int i = 0; i < a + b; ++i) {
    std::string n = std::to_string(i);
    text += "  %j" + n + " = add i64 %i, " + std::to_string(32 * i) + "\n" + "  %p" + n +
            " = getelementptr i32, ptr %in, i64 %j" + n + "\n" + "  %w" + n + " = load " + type +
            ", ptr %p" + n + ", align 4\n";
    arguments += type + " %w" + n + ", ";
  }
  text += "  %d = call { float, float, float, float } @llvm.nvvm." + name + "(" + arguments +
          "float 0.0, float 0.0, float 0.0, float 1.0)\n";
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    text += "  %q" + n + " = add i64 %i, " + std::to_string(32 * i) + "\n" + "  %o" + n +
            " = getelementptr float, ptr %out, i64 %q" + n + "\n" + "  %v" + n +
            " = extractvalue { float, float, float, float } %d, " + n + "\n" + "  store float %v" +
            n + ", ptr %o" + n + ", align 4\n";
  }
  return text + "  ret void\n}\n";
}

TEST_F(EmulatedFragments, ProductsHaveTheLayoutOfThePtxIsa) {
  struct Case {
    const char *name, *type;
    int k;
    bool isBf16;
  };
  for (const Case &c : {Case{"mma.m16n8k16.row.col.bf16", "i32", 16, true},
                        Case{"mma.m16n8k16.row.col.f32.f32", "<2 x half>", 16, false},
                        Case{"mma.m16n8k8.row.col.bf16", "i32", 8, true},
                        Case{"mma.m16n8k8.row.col.f32.f32", "<2 x half>", 8, false}}) {
    int a[16][16], b[16][8];
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < 16; ++k)
        a[row][k] = (row * 7 + k * 3) % 11 - 5;
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column)
        b[k][column] = (k * 5 + column * 2) % 7 - 3;
    int wordsA = c.k / 4, wordsB = c.k / 8;
    auto bits = [&](int value) { return c.isBf16 ? bf16(float(value)) : f16(value); };
    std::vector<uint32_t> in(32 * (wordsA + wordsB));
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane >> 2, inGroup = lane % 4;
      // Of A, element i: row = group for i in 0, 1, 4, 5, else group + 8; column = 2 inGroup + (i &
      // 1) for i < 4, 8 more for the others.
      for (int i = 0; i < wordsA * 2; ++i) {
        int row = (i & 2) ? group + 8 : group;
        int column = inGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        in[32 * (i / 2) + lane] |= uint32_t(bits(a[row][column])) << 16 * (i & 1);
      }
      // Of B, element i: row = 2 inGroup + (i & 1), 8 more for i >= 2; column = group.
      for (int i = 0; i < wordsB * 2; ++i) {
        int row = inGroup * 2 + (i & 1) + (i >= 2 ? 8 : 0);
        in[32 * (wordsA + i / 2) + lane] |= uint32_t(bits(b[row][group])) << 16 * (i & 1);
      }
    }
    CUdeviceptr from = put(in), out = allocate(512);
    ASSERT_EQ(run(load(product(c.name, c.type, wordsA, wordsB)), 1, 32, out, from), CUDA_SUCCESS)
        << c.name << reports();
    std::vector<float> d = get<float>(out, 128);
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        int row = (lane >> 2) + (i < 2 ? 0 : 8), column = (lane % 4) * 2 + (i & 1);
        int expected = i == 3; // C
        for (int k = 0; k < c.k; ++k)
          expected += a[row][k] * b[k][column];
        EXPECT_EQ(d[32 * i + lane], float(expected)) << c.name << " row " << row << ", " << column;
      }
  }
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedFragments, MatricesAreLoadedAsThePtxIsaSays) {
  for (bool transposed : {false, true}) {
    std::string name = std::string("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.") +
                       (transposed ? "trans." : "") + "b16.p3";
    CUfunction function = load(R"(
@tile = internal addrspace(3) global [32 x [8 x i16]] undef, align 16
declare { i32, i32, i32, i32 } @)" +
                               name + R"((ptr addrspace(3))
define ptx_kernel void @k(ptr %out, ptr %in) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %from = getelementptr <4 x i32>, ptr %in, i64 %i
  %x = load <4 x i32>, ptr %from, align 16
  %row = getelementptr [8 x i16], ptr addrspace(3) @tile, i64 %i
  store <4 x i32> %x, ptr addrspace(3) %row, align 16
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %m = call { i32, i32, i32, i32 } @)" +
                               name + R"((ptr addrspace(3) %row)
  %to = getelementptr <4 x i32>, ptr %out, i64 %i
  %a = extractvalue { i32, i32, i32, i32 } %m, 0
  %b = extractvalue { i32, i32, i32, i32 } %m, 1
  %c = extractvalue { i32, i32, i32, i32 } %m, 2
  %d = extractvalue { i32, i32, i32, i32 } %m, 3
  %v0 = insertelement <4 x i32> undef, i32 %a, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %b, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %c, i32 2
  %v3 = insertelement <4 x i32> %v2, i32 %d, i32 3
  store <4 x i32> %v3, ptr %to, align 16
  ret void
}
)");
    std::vector<uint16_t> elements(256);
    for (int i = 0; i < 256; ++i)
      elements[i] = uint16_t(i);
    CUdeviceptr in = put(elements), out = allocate(512);
    ASSERT_EQ(run(function, 1, 32, out, in), CUDA_SUCCESS) << reports();
    std::vector<uint16_t> r = get<uint16_t>(out, 256);
    for (int lane = 0; lane < 32; ++lane)
      for (int matrix = 0; matrix < 4; ++matrix)
        for (int half = 0; half < 2; ++half) {
          int row = lane / 4, column = lane % 4 * 2 + half;
          if (transposed)
            std::swap(row, column);
          EXPECT_EQ(r[lane * 8 + matrix * 2 + half], matrix * 64 + row * 8 + column);
        }
  }
  EXPECT_EQ(reports(), "");
}

TEST_F(EmulatedFragments, MathFunctionsAreThoseOfLibm) {
  CUfunction function = load(R"(
declare float @__nv_expf(float)
declare float @__nv_erff(float)
declare double @__nv_tanh(double)
declare float @llvm.nvvm.ex2.approx.f(float)
declare float @llvm.exp2.f32(float)
define ptx_kernel void @k(ptr %out, float %x) {
  %e = call float @__nv_expf(float %x)
  %f = call float @__nv_erff(float %x)
  %w = fpext float %x to double
  %t = call double @__nv_tanh(double %w)
  %n = fptrunc double %t to float
  %2 = call float @llvm.nvvm.ex2.approx.f(float %x)
  %h = fptrunc float %x to half
  %hx = fpext half %h to float
  %b = fptrunc float %x to bfloat
  %bx = fpext bfloat %b to float
  %o1 = getelementptr float, ptr %out, i64 1
  %o2 = getelementptr float, ptr %out, i64 2
  %o3 = getelementptr float, ptr %out, i64 3
  %o4 = getelementptr float, ptr %out, i64 4
  %o5 = getelementptr float, ptr %out, i64 5
  store float %e, ptr %out
  store float %f, ptr %o1
  store float %n, ptr %o2
  store float %2, ptr %o3
  store float %hx, ptr %o4
  store float %bx, ptr %o5
  ret void
}
)");
  CUdeviceptr out = allocate(24);
  float x = 1.2345678f;
  ASSERT_EQ(run(function, 1, 1, out, x), CUDA_SUCCESS) << reports();
  std::vector<float> r = get<float>(out, 6);
  EXPECT_FLOAT_EQ(r[0], std::exp(x));
  EXPECT_FLOAT_EQ(r[1], std::erf(x));
  EXPECT_FLOAT_EQ(r[2], std::tanh(x));
  EXPECT_FLOAT_EQ(r[3], std::exp2(x));
  EXPECT_EQ(r[4], std::nearbyint(x * 1024) / 1024); // ten bits of the fraction
  EXPECT_EQ(r[5], std::nearbyint(x * 128) / 128);   // seven
}

/// in[index[t]] with a check: a word too large is a failure of message 5, and is not read.
TEST_F(EmulatedFragments, ADroppedRangeCheckIsReported) {
  std::string text = R"(
define ptx_kernel void @k(ptr %error, i32 %launch, ptr %in, ptr %index, ptr %out, i64 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %p = getelementptr i64, ptr %index, i64 %i
  %j = load i64, ptr %p, align 8
  %wrong = icmp uge i64 %j, %n
  br i1 %wrong, label %fail, label %read, !prof !0
fail:
  %number = add i32 %launch, 1
  %wide = zext i32 %number to i64
  %high = shl i64 %wide, 32
  %word = or i64 %high, 5
  %x = cmpxchg ptr %error, i64 0, i64 %word monotonic monotonic
  br label %end
read:
  %q = getelementptr i32, ptr %in, i64 %j
  %v = load i32, ptr %q, align 4
  br label %end
end:
  %r = phi i32 [ 0, %fail ], [ %v, %read ]
  %o = getelementptr i32, ptr %out, i64 %i
  store i32 %r, ptr %o, align 4
  ret void
}
!0 = !{!"branch_weights", i32 1, i32 1000}
)";
  std::vector<int64_t> indices(32);
  indices[7] = 1000000;
  indices[9] = -1;
  CUdeviceptr error = put(std::vector<uint64_t>(1)), in = put(std::vector<int>(16, 3)),
              index = put(indices), out = allocate(128);
  uint64_t n = 16;
  ASSERT_EQ(run(load(text), 1, 32, error, 11, in, index, out, n), CUDA_SUCCESS) << reports();
  EXPECT_EQ(get<uint64_t>(error, 1)[0], uint64_t(12) << 32 | 5);
  EXPECT_EQ(get<int>(out, 32)[7], 0);
  EXPECT_EQ(get<int>(out, 32)[8], 3);
  CHECK_CU(cuEmulatedSetDrop("check:0"));
  EXPECT_EQ(run(load(text), 1, 32, error, 11, in, index, out, n), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuEmulatedCount("check"), 1u);
  expectReport("thread (7, 0, 0)");
}

} // namespace
