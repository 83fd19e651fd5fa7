// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What checks have found: on stderr, in the file CUDA_EMULATED_REPORTS, and for cuEmulatedReports.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_REPORT_H
#define SHARDC_TOOLS_CUDA_EMULATOR_REPORT_H

#include <string>

namespace shardc::emulator {

void addReport(const std::string &text);
/// All of them, a line or more each; how many.
const std::string &allReports(size_t *count);
void clearReports();
/// From now on reports are kept only.
void keepReportsOnly();

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_REPORT_H
