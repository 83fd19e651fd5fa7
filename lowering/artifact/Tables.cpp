// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Tables.h"

#include "dialects/exec/ElementTypes.h"
#include "dialects/exec/Exec.h"
#include "lowering/host/Emission.h"
#include "lowering/target/Backend.h"

#include "dialects/dist/Dist.h"
#include "runtime/abi/shardrt_program.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using llvm::Constant;

namespace shardc::artifact {
namespace {

// The structs below are written field by field in the header's order.
static_assert(sizeof(shardrt_group) == 3 * 8 + 2 * 4);
static_assert(sizeof(shardrt_collective_operand) == 4 * 4);
static_assert(sizeof(shardrt_collective) == 4 * 8 + 6 * 4 + 8);
static_assert(sizeof(shardrt_op) == 2 * 8);
static_assert(sizeof(shardrt_variant) == 6 * 8);
static_assert(sizeof(shardrt_span) == 4 * 8 + 2 * 4);
static_assert(sizeof(shardrt_entry) == 6 * 8 + 2 * 4);
static_assert(sizeof(shardrt_constant) == 4 * 8 + 2 * 4);
static_assert(sizeof(shardrt_program) == 7 * 8 + 6 * 4);
static_assert(sizeof(shardrt_manifest) == 2 * 4 + 3 * 8);

class Builder {
public:
  Builder(llvm::LLVMContext &context, ModuleOp lowered, const ProgramDescription &program,
          const llvm::StringMap<VariantFacts> &variants, const TargetFacts &target)
      : context(context), lowered(lowered), program(program), variants(variants), target(target),
        module(std::make_unique<llvm::Module>("tables", context)),
        pointer(llvm::PointerType::get(context, 0)) {}

  std::unique_ptr<llvm::Module> run(StringRef manifest);

private:
  Constant *i32(int64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value, true);
  }
  Constant *i64(int64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), value, true);
  }
  Constant *f64(double value) {
    return llvm::ConstantFP::get(llvm::Type::getDoubleTy(context), value);
  }
  Constant *null() { return llvm::ConstantPointerNull::get(pointer); }
  Constant *structure(ArrayRef<Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }
  Constant *global(Constant *value, const Twine &name = "");
  /// Address of an array; null for an empty one.
  Constant *array(ArrayRef<Constant *> elements);
  Constant *string(StringRef text);
  Constant *uint32s(ArrayRef<int64_t> values);
  Constant *function(StringRef name);
  /// Address of a table of `count` entries that another object defines; null for an empty one.
  Constant *external(StringRef name, uint32_t count);

  Constant *groups();
  Constant *collectives();
  Constant *entries();
  Constant *spans(const EntryDescription &entry);
  Constant *constants();

  llvm::LLVMContext &context;
  ModuleOp lowered;
  const ProgramDescription &program;
  const llvm::StringMap<VariantFacts> &variants;
  TargetFacts target;
  std::unique_ptr<llvm::Module> module;
  llvm::PointerType *pointer;
  llvm::StringMap<Constant *> strings;
};

Constant *Builder::global(Constant *value, const Twine &name) {
  auto *variable = new llvm::GlobalVariable(*module, value->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::PrivateLinkage, value, name);
  variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return variable;
}

Constant *Builder::array(ArrayRef<Constant *> elements) {
  if (elements.empty())
    return null();
  auto *type = llvm::ArrayType::get(elements.front()->getType(), elements.size());
  return global(llvm::ConstantArray::get(type, elements));
}

Constant *Builder::string(StringRef text) {
  Constant *&known = strings[text];
  if (!known)
    known = global(llvm::ConstantDataArray::getString(context, text));
  return known;
}

Constant *Builder::uint32s(ArrayRef<int64_t> values) {
  SmallVector<Constant *> list;
  for (int64_t value : values)
    list.push_back(i32(value));
  return array(list);
}

Constant *Builder::function(StringRef name) {
  auto *type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {pointer}, false);
  auto *function = cast<llvm::Function>(module->getOrInsertFunction(name, type).getCallee());
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return function;
}

