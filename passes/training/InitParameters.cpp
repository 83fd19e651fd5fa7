// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/Passes.h"
#include "passes/training/ReadTraining.h"
#include "passes/training/StepBuilder.h"

#include "dialects/aten/Random.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/RandomMode.h"
#include "dialects/sharding/RandomStep.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numbers>

namespace shardc {
#define GEN_PASS_DEF_INITPARAMETERS
#include "passes/training/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::training;
using plan::InitialValues;

namespace {

constexpr llvm::StringLiteral kInit = "init";

/// A parameter, buffer or state, and what it begins with.
struct Begun {
  unsigned argument; ///< of the step
  InitialValues values;
  int64_t offset = 0; ///< of its numbers in the stream of the generator
};

/// Builds the values of one tensor after the other, each in the layout that it has.
class Filler {
public:
  Filler(StepBuilder &step, Value seed, Value offset)
      : step(step), emit(step.emitter()), seed(seed), offset(offset) {}

  void fill(Value argument, const InitialValues &values, int64_t from) {
    RankedTensorType type = aten::typeOf(argument);
    Value value = values.isRandom() ? random(type, values, from) : constant(type, values.mean);
    step.addUpdate(argument, value);
  }

private:
  SmallVector<int64_t> sizesOf(RankedTensorType type) const {
    return SmallVector<int64_t>(type.getShape());
  }

  Value constant(RankedTensorType type, double number) {
    Value fill = emit.scalar(number, type.getElementType());
    Value value =
        aten::ExpandOp::create(emit.getBuilder(), emit.getLoc(), fill, sizesOf(type), ValueRange());
    // Sums that ranks hold parts of begin with zeros, which every rank makes.
    if (!dist::getLayout(type).getValue().hasPartial())
      value.setType(type);
    return value;
  }

  /// Numbers of the generator, in f32 for shorter floats.
  Value draw(RankedTensorType type, StringRef distribution, int64_t from) {
    Type wide = Emitter::accumulator(type.getElementType());
    Value start = emit.add(offset, emit.integer(from, aten::elementTypeOf(offset)));
    step.layOut();
    Value drawn = aten::RandomOp::create(emit.getBuilder(), emit.getLoc(), distribution, seed,
                                         start, sizesOf(type), ValueRange(), wide);
    drawn.setType(RankedTensorType::get(type.getShape(), wide, type.getEncoding()));
    return drawn;
  }

  /// factor * x + term.
  Value scaled(Value x, double factor, double term) {
    Type type = aten::elementTypeOf(x);
    if (factor != 1)
      x = emit.mul(x, emit.scalar(factor, type));
    return term == 0 ? x : emit.add(x, emit.scalar(term, type));
  }

  Value random(RankedTensorType type, const InitialValues &values, int64_t from) {
    Value x;
    if (values.kind == InitialValues::Kind::Normal) {
      x = scaled(draw(type, "normal", from), values.deviation, values.mean);
    } else if (values.kind == InitialValues::Kind::Uniform) {
      x = scaled(draw(type, "uniform", from), values.high - values.low, values.low);
    } else {
      // As torch.nn.init.trunc_normal_: the inverse of the distribution, between what it is at the
      // bounds.
      auto twiceLessOne = [&](double bound) {
        return std::erf((bound - values.mean) / (values.deviation * std::numbers::sqrt2));
      };
      double low = twiceLessOne(values.low), high = twiceLessOne(values.high);
      x = scaled(draw(type, "uniform", from), high - low, low);
      x = scaled(emit.unary<aten::ErfinvOp>(x), values.deviation * std::numbers::sqrt2,
                 values.mean);
      Type wide = aten::elementTypeOf(x);
      x = aten::ClampOp::create(emit.getBuilder(), emit.getLoc(), x, emit.scalar(values.low, wide),
                                emit.scalar(values.high, wide));
    }
    return emit.cast(x, type.getElementType());
  }

