// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that runs while the test does something to it.
#ifndef SHARDC_TEST_UNIT_RUNTIME_PROCESS_H
#define SHARDC_TEST_UNIT_RUNTIME_PROCESS_H

#include "test/unit/runtime/Command.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>

namespace test {

class Process {
public:
  /// Starts it with its output in files of `folder`.
  Process(const Folder &folder, std::vector<std::string> words,
          std::vector<std::pair<std::string, std::string>> environment = {})
      : out(folder.file("process.out")), err(folder.file("process.err")) {
    std::vector<char *> argv;
    for (std::string &word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    pid = fork();
    if (pid != 0)
      return;
    for (auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    for (auto &[path, fd] : {std::pair(out, 1), std::pair(err, 2)})
      dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), fd);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Process() {
    if (!done)
      kill(pid, SIGKILL);
    wait();
  }

  /// Waits until it has that many children of its own program, and returns them, oldest first.
  std::vector<pid_t> children(size_t count) const {
    std::string list =
        "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children";
    for (int i = 0; i < 6000; ++i) {
      std::istringstream words(contents(list));
      std::vector<pid_t> found;
      for (pid_t child; words >> child;)
        found.push_back(child);
      if (found.size() >= count)
        return found;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "the children did not come: " << contents(err);
    return {};
  }
  /// Waits for a text on standard error.
  void waitFor(const std::string &text) const {
    for (int i = 0; i < 6000; ++i) {
      if (contents(err).find(text) != std::string::npos)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "no '" << text << "' in: " << contents(err);
  }
  Finished wait() {
    if (!done) {
      int status = 0;
      waitpid(pid, &status, 0);
      done = true;
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return {code, contents(out), contents(err)};
  }

  pid_t pid = -1;
  const std::string out, err;

private:
  bool done = false;
  int code = 0;
};

/// Whether a process has ended, which it may take some time for.
inline bool ends(pid_t pid) {
  for (int i = 0; i < 6000; ++i) {
    std::string stat = contents("/proc/" + std::to_string(pid) + "/stat");
    // Behind the name: a process that nobody has waited for is a Z.
    size_t state = stat.rfind(") ");
    if (state == std::string::npos || stat[state + 2] == 'Z')
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_PROCESS_H