Constant *Builder::external(StringRef name, uint32_t count) {
  if (count == 0)
    return null();
  auto *table = new llvm::GlobalVariable(*module, llvm::Type::getInt8Ty(context),
                                         /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
                                         /*Initializer=*/nullptr, name);
  table->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return table;
}

Constant *Builder::groups() {
  SmallVector<Constant *> list;
  auto names = lowered->getAttrOfType<ArrayAttr>(exec::kCollectivesAttr);
  SmallVector<std::string> nameOf(lowered->getAttrOfType<ArrayAttr>(exec::kGroupsAttr).size());
  for (auto collective : names.getAsRange<DictionaryAttr>()) {
    std::string &name = nameOf[cast<IntegerAttr>(collective.get("group")).getInt()];
    auto axes = dyn_cast<dist::AxesAttr>(collective.get("group_name"));
    if (name.empty() && axes)
      name = llvm::join(
          llvm::map_range(axes.getAxes(), [](StringAttr axis) { return axis.getValue(); }), ",");
  }
  for (auto [i, attribute] :
       llvm::enumerate(lowered->getAttrOfType<ArrayAttr>(exec::kGroupsAttr))) {
    std::vector<std::vector<int64_t>> lists =
        cast<dist::GroupAttrInterface>(attribute).getRankLists().value_or(
            std::vector<std::vector<int64_t>>());
    SmallVector<int64_t> begin{0}, ranks;
    for (const std::vector<int64_t> &set : lists) {
      llvm::append_range(ranks, set);
      begin.push_back(ranks.size());
    }
    list.push_back(structure({string(nameOf[i].empty() ? "ranks" : nameOf[i]), uint32s(begin),
                              uint32s(ranks), i32(lists.size()), i32(0)}));
  }
  return array(list);
}

uint32_t reductionOf(Attribute attribute) {
  auto reduction = dyn_cast_or_null<dist::ReductionAttr>(attribute);
  return reduction ? runtimeCodeOf(reduction.getValue()) : uint32_t(SHARDRT_REDUCE_NONE);
}

Constant *Builder::collectives() {
  SmallVector<Constant *> list;
  for (auto fields :
       lowered->getAttrOfType<ArrayAttr>(exec::kCollectivesAttr).getAsRange<DictionaryAttr>()) {
    auto integer = [&](StringRef name) { return cast<IntegerAttr>(fields.get(name)).getInt(); };
    auto integers = [&](StringRef name) {
      return cast<DenseI64ArrayAttr>(fields.get(name)).asArrayRef();
    };
    CollectiveKind kind = cast<exec::CollectiveKindAttr>(fields.get("kind")).getValue();
    SmallVector<Constant *> operands;
    auto types = cast<ArrayAttr>(fields.get("types"));
    for (auto [i, type] : llvm::enumerate(types)) {
      Type tensor = cast<TypeAttr>(type).getValue();
      Type element = cast<TypeAttr>(cast<ArrayAttr>(fields.get("elements"))[i]).getValue();
      operands.push_back(
          structure({i32(exec::runtimeType(element)), i32(cast<MemRefType>(tensor).getRank()),
                     i32(integers("gather_dims")[i]), i32(integers("scatter_dims")[i])}));
    }
    ArrayRef<int64_t> pairs = integers("pairs");
    list.push_back(
        structure({string(cast<StringAttr>(fields.get("name")).getValue()),
                   string(cast<StringAttr>(fields.get("location")).getValue()), array(operands),
                   uint32s(pairs), i32(runtimeCodeOf(kind)),
                   i32(reductionOf(fields.get("reduction"))), i32(integer("group")),
                   i32(operands.size()), i32(integer("root")), i32(pairs.size() / 2), i64(0)}));
  }
  if (list.empty())
    return null();
  auto *type = llvm::ArrayType::get(list.front()->getType(), list.size());
  auto *table = new llvm::GlobalVariable(
      *module, type, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
      llvm::ConstantArray::get(type, list), host::kCollectivesSymbol);
  table->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return table;
}

