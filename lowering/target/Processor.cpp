// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/target/Processor.h"

#include "support/NearestNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <map>

using namespace llvm;

namespace shardc::target {
namespace {

/// Instruction sets that generated code may use, by LLVM's names, which are also those of
/// manifests.
constexpr StringLiteral kFeatures[] = {
    "sse3",     "ssse3",    "sse4.1",   "sse4.2",     "popcnt",     "avx",     "f16c",
    "fma",      "bmi",      "bmi2",     "lzcnt",      "avx2",       "avx512f", "avx512dq",
    "avx512cd", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16",
};

/// What every 64-bit x86 processor has.
constexpr StringLiteral kBaseline[] = {"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"};

/// "+feature" or "-feature" for everything that a processor may have: on is what code may use, that
/// is kFeatures and kBaseline. Instruction sets that manifests
/// do not name (FMA4 of one vendor, say) must not be used, since the runtime would not miss them.
std::string usableFeatures(StringRef cpu, const StringMap<bool> &host) {
  SmallVector<StringRef> implied;
  X86::getFeaturesForCPU(cpu, implied);
  std::map<std::string, bool> usable;
  auto add = [&](StringRef name, bool has) {
    bool allowed = is_contained(kFeatures, name) || is_contained(kBaseline, name);
    usable[name.str()] = has && allowed;
  };
  for (StringRef name : implied)
    add(name, true);
  for (const auto &feature : host)
    add(feature.first(), feature.second);
  std::string text;
  for (auto &[name, on] : usable)
    text += (text.empty() ? "" : ",") + std::string(on ? "+" : "-") + name;
  return text;
}

const llvm::Target *lookUp(const std::string &triple, std::string &message) {
  static bool initialized = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  return TargetRegistry::lookupTarget(Triple(triple), message);
}

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// Names of processors within a small edit distance of `name`.
std::string nearestProcessors(const MCSubtargetInfo &info, StringRef name) {
  std::vector<NameCandidate> candidates;
  for (const SubtargetSubTypeKV &entry : info.getAllProcessorDescriptions())
    candidates.push_back({entry.Key, entry.Key});
  std::string text = listNames(nearestNames(name, candidates, /*count=*/3, /*maxDistance=*/6));
  return text.empty() ? "x86-64-v2, x86-64-v3 or x86-64-v4" : text;
}

} // namespace

bool Processor::hasFeature(StringRef feature) const {
  return llvm::is_contained(required, feature);
}

Expected<Processor> makeProcessor(std::string triple, std::string name, std::string features) {
  std::string message;
  const llvm::Target *target = lookUp(triple, message);
  if (!target)
    return makeError("this build of LLVM cannot generate code for " + triple + ": " + message);
  Processor result;
  std::unique_ptr<MCSubtargetInfo> info(
      target->createMCSubtargetInfo(Triple(triple), name, features));
  for (StringLiteral feature : kFeatures)
    if (info->checkFeatures(("+" + feature).str()))
      result.required.push_back(feature.str());
  if (result.hasFeature("avx512f") && result.hasFeature("avx512vl")) {
    result.vectorBits = 512;
    result.vectorRegisters = 32;
  } else if (result.hasFeature("avx2")) {
    result.vectorBits = 256;
  }
  result.triple = std::move(triple);
  result.name = std::move(name);
  result.features = std::move(features);
  return result;
}

Expected<Processor> resolveProcessor(StringRef name) {
  std::string triple = sys::getDefaultTargetTriple();
  std::string message;
  const llvm::Target *target = lookUp(triple, message);
  if (!target)
    return makeError("this build of LLVM cannot generate code for " + triple + ": " + message);
  StringMap<bool> host;
  std::string found = name.str();
  if (name.empty()) {
    found = sys::getHostCPUName().str();
    // The host's own list: a virtual machine may lack what its processor's name promises.
    host = sys::getHostCPUFeatures();
  } else {
    std::unique_ptr<MCSubtargetInfo> generic(target->createMCSubtargetInfo(Triple(triple), "", ""));
    if (!generic->isCPUStringValid(name))
      return makeError("unknown processor '" + name + "'; the nearest names are " +
                       nearestProcessors(*generic, name));
  }
  std::string features = Triple(triple).isX86() ? usableFeatures(found, host) : std::string();
  return makeProcessor(std::move(triple), std::move(found), std::move(features));
}

Expected<std::unique_ptr<TargetMachine>> createTargetMachine(const Processor &processor) {
  std::string message;
  const llvm::Target *found = lookUp(processor.triple, message);
  if (!found)
    return makeError(message);
  std::unique_ptr<TargetMachine> machine(found->createTargetMachine(
      Triple(processor.triple), processor.name, processor.features, TargetOptions(), Reloc::PIC_,
      std::nullopt, CodeGenOptLevel::Aggressive));
  if (!machine)
    return makeError("cannot make a code generator for " + processor.triple);
  return machine;
}

} // namespace shardc::target
