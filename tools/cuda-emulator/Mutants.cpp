// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Mutants.h"
#include "tools/cuda-emulator/Engine.h"
#include "tools/cuda-emulator/Report.h"
#include "tools/cuda-emulator/Settings.h"

#include <cerrno>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>

namespace shardc::emulator {
namespace {

/// A mutant that has lost its way ends after so many seconds of computing.
constexpr rlim_t longest = 60;

struct Mutant {
  std::string place;
  MutantOutcome outcome;
};
using MutantKey = std::tuple<std::string, std::string, uint64_t>; // owner, kind, number

std::map<MutantKey, Mutant> &mutants() {
  static auto *all = new std::map<MutantKey, Mutant>; // is used until the process ends
  return *all;
}

[[noreturn]] void beMutant(const std::function<bool()> &run, int out) {
  const rlimit limit{longest, longest};
  setrlimit(RLIMIT_CPU, &limit);
  Engine::instance().becomeCopy();
  keepReportsOnly();
  clearReports();
  std::string said(1, run() ? '1' : '0');
  said += allReports(nullptr);
  for (size_t at = 0; at < said.size();) {
    ssize_t n = write(out, said.data() + at, said.size() - at);
    if (n <= 0)
      break;
    at += size_t(n);
  }
  _exit(0); // nothing of the process that it is a copy of ends here
}

void writeLine(std::FILE *out, const std::string &kind, const MutantOutcome &outcome,
               const std::string &owner, const std::string &place) {
  const char *verdict = outcome.verdict    ? outcome.verdict
                        : outcome.reported ? "reported"
                        : outcome.reached  ? "silent"
                                           : "unreached";
  std::fprintf(out, "%s\t%s\t%s\t%s\t%s\n", kind.c_str(), verdict, owner.c_str(), place.c_str(),
               outcome.report.c_str());
}

} // namespace

bool mutantsAreTried() { return !settings().mutantsFile.empty(); }

MutantOutcome tryMutant(const std::function<bool()> &run) {
  int ends[2];
  if (pipe(ends) != 0)
    throw std::runtime_error("no pipe for a mutant");
  pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error("no process for a mutant");
  }
  if (child == 0) {
    close(ends[0]);
    beMutant(run, ends[1]);
  }
  close(ends[1]);
  std::string said;
  char piece[4096];
  for (;;) {
    ssize_t n = read(ends[0], piece, sizeof piece);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    said.append(piece, size_t(n));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  MutantOutcome outcome;
  if (said.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    outcome.reached = true;
    outcome.report = "it ended without an answer";
    return outcome;
  }
  outcome.reached = said[0] == '1';
  outcome.reported = said.size() > 1;
  outcome.report = said.substr(1, said.find('\n') - 1);
  return outcome;
}

void tryMutantOf(const std::string &owner, const std::string &kind, uint64_t number,
                 const std::string &place, const std::function<bool()> &run) {
  Mutant &mutant = mutants()[{owner, kind, number}];
  if (mutant.outcome.reported)
    return;
  mutant.place = place;
  MutantOutcome outcome = tryMutant(run);
  outcome.reached |= mutant.outcome.reached;
  mutant.outcome = outcome;
}

void writeMutants() {
  if (!mutantsAreTried())
    return;
  const std::string &name = settings().mutantsFile;
  std::FILE *out = std::fopen(name.c_str(), "w");
  if (!out) {
    std::fprintf(stderr, "cuda-emulated: cannot write %s (CUDA_EMULATED_MUTANTS)\n", name.c_str());
    return;
  }
  for (const auto &[key, mutant] : mutants())
    writeLine(out, std::get<1>(key), mutant.outcome, std::get<0>(key), mutant.place);
  for (const OrderMutant &mutant : OrderLog::instance().findMutants()) {
    MutantOutcome outcome{true, !mutant.report.empty(), mutant.report};
    if (mutant.isImplied)
      outcome.verdict = "implied";
    writeLine(out, mutant.kind, outcome, mutant.stream, mutant.place);
  }
  std::fclose(out);
}

} // namespace shardc::emulator
