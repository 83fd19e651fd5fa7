// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/Pickle.h"

#include <bit>
#include <cstring>
#include <unordered_map>

namespace shardc {

/// The pickle machine: a stack of values, marks in it, and a memo. Every opcode makes at most one
/// value, so memory is bounded by the size of the file; a value is much larger than its opcode,
/// though, so their number is bounded too.
class Pickle::Reader {
public:
  Reader(std::span<const std::byte> bytes, Pickle &out, std::string &error)
      : bytes(bytes), out(out), error(error) {}

  bool run() {
    while (true) {
      opcodeAt = at;
      uint8_t opcode = 0;
      if (!number(opcode))
        return false;
      if (opcode == '.')
        return finish();
      if (!step(opcode))
        return false;
    }
  }

private:
  static constexpr size_t maxValues = size_t(1) << 24;

  bool fail(const std::string &what) {
    error = "the pickle is no pickle of tensors: " + what + " at byte " + std::to_string(opcodeAt);
    return false;
  }

  template <typename T> bool number(T &value) {
    if (bytes.size() - at < sizeof(T))
      return fail("it ends");
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    at += sizeof(T);
    return true;
  }
  bool text(size_t size, std::string_view &value) {
    if (bytes.size() - at < size)
      return fail("it ends");
    value = {reinterpret_cast<const char *>(bytes.data()) + at, size};
    at += size;
    return true;
  }
  bool line(std::string_view &value) {
    std::string_view rest(reinterpret_cast<const char *>(bytes.data()) + at, bytes.size() - at);
    size_t end = rest.find('\n');
    if (end == rest.npos)
      return fail("it ends");
    value = rest.substr(0, end);
    at += end + 1;
    return true;
  }

  bool push(Value value) {
    if (out.values.size() >= maxValues)
      return fail("it has more than " + std::to_string(maxValues) + " values");
    out.values.push_back(std::move(value));
    stack.push_back(Id(out.values.size() - 1));
    return true;
  }
  bool pop(Id &id) {
    if (stack.size() <= (marks.empty() ? 0 : marks.back()))
      return fail("a value is missing");
    id = stack.back();
    stack.pop_back();
    return true;
  }
  /// Everything above the last mark.
  bool popMark(std::vector<Id> &items) {
    if (marks.empty())
      return fail("a mark is missing");
    items.assign(stack.begin() + ptrdiff_t(marks.back()), stack.end());
    stack.resize(marks.back());
    marks.pop_back();
    return true;
  }
  /// The value below, which `kind` must be.
  bool target(Kind kind, Id &id) {
    if (stack.size() <= (marks.empty() ? 0 : marks.back()) || out.values[stack.back()].kind != kind)
      return fail("there is nothing that could be extended");
    id = stack.back();
    return true;
  }

  bool remember(uint32_t key) {
    if (stack.size() <= (marks.empty() ? 0 : marks.back()))
      return fail("a value is missing");
    memo[key] = stack.back();
    return true;
  }
  bool recall(uint32_t key) {
    auto found = memo.find(key);
    if (found == memo.end())
      return fail("a value is used before it is there");
    stack.push_back(found->second);
    return true;
  }
  template <typename T> bool memoStep(bool store) {
    T key = 0;
    return number(key) && (store ? remember(key) : recall(key));
  }

