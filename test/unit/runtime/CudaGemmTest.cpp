// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of the plugin of CUDA, by cuBLASLt (emulated, or real: CudaDevice.h), and what it keeps
// of its choices.
#include "runtime/plugins/cuda/LtCache.h"
#include "test/unit/runtime/Command.h"
#include "test/unit/runtime/CudaDevice.h"
#include "test/unit/runtime/GemmCases.h"

#include <algorithm>
#include <fstream>
#include <unistd.h>

using namespace shardc;
using test::CudaDevice;
using test::GemmProblem;

namespace {

template <typename Device> class GemmFixture : public Device {
protected:
  GemmFixture() : cache("SHARDRT_GEMM_CACHE", folder.file("shardc")) {}

  test::Folder folder;
  test::EnvironmentVariable cache;
};
using CudaGemm = GemmFixture<test::OnDevice>;
/// What a real device does otherwise.
using EmulatedGemm = GemmFixture<test::OnEmulatedDevice>;

int64_t bytesOf(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch,
                shardrt_type type) {
  if (rows == 0 || columns == 0 || batch == 0)
    return 0;
  return ((batch - 1) * stride + (rows - 1) * ld + columns) * rt::typeBytes(type);
}

/// The product whose operands are in host memory, on the device. `shift`: bytes by which operands
/// are off their alignment.
void multiplyOn(CudaDevice &device, const shardrt_gemm &host, size_t shift = 0) {
  shardrt_gemm g = host;
  auto move = [&](const void *data, int64_t bytes) -> char * {
    if (!data)
      return nullptr;
    std::vector<char> shifted(shift + size_t(bytes));
    if (bytes > 0)
      std::memcpy(shifted.data() + shift, data, size_t(bytes));
    return device.put(shifted.data(), shifted.size()) + shift;
  };
  int64_t rowsA = g.transpose_a ? g.k : g.m, columnsA = g.transpose_a ? g.m : g.k;
  int64_t rowsB = g.transpose_b ? g.n : g.k, columnsB = g.transpose_b ? g.k : g.n;
  int64_t bytesC = bytesOf(g.m, g.n, g.ldc, g.stride_c, g.batch, g.type);
  g.a = move(g.a, bytesOf(rowsA, columnsA, g.lda, g.stride_a, g.batch, g.type));
  g.b = move(g.b, bytesOf(rowsB, columnsB, g.ldb, g.stride_b, g.batch, g.type));
  g.bias = move(g.bias, (g.bias_along_m ? g.m : g.n) * rt::typeBytes(g.type));
  g.c = move(g.c, bytesC);
  device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
    return table.gemm(handle, &g, device.stream.get(), message);
  });
  device.get(host.c, g.c, size_t(bytesC));
  device.releaseAll();
}

void runAll(CudaDevice &device, size_t shift = 0) {
  for (const GemmProblem &problem : test::gemmProblems()) {
    test::GemmCase one(problem);
    one.run([&](const shardrt_gemm &gemm) {
      multiplyOn(device, gemm, shift * size_t(rt::typeBytes(problem.type)));
    });
  }
}

} // namespace

TEST_F(CudaGemm, EveryFormInEveryOrderOfStreams) {
  for (const char *order : {"eager", "lazy", "random:3"}) {
    CudaDevice device;
    CudaDevice::setOrder(order);
    runAll(device);
  }
  CudaDevice::setOrder("eager");
}

// Operands at addresses of their elements only.
TEST_F(CudaGemm, OddAddresses) {
  CudaDevice device;
  runAll(device, 1);
}

// Where the library has nothing for odd strides, addresses and batches, operands are copied.
TEST_F(CudaGemm, ALibraryThatDoesLittle) {
  test::EnvironmentVariable strict("CUDA_EMULATED_LT", "strict");
  CudaDevice device;
  runAll(device);
  runAll(device, 1);
}

// Products whose choice comes from the file, and those that are not measured.
TEST_F(CudaGemm, ChoicesOfAnotherProcessAndNone) {
  for (int i = 0; i < 2; ++i) {
    CudaDevice device;
    runAll(device);
  }
  EXPECT_FALSE(std::filesystem::is_empty(folder.path / "shardc"));
  test::EnvironmentVariable tune("SHARDRT_GEMM_TUNE", "0");
  CudaDevice device;
  runAll(device);
}

