// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/TorchScriptArchive.h"

#include "support/archive/Pickle.h"
#include "test/unit/support/archive/Mutations.h"
#include "test/unit/support/archive/PickleWriter.h"
#include "test/unit/support/archive/ZipWriter.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

/// A model with a weight of 2 x 3 in a submodule, twice under different names, and a scalar.
std::string modelPickle() {
  PickleWriter pickle;
  pickle.object("Model").op('}').op('(');
  pickle.string("training").op('\x89');
  pickle.string("scale").tensor("DoubleStorage", "1", 0, {}, {});
  pickle.string("fc").object("Linear").op('}').op('(');
  pickle.string("weight").tensor("FloatStorage", "0", 1, {2, 3}, {3, 1});
  pickle.string("list").op(']').op('(').tensor("FloatStorage", "0", 0, {7}, {1}).op('e');
  pickle.op('u').op('b').op('u').op('b');
  return pickle.finish();
}

std::string constantsPickle() {
  PickleWriter pickle;
  return pickle.op('(').tensor("LongStorage", "0", 0, {2}, {1}).op('t').finish();
}

std::string tracedPickle() {
  PickleWriter pickle;
  pickle.op('}').string("forward").op(']').op('(');
  pickle.tensor("FloatStorage", "0", 0, {8, 64}, {64, 1}).op('e').op('s');
  return pickle.finish();
}

std::string archive(const std::string &data, const std::string &constants = constantsPickle()) {
  ZipWriter zip;
  zip.add("m/data.pkl", data);
  zip.add("m/data/0", std::string(7 * 4, '\1'));
  zip.add("m/data/1", std::string(8, '\2'));
  zip.add("m/constants.pkl", constants);
  zip.add("m/constants/0", std::string(16, '\3'));
  zip.add("m/traced_inputs.pkl", tracedPickle());
  zip.add("m/byteorder", "little");
  return zip.finish();
}

std::optional<TensorStore> read(const std::string &bytes, std::string &error) {
  auto found = TorchScriptArchive::read(asBytes(bytes), error);
  return found ? found->takeTensors(error) : std::nullopt;
}

TEST(TorchScriptArchive, FindsTensorsByTheirPaths) {
  std::string bytes = archive(modelPickle()), error;
  EXPECT_TRUE(TorchScriptArchive::accepts(asBytes(bytes)));
  std::optional<TensorStore> store = read(bytes, error);
  ASSERT_TRUE(store) << error;
  ASSERT_EQ(store->tensors().size(), 4u);
  const StoredTensor *weight = store->find("fc.weight");
  ASSERT_TRUE(weight);
  EXPECT_EQ(weight->sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(weight->strides, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(weight->offset, 1);
  EXPECT_EQ(weight->type, ElementType::F32);
  EXPECT_EQ(weight->storage.size(), 28u);
  EXPECT_TRUE(store->find("fc.list.0"));
  ASSERT_TRUE(store->find("scale"));
  EXPECT_EQ(store->find("scale")->type, ElementType::F64);
  ASSERT_TRUE(store->find("CONSTANTS.c0"));
  EXPECT_EQ(store->find("CONSTANTS.c0")->record, "constants/0");
  auto traced = TorchScriptArchive::read(asBytes(bytes), error)->tracedInputs();
  ASSERT_EQ(traced.size(), 1u);
  EXPECT_EQ(traced[0].sizes, (std::vector<int64_t>{8, 64}));
}

TEST(TorchScriptArchive, RefusesWhatDoesNotFit) {
  auto errorOf = [](const std::string &data) {
    std::string error;
    EXPECT_FALSE(read(archive(data), error));
    return error;
  };
  auto one = [](PickleWriter tensor) {
    PickleWriter pickle;
    std::string body = tensor.finish();
    return pickle.finish().substr(0, 2) + body.substr(2);
  };
  EXPECT_NE(errorOf(one(PickleWriter().tensor("FloatStorage", "0", 2, {2, 3}, {3, 1})))
                .find("needs 32 bytes of 'data/0', which has 28"),
            std::string::npos);
  EXPECT_NE(errorOf(one(PickleWriter().tensor("FloatStorage", "9", 0, {1}, {1})))
                .find("'data/9' of tensor '' is missing"),
            std::string::npos);
  EXPECT_NE(errorOf(one(PickleWriter().tensor("FloatStorage", "0", 0, {-1}, {1}))).find("negative"),
            std::string::npos);
  EXPECT_NE(errorOf(one(PickleWriter().tensor("QUInt8Storage", "0", 0, {1}, {1})))
                .find("of a kind that is not supported"),
            std::string::npos);
  // An object whose state is no dict: code of the file would restore it.
  EXPECT_NE(errorOf(PickleWriter().object("Odd").integer(3).op('b').finish())
                .find("its own code restores"),
            std::string::npos);
  std::string error, bytes = archive(modelPickle());
  bytes[bytes.find("training")] ^= 1;
  EXPECT_FALSE(read(bytes, error));
  EXPECT_EQ(error, "the record 'data.pkl' is corrupt: its checksum does not match");
}

TEST(TorchScriptArchive, SharedAndCyclicObjectsEnd) {
  std::string error;
  // self.me = self
  std::string cyclic = PickleWriter()
                           .object("M")
                           .op('q')
                           .op('\1')
                           .op('}')
                           .string("me")
                           .op('h')
                           .op('\1')
                           .op('s')
                           .op('b')
                           .finish();
  EXPECT_TRUE(read(archive(cyclic), error)) << error;
  // 60 lists, each of the one before twice: 2^60 paths.
  PickleWriter doubled;
  doubled.op(']');
  for (int i = 0; i < 60; ++i)
    doubled.op('q').op('\0').op(']').op('h').op('\0').op('a').op('h').op('\0').op('a');
  EXPECT_FALSE(read(archive(doubled.op('.').finish()), error));
}

TEST(Pickle, RefusesOtherOpcodes) {
  for (const char *text :
       {"\x80\x02ios\nsystem\n(S'id'\ntR.", "\x80\x04N.", "\x80\x02", "\x80\x02u.", "\x80\x02(.",
        "\x80\x02NN.", "\x80\x02h\x05.", "\x80\x02Nb."}) {
    std::string error;
    EXPECT_FALSE(Pickle::read(std::as_bytes(std::span(text, std::strlen(text))), error)) << text;
    EXPECT_FALSE(error.empty());
  }
}

TEST(TorchScriptArchive, Mutations) {
  std::mt19937_64 random(7);
  std::string data = modelPickle(), constants = constantsPickle(), whole = archive(data);
  size_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    // Of pickles alone, with checksums that fit, and of the archive.
    std::string bytes = i % 3 == 0   ? mutateBytes(whole, random)
                        : i % 3 == 1 ? archive(mutateBytes(data, random))
                                     : archive(data, mutateBytes(constants, random));
    std::string error;
    TorchScriptArchive::accepts(asBytes(bytes));
    std::optional<TensorStore> store = read(bytes, error);
    ASSERT_TRUE(store || !error.empty()) << i;
    accepted += store.has_value();
    for (size_t t = 0; store && t < store->tensors().size(); ++t) {
      const StoredTensor &tensor = store->tensors()[t];
      int64_t last = tensor.offset;
      for (size_t d = 0; d < tensor.sizes.size(); ++d)
        last += (tensor.sizes[d] - 1) * tensor.strides[d];
      if (tensor.elements())
        ASSERT_LT(size_t(last), tensor.storage.size() / byteWidth(tensor.type)) << i;
    }
  }
  EXPECT_GT(accepted, 200u);
}

} // namespace
