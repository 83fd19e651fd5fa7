# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Targets that do not need LLVM.

# GCC 12 reports overlaps inside std::string that are not there (GCC bug 105329).
set(SHARDC_WARNINGS -Wall -Wextra -Werror=return-type -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# shardc_add_core(NAME SOURCES... [DEPS targets...])
# A static library without LLVM or IR: plain C++20 over value types.
function(shardc_add_core name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  # In sections: the runtime takes in what it uses of a core, and no more.
  target_compile_options(${name} PRIVATE ${SHARDC_WARNINGS} -ffunction-sections -fdata-sections)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# shardc_add_unit_test(NAME SOURCES... [DEPS targets...])
# A gtest binary in build/test/unit; scripts/test.sh runs every one of them through ctest.
function(shardc_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${SHARDC_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/unit)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
