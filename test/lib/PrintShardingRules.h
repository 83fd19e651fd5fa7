// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TEST_LIB_PRINTSHARDINGRULES_H
#define SHARDC_TEST_LIB_PRINTSHARDINGRULES_H

namespace shardc {

/// --test-print-sharding-rules: what ops say about sharding, as remarks or, with `json`, one object
/// for each function on standard output.
void registerPrintShardingRulesPass();

} // namespace shardc

#endif // SHARDC_TEST_LIB_PRINTSHARDINGRULES_H
