// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statistics of passes that count. MLIR's own are compiled out of release builds of LLVM, packaged
// ones among them; the build therefore puts this class in their place in what TableGen writes for
// `let statistics = [...]` (see shardc_tablegen). Include it where the passes of a folder are
// declared.

#ifndef SHARDC_DIALECTS_INTERFACES_PASSSTATISTIC_H
#define SHARDC_DIALECTS_INTERFACES_PASSSTATISTIC_H

#include "mlir/Pass/Pass.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace shardc {

/// The counters of a process: one for each statistic of each pass, over all instances and threads.
class PassStatistics {
public:
  struct Counter {
    std::string description;
    std::atomic<uint64_t> value = 0;
  };

  static PassStatistics &get() {
    static PassStatistics statistics;
    return statistics;
  }

  Counter &counter(llvm::StringRef pass, llvm::StringRef name, llvm::StringRef description) {
    std::lock_guard<std::mutex> lock(mutex);
    Counter &counter = counters[pass.str()][name.str()];
    counter.description = description.str();
    return counter;
  }

  /// What is not 0, by pass and name: `  (S) 2 variants - Functions after specialisation`.
  void print(llvm::raw_ostream &os) {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto &[pass, ofPass] : counters) {
      bool first = true;
      for (auto &[name, counter] : ofPass) {
        if (counter.value == 0)
          continue;
        if (first)
          os << pass << "\n";
        first = false;
        os << "  (S) " << counter.value << " " << name << " - " << counter.description << "\n";
      }
    }
  }

private:
  std::mutex mutex;
  std::map<std::string, std::map<std::string, Counter>> counters;
};

/// One statistic of one instance of a pass: `++numMerged`, `numBytes += n`.
class PassStatistic {
public:
  PassStatistic(mlir::Pass *owner, const char *name, const char *description)
      : counter(PassStatistics::get().counter(owner->getArgument(), name, description)) {}

  /// What this instance has counted.
  uint64_t getValue() const { return value; }
  operator uint64_t() const { return value; }

  PassStatistic &operator+=(uint64_t amount) {
    value += amount;
    counter.value += amount;
    return *this;
  }
  PassStatistic &operator++() { return *this += 1; }
  void operator++(int) { *this += 1; }
  /// This instance has counted `amount` in all.
  PassStatistic &operator=(uint64_t amount) {
    counter.value += amount - value.exchange(amount);
    return *this;
  }

private:
  PassStatistics::Counter &counter;
  std::atomic<uint64_t> value = 0;
};

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_PASSSTATISTIC_H
