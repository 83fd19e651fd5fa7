// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Report.h"
#include "tools/cuda-emulator/Settings.h"

#include <cstdio>

namespace shardc::emulator {
namespace {

struct Reports {
  std::string text;
  size_t count = 0;
  bool keptOnly = false;
};

Reports &reports() {
  static auto *instance = new Reports; // is used until the process ends
  return *instance;
}

} // namespace

void addReport(const std::string &text) {
  std::string line = "cuda-emulated: " + text + "\n";
  reports().text += line;
  ++reports().count;
  if (reports().keptOnly)
    return;
  std::fputs(line.c_str(), stderr);
  if (settings().reportsFile.empty())
    return;
  std::FILE *file = std::fopen(settings().reportsFile.c_str(), "a");
  if (!file) {
    std::fprintf(stderr, "cuda-emulated: cannot write %s (CUDA_EMULATED_REPORTS)\n",
                 settings().reportsFile.c_str());
    return;
  }
  std::fputs(line.c_str(), file);
  std::fclose(file);
}

const std::string &allReports(size_t *count) {
  if (count)
    *count = reports().count;
  return reports().text;
}

void clearReports() {
  reports().text.clear();
  reports().count = 0;
}

void keepReportsOnly() { reports().keptOnly = true; }

} // namespace shardc::emulator
