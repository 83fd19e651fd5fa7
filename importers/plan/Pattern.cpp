// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Plan.h"

#include "support/NearestNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>

using llvm::StringRef;

namespace shardc::plan {
namespace {

/// Position after the `}` that closes the `{` at the front of `pattern`; npos where none does.
size_t closingBrace(StringRef pattern) {
  unsigned depth = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{')
      ++depth;
    else if (pattern[i] == '}' && --depth == 0)
      return i;
  }
  return StringRef::npos;
}

/// Top-level alternatives of `a,{b,c},d`.
llvm::SmallVector<StringRef> alternatives(StringRef body) {
  llvm::SmallVector<StringRef> parts;
  unsigned depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= body.size(); ++i) {
    if (i == body.size() || (body[i] == ',' && depth == 0)) {
      parts.push_back(body.slice(begin, i));
      begin = i + 1;
    } else if (body[i] == '{') {
      ++depth;
    } else if (body[i] == '}') {
      --depth;
    }
  }
  return parts;
}

/// Expands braces, so that only `*` is left. The number of expansions is bounded: a plan is a short
/// text.
void expandBraces(StringRef pattern, std::string prefix, std::vector<std::string> &out) {
  constexpr size_t limit = 4096;
  if (out.size() >= limit)
    return;
  size_t open = pattern.find('{');
  size_t close = open == StringRef::npos ? open : closingBrace(pattern.drop_front(open));
  if (close == StringRef::npos) {
    out.push_back(prefix + pattern.str());
    return;
  }
  StringRef body = pattern.substr(open + 1, close - 1);
  StringRef rest = pattern.drop_front(open + close + 1);
  for (StringRef choice : alternatives(body))
    expandBraces((choice + rest).str(), prefix + pattern.take_front(open).str(), out);
}

/// Classic two-pointer matching of `*`: on a mismatch, the last star takes one more character.
bool matchesStars(StringRef pattern, StringRef name) {
  size_t p = 0, n = 0, star = StringRef::npos, retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != StringRef::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  return pattern.drop_front(p).find_first_not_of('*') == StringRef::npos;
}

/// The text that distance is measured on: names of deep modules differ in their last parts,
/// patterns lead with stars.
StringRef tail(StringRef text, unsigned parts) {
  size_t end = text.size();
  for (unsigned i = 0; i < parts && end != StringRef::npos; ++i)
    end = text.take_front(end).rfind('.');
  return end == StringRef::npos ? text : text.drop_front(end + 1);
}

} // namespace

bool hasWildcard(StringRef pattern) { return pattern.find_first_of("*{") != StringRef::npos; }

bool matchesPattern(StringRef pattern, StringRef name) {
  if (pattern.find('{') == StringRef::npos)
    return matchesStars(pattern, name);
  std::vector<std::string> expanded;
  expandBraces(pattern, "", expanded);
  return llvm::any_of(expanded, [&](const std::string &p) { return matchesStars(p, name); });
}

std::string nearestNames(StringRef wanted, const std::vector<std::string> &names, unsigned count) {
  StringRef plain = wanted.substr(wanted.rfind('*') == StringRef::npos ? 0 : wanted.rfind('*') + 1);
  plain = plain.ltrim('.');
  unsigned parts = plain.empty() ? 1 : 1 + plain.count('.');
  std::vector<NameCandidate> candidates;
  llvm::SmallVector<StringRef> seen;
  for (const std::string &name : names) {
    StringRef compared = plain.size() == wanted.size() ? StringRef(name) : tail(name, parts);
    // One representative of each repeated layer is enough.
    if (compared.size() != name.size() && llvm::is_contained(seen, compared))
      continue;
    if (seen.size() < 64)
      seen.push_back(compared);
    candidates.push_back({name, compared});
  }
  return listNames(shardc::nearestNames(plain, candidates, count));
}

} // namespace shardc::plan
