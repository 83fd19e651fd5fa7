# This file is run as a script. It copies IN, written by mlir-tblgen -gen-pass-decls, to OUT with statistics that count in
# release builds (dialects/interfaces/PassStatistic.h).
file(READ ${IN} text)
string(REPLACE "::mlir::Pass::Statistic" "::shardc::PassStatistic" text "${text}")
file(WRITE ${OUT} "${text}")
