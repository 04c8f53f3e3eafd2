# Debian packages: `cmake --preset package && ninja -C build/package && cpack --preset package`, with their scripts and
# texts in deploy/packages. The same tree gives the same bytes: paths are relative (the preset's flags), and every date is
# that of the changelog's first entry.
file(READ deploy/packages/changelog changelog)
string(REGEX MATCH "^baton \\(([^)]+)-([0-9]+)\\)" head "${changelog}")
if(NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
    message(FATAL_ERROR "deploy/packages/changelog begins with ${CMAKE_MATCH_1}, the project with ${PROJECT_VERSION}")
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE ${CMAKE_MATCH_2})
string(REGEX MATCH "\n -- ([^\n]*>)  ([^\n]*)" trailer "${changelog}")
set(committed "${CMAKE_MATCH_1}") # of nobody: .invalid is a name that no host can have
set(when "${CMAKE_MATCH_2}")
set(BATON_MAINTAINER "${committed}" CACHE STRING "Who answers for the packages: Name <address>")
if(NOT BATON_MAINTAINER MATCHES "^[^<>\n]*[^<>\n ] <[^<>@\n ]+@[^<>@\n ]+>$")
    message(FATAL_ERROR "BATON_MAINTAINER: expected Name <user@host>, got '${BATON_MAINTAINER}'")
endif()
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${BATON_MAINTAINER}")
execute_process(COMMAND date -u -d "${when}" +%s OUTPUT_VARIABLE epoch OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
    set(ENV{SOURCE_DATE_EPOCH} ${epoch}) # for the dates of the manual
endif()
file(WRITE ${CMAKE_BINARY_DIR}/install/cpack_epoch.cmake "set(ENV{SOURCE_DATE_EPOCH} $ENV{SOURCE_DATE_EPOCH})\n")

# With the maintainer that was asked for in place of the one that is committed.
string(REPLACE " -- ${committed}  " " -- ${BATON_MAINTAINER}  " changelog "${changelog}")
set(changelog_text ${CMAKE_BINARY_DIR}/install/changelog.Debian)
file(GENERATE OUTPUT ${changelog_text} CONTENT "${changelog}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS deploy/packages/changelog)

set(changelog_gz ${CMAKE_BINARY_DIR}/install/changelog.Debian.gz)
set(news_gz ${CMAKE_BINARY_DIR}/install/changelog.gz)
foreach(pair IN ITEMS "${changelog_text}:${changelog_gz}" "${PROJECT_SOURCE_DIR}/CHANGELOG.md:${news_gz}")
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 text)
    list(GET pair 1 packed)
    add_custom_command(OUTPUT ${packed} COMMAND sh -c "gzip -9nc \"$1\" >\"$2\"" sh ${text} ${packed}
        DEPENDS ${text} VERBATIM)
endforeach()
add_custom_target(package_texts ALL DEPENDS ${changelog_gz} ${news_gz})

# bt_package(NAME SECTION section [DEPENDS ...] ABOUT "one line" TEXT "a sentence")
macro(bt_package name)
    cmake_parse_arguments(P "" "SECTION;DEPENDS;ABOUT;TEXT" "" ${ARGN})
    string(TOUPPER ${name} component)
    list(APPEND CPACK_COMPONENTS_ALL ${name})
    set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${component}_PACKAGE_SECTION ${P_SECTION})
    set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "${P_DEPENDS}")
    set(CPACK_DEBIAN_${component}_DESCRIPTION "${P_ABOUT}\n${about}\n${P_TEXT}")
    install(FILES deploy/packages/copyright ${changelog_gz} ${news_gz} DESTINATION share/doc/${name} COMPONENT ${name})
    install(FILES deploy/packages/lintian-overrides DESTINATION share/lintian/overrides RENAME ${name} COMPONENT ${name})
endmacro()

# What dpkg does for a library: the packages of programs that use it depend on it, and the loader's cache is renewed.
macro(bt_library_package name library)
    set(control ${CMAKE_BINARY_DIR}/install/deb/${name})
    file(WRITE ${control}/shlibs "${library} 0 ${name} (>= ${PROJECT_VERSION})\n")
    file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
    string(TOUPPER ${name} component)
    set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA "${control}/shlibs;${control}/triggers")
    bt_package(${name} SECTION libs ${ARGN})
