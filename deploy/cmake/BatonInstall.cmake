# What `cmake --install` puts where. The two libraries are installed as one archive each: everything that they are made
# of in one object, whose inner names are made local, so that they cannot clash with a program's own.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Where libraries go, below the prefix; the .pc files count on one level")
include(GNUInstallDirs)

if(NOT CMAKE_OBJCOPY)
    message(FATAL_ERROR "objcopy (binutils) is needed to make the libraries")
endif()

# bt_installed_library(NAME FROM target ... REQUIRES "pkg-config names" ABOUT "one line")
function(bt_installed_library name)
    cmake_parse_arguments(L "" "REQUIRES;ABOUT" "FROM" ${ARGN})
    set(object ${CMAKE_BINARY_DIR}/install/${name}.o)
    set(archive ${CMAKE_BINARY_DIR}/install/lib${name}.a)
    set(files)
    foreach(target IN LISTS L_FROM)
        list(APPEND files $<TARGET_FILE:${target}>)
    endforeach()
    # Weak, because both libraries hold the error functions and one program may use both.
    add_custom_command(OUTPUT ${archive}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/install
        COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
        COMMAND ${CMAKE_LINKER} -r -o ${object} --whole-archive ${files}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard --weaken-symbol=bt_* ${object}
        COMMAND ${CMAKE_AR} rcs ${archive} ${object}
        DEPENDS ${L_FROM} VERBATIM COMMENT "Gathering lib${name}.a")
    add_custom_target(installed_${name} ALL DEPENDS ${archive})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/install/${name}.pc @ONLY CONTENT
"prefix=\${pcfiledir}/../..
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
libdir=\${pcfiledir}/..

Name: @name@
Description: @L_ABOUT@
Version: @PROJECT_VERSION@
Requires: @L_REQUIRES@
Cflags: -I\${includedir}
Libs: -L\${libdir} -l@name@ -lnng -pthread -lm
")
    install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(FILES ${CMAKE_BINARY_DIR}/install/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

bt_installed_library(baton FROM baton_client compat state link wire base base_pure
    REQUIRES "libcjson" ABOUT "submit plans to a Baton supervisor and watch them")
bt_installed_library(baton-agent FROM baton_agent sdk_step sdk_agent_state jsonschema state link wire base base_pure
    REQUIRES "libcjson libpcre2-8" ABOUT "write an agent for a Baton supervisor")

install(TARGETS batond baton DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(agent IN ITEMS exec files sql calc llm)
    install(TARGETS baton-agent-${agent} DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()

install(FILES
    protocol/base/include/baton/error.h protocol/client/include/baton/client.h
    protocol/compat/include/baton/vocabulary.h agents/sdk/include/baton/agent.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton)

file(READ deploy/systemd/baton.service unit)
string(REPLACE "/usr/bin/" "${CMAKE_INSTALL_FULL_BINDIR}/" unit "${unit}")
file(CONFIGURE OUTPUT install/baton.service CONTENT "${unit}" @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/install/baton.service DESTINATION lib/systemd/system)

set(completion ${CMAKE_BINARY_DIR}/install/completion)
add_custom_command(OUTPUT ${completion}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/install
    COMMAND baton completion bash > ${completion} VERBATIM)
add_custom_target(installed_completion ALL DEPENDS ${completion})
install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME baton)

install(FILES deploy/baton.yaml deploy/TOUR.md README.md ARCHITECTURE.md LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES protocol/WIRE.md protocol/EVENTS.md protocol/MESSAGES.md protocol/PLANS.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY deploy/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS)
