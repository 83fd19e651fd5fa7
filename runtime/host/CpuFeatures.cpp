// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/CpuFeatures.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace shardc::rt {

#if defined(__x86_64__)

const char *hostArchitecture() { return "x86_64"; }

namespace {

enum Register : uint8_t { EAX, EBX, ECX, EDX };

/// Register state that the operating system must save for a feature (bits of XCR0).
constexpr uint64_t noState = 0, avxState = 0x6, avx512State = 0xe6, amxState = 0x60000;

/// Where cpuid says so (Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E).
struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  uint64_t state;
};
constexpr Feature features[] = {
    {"sse3", 1, 0, ECX, 0, noState},
    {"pclmul", 1, 0, ECX, 1, noState},
    {"ssse3", 1, 0, ECX, 9, noState},
    {"fma", 1, 0, ECX, 12, avxState},
    {"cx16", 1, 0, ECX, 13, noState},
    {"sse4.1", 1, 0, ECX, 19, noState},
    {"sse4.2", 1, 0, ECX, 20, noState},
    {"movbe", 1, 0, ECX, 22, noState},
    {"popcnt", 1, 0, ECX, 23, noState},
    {"aes", 1, 0, ECX, 25, noState},
    {"avx", 1, 0, ECX, 28, avxState},
    {"f16c", 1, 0, ECX, 29, avxState},
    {"rdrnd", 1, 0, ECX, 30, noState},
    {"cx8", 1, 0, EDX, 8, noState},
    {"cmov", 1, 0, EDX, 15, noState},
    {"mmx", 1, 0, EDX, 23, noState},
    {"fxsr", 1, 0, EDX, 24, noState},
    {"sse", 1, 0, EDX, 25, noState},
    {"sse2", 1, 0, EDX, 26, noState},
    {"bmi", 7, 0, EBX, 3, noState},
    {"avx2", 7, 0, EBX, 5, avxState},
    {"bmi2", 7, 0, EBX, 8, noState},
    {"avx512f", 7, 0, EBX, 16, avx512State},
    {"avx512dq", 7, 0, EBX, 17, avx512State},
    {"adx", 7, 0, EBX, 19, noState},
    {"avx512ifma", 7, 0, EBX, 21, avx512State},
    {"avx512cd", 7, 0, EBX, 28, avx512State},
    {"sha", 7, 0, EBX, 29, noState},
    {"avx512bw", 7, 0, EBX, 30, avx512State},
    {"avx512vl", 7, 0, EBX, 31, avx512State},
    {"avx512vbmi", 7, 0, ECX, 1, avx512State},
    {"avx512vbmi2", 7, 0, ECX, 6, avx512State},
    {"gfni", 7, 0, ECX, 8, noState},
    {"vaes", 7, 0, ECX, 9, avxState},
    {"vpclmulqdq", 7, 0, ECX, 10, avxState},
    {"avx512vnni", 7, 0, ECX, 11, avx512State},
    {"avx512bitalg", 7, 0, ECX, 12, avx512State},
    {"avx512vpopcntdq", 7, 0, ECX, 14, avx512State},
    {"avx512vp2intersect", 7, 0, EDX, 8, avx512State},
    {"amx-bf16", 7, 0, EDX, 22, amxState},
    {"avx512fp16", 7, 0, EDX, 23, avx512State},
    {"amx-tile", 7, 0, EDX, 24, amxState},
    {"amx-int8", 7, 0, EDX, 25, amxState},
    {"avxvnni", 7, 1, EAX, 4, avxState},
    {"avx512bf16", 7, 1, EAX, 5, avx512State},
    {"sahf", 0x80000001, 0, ECX, 0, noState},
    {"lzcnt", 0x80000001, 0, ECX, 5, noState},
    {"sse4a", 0x80000001, 0, ECX, 6, noState},
    {"prfchw", 0x80000001, 0, ECX, 8, noState},
    {"64bit", 0x80000001, 0, EDX, 29, noState},
};

uint64_t enabledState() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave))
    return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

bool hasFeature(const Feature &feature, uint64_t state) {
  uint32_t registers[4] = {};
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &registers[EAX], &registers[EBX],
                         &registers[ECX], &registers[EDX]))
    return false;
  return (registers[feature.reg] >> feature.bit & 1) && (state & feature.state) == feature.state;
}

} // namespace

std::vector<std::string> missingCpuFeatures(std::span<const std::string> wanted) {
  std::vector<std::string> missing;
  uint64_t state = enabledState();
  for (const std::string &name : wanted) {
    auto found = std::find_if(std::begin(features), std::end(features),
                              [&](const Feature &feature) { return name == feature.name; });
    if (found == std::end(features) || !hasFeature(*found, state))
      missing.push_back(name);
  }
  return missing;
}

#else

const char *hostArchitecture() {
#if defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

std::vector<std::string> missingCpuFeatures(std::span<const std::string> wanted) {
  return {wanted.begin(), wanted.end()};
}

#endif

} // namespace shardc::rt