TEST_F(CudaGemm, DamagedFilesAreIgnored) {
  { // makes the file
    CudaDevice device;
    test::GemmCase({SHARDRT_F32, 4, 5, 6}).run([&](const shardrt_gemm &gemm) {
      multiplyOn(device, gemm);
    });
  }
  std::filesystem::path file = std::filesystem::directory_iterator(folder.path / "shardc")->path();
  std::string whole = test::contents(file);
  for (const std::string &damaged :
       {std::string(), std::string("nonsense"), whole.substr(0, whole.size() / 2),
        whole.substr(0, whole.size() - 20) + "99999999999999999999",
        std::string(whole).replace(whole.find('\n') + 20, 6, "ffffff"), std::string(300, '\0')}) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    CudaDevice device;
    for (GemmProblem problem : {GemmProblem{SHARDRT_F32, 4, 5, 6}, {SHARDRT_F32, 7, 8, 9}})
      test::GemmCase(problem).run([&](const shardrt_gemm &gemm) { multiplyOn(device, gemm); });
  }
  // Where nothing can be written.
  std::filesystem::remove_all(folder.path / "shardc");
  std::ofstream(folder.path / "shardc") << "a file where a folder should be";
  CudaDevice device;
  test::GemmCase({SHARDRT_F32, 4, 5, 6}).run([&](const shardrt_gemm &gemm) {
    multiplyOn(device, gemm);
  });
}

TEST_F(CudaGemm, StridesOfZeroShareAMatrix) {
  CudaDevice device;
  float a[] = {1, 2, 3, 4}, b[] = {1, 1}, c[2] = {};
  shardrt_gemm g{};
  g.a = a, g.b = b, g.c = c;
  g.m = 1, g.n = 1, g.k = 2, g.batch = 2;
  g.lda = 2, g.ldb = 1, g.ldc = 1;
  g.stride_a = 2, g.stride_b = 0, g.stride_c = 1;
  g.alpha = 1;
  g.type = SHARDRT_F32;
  multiplyOn(device, g);
  EXPECT_EQ(c[0], 3);
  EXPECT_EQ(c[1], 7);
}

// Times nothing, a NaN is nothing, and what C had before is not read.
TEST_F(CudaGemm, FactorsOfZero) {
  CudaDevice device;
  for (shardrt_type type : {SHARDRT_F32, SHARDRT_F64}) {
    const auto width = size_t(rt::typeBytes(type));
    std::vector<uint8_t> a(4 * width), c(4 * width);
    for (size_t i = 0; i < 4; ++i) {
      test::set(type, a.data(), i, NAN);
      test::set(type, c.data(), i, NAN);
    }
    shardrt_gemm g{};
    g.a = g.b = a.data();
    g.c = c.data();
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 2;
    g.batch = 1;
    g.type = type;
    multiplyOn(device, g);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(test::get(type, c.data(), i), 0);
  }
}

// More products than some algorithms count.
TEST_F(CudaGemm, ManySmallProducts) {
  CudaDevice device;
  constexpr int64_t count = 70000;
  std::vector<float> a(count), b(count), c(count, -1);
  for (size_t i = 0; i < count; ++i) {
    a[i] = float(i % 1000);
    b[i] = float(i % 7) - 3;
  }
  shardrt_gemm g{};
  g.a = a.data(), g.b = b.data(), g.c = c.data();
  g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
  g.batch = count;
  g.stride_a = g.stride_b = g.stride_c = 1;
  g.alpha = 1;
  g.type = SHARDRT_F32;
  multiplyOn(device, g);
  for (size_t i = 0; i < count; ++i)
    ASSERT_EQ(c[i], a[i] * b[i]) << i;
}

