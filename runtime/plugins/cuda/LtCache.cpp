// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/LtCache.h"

#include "runtime/support/Fnv.h"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace shardc::plugin::cuda {

namespace {

constexpr const char *headline = "shardc's choices of cuBLASLt's algorithms, version 1: ";

std::string hashOf(const std::string &text) {
  rt::Fnv hash;
  for (char c : text)
    hash.add(uint8_t(c));
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, hash.value());
  return digits;
}

std::string lineOf(const std::string &product, const LtChoice &choice) {
  std::ostringstream line;
  line << std::hex;
  for (uint64_t word : choice.algorithm)
    line << word << ' ';
  line << choice.workspace << ' ' << product;
  return hashOf(line.str()) + ' ' + line.str();
}

/// Nothing if the line is damaged.
std::optional<std::pair<std::string, LtChoice>> parse(const std::string &line) {
  if (line.size() < 18 || hashOf(line.substr(17)) != line.substr(0, 16))
    return std::nullopt;
  std::istringstream words(line.substr(17));
  words >> std::hex;
  LtChoice choice{};
  for (uint64_t &word : choice.algorithm)
    words >> word;
  words >> choice.workspace;
  std::string product;
  words.get();
  std::getline(words, product);
  if (!words || product.empty())
    return std::nullopt;
  return std::pair(product, choice);
}

} // namespace

std::string LtCache::fileFor(const std::string &subject) {
  const char *folder = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string base;
  if (folder && *folder == '/')
    base = folder;
  else if (home && *home == '/')
    base = std::string(home) + "/.cache";
  else
    return "";
  return base + "/shardc/cublaslt-" + hashOf(subject);
}

LtCache::LtCache(std::string what, std::string where)
    : subject(std::move(what)), path(std::move(where)) {
  read();
}

void LtCache::read() {
  std::ifstream file(path);
  std::string line;
  // A hash may be that of another subject.
  if (path.empty() || !std::getline(file, line) || line != headline + subject)
    return;
  while (std::getline(file, line))
    if (auto entry = parse(line))
      choices.insert(*entry); // what this process has found itself stays
}

std::optional<LtChoice> LtCache::find(const std::string &product) const {
  auto found = choices.find(product);
  if (found == choices.end())
    return std::nullopt;
  return found->second;
}

void LtCache::add(const std::string &product, const LtChoice &choice) {
  choices[product] = choice;
  if (path.empty())
    return;
  read();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  static std::atomic<unsigned> written{0};
  std::string fresh =
      path + ".new." + std::to_string(getpid()) + "." + std::to_string(written.fetch_add(1));
  {
    std::ofstream file(fresh, std::ios::trunc);
    file << headline << subject << '\n';
    for (const auto &[name, one] : choices)
      file << lineOf(name, one) << '\n';
    file.close();
    error = file ? std::error_code() : std::make_error_code(std::errc::io_error);
  }
  if (!error)
    std::filesystem::rename(fresh, path, error);
  if (error)
    std::filesystem::remove(fresh, error);
}

} // namespace shardc::plugin::cuda