  StepBuilder &step;
  Emitter &emit;
  Value seed, offset;
};

struct InitParametersPass : shardc::impl::InitParametersBase<InitParametersPass> {
  using InitParametersBase::InitParametersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    plan::Training training;
    if (failed(readTraining(module, train, training)))
      return signalPassFailure();
    if (training.init.empty())
      return;
    SymbolTable symbols(module);
    auto source = symbols.lookup<func::FuncOp>(function);
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    if (failed(checkSource(source, mesh, symbols)))
      return signalPassFailure();
    SmallVector<Begun> all;
    int64_t numbers = 0;
    bool usable = succeeded(checkPatterns(source, training.init));
    usable &= succeeded(choose(source, training.init, all, numbers));
    usable &= succeeded(checkReplicas(source, all));
    if (!usable)
      return signalPassFailure();
    OwningOpRef<func::FuncOp> made = declare(source, all);
    if (failed(fill(*made, mesh, all, numbers)))
      return signalPassFailure();
    symbols.insert(made.release());
    NamedAttrList entries(module->getAttrOfType<DictionaryAttr>(dist::kTrainingAttr));
    entries.set(kInit, StringAttr::get(&getContext(), kInit));
    module->setAttr(dist::kTrainingAttr, entries.getDictionary(&getContext()));
  }

private:
  LogicalResult checkSource(func::FuncOp source, dist::MeshAttr mesh, SymbolTable &symbols) {
    Location loc = getOperation().getLoc();
    if (!source)
      return emitError(loc) << "there is no function '" << function
                            << "' whose parameters could be initialised";
    if (symbols.lookup(kInit))
      return emitError(loc) << "there is a function '" << kInit << "' already";
    return checkPlaced(source, mesh);
  }

  static bool isWeight(func::FuncOp source, unsigned argument) {
    StringRef kind = kindOf(source, argument);
    return kind == "parameter" || kind == "buffer";
  }

  static LogicalResult checkPatterns(func::FuncOp source, ArrayRef<plan::Initializer> inits) {
    std::vector<std::string> names;
    for (unsigned i = 0; i < source.getNumArguments(); ++i)
      if (isWeight(source, i))
        for (StringRef name : dist::getNames(source.getArgAttrDict(i)))
          names.push_back(name.str());
    bool ok = true;
    for (auto [i, init] : llvm::enumerate(inits))
      for (const std::string &pattern : init.parameters) {
        bool isMatched = false;
        for (unsigned argument = 0; argument < source.getNumArguments(); ++argument)
          isMatched |= isWeight(source, argument) && matches(source, argument, pattern);
        if (isMatched)
          continue;
        ok = false;
        emitError(source.getLoc()) << "train: init[" << i << "]: no parameter or buffer matches '"
                                   << pattern << "'" << didYouMean(pattern, names);
      }
    return success(ok);
  }

  /// What is wrong with a constant as an element of this type; empty where nothing is.
  static std::string misfit(const InitialValues &values, Type element) {
    if (isa<FloatType>(element) || values.kind == InitialValues::Kind::Keep)
      return "";
    if (values.isRandom())
      return "it has integers, but the distribution has other numbers: give it a constant";
    auto integer = cast<IntegerType>(element);
    double low = integer.isSigned() || (integer.isSignless() && integer.getWidth() > 1)
                     ? -std::exp2(integer.getWidth() - 1)
                     : 0;
    double high = std::exp2(integer.getWidth() - (low < 0 ? 1 : 0));
    bool fits = values.mean == std::trunc(values.mean) && values.mean >= low && values.mean < high;
    return fits ? "" : "it has integers, of which the value is none";
  }

  /// Every parameter and buffer needs an entry. Offsets are the same whatever others begin with.
  LogicalResult choose(func::FuncOp source, ArrayRef<plan::Initializer> inits,
                       SmallVectorImpl<Begun> &all, int64_t &numbers) {
    bool ok = true;
    SmallVector<std::string> uncovered;
    for (unsigned i = 0; i < source.getNumArguments(); ++i) {
      SmallVector<StringRef> names = dist::getNames(source.getArgAttrDict(i));
      if (kindOf(source, i) == "state") {
        if (llvm::any_of(names, [](StringRef name) {
              return name == dist::kRandomSeed || name == dist::kRandomOffset;
            }))
          continue;
        auto initial = source.getArgAttrOfType<FloatAttr>(i, dist::kInitialAttr);
        double value = initial ? initial.getValueAsDouble() : 0;
        all.push_back({i, {InitialValues::Kind::Constant, value, 0, 0, 0}});
        ++numStates;
        continue;
      }
      if (!isWeight(source, i))
        continue;
      std::string name = names.empty() ? std::to_string(i) : names.front().str();
      auto *init = llvm::find_if(
          inits, [&](const plan::Initializer &one) { return matches(source, i, one.parameters); });
      if (init == inits.end()) {
        uncovered.push_back(name);
        continue;
      }
      auto type = cast<RankedTensorType>(source.getArgumentTypes()[i]);
      auto fail = [&](const Twine &what) {
        ok = false;
        emitError(source.getArgument(i).getLoc())
            << "train: init[" << (init - inits.begin()) << "]: '" << name << "' " << what;
      };
      if (!type.hasStaticShape()) {
        fail("has a dynamic size");
        continue;
      }
      std::string problem;
      std::optional<InitialValues> values = init->valuesOf(type.getShape(), problem);
      if (!values)
        fail(problem);
      else if (std::string why = misfit(*values, type.getElementType()); !why.empty())
        fail("cannot begin so: " + why);
      else if (values->kind != InitialValues::Kind::Keep)
        all.push_back({i, *values, numbers});
      if (values)
        ++(values->isRandom() ? numRandom : numConstant);
      numbers += llvm::alignTo(uint64_t(type.getNumElements()), uint64_t(kRandomStep));
    }
    if (uncovered.empty())
      return success(ok);
    return emitError(source.getLoc())
           << "train: init: no entry says what these begin with: " << llvm::join(uncovered, ", ")
           << ". Add one, with 'keep' for what is loaded; a buffer whose value the model computes "
              "itself is part of the program if it is registered with persistent=False";
  }