TEST_F(CudaGemm, BadDescriptionsAreErrors) {
  CudaDevice device;
  float x[16] = {};
  shardrt_gemm g{};
  g.a = g.b = x;
  g.c = x + 8;
  g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 2;
  g.batch = 1;
  g.type = SHARDRT_F32;
  for (auto spoil : {+[](shardrt_gemm &g) { g.lda = 1; }, +[](shardrt_gemm &g) { g.ldb = 1; },
                     +[](shardrt_gemm &g) { g.ldc = 1; }, +[](shardrt_gemm &g) { g.m = -1; },
                     +[](shardrt_gemm &g) { g.type = SHARDRT_I32; }}) {
    shardrt_gemm bad = g;
    spoil(bad);
    char message[SHARDRT_MESSAGE_BYTES] = "";
    EXPECT_EQ(device.table().gemm(device.device.handle(), &bad, device.stream.get(), message),
              SHARDRT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(message).find("a product of"), std::string::npos) << message;
  }
}

// What was run once is captured, and gives the products of new operands at the same places.
TEST_F(CudaGemm, GraphsOfProducts) {
  CudaDevice device;
  for (GemmProblem problem : {GemmProblem{SHARDRT_F32, 5, 6, 7, 1, false, true, 2},
                              {SHARDRT_BF16, 5, 6, 7, 2, true, false, 2},
                              {SHARDRT_F64, 5, 6, 7, 1, false, false, 1},
                              {SHARDRT_F16, 5, 6, 7, 1, false, false, 1}}) {
    test::GemmCase first(problem);
    shardrt_gemm g{};
    char *c = nullptr;
    first.run([&](const shardrt_gemm &host) {
      const auto width = rt::typeBytes(problem.type);
      g = host;
      g.a = device.put(host.a, first.a.bytes.size());
      g.b = device.put(host.b, first.b.bytes.size());
      g.bias = device.put(host.bias, first.bias.bytes.size());
      const auto bytes = size_t(problem.m * problem.n * problem.batch * width);
      g.c = c = device.put(nullptr, bytes);
      auto enqueue = [&] {
        device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
          return table.gemm(handle, &g, device.stream.get(), message);
        });
      };
      enqueue();
      void *graph = nullptr;
      device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
        return table.capture_begin(handle, device.stream.get(), message);
      });
      enqueue();
      device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
        return table.capture_end(handle, device.stream.get(), &graph, message);
      });
      rt::DeviceObject owner = device.device.ownGraph(graph);
      std::vector<char> other(bytes, 0x55);
      device.device.copy(c, other.data(), bytes, device.stream.get());
      device.device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
        return table.graph_launch(handle, graph, device.stream.get(), message);
      });
      device.get(host.c, c, bytes);
    });
  }
  device.releaseAll();
}

// Times of the emulated device are nobody's, unless they are asked for.
TEST_F(EmulatedGemm, NothingIsWrittenIntoHomes) {
  test::Folder home;
  unsetenv("SHARDRT_GEMM_CACHE");
  test::EnvironmentVariable base("XDG_CACHE_HOME", home.path.string());
  using plugin::cuda::LtCache;
  EXPECT_EQ(LtCache::fileFor("x", true), "");
  EXPECT_EQ(LtCache::fileFor("x", false).find(home.path.string() + "/shardc/cublaslt-"), 0u);
  CudaDevice device;
  test::GemmCase({SHARDRT_F32, 4, 5, 6}).run([&](const shardrt_gemm &gemm) {
    multiplyOn(device, gemm);
  });
  EXPECT_TRUE(std::filesystem::is_empty(home.path));
}

TEST_F(EmulatedGemm, AnOldLibrary) {
  test::EnvironmentVariable version("CUDA_EMULATED_LT_VERSION", "111103");
  CudaDevice device;
  shardrt_gemm gemm{};
  gemm.type = SHARDRT_F32;
  char message[SHARDRT_MESSAGE_BYTES] = "";
  EXPECT_EQ(device.table().gemm(device.device.handle(), &gemm, device.stream.get(), message),
            SHARDRT_INCOMPATIBLE);
  EXPECT_NE(std::string(message).find("is cuBLASLt 111103, and the plugin needs 120000 at least"),
            std::string::npos)
      << message;
}

