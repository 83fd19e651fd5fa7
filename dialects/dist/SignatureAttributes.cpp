// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/dist/SignatureAttributes.h"

using namespace mlir;

namespace shardc::dist {

SignatureAttributes::SignatureAttributes(FunctionOpInterface function) : function(function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    arguments.emplace_back(function.getArgAttrDict(i));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    results.emplace_back(function.getResultAttrDict(i));
}

static SmallVector<DictionaryAttr> dictionaries(MutableArrayRef<NamedAttrList> lists,
                                                MLIRContext *context) {
  return llvm::map_to_vector(lists,
                             [&](NamedAttrList &list) { return list.getDictionary(context); });
}

void SignatureAttributes::store() {
  function.setAllArgAttrs(dictionaries(arguments, function->getContext()));
  function.setAllResultAttrs(dictionaries(results, function->getContext()));
}

} // namespace shardc::dist
