// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the library reports errors inside itself: a Failure is thrown, and turned into a status and a
// message at the C boundary (api/). Services called by generated code catch it as well: nothing
// ever unwinds through generated code.
#ifndef SHARDC_RUNTIME_SUPPORT_FAILURE_H
#define SHARDC_RUNTIME_SUPPORT_FAILURE_H

#include "runtime/include/shardrt.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace shardc::rt {

class Failure : public std::exception {
public:
  Failure(shardrt_status status, std::string message)
      : status(status), message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }

  shardrt_status status;
  std::string message;
};

/// Gathers problems so that all of them are reported at once.
class Problems {
public:
  void add(std::string text) { lines.push_back(std::move(text)); }
  void add(const std::vector<std::string> &texts, const std::string &prefix) {
    for (const std::string &text : texts)
      lines.push_back(prefix + text);
  }
  bool empty() const { return lines.empty(); }
  size_t size() const { return lines.size(); }
  /// "headline: problem", or the headline and one indented line for each problem.
  std::string text(const std::string &headline) const {
    if (lines.size() == 1)
      return headline + ": " + lines.front();
    std::string all = headline + ":";
    for (const std::string &line : lines)
      all += "\n  " + line;
    return all;
  }
  /// Throws if there is any.
  void raise(shardrt_status status, const std::string &headline) const {
    if (!empty())
      throw Failure(status, text(headline));
  }

private:
  std::vector<std::string> lines;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_FAILURE_H
