// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that only tests use.

#ifndef SHARDC_TEST_LIB_PRINTPROGRAMJSON_H
#define SHARDC_TEST_LIB_PRINTPROGRAMJSON_H

namespace shardc {

/// Registers `--test-print-program-json`: writes the functions of a module to standard output as
/// JSON, for the reference interpreter (test/reference). The module itself is still printed where
/// the tool prints it (`-o`).
void registerPrintProgramJsonPass();

} // namespace shardc

#endif // SHARDC_TEST_LIB_PRINTPROGRAMJSON_H
