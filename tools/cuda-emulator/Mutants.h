// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the checks say of programs that lack something, found in one run of the whole program: the
// file CUDA_EMULATED_MUTANTS gets a line for each barrier, wait, record and range check.
//
// Kernels: before a launch runs, a copy of the process (fork) runs it without one of its barriers,
// for each that no launch before it was reported for, and says what happened. Streams: OrderLog.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_MUTANTS_H
#define SHARDC_TOOLS_CUDA_EMULATOR_MUTANTS_H

#include <cstdint>
#include <functional>
#include <string>

namespace shardc::emulator {

/// What became of a program that lacks one thing.
struct MutantOutcome {
  bool reached = false;          ///< a thread came to where it was
  bool reported = false;         ///< and a check has found that it is missing
  std::string report;            ///< the first one
  const char *verdict = nullptr; ///< another word than what these say
};

/// Whether CUDA_EMULATED_MUTANTS asks for them.
bool mutantsAreTried();

/// Runs `run` in a copy of the process, which ends then, and returns what it says (`reached`; the
/// reports are added). One that runs for too long or dies is one that is not reported.
MutantOutcome tryMutant(const std::function<bool()> &run);

/// Tries mutant `number` of `kind` of `owner` (a kernel), if none of its trials was reported so
/// far.
void tryMutantOf(const std::string &owner, const std::string &kind, uint64_t number,
                 const std::string &place, const std::function<bool()> &run);

/// Writes the file: kind, "reported", "silent", "implied" or "unreached", owner, place and first
/// report, between tabs.
void writeMutants();

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_MUTANTS_H