  bool integer(int64_t value) { return push({Kind::Int, value}); }
  template <typename T> bool integerStep() {
    T value = 0;
    return number(value) && integer(value);
  }
  /// Little-endian two's complement of as many bytes as it says.
  bool longStep() {
    uint8_t size = 0;
    std::string_view digits;
    if (!number(size) || !text(size, digits))
      return false;
    if (size > 8)
      return fail("an integer is larger than 64 bits");
    uint64_t value = size != 0 && (uint8_t(digits.back()) & 0x80) ? ~uint64_t(0) : 0;
    for (size_t i = digits.size(); i-- > 0;)
      value = (value << 8) | uint8_t(digits[i]);
    return integer(int64_t(value));
  }
  bool realStep() {
    uint64_t bits = 0;
    if (!number(bits))
      return false;
    return push({Kind::Float, 0, std::bit_cast<double>(__builtin_bswap64(bits))});
  }
  bool stringStep() {
    uint32_t size = 0;
    Value value{Kind::String};
    return number(size) && text(size, value.text) && push(std::move(value));
  }
  bool globalStep() {
    std::string_view module, name;
    if (!line(module) || !line(name))
      return false;
    // The two lines lie side by side: "module\nname".
    return push({Kind::Global, 0, 0, {module.data(), module.size() + 1 + name.size()}});
  }
  bool tupleStep(size_t count) {
    Value tuple{Kind::Tuple};
    tuple.items.resize(count);
    for (size_t i = count; i-- > 0;)
      if (!pop(tuple.items[i]))
        return false;
    return push(std::move(tuple));
  }
  bool extend(Kind kind, std::vector<Id> items) {
    Id id = 0;
    if (!target(kind, id))
      return false;
    if (kind == Kind::Dict && items.size() % 2 != 0)
      return fail("a key has no value");
    std::vector<Id> &all = out.values[id].items;
    all.insert(all.end(), items.begin(), items.end());
    return true;
  }
  /// A call; one that makes an empty OrderedDict is the dict.
  bool callStep() {
    Id arguments = 0, callee = 0;
    if (!pop(arguments) || !pop(callee))
      return false;
    const Value &what = out.values[callee], &with = out.values[arguments];
    if (what.kind == Kind::Global && what.text == "collections\nOrderedDict" &&
        with.kind == Kind::Tuple && with.items.empty())
      return push({Kind::Dict});
    return push({Kind::Call, 0, 0, {}, {callee, arguments}});
  }
  /// The state of an object. A dict's are attributes besides its items, which are no data.
  bool buildStep() {
    Id state = 0, object = 0;
    if (!pop(state))
      return false;
    if (!stack.empty() && out.values[stack.back()].kind == Kind::Dict)
      return target(Kind::Dict, object);
    if (!target(Kind::Object, object))
      return false;
    if (out.values[object].items.size() != 1)
      return fail("an object gets a state twice");
    out.values[object].items.push_back(state);
    return true;
  }

  bool step(uint8_t opcode) {
    std::vector<Id> items;
    Id one = 0, other = 0;
    switch (opcode) {
    case 0x80: { // PROTO
      uint8_t version = 0;
      return number(version) && (version == 2 || fail("it has another protocol than 2"));
    }
    case 'N':
      return push({Kind::None});
    case 0x88:
    case 0x89:
      return push({Kind::Bool, opcode == 0x88});
    case 'K':
      return integerStep<uint8_t>();
    case 'M':
      return integerStep<uint16_t>();
    case 'J':
      return integerStep<int32_t>();
    case 0x8a:
      return longStep();
    case 'G':
      return realStep();
    case 'X':
      return stringStep();
    case 'c':
      return globalStep();
    case '(':
      marks.push_back(stack.size());
      return true;
    case ')':
      return push({Kind::Tuple});
    case 't':
      return popMark(items) && push({Kind::Tuple, 0, 0, {}, std::move(items)});
    case 0x85:
    case 0x86:
    case 0x87:
      return tupleStep(opcode - 0x84);
    case ']':
      return push({Kind::List});
    case 'a':
      return pop(one) && extend(Kind::List, {one});
    case 'e':
      return popMark(items) && extend(Kind::List, std::move(items));
    case '}':
      return push({Kind::Dict});
    case 's':
      return pop(other) && pop(one) && extend(Kind::Dict, {one, other});
    case 'u':
      return popMark(items) && extend(Kind::Dict, std::move(items));
    case 0x81: // NEWOBJ: the arguments are an empty tuple
      return pop(other) && pop(one) && push({Kind::Object, 0, 0, {}, {one}});
    case 'b':
      return buildStep();
    case 'R':
      return callStep();
    case 'Q':
      return pop(one) && push({Kind::Persistent, 0, 0, {}, {one}});
    case 'q':
      return memoStep<uint8_t>(/*store=*/true);
    case 'r':
      return memoStep<uint32_t>(/*store=*/true);
    case 'h':
      return memoStep<uint8_t>(/*store=*/false);
    case 'j':
      return memoStep<uint32_t>(/*store=*/false);
    default:
      return fail("the opcode " + std::to_string(opcode) + " is unknown");
    }
  }

  bool finish() {
    if (stack.size() != 1 || !marks.empty())
      return fail("it leaves more than one value");
    out.top = stack.front();
    return true;
  }

  std::span<const std::byte> bytes;
  Pickle &out;
  std::string &error;
  size_t at = 0, opcodeAt = 0;
  std::vector<Id> stack;
  std::vector<size_t> marks;
  std::unordered_map<uint32_t, Id> memo;
};

std::optional<Pickle> Pickle::read(std::span<const std::byte> bytes, std::string &error) {
  if (bytes.size() >= UINT32_MAX) {
    error = "the pickle is larger than 4 GiB";
    return std::nullopt;
  }
  Pickle pickle;
  if (!Reader(bytes, pickle, error).run())
    return std::nullopt;
  return pickle;
}

} // namespace shardc