TEST(LtCache, KeepsWhatOthersHaveAdded) {
  test::Folder folder;
  const std::string file = folder.file("deeper/choices");
  using plugin::cuda::LtCache;
  LtCache one("a device", file), two("a device", file), other("another device", file);
  one.add("x", {{1, 2, 3, 4, 5, 6, 7, 8}, 9});
  two.add("y with spaces", {{8, 7, 6, 5, 4, 3, 2, ~0ull}, 1 << 20});
  LtCache later("a device", file);
  ASSERT_TRUE(later.find("x") && later.find("y with spaces"));
  EXPECT_EQ(later.find("x")->workspace, 9u);
  EXPECT_EQ(later.find("y with spaces")->algorithm[7], ~0ull);
  EXPECT_FALSE(later.find("z"));
  EXPECT_FALSE(LtCache("another device", file).find("x"));
  EXPECT_FALSE(LtCache("a device", "").find("x"));
}

namespace {

plugin::cuda::LtChoice choiceOf(uint64_t number) {
  plugin::cuda::LtChoice choice{};
  std::ranges::fill(choice.algorithm, number);
  choice.workspace = number;
  return choice;
}

/// A cache of "a device" in this file; what it warns of goes behind `warnings`.
plugin::cuda::LtCache openCache(const std::string &file, std::vector<std::string> &warnings) {
  return {"a device", file, [&](const std::string &text) { warnings.push_back(text); }};
}

} // namespace

// Each process adds its own lines to what the others write at the same time.
TEST(LtCache, ManyProcessesAtOnce) {
  constexpr uint64_t processes = 6, products = 60;
  test::Folder folder;
  const std::string file = folder.file("deeper/choices");
  std::vector<pid_t> children;
  for (uint64_t process = 0; process < processes; ++process) {
    children.push_back(fork());
    if (children.back() != 0)
      continue;
    plugin::cuda::LtCache cache("a device", file);
    for (uint64_t i = 0; i < products; ++i)
      cache.add(std::to_string(process) + " " + std::to_string(i), choiceOf(process + i));
    _exit(0);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::vector<std::string> warnings;
  auto cache = openCache(file, warnings);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  for (uint64_t process = 0; process < processes; ++process)
    for (uint64_t i = 0; i < products; ++i) {
      auto found = cache.find(std::to_string(process) + " " + std::to_string(i));
      ASSERT_TRUE(found) << process << " " << i;
      EXPECT_EQ(found->workspace, process + i);
    }
  const std::string text = test::contents(file);
  EXPECT_EQ(std::ranges::count(text, '\n'), ptrdiff_t(1 + processes * products));
}

TEST(LtCache, LinesAreAddedAndNotWrittenAgain) {
  test::Folder folder;
  const std::string file = folder.file("choices");
  std::vector<std::string> warnings;
  auto cache = openCache(file, warnings);
  cache.add("x", choiceOf(1));
  const std::string first = test::contents(file);
  cache.add("x", choiceOf(1));
  EXPECT_EQ(test::contents(file), first) << "it is there already";
  cache.add("y", choiceOf(2));
  EXPECT_EQ(test::contents(file).substr(0, first.size()), first);
  cache.add("x", choiceOf(3)); // the last one counts
  EXPECT_EQ(openCache(file, warnings).find("x")->workspace, 3u);
  EXPECT_TRUE(warnings.empty());
}

TEST(LtCache, DamagedFilesAreWarnedOf) {
  test::Folder folder;
  const std::string file = folder.file("choices");
  std::vector<std::string> warnings;
  openCache(file, warnings).add("x", choiceOf(1));
  const std::string good = test::contents(file);
  // A process was killed while it wrote; what comes behind is good.
  std::ofstream(file, std::ios::app) << "0123456789abcdef 12 34";
  openCache(file, warnings).add("y", choiceOf(2));
  warnings.clear();
  auto later = openCache(file, warnings);
  EXPECT_TRUE(later.find("x") && later.find("y"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], file + ": damaged lines are not used: 1");
  // Nothing of it is ours.
  std::ofstream(file, std::ios::trunc) << "nonsense\n";
  warnings.clear();
  auto another = openCache(file, warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("is not used"), std::string::npos);
  another.add("x", choiceOf(1));
  EXPECT_EQ(test::contents(file), good);
  // Where nothing can be written.
  warnings.clear();
  openCache(file + "/below", warnings).add("x", choiceOf(1));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("cannot be kept there"), std::string::npos) << warnings[0];
}
