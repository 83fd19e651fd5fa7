// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions that the plugin of CUDA does itself: the bits of ranks on CPUs.
#include "runtime/comm/Reduce.h"
#include "runtime/plugins/cuda/OrderedReduction.h"
#include "runtime/support/Types.h"
#include "test/unit/runtime/AnyElements.h"
#include "test/unit/runtime/Assembler.h"
#include "test/unit/runtime/Command.h"
#include "test/unit/runtime/CudaDevice.h"

using namespace shardc;
using plugin::cuda::OrderedReduction;

namespace {

using CudaReduction = test::OnDevice;

using test::anything;
using test::isNan;
using test::types;

} // namespace

TEST_F(CudaReduction, BitsOfTheCpu) {
  using namespace plugin::cuda;
  const std::string emulated = test::pluginPath(test::emulatedLibrary);
  shardrt_device_options options = test::deviceOptions();
  if (options.library)
    options.library = emulated.c_str();
  Device device(options);
  Device::Current here(device);
  const Driver &driver = device.driver();
  std::mt19937_64 random(17);
  OrderedReduction reduction(device);
  StreamHandle stream = nullptr;
  ASSERT_EQ(driver.streamCreate(&stream, streamNonBlocking), resultSuccess);
  for (shardrt_type type : types)
    for (uint32_t how = SHARDRT_SUM; how <= SHARDRT_PROD; ++how) {
      if (type == SHARDRT_BOOL && how == SHARDRT_AVG)
        continue;
      for (uint32_t n : {2u, 3u, 7u}) {
        constexpr size_t count = 301; // more than a block
        const auto width = size_t(rt::typeBytes(type));
        const size_t bytes = count * width, stride = (bytes + 255) / 256 * 256;
        std::vector<std::vector<uint8_t>> parts;
        std::vector<const void *> sources;
        for (uint32_t q = 0; q < n; ++q)
          parts.push_back(anything(type, count, random));
        for (const auto &part : parts)
          sources.push_back(part.data());
        std::vector<uint8_t> wanted(bytes), got(bytes);
        void *destination = wanted.data();
        rt::reduceFunction(type, how)(sources, {&destination, 1}, count);
        const uint32_t p = uint32_t(random() % n);
        Pointer memory = 0;
        ASSERT_EQ(driver.allocate(&memory, stride * n + bytes), resultSuccess);
        auto upload = [&](Pointer to, const std::vector<uint8_t> &from) {
          ASSERT_EQ(driver.copy(to, reinterpret_cast<Pointer>(from.data()), bytes, stream),
                    resultSuccess);
        };
        Pointer own = memory + stride * n; // and the result's place
        for (uint32_t q = 0; q < n; ++q)
          upload(q == p ? own : memory + stride * q, parts[q]);
        auto *blocks = reinterpret_cast<const char *>(memory);
        auto *mine = reinterpret_cast<char *>(own);
        reduction.run(type, how, mine, {mine, blocks, stride, n, p}, count, stream);
        ASSERT_EQ(driver.copy(reinterpret_cast<Pointer>(got.data()), own, bytes, stream),
                  resultSuccess);
        ASSERT_EQ(driver.streamSynchronize(stream), resultSuccess);
        ASSERT_EQ(driver.release(memory), resultSuccess);
        for (size_t i = 0; i < count; ++i) {
          if (isNan(type, wanted.data(), i) && isNan(type, got.data(), i))
            continue; // of NaNs, bits do not count
          ASSERT_EQ(std::memcmp(&wanted[i * width], &got[i * width], width), 0)
              << rt::typeName(type) << ", reduction " << how << " of " << n << ", element " << i
              << ": " << test::get(type, got.data(), i) << " instead of "
              << test::get(type, wanted.data(), i);
        }
      }
    }
  ASSERT_EQ(driver.streamDestroy(stream), resultSuccess);
}

// The text for devices, where there is an assembler.
TEST(OrderedReductionText, IsTakenByTheAssembler) {
  std::string assembler = test::findAssembler(VENV);
  if (assembler.empty())
    GTEST_SKIP() << "there is no ptxas";
  test::Folder folder;
  for (shardrt_type type : types)
    for (uint32_t how = SHARDRT_SUM; how <= SHARDRT_PROD; ++how) {
      std::string file = folder.file("reduce.ptx");
      std::ofstream(file) << plugin::cuda::reductionPtx(type, how);
      test::Finished done =
          test::runCommand(folder, assembler + " -v -arch=sm_90 " + file + " -o /dev/null");
      EXPECT_EQ(done.status, 0) << rt::typeName(type) << ' ' << how << ": " << done.err;
      EXPECT_NE((done.out + done.err).find("0 bytes spill stores"), std::string::npos) << done.err;
    }
}
