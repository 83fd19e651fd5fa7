// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TEST_UNIT_RUNTIME_COMMAND_H
#define SHARDC_TEST_UNIT_RUNTIME_COMMAND_H

#include "test/unit/runtime/Files.h"

#include <cstdlib>
#include <iterator>
#include <sys/wait.h>

namespace test {

inline std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Finished {
  int status; ///< exit status, or 128 + signal
  std::string out, err;
};

/// Runs a shell command line; its output goes through files in `folder`.
inline Finished runCommand(const Folder &folder, const std::string &command) {
  std::string out = folder.file("stdout"), err = folder.file("stderr");
  int status = std::system(("( " + command + " ) >'" + out + "' 2>'" + err + "'").c_str());
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, contents(out), contents(err)};
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_COMMAND_H
