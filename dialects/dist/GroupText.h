// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_DIST_GROUPTEXT_H
#define SHARDC_DIALECTS_DIST_GROUPTEXT_H

#include "dialects/dist/Dist.h"

namespace shardc::dist {

/// For people: mesh axes ("dp,tp"), the name of a named group, else rank lists.
std::string describeGroup(GroupAttrInterface group);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_GROUPTEXT_H
