# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Targets that do not need LLVM.

# GCC 12 warns of overlaps inside std::string that do not exist (GCC bug 105329).
set(SHARDC_WARNINGS -Wall -Wextra -Werror=return-type -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# shardc_add_core(NAME SOURCES... [DEPS targets...])
# Adds a static library without LLVM or IR: plain C++20 over value types.
function(shardc_add_core name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  # Each function has a section of its own, so that the runtime links only those functions of a core that it uses.
  target_compile_options(${name} PRIVATE ${SHARDC_WARNINGS} -ffunction-sections -fdata-sections)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# shardc_test_settings(NAME [OPTIMIZED])
# In release builds the code of a test is compiled with -O0, which takes half as long, because most tests compute next to nothing of their own;
# OPTIMIZED is for those that do. What they test is compiled as ever.
# Tests that need no LLVM share a precompiled header, because gtest takes longer to parse than most tests. Executables are compiled with -fPIC
# too, since such a header fits only one of -fPIC and -fPIE, and one level of optimization.
function(shardc_test_settings name)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "" ${ARGN})
  set(level -O0)
  set(header ShardcTestPch)
  if(ARG_OPTIMIZED)
    set(level -O2)
    set(header ShardcOptimizedTestPch)
  endif()
  set(options ${SHARDC_WARNINGS} $<$<CONFIG:Release>:${level}>)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${options})
  target_link_libraries(${name} PRIVATE GTest::gtest Threads::Threads)
  if(NOT SHARDC_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()
  target_compile_options(${name} PRIVATE -fPIC -Xclang -fno-pch-timestamp)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  if(NOT TARGET ${header})
    add_library(${header} STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
    target_compile_options(${header} PRIVATE ${options} -fPIC -Xclang -fno-pch-timestamp)
    set_target_properties(${header} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_link_libraries(${header} PRIVATE GTest::gtest Threads::Threads)
    target_precompile_headers(${header} PRIVATE
      <gtest/gtest.h> <algorithm> <cstdint> <functional> <map> <optional> <random> <set> <span> <string> <vector>)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${header})
endfunction()

# shardc_add_unit_test(NAME SOURCES... [OPTIMIZED] [DEPS targets...])
# Adds a gtest binary in build/test/unit; scripts/test.sh runs every binary there.
function(shardc_add_unit_test name)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_OPTIMIZED)
    shardc_test_settings(${name} OPTIMIZED)
  else()
    shardc_test_settings(${name})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/unit)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
