// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/cost/core/SimV1.h"
#include "passes/cost/core/TargetDescription.h"

#include <array>
#include <fstream>
#include <sstream>

using namespace shardc;
using namespace shardc::cost;

namespace {

// NVLink 4 within a node: algorithmic bandwidth and latency measured with NCCL on 2, 4 and 8 H100
// GPUs; a broadcast or permute pays what a gather does.
constexpr std::string_view nvlink4 = R"(
[all_gather intra algbw]
2   8  537
4  17  434
8  30  394
[all_reduce intra algbw]
2  10  324
4  15  236
8  31  267
)";

// One 400 Gb/s adapter per GPU between nodes: bus bandwidth of full nodes for rings that use all
// eight, one adapter's 50 GB/s where every rank sends its own data.
constexpr std::string_view eightAdapters = R"(
[all_gather inter busbw]
2    70  410
8   297  390
32 1204  386
[all_to_all inter busbw]
2    70   50
8   297   50
32 1204   50
[permute inter busbw]
2    70   50
)";

constexpr std::string_view h100 = R"(
ranks_per_node = 8
memory_gb_per_s = 3350
launch_us = 1
peak_tflops bf16 = 989.5
peak_tflops f16 = 989.5
peak_tflops f32 = 66.9
peak_tflops f64 = 66.9
)";

// The H200 is an H100 with faster memory.
constexpr std::string_view h200 = R"(
ranks_per_node = 8
memory_gb_per_s = 4800
launch_us = 1
peak_tflops bf16 = 989.5
peak_tflops f16 = 989.5
peak_tflops f32 = 66.9
peak_tflops f64 = 66.9
)";

// Ranks as threads of one process on one socket: a collective is a pass over shared memory, its
// latency a wake-up of the other threads. An order of magnitude, to be overridden by tables
// measured on the machine itself.
constexpr std::string_view cpuLocal = R"(
name = cpu-local
ranks_per_node = 1024
memory_gb_per_s = 40
launch_us = 0.3
peak_tflops f32 = 0.1
peak_tflops f64 = 0.05
[all_gather intra algbw]
2   5  8
8  20  4
64 80  2
[all_reduce intra algbw]
2   6  4
8  25  2
64 90  1
)";

std::string describe(std::string_view name) {
  auto make = [&](std::initializer_list<std::string_view> parts) {
    std::string text = "name = " + std::string(name) + "\n";
    for (std::string_view part : parts)
      text += part;
    return text;
  };
  if (name == "h100-8")
    return make({h100, nvlink4});
  if (name == "h100-64")
    return make({h100, nvlink4, eightAdapters});
  if (name == "h200-8")
    return make({h200, nvlink4});
  if (name == "cpu-local")
    return std::string(cpuLocal);
  return "";
}

constexpr std::array<std::string_view, 5> names = {"sim-v1", "h100-8", "h100-64", "h200-8",
                                                   "cpu-local"};

} // namespace

std::span<const std::string_view> shardc::cost::builtinModelNames() { return names; }

std::string shardc::cost::builtinDescription(std::string_view name) { return describe(name); }

std::unique_ptr<CostModel> shardc::cost::makeBuiltinModel(std::string_view name) {
  if (name == "sim-v1")
    return std::make_unique<SimV1>();
  std::string text = describe(name);
  if (text.empty())
    return nullptr;
  std::string errors;
  std::optional<TargetDescription> target = parseTargetDescription(text, name, errors);
  return target ? std::make_unique<TargetModel>(std::move(*target)) : nullptr;
}

std::unique_ptr<CostModel> shardc::cost::loadModel(const std::string &nameOrPath,
                                                   std::string &errors) {
  if (std::unique_ptr<CostModel> model = makeBuiltinModel(nameOrPath))
    return model;
  std::ifstream file(nameOrPath, std::ios::binary);
  if (!file) {
    errors += "no target named '" + nameOrPath + "' and no such file; built-in targets:";
    for (std::string_view name : names)
      errors += " " + std::string(name);
    errors += "\n";
    return nullptr;
  }
  std::stringstream text;
  text << file.rdbuf();
  std::optional<TargetDescription> target = parseTargetDescription(text.str(), nameOrPath, errors);
  return target ? std::make_unique<TargetModel>(std::move(*target)) : nullptr;
}
