// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes pickles for tests, opcode by opcode (Python's Lib/pickletools.py describes each).
#ifndef SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_PICKLEWRITER_H
#define SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_PICKLEWRITER_H

#include <cstdint>
#include <string>
#include <vector>

namespace shardc::test {

class PickleWriter {
public:
  PickleWriter() { text = std::string("\x80\x02", 2); }

  PickleWriter &op(char opcode) { return text.push_back(opcode), *this; }
  PickleWriter &global(const std::string &module, const std::string &name) {
    text += "c" + module + "\n" + name + "\n";
    return *this;
  }
  PickleWriter &string(const std::string &value) {
    text += "X";
    number(value.size(), 4);
    text += value;
    return *this;
  }
  PickleWriter &integer(int32_t value) {
    text += "J";
    number(uint32_t(value), 4);
    return *this;
  }
  PickleWriter &tuple(const std::vector<int32_t> &values) {
    op('(');
    for (int32_t value : values)
      integer(value);
    return op('t');
  }
  /// Class and empty arguments; the state follows, then op('b').
  PickleWriter &object(const std::string &name) {
    return global("__torch__", name).op(')').op('\x81');
  }
  PickleWriter &tensor(const std::string &storage, const std::string &key, int32_t offset,
                       const std::vector<int32_t> &sizes, const std::vector<int32_t> &strides) {
    global("torch._utils", "_rebuild_tensor_v2").op('(');
    op('(').string("storage").global("torch", storage).string(key).string("cpu").integer(0).op('t');
    op('Q').integer(offset).tuple(sizes).tuple(strides).op('\x89');
    return global("collections", "OrderedDict").op(')').op('R').op('t').op('R');
  }
  std::string finish() { return text + "."; }

private:
  void number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      text.push_back(char(value >> (8 * i)));
  }

  std::string text;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_PICKLEWRITER_H