  /// Where each rank has numbers of its own, copies of one parameter would begin with others.
  LogicalResult checkReplicas(func::FuncOp source, ArrayRef<Begun> all) {
    auto mode = getOperation()->getAttrOfType<StringAttr>(dist::kRandomAttr);
    if (!mode || dist::parseRandomMode(mode.getValue()) != dist::RandomMode::PerRank)
      return success();
    bool ok = true;
    for (const Begun &begun : all) {
      if (!begun.values.isRandom())
        continue;
      const Layout &layout = dist::getLayout(source.getArgumentTypes()[begun.argument]).getValue();
      for (auto [axis, placement] : llvm::zip_equal(layout.mesh.axes, layout.placements)) {
        if (!placement.isReplicate() || axis.size == 1)
          continue;
        ok = false;
        emitError(source.getArgument(begun.argument).getLoc())
            << "train: init: ranks along '" << axis.name
            << "' have copies of one parameter, which would begin with other values on each: the "
               "plan's 'random' is per-rank; make it default or dtensor";
        break;
      }
    }
    return success(ok);
  }

  /// The function without results: parameters, buffers and states of the step.
  static OwningOpRef<func::FuncOp> declare(func::FuncOp source, ArrayRef<Begun> all) {
    OpBuilder builder(source.getContext());
    SmallVector<Type> types;
    SmallVector<Attribute> attributes;
    for (const Begun &begun : all) {
      types.push_back(source.getArgumentTypes()[begun.argument]);
      attributes.push_back(source.getArgAttrDict(begun.argument));
    }
    OwningOpRef<func::FuncOp> made =
        func::FuncOp::create(source.getLoc(), kInit, builder.getFunctionType(types, {}));
    Block *block = made->addEntryBlock();
    for (auto [argument, begun] : llvm::zip_equal(block->getArguments(), all))
      argument.setLoc(source.getArgument(begun.argument).getLoc());
    made->setArgAttrsAttr(builder.getArrayAttr(attributes));
    builder.setInsertionPointToEnd(block);
    func::ReturnOp::create(builder, source.getLoc());
    return made;
  }

  LogicalResult fill(func::FuncOp made, dist::MeshAttr mesh, ArrayRef<Begun> all, int64_t numbers) {
    StepBuilder step(made, mesh);
    Value seed, offset;
    SmallVector<Value> arguments(made.getArguments());
    bool draws = llvm::any_of(all, [](const Begun &one) { return one.values.isRandom(); });
    if (draws) {
      Type i64 = IntegerType::get(&getContext(), 64);
      auto type = RankedTensorType::get(
          {}, i64, dist::LayoutAttr::get(&getContext(), Layout(mesh.getValue())));
      seed = step.addState(dist::kRandomSeed, type, /*initial=*/0, /*isSaved=*/true);
      offset = step.addState(dist::kRandomOffset, type, /*initial=*/0, /*isSaved=*/true);
    }
    Filler filler(step, seed, offset);
    for (auto [argument, begun] : llvm::zip_equal(arguments, all))
      filler.fill(argument, begun.values, begun.offset);
    if (draws) {
      Emitter &emit = step.emitter();
      step.addUpdate(offset, emit.add(offset, emit.integer(numbers, aten::elementTypeOf(offset))));
    }
    return step.finish();
  }
};

} // namespace
