// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/Metadata.h"

#include <charconv>

namespace shardc::torch_export {

std::string_view modulePath(std::string_view moduleStack) {
  std::string_view entry = moduleStack.substr(moduleStack.rfind(';') + 1);
  size_t first = entry.find(','), last = entry.rfind(',');
  // PyTorch writes this word in the place of path and class for nodes that it made itself.
  if (first == std::string_view::npos || first == last ||
      entry.starts_with("_empty_nn_module_stack"))
    return {};
  std::string_view path = entry.substr(first + 1, last - first - 1);
  return path.substr(0, path.find('@'));
}

namespace {

// One line `  File "PATH", line N, in NAME`.
SourceLine frame(std::string_view text) {
  constexpr std::string_view open = "File \"", middle = "\", line ";
  size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos || !text.substr(begin).starts_with(open))
    return {};
  begin += open.size();
  size_t end = text.find(middle, begin);
  if (end == std::string_view::npos)
    return {};
  SourceLine found{text.substr(begin, end - begin), 0};
  const char *digits = text.data() + end + middle.size();
  auto [stop, code] = std::from_chars(digits, text.data() + text.size(), found.line);
  return code == std::errc() ? found : SourceLine{};
}

// `<eval_with_key>.12`: code that PyTorch made, which nobody can look up.
bool isGenerated(std::string_view file) { return file.starts_with('<') || file.empty(); }

bool insidePyTorch(std::string_view file) {
  return file.starts_with("torch/") || file.find("/site-packages/torch/") != file.npos ||
         file.find("/dist-packages/torch/") != file.npos;
}

} // namespace

SourceLine sourceLine(std::string_view stackTrace) {
  SourceLine innermost;
  // From the last line up: the innermost call comes last.
  while (!stackTrace.empty()) {
    size_t newline = stackTrace.rfind('\n');
    std::string_view line =
        newline == std::string_view::npos ? stackTrace : stackTrace.substr(newline + 1);
    stackTrace =
        newline == std::string_view::npos ? std::string_view() : stackTrace.substr(0, newline);
    SourceLine found = frame(line);
    if (found.line == 0 || isGenerated(found.file))
      continue;
    if (!insidePyTorch(found.file))
      return found;
    if (innermost.line == 0)
      innermost = found;
  }
  return innermost;
}

} // namespace shardc::torch_export
