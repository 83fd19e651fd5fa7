// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TEST_UNIT_RUNTIME_ENVIRONMENTVARIABLE_H
#define SHARDC_TEST_UNIT_RUNTIME_ENVIRONMENTVARIABLE_H

#include <cstdlib>
#include <string>

namespace test {

/// A variable of the environment, for as long as this lives.
struct EnvironmentVariable {
  EnvironmentVariable(const char *name, const std::string &value) : name(name) {
    setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() { unsetenv(name); }
  EnvironmentVariable(const EnvironmentVariable &) = delete;
  const char *const name;
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_ENVIRONMENTVARIABLE_H
