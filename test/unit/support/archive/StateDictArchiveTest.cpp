// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/StateDictArchive.h"

#include "test/unit/support/archive/Mutations.h"
#include "test/unit/support/archive/PickleWriter.h"
#include "test/unit/support/archive/ZipWriter.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

namespace {

PickleWriter orderedDict() {
  return PickleWriter().global("collections", "OrderedDict").op(')').op('R');
}

/// A weight, a transposed view of a part of it under another name, a parameter and a counter; and
/// the attribute that a state dict has.
std::string dictPickle() {
  PickleWriter pickle = orderedDict().op('(');
  pickle.string("weight").tensor("BFloat16Storage", "0", 0, {3, 2}, {2, 1});
  pickle.string("view").tensor("BFloat16Storage", "0", 1, {2, 2}, {1, 2});
  pickle.string("bias").global("torch._utils", "_rebuild_parameter").op('(');
  pickle.tensor("DoubleStorage", "1", 0, {2}, {1}).op('\x88').op('}').op('t').op('R');
  pickle.string("count").tensor("LongStorage", "2", 0, {}, {});
  pickle.op('u').op('}').string("_metadata").op('}').op('s').op('b');
  return pickle.finish();
}

std::string archive(const std::string &dict, const std::string &order = "little") {
  ZipWriter zip;
  zip.add("x/data.pkl", dict);
  zip.add("x/byteorder", order);
  zip.add("x/data/0", std::string(3 * 2 * 2, '\1'));
  zip.add("x/data/1", std::string(2 * 8, '\2'));
  zip.add("x/data/2", std::string(8, '\3'));
  return zip.finish();
}

std::string refusal(const std::string &bytes) {
  std::string error;
  EXPECT_FALSE(StateDictArchive::read(asBytes(bytes), error));
  return error;
}

TEST(StateDictArchive, FindsTensorsByTheirKeys) {
  std::string bytes = archive(dictPickle()), error;
  EXPECT_TRUE(StateDictArchive::accepts(asBytes(bytes)));
  std::optional<TensorStore> store = StateDictArchive::read(asBytes(bytes), error);
  ASSERT_TRUE(store) << error;
  ASSERT_EQ(store->tensors().size(), 4u);
  const StoredTensor *view = store->find("view");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->type, ElementType::BF16);
  EXPECT_EQ(view->strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(view->storage.data(), store->find("weight")->storage.data());
  EXPECT_TRUE(store->find("bias")->parameter);
  EXPECT_FALSE(store->find("count")->parameter);
}

TEST(StateDictArchive, RefusesWhatIsNoStateDictOfAModule) {
  PickleWriter nested = orderedDict().op('(');
  nested.string("model").op('}').string("epoch").integer(3).string("run");
  nested.global("os", "system").op('(').string("true").op('t').op('R').op('u');
  EXPECT_EQ(refusal(archive(nested.finish())),
            "it is not the state dict of a module alone: 'model' is a dict, 'epoch' is a number, "
            "'run' is a result of os.system: give a file of torch.save(module.state_dict(), FILE)");
  EXPECT_NE(refusal(archive(PickleWriter().object("Net").finish()))
                .find("it holds an object of __torch__.Net, and what a pickle would run is never "),
            std::string::npos);
  EXPECT_NE(
      refusal(
          archive(
              orderedDict().string("w").tensor("FloatStorage", "9", 0, {1}, {1}).op('s').finish()))
          .find("the record 'data/9' of tensor 'w' is missing"),
      std::string::npos);
  EXPECT_NE(
      refusal(
          archive(
              orderedDict().string("w").tensor("QInt8Storage", "0", 0, {1}, {1}).op('s').finish()))
          .find("'w' is a tensor of a type that is not supported"),
      std::string::npos);
  EXPECT_NE(refusal(archive(dictPickle(), "big")).find("not little-endian"), std::string::npos);
  EXPECT_FALSE(StateDictArchive::isOldFile(asBytes(archive(dictPickle()))));
}

TEST(StateDictArchive, MutatedArchivesAreReadOrRefused) {
  std::mt19937_64 random(4);
  const std::string dict = dictPickle(), whole = archive(dict);
  size_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = i % 2 ? archive(mutateBytes(dict, random)) : mutateBytes(whole, random);
    std::string error;
    StateDictArchive::accepts(asBytes(bytes));
    std::optional<TensorStore> store = StateDictArchive::read(asBytes(bytes), error);
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
