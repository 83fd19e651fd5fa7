// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/LtCache.h"

#include "runtime/support/Fnv.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
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

/// A file that is open for as long as this lives, and then its lock is gone as well.
struct LockedFile {
  explicit LockedFile(const std::string &path)
      : file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
    while (file >= 0 && flock(file, LOCK_EX) != 0)
      if (errno != EINTR) {
        ::close(file);
        file = -1;
      }
  }
  ~LockedFile() {
    if (file >= 0)
      ::close(file);
  }
  LockedFile(const LockedFile &) = delete;

  /// The bytes at a place; fewer where the file ends.
  std::string read(off_t at, size_t bytes) const {
    std::string text(bytes, '\0');
    ssize_t got = pread(file, text.data(), bytes, at);
    text.resize(got > 0 ? size_t(got) : 0);
    return text;
  }
  bool append(const std::string &text) const {
    for (size_t done = 0; done < text.size();) {
      ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
      if (wrote < 0 && errno != EINTR)
        return false;
      done += wrote > 0 ? size_t(wrote) : 0;
    }
    return true;
  }
  int file;
};

} // namespace

std::string LtCache::fileFor(const std::string &subject, bool isEmulated) {
  const std::string name = "/cublaslt-" + hashOf(subject);
  const char *own = std::getenv("SHARDRT_GEMM_CACHE");
  if (own && *own)
    return own + name;
  const char *folder = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (isEmulated)
    return "";
  if (folder && *folder == '/')
    return std::string(folder) + "/shardc" + name;
  if (home && *home == '/')
    return std::string(home) + "/.cache/shardc" + name;
  return "";
}

LtCache::LtCache(std::string what, std::string where, Warn warn)
    : subject(std::move(what)), path(std::move(where)), warn(std::move(warn)) {
  read();
}

void LtCache::warnOnce(const std::string &text) {
  if (warn && !warned)
    warn(path + ": " + text);
  warned = true;
}

void LtCache::read() {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (path.empty() || !file || !std::getline(file, line))
    return;
  if (line != headline + subject) // a hash may be that of another subject
    return warnOnce("it does not begin as a file of algorithms for " + subject +
                    " does, and is not used");
  size_t damaged = 0;
  while (std::getline(file, line)) {
    if (auto entry = parse(line))
      choices.insert_or_assign(entry->first, entry->second); // the last one counts
    else
      damaged += !line.empty();
  }
  if (damaged > 0)
    warnOnce("damaged lines are not used: " + std::to_string(damaged));
}

std::optional<LtChoice> LtCache::find(const std::string &product) const {
  auto found = choices.find(product);
  if (found == choices.end())
    return std::nullopt;
  return found->second;
}

void LtCache::add(const std::string &product, const LtChoice &choice) {
  auto [known, isNew] = choices.try_emplace(product, choice);
  if (!isNew && std::memcmp(&known->second, &choice, sizeof choice) == 0)
    return;
  known->second = choice;
  if (path.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  LockedFile file(path);
  struct stat facts{};
  if (file.file < 0 || fstat(file.file, &facts) != 0)
    return warnOnce(std::string("choices cannot be kept there: ") + std::strerror(errno));
  std::string text, first = headline + subject + '\n';
  off_t size = facts.st_size;
  if (file.read(0, first.size()) != first) { // new, or of no use to anybody
    if (size > 0 && ftruncate(file.file, 0) != 0)
      return warnOnce(std::string("it cannot be written anew: ") + std::strerror(errno));
    text = first;
  } else if (file.read(size - 1, 1) != "\n") {
    text = "\n"; // behind the part of a line of a process that was killed
  }
  if (!file.append(text + lineOf(product, choice) + '\n'))
    warnOnce(std::string("choices cannot be kept there: ") + std::strerror(errno));
}

} // namespace shardc::plugin::cuda
