// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text as an element of a list option of a pass. MLIR takes such a list apart at commas; text that
// has commas of its own stands in braces: `place={{param:w=dp:S(0),tp:S(1)},module:up=colwise}`.
// It is printed so too, so that a pipeline that MLIR prints (a crash reproducer) is read again as
// the same.

#ifndef SHARDC_DIALECTS_INTERFACES_TEXTOPTION_H
#define SHARDC_DIALECTS_INTERFACES_TEXTOPTION_H

#include "mlir/Pass/PassOptions.h"

#include <string>

namespace shardc {

struct TextOption {
  std::string text;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const TextOption &option) {
  return os << '{' << option.text << '}';
}

/// The texts of a list option.
template <typename List> llvm::SmallVector<std::string> textsOf(const List &options) {
  llvm::SmallVector<std::string> texts;
  for (const TextOption &option : options)
    texts.push_back(option.text);
  return texts;
}

} // namespace shardc

template <> class llvm::cl::parser<shardc::TextOption> : public basic_parser<shardc::TextOption> {
public:
  using basic_parser::basic_parser;

  bool parse(Option &, StringRef, StringRef argument, shardc::TextOption &value) {
    if (argument.starts_with("{") && argument.ends_with("}"))
      argument = argument.drop_front().drop_back();
    value.text = argument.str();
    return false;
  }
  StringRef getValueName() const override { return "text"; }
};

#endif // SHARDC_DIALECTS_INTERFACES_TEXTOPTION_H
