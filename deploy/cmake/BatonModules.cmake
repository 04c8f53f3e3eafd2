# How a room is built and tested. See CONTRIBUTING.md for the recipes.
#
#   bt_module(NAME [PURE] SOURCES a.c b.c [LINK other ...])   a static library of the room
#   bt_program(NAME SOURCES main.c [LINK ...])                a program in build/<preset>/bin
#   bt_test(NAME [LABEL unit] [SOURCES x.c] [LINK ...] [TIMEOUT s])   one cmocka program, one ctest line

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(MSGPACK REQUIRED IMPORTED_TARGET msgpack)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(CMARK REQUIRED IMPORTED_TARGET libcmark-gfm)
find_library(NNG_LIBRARY nng REQUIRED)
find_library(MBEDCRYPTO_LIBRARY mbedcrypto REQUIRED) # nng links it already
find_library(MBEDX509_LIBRARY mbedx509 REQUIRED)
find_library(STEMMER_LIBRARY stemmer REQUIRED) # without a .pc file
if(BATON_TESTS)
    find_library(CMOCKA_LIBRARY cmocka REQUIRED)
endif()

add_library(baton_options INTERFACE)
target_include_directories(baton_options INTERFACE
    ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/protocol/base/include
    ${PROJECT_SOURCE_DIR}/protocol/client/include
    ${PROJECT_SOURCE_DIR}/protocol/compat/include
    ${PROJECT_SOURCE_DIR}/agents/sdk/include)
target_compile_definitions(baton_options INTERFACE _GNU_SOURCE BATON_VERSION="${PROJECT_VERSION}"
    $<$<CONFIG:Debug>:BATON_CHECKED>)
target_compile_options(baton_options INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wimplicit-fallthrough -Wcast-qual
    -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wundef -Wpointer-arith -Wwrite-strings
    -Wformat=2 $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
    $<$<C_COMPILER_ID:Clang>:-Wno-string-conversion> -Wswitch-enum -Wno-missing-field-initializers
    -fno-strict-aliasing -fstack-protector-strong -fvisibility=hidden
    $<$<BOOL:${BATON_WERROR}>:-Werror>)
if(BATON_SANITIZE)
    target_compile_options(baton_options INTERFACE -fsanitize=${BATON_SANITIZE}
        -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(baton_options INTERFACE -fsanitize=${BATON_SANITIZE})
endif()

set(BATON_PURE_ALLOWED "memcpy|memset|memcmp|memmove|strlen|strcmp|strncmp|memchr|assert_failed|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
    CACHE INTERNAL "the only outside symbols that a pure room may use")

function(bt_module name)
    cmake_parse_arguments(M "PURE" "" "SOURCES;LINK" ${ARGN})
    add_library(${name} STATIC ${M_SOURCES})
    target_link_libraries(${name} PUBLIC baton_options ${M_LINK})
    if(M_PURE AND BATON_TESTS)
        # Compiled once more as released code: what is still undefined then is what the room really calls.
        add_library(${name}_purity OBJECT ${M_SOURCES})
        target_include_directories(${name}_purity PRIVATE
            $<TARGET_PROPERTY:baton_options,INTERFACE_INCLUDE_DIRECTORIES>)
        target_compile_definitions(${name}_purity PRIVATE
            $<TARGET_PROPERTY:baton_options,INTERFACE_COMPILE_DEFINITIONS>)
        target_compile_options(${name}_purity PRIVATE -O2 -fno-sanitize=all -U_FORTIFY_SOURCE)
        # What it calls may stand in the pure rooms that it links.
        set(pure $<TARGET_OBJECTS:${name}_purity>)
        foreach(other IN LISTS M_LINK)
            if(TARGET ${other}_purity)
                list(APPEND pure $<TARGET_OBJECTS:${other}_purity>)
            endif()
        endforeach()
        add_test(NAME purity.${name}
            COMMAND ${PROJECT_SOURCE_DIR}/tests/lint/purity.sh "${BATON_PURE_ALLOWED}" ${pure}
            COMMAND_EXPAND_LISTS)
        set_tests_properties(purity.${name} PROPERTIES LABELS lint)
    endif()
endfunction()

function(bt_program name)
    cmake_parse_arguments(P "" "" "SOURCES;LINK" ${ARGN})
    add_executable(${name} ${P_SOURCES})
    target_link_libraries(${name} PRIVATE baton_options ${P_LINK})
endfunction()

function(bt_test name)
    cmake_parse_arguments(T "" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
    if(NOT T_LABEL)
        set(T_LABEL unit)
    endif()
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 300)
    endif()
    if(NOT T_SOURCES)
        set(T_SOURCES ${name}.c)
    endif()
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE baton_options ${T_LINK} ${CMOCKA_LIBRARY})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${T_LABEL}.${name} COMMAND ${name})
    set_tests_properties(${T_LABEL}.${name} PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT})
endfunction()
