# One helper per kind of target, so that every target gets the same warnings, sanitizers and alias.

find_program(TRIAD_CCACHE ccache)
if(TRIAD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TRIAD_CCACHE})
endif()

# Compiling several sources at a time parses each header once for all of them. It hides a missing #include, which preset
# dev finds: it takes each source by itself.
set(TRIAD_UNITY "none" CACHE STRING "What is compiled several sources at a time: none, all (but Highway's)")

# Gives `target` its share of TRIAD_UNITY.
function(triad_unity target)
  if(TRIAD_UNITY STREQUAL "all")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 32)
    # GCC takes an included source for a header, whose classes must not hold what an unnamed namespace has.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Under sanitizers a compiler spends most of its time on optimising the checks, so only what computes is optimised: the
# kernels and what they are compared with. Clang inlines nothing below -O2, and what is called may be the copy of a test,
# which is not optimised. Highway compiles each kernel once per instruction set, there only for those that this machine's
# tests reach: AVX2 as the baseline (without one, its emulated vectors take ten times as long), and AVX-512 where there is
# one.
function(triad_sanitized target)
  if(TRIAD_SANITIZE AND target MATCHES "^triad_(core_attention|core_layer|attention_support|layer_support)$")
    target_compile_options(${target} PRIVATE -O2
      $<$<CXX_COMPILER_ID:Clang>:-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/sanitizer-ignore.txt>)
    file(STRINGS /proc/cpuinfo avx2 LIMIT_COUNT 1 REGEX avx2)
    file(STRINGS /proc/cpuinfo avx512 LIMIT_COUNT 1 REGEX avx512bw)
    if(avx2 AND target STREQUAL "triad_core_attention")
      target_compile_options(${target} PRIVATE -march=x86-64-v3 -maes -mpclmul)
    endif()
    if(NOT avx512)
      target_compile_definitions(${target} PRIVATE HWY_DISABLED_TARGETS=HWY_AVX3)
    endif()
  endif()
endfunction()

# Linked privately and only inside this build, so that nothing leaks to consumers.
add_library(triad_build_flags INTERFACE)
target_compile_options(triad_build_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-unused-parameter -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wno-unknown-warning-option>
  $<$<BOOL:${TRIAD_WERROR}>:-Werror>)
if(TRIAD_SANITIZE)
  target_compile_options(triad_build_flags INTERFACE
    -fsanitize=${TRIAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(triad_build_flags INTERFACE -fsanitize=${TRIAD_SANITIZE})
endif()

# triad_library(core_tensor SOURCES a.cc b.cc PUBLIC triad::core_base absl::status PRIVATE ...)
# Makes target triad_core_tensor with alias triad::core_tensor; headers are included by repo-root path.
function(triad_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(triad_${name} STATIC ${ARG_SOURCES})
  add_library(triad::${name} ALIAS triad_${name})
  target_include_directories(triad_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(triad_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:triad_build_flags>)
  triad_unity(triad_${name})
  triad_sanitized(triad_${name})
endfunction()

# triad_binary(triad-server SOURCES main.cc LINK triad::server)
function(triad_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} triad_build_flags)
endfunction()

# triad_test(unit_base LABEL unit SOURCES ... LINK ...): one googletest binary; each TEST becomes a ctest of its own.
function(triad_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(triad_${name} ${ARG_SOURCES})
  target_include_directories(triad_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(triad_${name} PRIVATE ${ARG_LINK} GTest::gmock_main triad_build_flags)
  target_compile_options(triad_${name} PRIVATE $<$<CONFIG:Release>:-O0>)   # a test's own code: compiled oftener than run
  triad_unity(triad_${name})
  gtest_discover_tests(triad_${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
