// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text form of layouts, and their parser.
#include "dialects/sharding/Layout.h"

#include <charconv>

namespace shardc {

template <typename T> static std::string listText(const std::vector<T> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

std::string Placement::str() const {
  switch (kind) {
  case PlacementKind::Open:
    return "?";
  case PlacementKind::Replicate:
    return "R";
  case PlacementKind::Partial:
    return "P(" + std::string(reductionName(reduction)) + ")";
  case PlacementKind::Shard:
    break;
  }
  std::string text = "S(" + std::to_string(dim);
  std::string options = split(0, 1).options();
  return text + (options.empty() ? "" : ", " + options) + ")";
}

std::string Layout::str() const {
  std::string text = "[";
  for (size_t i = 0; i < placements.size(); ++i)
    text += (i ? ", " : "") + placements[i].str();
  text += "]";
  if (!isDefaultOrder())
    text += ", order = " + listText(order);
  return text;
}

namespace {
/// A cursor over the text; the first failure is kept and stops everything after it.
class Cursor {
public:
  explicit Cursor(std::string_view text) : text(text) {}

  bool failed() const { return !error.empty(); }
  std::string takeError() { return std::move(error); }
  void fail(const std::string &message) {
    if (!failed())
      error =
          message + " at character " + std::to_string(pos + 1) + " of '" + std::string(text) + "'";
  }
  bool atEnd() {
    skipSpace();
    return pos == text.size();
  }
  bool accept(char c) {
    skipSpace();
    if (pos == text.size() || text[pos] != c)
      return false;
    ++pos;
    return true;
  }
  void expect(char c) {
    if (!failed() && !accept(c))
      fail(std::string("expected '") + c + "'");
  }
  std::string_view word() {
    skipSpace();
    size_t begin = pos;
    while (pos < text.size() && ((text[pos] >= 'a' && text[pos] <= 'z') ||
                                 (text[pos] >= 'A' && text[pos] <= 'Z') || text[pos] == '_'))
      ++pos;
    return text.substr(begin, pos - begin);
  }
  int64_t integer() {
    skipSpace();
    int64_t value = 0;
    auto [end, status] = std::from_chars(text.data() + pos, text.data() + text.size(), value);
    if (status != std::errc())
      fail("expected an integer");
    else
      pos = static_cast<size_t>(end - text.data());
    return value;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> values;
    expect('[');
    if (failed() || accept(']'))
      return values;
    do
      values.push_back(integer());
    while (!failed() && accept(','));
    expect(']');
    return values;
  }
  /// `[64, 32]`, or one number.
  SplitOptions::Numbers numbers() {
    skipSpace();
    if (pos < text.size() && text[pos] == '[')
      return {integers(), true};
    return {{integer()}, false};
  }
  Placement placement();

private:
  void skipSpace() {
    while (pos < text.size() && (text[pos] == ' ' || text[pos] == '\t' || text[pos] == '\n'))
      ++pos;
  }
  void shardOptions(Placement &result);

  std::string_view text;
  size_t pos = 0;
  std::string error;
};
} // namespace

void Cursor::shardOptions(Placement &result) {
  SplitOptions options;
  while (!failed() && accept(',')) {
    std::string_view key = word();
    expect('=');
    if (failed())
      return;
    if (key == "blocks")
      options.blocks = numbers();
    else if (key == "granule")
      options.granule = numbers();
    else if (key == "sizes")
      options.sizes = {integers(), true};
    else
      fail("expected blocks, granule or sizes, got '" + std::string(key) + "'");
  }
  AxisSplit split;
  if (std::string why = options.apply(split); !why.empty())
    fail(why);
  result.setSplit(split);
}

Placement Cursor::placement() {
  if (accept('?'))
    return Placement::open();
  std::string_view kind = word();
  if (kind == "R")
    return Placement::replicate();
  if (kind == "P") {
    if (!accept('('))
      return Placement::partial();
    std::string_view name = word();
    std::optional<Reduction> reduction = parseReduction(name);
    if (!reduction)
      fail("expected sum, avg, min, max or prod, got '" + std::string(name) + "'");
    expect(')');
    return Placement::partial(reduction.value_or(Reduction::Sum));
  }
  if (kind == "S") {
    expect('(');
    Placement result = Placement::shard(integer());
    shardOptions(result);
    expect(')');
    return result;
  }
  fail("expected a placement: R, S(dim), P(reduction) or ?");
  return {};
}

Parsed<Placement> parsePlacement(std::string_view text) {
  Cursor cursor(text);
  Placement placement = cursor.placement();
  if (!cursor.failed() && !cursor.atEnd())
    cursor.fail("unexpected text");
  if (cursor.failed())
    return {std::nullopt, cursor.takeError()};
  return {std::move(placement), ""};
}

Parsed<Layout> parseLayout(const Mesh &mesh, std::string_view text) {
  Cursor cursor(text);
  std::vector<Placement> placements;
  std::vector<unsigned> order;
  cursor.expect('[');
  if (!cursor.failed() && !cursor.accept(']')) {
    do
      placements.push_back(cursor.placement());
    while (!cursor.failed() && cursor.accept(','));
    cursor.expect(']');
  }
  if (!cursor.failed() && cursor.accept(',')) {
    if (cursor.word() != "order")
      cursor.fail("expected order");
    cursor.expect('=');
    for (int64_t axis : cursor.integers()) {
      if (axis < 0 || axis >= mesh.numAxes())
        cursor.fail("axis " + std::to_string(axis) + " is not in the mesh");
      order.push_back(static_cast<unsigned>(axis));
    }
    if (order.size() != mesh.numAxes())
      cursor.fail("order must name every mesh axis once");
  }
  if (!cursor.failed() && !cursor.atEnd())
    cursor.fail("unexpected text");
  if (!cursor.failed() && placements.size() != mesh.numAxes())
    cursor.fail("the mesh has " + std::to_string(mesh.numAxes()) + " axes, but " +
                std::to_string(placements.size()) + " placements are given");
  if (cursor.failed())
    return {std::nullopt, cursor.takeError()};
  return {Layout(mesh, std::move(placements), std::move(order)), ""};
}

} // namespace shardc
