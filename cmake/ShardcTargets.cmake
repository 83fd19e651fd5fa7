# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Targets that do not need LLVM.

# GCC 12 warns of overlaps inside std::string that do not exist (GCC bug 105329).
set(SHARDC_WARNINGS -Wall -Wextra -Werror=return-type -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# Parsing the standard library takes longer than the rest of most files without LLVM, so that these share precompiled headers of it: one for
# each set of options that the compiler wants to be the same in a header and in the files that use it.
set(SHARDC_STANDARD_HEADERS
  <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstdio> <cstring> <filesystem> <fstream> <functional> <map> <memory>
  <mutex> <numeric> <optional> <set> <span> <sstream> <stdexcept> <string> <string_view> <thread> <tuple> <unordered_map> <unordered_set>
  <utility> <variant> <vector>)

# Without time stamps of headers ccache takes files that use a precompiled one.
set(SHARDC_PCH_OPTIONS)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(SHARDC_PCH_OPTIONS -Xclang -fno-pch-timestamp)
endif()

# shardc_use_standard_pch(NAME [OPTIONS...])
# OPTIONS are those options of NAME that decide what the compiler makes of a header. Files of NAME that have others, such as a level of
# optimization of their own, set SKIP_PRECOMPILE_HEADERS. A file must still include all that it uses: SHARDC_PCH=OFF builds it without the header.
function(shardc_use_standard_pch name)
  if(NOT SHARDC_PCH)
    return()
  endif()
  string(REGEX REPLACE "[^A-Za-z0-9]+" "" suffix "${ARGN}")
  set(header ShardcStandardPch${suffix})
  if(NOT TARGET ${header})
    add_library(${header} STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
    target_compile_options(${header} PRIVATE ${ARGN} ${SHARDC_PCH_OPTIONS})
    target_precompile_headers(${header} PRIVATE ${SHARDC_STANDARD_HEADERS})
  endif()
  target_compile_options(${name} PRIVATE ${SHARDC_PCH_OPTIONS})
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE") # -fPIC as libraries, not -fPIE
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${header})
endfunction()

# Files that are compiled with an optimization level of their own.
function(shardc_optimize_files level)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS ${level} SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Files that unity builds (CMAKE_UNITY_BUILD) compile alone: those that say `using namespace llvm`, with which names of MLIR are ambiguous
# in the files behind them, and those that take so long that others would wait for them.
function(shardc_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# shardc_add_core(NAME SOURCES... [DEPS targets...] [OPTIONS options...])
# Adds a static library without LLVM or IR: plain C++20 over value types.
function(shardc_add_core name)
  cmake_parse_arguments(ARG "" "" "DEPS;OPTIONS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  # Each function has a section of its own, so that the runtime links only those functions of a core that it uses.
  target_compile_options(${name} PRIVATE ${SHARDC_WARNINGS} -ffunction-sections -fdata-sections ${ARG_OPTIONS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  shardc_use_standard_pch(${name} ${ARG_OPTIONS})
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
  # Files of tests use short names of their own.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${options})
  target_link_libraries(${name} PRIVATE GTest::gtest Threads::Threads)
  if(NOT SHARDC_PCH)
    return()
  endif()
  target_compile_options(${name} PRIVATE -fPIC ${SHARDC_PCH_OPTIONS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  if(NOT TARGET ${header})
    add_library(${header} STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
    target_compile_options(${header} PRIVATE ${options} -fPIC ${SHARDC_PCH_OPTIONS})
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
