// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/MemoryLimit.h"

#include "dialects/dist/RecomputeAttributes.h"
#include "dialects/exec/Exec.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;

namespace shardc::artifact {
namespace {

/// "1234567 bytes (1.2 MiB)".
std::string bytesText(int64_t bytes) {
  constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB"};
  std::string text = std::to_string(bytes) + " bytes";
  double value = double(bytes);
  const char *unit = nullptr;
  for (const char *next : units) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  return unit ? text + llvm::formatv(" ({0:f1} {1})", value, unit).str() : text;
}

struct Account {
  explicit Account(DictionaryAttr memory)
      : parameters(memory.getAs<DenseI64ArrayAttr>("parameters").asArrayRef()),
        caller(memory.getAs<IntegerAttr>("caller").getInt()),
        arena(memory.getAs<IntegerAttr>("arena").getInt()), peak(memory.getAs<ArrayAttr>("peak")),
        modules(memory.getAs<ArrayAttr>("modules")) {}

  int64_t parameterBytes() const {
    return std::accumulate(parameters.begin(), parameters.end(), int64_t(0));
  }
  int64_t total() const { return parameterBytes() + caller + arena; }

  ArrayRef<int64_t> parameters;
  int64_t caller, arena;
  ArrayAttr peak, modules;
};

/// What is listed of parameters, and of modules.
constexpr size_t kMostListed = 8;

std::string largestParameters(const Account &account, const ProgramDescription &program) {
  SmallVector<std::pair<int64_t, size_t>> sorted;
  for (auto [i, bytes] : llvm::enumerate(account.parameters))
    sorted.push_back({-bytes, i});
  llvm::sort(sorted);
  std::string text;
  for (auto [bytes, i] : ArrayRef(sorted).take_front(kMostListed))
    if (bytes != 0 && i < program.parameters.size())
      text += "\n  " + bytesText(-bytes) + ": " + program.parameters[i].names.front();
  return text;
}

/// Parameters and intermediate results at the peak, added up for each module, largest first.
std::string largestModules(const Account &account, const ProgramDescription &program) {
  struct Sum {
    int64_t parameters = 0, results = 0;
    int64_t total() const { return parameters + results; }
  };
  llvm::MapVector<StringRef, Sum> sums;
  for (auto [i, bytes] : llvm::enumerate(account.parameters))
    if (i < program.parameters.size()) {
      StringRef name = program.parameters[i].names.front();
      sums[name.contains('.') ? name.rsplit('.').first : ""].parameters += bytes;
    }
  for (auto module : account.modules.getAsRange<ArrayAttr>())
    sums[cast<StringAttr>(module[1]).getValue()].results += cast<IntegerAttr>(module[0]).getInt();
  auto sorted = sums.takeVector();
  llvm::erase_if(sorted, [](auto &entry) { return entry.second.total() == 0; });
  llvm::stable_sort(sorted, [](auto &a, auto &b) { return a.second.total() > b.second.total(); });
  std::string text;
  for (auto [path, sum] : ArrayRef(sorted).take_front(kMostListed)) {
    text +=
        "\n  " + bytesText(sum.total()) + ": " + (path.empty() ? "outside of modules" : path.str());
    if (sum.parameters != 0 && sum.results != 0)
      text += ", parameters " + bytesText(sum.parameters) + ", intermediate results " +
              bytesText(sum.results);
    else
      text += sum.parameters != 0 ? ", parameters" : ", intermediate results";
  }
  if (sorted.size() > kMostListed) {
    int64_t rest = 0;
    for (auto &[path, sum] : ArrayRef(sorted).drop_front(kMostListed))
      rest += sum.total();
    size_t count = sorted.size() - kMostListed;
    text += "\n  " + bytesText(rest) + ": " + std::to_string(count) +
            (count == 1 ? " more module" : " more modules");
  }
  return text;
}

void report(Operation *function, StringRef entry, ArrayRef<size_t> ranks, const Account &account,
            const ProgramDescription &program, uint64_t limit, ArrayRef<std::string> sizes,
            StringRef rest) {
  InFlightDiagnostic error =
      emitError(function->getLoc())
      << "'" << entry << "' needs " << bytesText(account.total()) << " on rank " << ranks.front()
      << (ranks.size() > 1 ? " and " + std::to_string(ranks.size() - 1) + " more" : "")
      << (sizes.empty() ? "" : " with " + llvm::join(sizes, ", ")) << ", the limit is "
      << bytesText(int64_t(limit));
  Location nowhere = UnknownLoc::get(function->getContext());
  if (!rest.empty())
    error.attachNote(nowhere) << rest;
  if (std::string modules = account.modules ? largestModules(account, program) : "";
      !modules.empty())
    error.attachNote(nowhere) << "most of it by module is for" << modules;
  error.attachNote(nowhere) << "slices of " << account.parameters.size()
                            << " parameters: " << bytesText(account.parameterBytes())
                            << "; the largest are" << largestParameters(account, program);
  std::string holders;
  for (auto holder : account.peak.getAsRange<ArrayAttr>())
    holders += "\n  " + bytesText(cast<IntegerAttr>(holder[0]).getInt()) + ": " +
               cast<StringAttr>(holder[1]).str();
  error.attachNote(nowhere) << "arena of intermediate results: " << bytesText(account.arena)
                            << (holders.empty() ? "" : "; most of it at once for") << holders;
  error.attachNote(nowhere) << "inputs and outputs: " << bytesText(account.caller);
  auto least = function->getParentOp()->getAttrOfType<DictionaryAttr>(dist::kLeastMemoryAttr);
  if (least && account.total() == least.getAs<IntegerAttr>("least_bytes").getInt())
    error.attachNote(nowhere)
        << "this is the least that was found: the backward computes again what helps, and without "
           "that '"
        << entry << "' needs " << bytesText(least.getAs<IntegerAttr>("without_bytes").getInt())
        << "; allow at least " << account.total()
        << " bytes, shard the model over more ranks, or run fewer samples at once";
}

/// What ranks of one variant need that is more than the limit.
struct Excess {
  Operation *function;
  Account account;
  SmallVector<size_t> ranks;
};

/// The account of the ranks that need most; of the others, how many there are.
void reportEntry(const EntryDescription &entry, ArrayRef<Excess> excesses,
                 const ProgramDescription &program, uint64_t limit, ArrayRef<std::string> sizes) {
  auto needs = [](const Excess &excess) { return excess.account.total(); };
  const Excess *most = llvm::max_element(
      excesses, [&](const Excess &a, const Excess &b) { return needs(a) < needs(b); });
  size_t others = 0;
  int64_t least = needs(*most);
  for (const Excess &excess : excesses)
    if (&excess != most) {
      others += excess.ranks.size();
      least = std::min(least, needs(excess));
    }
  std::string rest;
  if (others != 0)
    rest = std::to_string(others) + (others == 1 ? " other rank needs " : " other ranks need ") +
           "more than the limit, too: at least " + bytesText(least);
  report(most->function, entry.name, most->ranks, most->account, program, limit, sizes, rest);
}

} // namespace

LogicalResult checkMemoryLimit(ModuleOp module, const ProgramDescription &program, uint64_t limit,
                               ArrayRef<std::string> sizes) {
  LogicalResult result = success();
  for (const EntryDescription &entry : program.entries) {
    SmallVector<Excess> excesses;
    for (auto [v, variant] : llvm::enumerate(entry.variants)) {
      Operation *function = module.lookupSymbol(variant);
      auto memory = function ? function->getAttrOfType<DictionaryAttr>(exec::kMemoryAttr) : nullptr;
      if (!memory)
        return emitError(module.getLoc()) << "'" << variant << "' has no account of its memory";
      Account account(memory);
      if (uint64_t(account.total()) <= limit)
        continue;
      SmallVector<size_t> ranks;
      for (auto [rank, chosen] : llvm::enumerate(entry.variantOfRank))
        if (chosen == v)
          ranks.push_back(rank);
      if (!ranks.empty())
        excesses.push_back({function, account, std::move(ranks)});
    }
    if (excesses.empty())
      continue;
    reportEntry(entry, excesses, program, limit, sizes);
    result = failure();
  }
  return result;
}

} // namespace shardc::artifact
