// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/BindSymbols.h"

#include "dialects/dist/Constraints.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/SignatureAttributes.h"
#include "dialects/dist/TypicalSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

SmallVector<SymbolAttr> symbolsOf(func::FuncOp function) {
  auto symbols = function->getAttrOfType<ArrayAttr>(kSymbolsAttr);
  return symbols ? llvm::to_vector(symbols.getAsRange<SymbolAttr>()) : SmallVector<SymbolAttr>();
}

class Binder {
public:
  Binder(func::FuncOp function, MeshAttr mesh) : function(function), mesh(mesh) {}

  void run(const SymbolValues &values, bool typical) {
    take(values, typical);
    if (bound.empty())
      return;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](SizeAttr size) -> AttrTypeReplacer::ReplaceFnResult<Attribute> {
      std::optional<int64_t> value = size.evaluate([&](StringRef name) {
        auto it = bound.find(name);
        return it == bound.end() ? std::nullopt : std::optional(it->second);
      });
      return std::pair(value ? SizeAttr::get(size.getContext(), *value) : size, WalkResult::skip());
    });
    replacer.recursivelyReplaceElementsIn(function);
    if (auto constraints = function->getAttrOfType<ArrayAttr>(kConstraintsAttr))
      function->setAttr(kConstraintsAttr, bindConstraints(constraints));
    tabulatePositions();
    SignatureAttributes signature(function);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      setGlobalType(signature.argument(i));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      setGlobalType(signature.result(i));
    signature.store();
  }

private:
  /// The symbols that get values; takes them from the function's list.
  void take(const SymbolValues &values, bool typical) {
    SmallVector<Attribute> left;
    for (SymbolAttr symbol : symbolsOf(function)) {
      StringRef name = symbol.getName().getValue();
      auto given = values.find(name);
      if (given != values.end())
        bound[name] = given->second;
      else if (typical)
        bound[name] = typicalValue(symbol);
      else
        left.push_back(symbol);
    }
    if (left.empty())
      function->removeAttr(kSymbolsAttr);
    else
      function->setAttr(kSymbolsAttr, ArrayAttr::get(function.getContext(), left));
  }

  /// With sizes known, arithmetic on a rank's position is a constant on each rank: positions become
  /// tables, as which specialisation folds them.
  void tabulatePositions() {
    if (!mesh)
      return;
    llvm::DenseMap<Attribute, ExtentsAttr> tables;
    function.walk([&](AxisIndexOp op) {
      ExtentsAttr &table = tables[op.getGroup()];
      if (!table) {
        std::optional<std::vector<std::vector<int64_t>>> lists = op.getGroup().getRankLists();
        if (!lists)
          return;
        llvm::DenseMap<int64_t, int64_t> positionOf;
        for (const std::vector<int64_t> &ranks : *lists)
          for (auto [position, rank] : llvm::enumerate(ranks))
            positionOf[rank] = static_cast<int64_t>(position);
        SmallVector<int64_t> positions;
        for (int64_t device = 0; device < mesh.getValue().numDevices(); ++device)
          positions.push_back(positionOf.lookup(mesh.getValue().rankAtPosition(device)));
        table = ExtentsAttr::get(op.getContext(), mesh, SizeAttr(), DimSplit(), positions);
      }
      OpBuilder builder(op);
      op.replaceAllUsesWith(ExtentOp::create(builder, op.getLoc(), table).getResult());
      op.erase();
    });
  }

  /// The first of three parts is the name of a relation or an operator, and no symbol.
  Attribute bindExpression(Attribute expr) const {
    Builder builder(expr.getContext());
    if (auto symbol = dyn_cast<StringAttr>(expr)) {
      auto found = bound.find(symbol.getValue());
      return found == bound.end() ? expr : builder.getI64IntegerAttr(found->second);
    }
    auto parts = dyn_cast<ArrayAttr>(expr);
    if (!parts)
      return expr;
    return builder.getArrayAttr({parts[0], bindExpression(parts[1]), bindExpression(parts[2])});
  }
  ArrayAttr bindConstraints(ArrayAttr constraints) const {
    SmallVector<Attribute> result;
    for (Attribute constraint : constraints)
      result.push_back(bindExpression(constraint));
    return ArrayAttr::get(constraints.getContext(), result);
  }

  /// The type of the whole tensor, by its sizes.
  static void setGlobalType(NamedAttrList &attributes) {
    auto type = dyn_cast_or_null<TypeAttr>(attributes.get(kGlobalTypeAttr));
    auto sizes = dyn_cast_or_null<ArrayAttr>(attributes.get(kSizesAttr));
    if (!type || !sizes)
      return;
    auto tensor = cast<RankedTensorType>(type.getValue());
    SmallVector<int64_t> shape(tensor.getShape());
    for (auto [size, symbolic] : llvm::zip_equal(shape, sizes.getAsRange<SizeAttr>()))
      if (ShapedType::isDynamic(size))
        size = symbolic.getConstant().value_or(size);
    attributes.set(kGlobalTypeAttr, TypeAttr::get(tensor.clone(shape)));
  }

  func::FuncOp function;
  MeshAttr mesh;
  SymbolValues bound;
};

} // namespace

void shardc::bindSymbols(func::FuncOp function, const SymbolValues &values, bool typical,
                         MeshAttr mesh) {
  Binder(function, mesh).run(values, typical);
}

/// Each value against the symbols of that name.
static LogicalResult checkValues(ModuleOp module, const SymbolValues &values) {
  llvm::SetVector<SymbolAttr> symbols;
  for (auto function : module.getOps<func::FuncOp>())
    for (SymbolAttr symbol : symbolsOf(function))
      symbols.insert(symbol);
  bool ok = true;
  llvm::StringSet<> known;
  for (SymbolAttr symbol : symbols) {
    known.insert(symbol.getName().getValue());
    auto given = values.find(symbol.getName().getValue());
    if (given == values.end())
      continue;
    bool above = !ShapedType::isDynamic(symbol.getMax()) && given->second > symbol.getMax();
    if (given->second < symbol.getMin() || above) {
      ok = false;
      module.emitError() << given->second << " is outside the range of " << symbol;
    }
  }
  for (auto &entry : values) {
    if (known.contains(entry.getKey()))
      continue;
    ok = false;
    InFlightDiagnostic error = module.emitError()
                               << "no symbol is named '" << entry.getKey() << "'";
    if (symbols.empty())
      error << ": the program has no dynamic sizes";
    else
      llvm::interleaveComma(symbols, error << "; there are ",
                            [&](SymbolAttr symbol) { error << symbol.getName().getValue(); });
  }
  return success(ok);
}

FailureOr<SymbolValues> shardc::parseSymbolValues(ModuleOp module, ArrayRef<std::string> texts) {
  SymbolValues values;
  bool ok = true;
  for (StringRef text : texts) {
    auto [name, value] = text.split('=');
    int64_t number = 0;
    if (name.empty() || value.getAsInteger(10, number)) {
      ok = false;
      module.emitError() << "'" << text << "' is not the value of a symbol: expected NAME=NUMBER";
    }
    values[name] = number;
  }
  if (!ok || failed(checkValues(module, values)))
    return failure();
  return values;
}
