// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A machine described by a text file, and the cost model it gives. The format, one entry a line,
// `#` starts a comment:
//
//   name = h100-64
//   ranks_per_node = 8
//   memory_gb_per_s = 3350
//   launch_us = 1
//   peak_tflops bf16 = 989.5
//   [all_gather intra algbw]     rows: ranks of the group, latency us, GB/s (1e9 bytes)
//   8  30  394
//   [all_gather inter busbw]     rows: nodes the group spans, latency us, GB/s of a full node
//   2  70  410
//   [measured all_gather 8]      rows: full bytes S, us, for groups of 8 ranks
//   1048576  36.5
//
// `algbw` is S / (t - latency); `busbw` counts what crosses a link, so algbw = busbw * n / (n - 1),
// half of that for an all-reduce. A kind without a table of its own takes the one of all_gather.
// A measured table overrides the formula for its kind and group size. With `ranks_per_node = 1`,
// all tables may be left out: such a machine has no cost of collectives, and runs none.

#ifndef SHARDC_PASSES_COST_CORE_TARGETDESCRIPTION_H
#define SHARDC_PASSES_COST_CORE_TARGETDESCRIPTION_H

#include "passes/cost/core/CostModel.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shardc::cost {

/// Latency and bandwidth over the number of ranks (within a node) or of nodes (between nodes).
struct LinkTable {
  std::vector<double> counts;
  std::vector<double> latencyUs;
  std::vector<double> gbPerSecond;
  bool busBandwidth = false;
  bool empty() const { return counts.empty(); }
};

/// Measured microseconds over full bytes, ascending. Between points linear, below the first its
/// value, above the last along the last segment (or in proportion to bytes from a single point).
struct MeasuredTable {
  std::vector<double> bytes;
  std::vector<double> us;
  double at(double x) const;
};

struct TargetDescription {
  std::string name;
  uint32_t ranksPerNode = 1;
  double memoryGBPerSecond = 0;
  double launchUs = 0;
  std::map<std::string, double, std::less<>> peakTflops;
  std::array<LinkTable, numCollectiveKinds> intra;
  std::array<LinkTable, numCollectiveKinds> inter;
  std::map<std::pair<CollectiveKind, uint32_t>, MeasuredTable> measured;

  /// A machine of one rank a node that says nothing of links: programs without collectives.
  bool isOneRank() const;
};

/// Parses a description. All mistakes are reported together, one per line as "SOURCE:LINE:
/// message"; the result is empty if there is any.
std::optional<TargetDescription>
parseTargetDescription(std::string_view text, std::string_view source, std::string &errors);

/// The cost model of a description.
class TargetModel final : public CostModel {
public:
  explicit TargetModel(TargetDescription description);

  std::string_view name() const override { return target.name; }
  bool supports(CollectiveKind) const override { return !target.isOneRank(); }
  double collectiveUs(CollectiveKind kind, const Group &group, uint64_t bytes) const override;
  double latencyUs(CollectiveKind kind, const Group &group) const override;
  std::optional<uint32_t> ranksPerNode() const override { return target.ranksPerNode; }
  double launchUs() const override { return target.launchUs; }
  double memoryBytesPerSecond() const override { return target.memoryGBPerSecond * 1e9; }
  double peakFlops(std::string_view elementType) const override;

private:
  struct Link {
    double latencyUs;
    double bytesPerUs;
  };
  Link linkOf(CollectiveKind kind, const Group &group) const;
  const MeasuredTable *measuredFor(CollectiveKind kind, const Group &group) const;

  TargetDescription target;
};

/// Names of the built-in models, `sim-v1` included.
std::span<const std::string_view> builtinModelNames();

/// A built-in model by name, or null.
std::unique_ptr<CostModel> makeBuiltinModel(std::string_view name);

/// The text of a built-in description (an example to start one's own from), empty if there is none.
std::string builtinDescription(std::string_view name);

/// The model of every pass and tool that is not told another: ranks as threads of this machine, on
/// which programs run as they are compiled by default.
inline constexpr std::string_view kDefaultModel = "cpu-local";

/// A built-in model, or the description in the file of that name. On failure null, with `errors`
/// naming the built-in models or what is wrong in the file.
std::unique_ptr<CostModel> loadModel(const std::string &nameOrPath, std::string &errors);

} // namespace shardc::cost

#endif // SHARDC_PASSES_COST_CORE_TARGETDESCRIPTION_H