Constant *Builder::entries() {
  SmallVector<Constant *> list;
  // One list for all: generated code numbers what it runs through the whole program.
  SmallVector<Constant *> opList;
  for (auto op : lowered->getAttrOfType<ArrayAttr>(exec::kOpsAttr).getAsRange<ArrayAttr>())
    opList.push_back(structure(
        {string(cast<StringAttr>(op[0]).getValue()), string(cast<StringAttr>(op[1]).getValue())}));
  Constant *ops = array(opList);
  for (const EntryDescription &entry : program.entries) {
    SmallVector<Constant *> code;
    for (const std::string &name : entry.variants) {
      const VariantFacts &facts = variants.find(name)->second;
      code.push_back(structure({function(name), facts.plan.empty() ? null() : function(facts.plan),
                                null(), i64(facts.arenaBytes), i64(0), i64(facts.slots)}));
    }
    SmallVector<int64_t> ranks(entry.variantOfRank.begin(), entry.variantOfRank.end());
    list.push_back(structure({string(entry.name), array(code), uint32s(ranks), ops,
                              i32(code.size()), i32(opList.size()), spans(entry),
                              i64(entry.predicted ? entry.predicted->spans.size() : 0)}));
  }
  return array(list);
}

Constant *Builder::spans(const EntryDescription &entry) {
  SmallVector<Constant *> list;
  if (entry.predicted)
    for (const Prediction::Span &span : entry.predicted->spans)
      list.push_back(
          structure({string(span.name), string(span.location), f64(span.startUs),
                     f64(span.durationUs), i32(static_cast<int32_t>(span.stream)), i32(0)}));
  return array(list);
}

Constant *Builder::constants() {
  SmallVector<Constant *> list;
  for (const ParameterDescription &parameter : program.parameters) {
    if (!parameter.constant)
      continue;
    SmallVector<Constant *> extents;
    for (const llvm::json::Value &extent : parameter.shape)
      extents.push_back(i64(extent.getAsInteger().value_or(0)));
    StringRef bytes(parameter.constant->data(), parameter.constant->size());
    Constant *data = llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false);
    auto *variable = cast<llvm::GlobalVariable>(global(data));
    variable->setAlignment(llvm::Align(target.alignment));
    list.push_back(structure({string(parameter.names.front()), variable, array(extents),
                              i64(bytes.size()), i32(parameter.type), i32(extents.size())}));
  }
  return array(list);
}

std::unique_ptr<llvm::Module> Builder::run(StringRef manifest) {
  auto count = [&](StringRef attribute) {
    return lowered->getAttrOfType<ArrayAttr>(attribute).size();
  };
  int64_t constantCount = llvm::count_if(
      program.parameters, [](const ParameterDescription &p) { return p.constant.has_value(); });
  Constant *tables = global(
      structure({i64(sizeof(shardrt_program)), entries(), groups(), constants(), collectives(),
                 i32(program.entries.size()), i32(count(exec::kGroupsAttr)), i32(constantCount),
                 i32(count(exec::kCollectivesAttr)), external(target::kImagesSymbol, target.images),
                 external(target::kKernelsSymbol, target.kernels), i32(target.images),
                 i32(target.kernels)}),
      "program");
  Constant *description = global(structure({i32(SHARDRT_PROGRAM_ABI), i32(sizeof(shardrt_manifest)),
                                            string(manifest), i64(manifest.size()), tables}),
                                 "manifest");
  auto *type = llvm::FunctionType::get(pointer, false);
  auto *query = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "shardrt_query",
                                       module.get());
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", query));
  builder.CreateRet(description);
  return std::move(module);
}

} // namespace

std::unique_ptr<llvm::Module> buildTables(llvm::LLVMContext &context, ModuleOp lowered,
                                          const ProgramDescription &program,
                                          const llvm::StringMap<VariantFacts> &variants,
                                          const TargetFacts &target, StringRef manifest) {
  return Builder(context, lowered, program, variants, target).run(manifest);
}

} // namespace shardc::artifact
