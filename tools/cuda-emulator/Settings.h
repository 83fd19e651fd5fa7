// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the emulated device behaves, from the environment (docs/cuda-emulator.md), and what it
// counts.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_SETTINGS_H
#define SHARDC_TOOLS_CUDA_EMULATOR_SETTINGS_H

#include <atomic>
#include <cstdint>
#include <string>

namespace shardc::emulator {

enum class StreamOrder { Eager, Lazy, Random };
/// What mutation tests leave out.
enum class Dropped { Nothing, Wait, Barrier, Check };

struct Settings {
  StreamOrder order = StreamOrder::Eager;
  uint64_t seed = 0;
  bool checks = true;
  Dropped dropped = Dropped::Nothing;
  uint64_t droppedNumber = 0; ///< from 0
  int devices = 8;
  bool peers = true;                         ///< devices can reach each other's memory
  uint64_t memoryBytes = uint64_t(16) << 30; ///< of each device
  std::string reportsFile;
  std::string countsFile;
  std::string mutantsFile;
  std::string codeFolder; ///< of compiled kernels
};

/// Settings of the process; the environment is read once. What it says wrongly is in settingsError.
Settings &settings();
const std::string &settingsError();

/// From "eager", "lazy", "random:SEED" and from "wait:N", "barrier:N", "check:N", "". False if it
/// is none of them; nothing has changed then.
bool parseOrder(const std::string &text, Settings &settings);
bool parseDrop(const std::string &text, Settings &settings);

/// What could be dropped: event waits that order something, and the barrier instructions and range
/// checks of the kernels that were launched, by first launch.
struct Counts {
  uint64_t waits = 0;
  uint64_t barriers = 0;
  uint64_t checks = 0;
  uint64_t graphs = 0; ///< launches of graphs
  /// Whether a thread came to the barrier or the check that was dropped.
  uint8_t reached = 0;

  /// Counts one more. Whether it is the one that is dropped.
  bool next(Dropped kind);
};
Counts &counts();
/// What programs hold of NCCL at the moment.
struct Held {
  std::atomic<uint64_t> communicators{0}, registeredBytes{0};
};
Held &held();
/// Writes the counts to settings().countsFile, if there is one.
void writeCounts();

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_SETTINGS_H