endmacro()

set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(about "Baton is a multi-agent supervisor: a daemon that turns a goal into a\nplan, hands each step to an agent, and persists every change.")
bt_package(baton SECTION admin DEPENDS "systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles, tzdata"
    ABOUT "multi-agent supervisor: daemon, command line and agents"
    TEXT "This package has the daemon, the command line, the agents a2a, calc,\nexec, files, graph, http, llm, mcp, rag, report and sql, a systemd unit, which\nis not enabled, and examples.")
bt_library_package(libbaton0 libbaton ABOUT "multi-agent supervisor: client library"
    TEXT "With this library programs submit plans and watch them.")
bt_library_package(libbaton-agent0 libbaton-agent ABOUT "multi-agent supervisor: library of agents"
    TEXT "Agents in C are written with this library.")
bt_package(libbaton-dev SECTION libdevel
    DEPENDS "libbaton0 (= ${version}), libbaton-agent0 (= ${version}), libnng-dev, libcjson-dev, libpcre2-dev, libmbedtls-dev, nettle-dev"
    ABOUT "multi-agent supervisor: what programs in C are built with"
    TEXT "This package has the headers, pkg-config files and static libraries of\nclients and of agents.")

bt_package(python3-baton SECTION python DEPENDS "python3 (>= 3.9)"
    ABOUT "multi-agent supervisor: agents and clients in Python"
    TEXT "This package has the module baton, baton-agent-check, which checks agents\nin any language, and baton-agent-faulty, an agent for tests of plans.")
set(CPACK_DEBIAN_PYTHON3-BATON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON3-BATON_PACKAGE_SHLIBDEPS OFF)

bt_package(node-baton SECTION javascript DEPENDS "nodejs (>= 18)"
    ABOUT "multi-agent supervisor: agents and clients in JavaScript"
    TEXT "This package has the module baton-agent for Node, with its types.")
set(CPACK_DEBIAN_NODE-BATON_PACKAGE_PROVIDES "node-baton-agent (= ${version})") # the module's name
set(CPACK_DEBIAN_NODE-BATON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_NODE-BATON_PACKAGE_SHLIBDEPS OFF)

if(TARGET baton-bridge-nats)
    bt_package(baton-bridge-nats SECTION admin DEPENDS "baton (= ${version})"
        ABOUT "multi-agent supervisor: events for NATS JetStream"
        TEXT "This package has the bridge that copies the events into a stream, and a\nsystemd unit, which is not enabled.")
    cmake_language(DEFER CALL install SCRIPT deploy/packages/compress.cmake COMPONENT baton-bridge-nats)
endif()

# What only the packages have: the configuration as a conffile, and pages of the manual as Debian wants them.
install(FILES deploy/baton.yaml DESTINATION /etc/baton COMPONENT baton)
cmake_language(DEFER CALL install SCRIPT deploy/packages/compress.cmake COMPONENT baton) # after the pages
cmake_language(DEFER CALL install SCRIPT deploy/packages/compress.cmake COMPONENT python3-baton)
file(WRITE ${CMAKE_BINARY_DIR}/install/deb/conffiles "/etc/baton/baton.yaml\n")
set(scripts ${CMAKE_BINARY_DIR}/install/deb/conffiles)
set(bridge_scripts)
foreach(script IN ITEMS postinst prerm postrm)
    configure_file(deploy/packages/baton.${script} ${CMAKE_BINARY_DIR}/install/deb/${script} COPYONLY)
    list(APPEND scripts ${CMAKE_BINARY_DIR}/install/deb/${script})
    configure_file(deploy/packages/baton-bridge-nats.${script} ${CMAKE_BINARY_DIR}/install/deb/baton-bridge-nats/${script} COPYONLY)
    list(APPEND bridge_scripts ${CMAKE_BINARY_DIR}/install/deb/baton-bridge-nats/${script})
endforeach()
set(CPACK_DEBIAN_BATON-BRIDGE-NATS_PACKAGE_CONTROL_EXTRA "${bridge_scripts}")
set(CPACK_DEBIAN_BATON_PACKAGE_CONTROL_EXTRA "${scripts}")

set(CPACK_GENERATOR DEB)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/install/cpack_epoch.cmake)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_SET_DESTDIR ON) # for /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
