# What `cmake --install` puts where. The two libraries are installed as one archive and one shared library each:
# everything that they are made of in one object, whose inner names are made local, so that they cannot clash with a
# program's own.
if(NOT CMAKE_OBJCOPY)
    message(FATAL_ERROR "objcopy (binutils) is needed to make the libraries")
endif()

# A .pc file finds the prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")

# bt_pages(FOLDER COMPONENT page...): pages in Markdown, whose links lead to one another.
function(bt_pages folder component)
    set(installed)
    foreach(page IN LISTS ARGN)
        set(copy ${CMAKE_BINARY_DIR}/install/pages/${page})
        get_filename_component(where ${copy} DIRECTORY)
        file(MAKE_DIRECTORY ${where})
        add_custom_command(OUTPUT ${copy} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
            COMMAND sh deploy/packages/links.sh ${page} ${ARGN} > ${copy}
            DEPENDS ${page} deploy/packages/links.sh VERBATIM)
        list(APPEND installed ${copy})
    endforeach()
    string(MAKE_C_IDENTIFIER "pages ${folder}" name)
    add_custom_target(${name} ALL DEPENDS ${installed})
    if(component)
        install(FILES ${installed} DESTINATION ${folder} COMPONENT ${component})
    else()
        install(FILES ${installed} DESTINATION ${folder})
    endif()
endfunction()

# bt_installed_library(NAME FROM target ... LINK library ... PC_REQUIRES "pkg-config names" PC_LIBS "-lother" ABOUT "one line")
# Both libraries have the symbols of deploy/abi/libNAME.map and no others.
function(bt_installed_library name)
    cmake_parse_arguments(L "" "PC_REQUIRES;PC_LIBS;ABOUT" "FROM;LINK" ${ARGN})
    set(object ${CMAKE_BINARY_DIR}/install/${name}.o)
    set(archive ${CMAKE_BINARY_DIR}/install/lib${name}.a)
    set(map ${PROJECT_SOURCE_DIR}/deploy/abi/lib${name}.map)
    set(globals ${CMAKE_BINARY_DIR}/install/${name}.globals)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${map})
    file(STRINGS ${map} symbols REGEX "^ +bt_[a-z0-9_]+;")
    list(TRANSFORM symbols REPLACE "[ ;]" "")
    list(JOIN symbols "\n" symbols)
    file(CONFIGURE OUTPUT ${globals} CONTENT "${symbols}\n")
    set(files)
    foreach(target IN LISTS L_FROM)
        list(APPEND files $<TARGET_FILE:${target}>)
        set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endforeach()
    # Weak in the archive, because both libraries hold the error functions and one program may use both.
    add_custom_command(OUTPUT ${object} ${archive}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/install
        COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
        COMMAND ${CMAKE_LINKER} -r -o ${object} --whole-archive ${files}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden --keep-global-symbols=${globals} ${object}
        COMMAND ${CMAKE_OBJCOPY} $<$<BOOL:${BATON_PACKAGE}>:--strip-debug> --wildcard --weaken-symbol=bt_* ${object} ${name}.weak.o
        COMMAND ${CMAKE_AR} rcs ${archive} ${name}.weak.o
        WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/install
        DEPENDS ${L_FROM} ${globals} VERBATIM COMMAND_EXPAND_LISTS COMMENT "Gathering lib${name}.a")
    add_custom_target(installed_${name} ALL DEPENDS ${object} ${archive})

    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    add_library(shared_${name} SHARED ${object})
    add_dependencies(shared_${name} installed_${name})
    set_target_properties(shared_${name} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C
        VERSION 0.${PROJECT_VERSION_MINOR}.${PROJECT_VERSION_PATCH} SOVERSION 0 LINK_DEPENDS ${map}
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/install)
    target_link_libraries(shared_${name} PRIVATE baton_options ${L_LINK} ${NNG_LIBRARY} PkgConfig::CJSON Threads::Threads m)
    target_link_options(shared_${name} PRIVATE -Wl,--version-script=${map} -Wl,--as-needed)
    if(NOT BATON_SANITIZE) # the program has what a sanitizer needs
        target_link_options(shared_${name} PRIVATE -Wl,-z,defs)
    endif()

    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/install/${name}.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@up@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
libdir=\${pcfiledir}/..

Name: @name@
Description: @L_ABOUT@
Version: @PROJECT_VERSION@
Requires.private: @L_PC_REQUIRES@
Cflags: -I\${includedir}
Libs: -L\${libdir} -l@name@
Libs.private: @L_PC_LIBS@ -lnng -pthread -lm
")
    install(TARGETS shared_${name}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lib${name}0 NAMELINK_COMPONENT libbaton-dev)
    install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libbaton-dev)
    install(FILES ${CMAKE_BINARY_DIR}/install/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libbaton-dev)
endfunction()

bt_installed_library(baton FROM baton_client compat artifact state link auth auth_identity wire base base_pure
    LINK PkgConfig::NETTLE ${MBEDCRYPTO_LIBRARY}
    PC_REQUIRES "libcjson nettle" PC_LIBS "-lmbedcrypto" ABOUT "submit plans to a Baton supervisor and watch them")
bt_installed_library(baton-agent FROM baton_agent baton_client sdk_step sdk_agent_state sdk_quick jsonschema artifact fleet_map state link auth auth_identity wire base base_pure
    LINK PkgConfig::PCRE2 PkgConfig::NETTLE ${MBEDCRYPTO_LIBRARY}
    PC_REQUIRES "libcjson libpcre2-8 nettle" PC_LIBS "-lmbedcrypto" ABOUT "write an agent for a Baton supervisor")

install(TARGETS batond baton DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS baton_hide LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/baton)
if(TARGET baton-gateway)
    install(TARGETS baton-gateway DESTINATION ${CMAKE_INSTALL_BINDIR})
    set(openapi ${CMAKE_BINARY_DIR}/install/openapi.json)
    add_custom_command(OUTPUT ${openapi}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/install
        COMMAND baton-gateway --openapi > ${openapi} DEPENDS baton-gateway VERBATIM)
    add_custom_target(installed_openapi ALL DEPENDS ${openapi})
    install(FILES ${openapi} DESTINATION ${CMAKE_INSTALL_DATADIR}/baton)
endif()
if(TARGET baton-bridge-nats)
    install(TARGETS baton-bridge-nats DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT baton-bridge-nats)
    file(READ deploy/systemd/baton-bridge-nats.service unit)
    string(REPLACE "/usr/bin/" "${CMAKE_INSTALL_FULL_BINDIR}/" unit "${unit}")
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/install/baton-bridge-nats.service CONTENT "${unit}")
    install(FILES ${CMAKE_BINARY_DIR}/install/baton-bridge-nats.service DESTINATION lib/systemd/system COMPONENT baton-bridge-nats)
    bt_pages(${CMAKE_INSTALL_DATADIR}/doc/baton-bridge-nats baton-bridge-nats deploy/NATS.md)
endif()
foreach(agent IN LISTS BATON_AGENTS)
    install(TARGETS baton-agent-${agent} DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()

# Debian's python3 looks into dist-packages; from other prefixes the programs find the module themselves.
set(python_folder ${CMAKE_INSTALL_DATADIR}/baton/python)
if(BATON_PACKAGE)
    set(python_folder lib/python3/dist-packages)
endif()
# Debian's nodejs looks into share/nodejs.
set(node_folder ${CMAKE_INSTALL_DATADIR}/baton/node)
if(BATON_PACKAGE)
    set(node_folder ${CMAKE_INSTALL_DATADIR}/nodejs/baton-agent)
endif()
install(FILES agents/python/baton.py DESTINATION ${python_folder} COMPONENT python3-baton)
install(PROGRAMS agents/python/baton-agent-check agents/python/baton-agent-faulty DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python3-baton)
install(FILES agents/node/baton.mjs agents/node/baton.d.mts agents/node/package.json
    DESTINATION ${node_folder} COMPONENT node-baton)
bt_pages(${CMAKE_INSTALL_DATADIR}/doc/node-baton node-baton agents/node/README.md)
bt_pages(${CMAKE_INSTALL_DATADIR}/doc/python3-baton python3-baton agents/python/README.md)

install(FILES
    protocol/base/include/baton/error.h protocol/client/include/baton/client.h
    protocol/compat/include/baton/vocabulary.h agents/sdk/include/baton/agent.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton COMPONENT libbaton-dev)

file(READ deploy/systemd/baton.service unit)
string(REPLACE "/usr/bin/" "${CMAKE_INSTALL_FULL_BINDIR}/" unit "${unit}")
file(CONFIGURE OUTPUT install/baton.service CONTENT "${unit}" @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/install/baton.service DESTINATION lib/systemd/system)
install(FILES deploy/systemd/baton.sysusers DESTINATION lib/sysusers.d RENAME baton.conf)
install(FILES deploy/systemd/baton.tmpfiles DESTINATION lib/tmpfiles.d RENAME baton.conf)

# Debian's zsh looks into vendor-completions, and into site-functions of /usr/local only.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(zsh_folder zsh/vendor-completions)
else()
    set(zsh_folder zsh/site-functions)
endif()
set(completions)
foreach(shell IN ITEMS bash zsh fish)
    set(completion ${CMAKE_BINARY_DIR}/install/completion.${shell})
    add_custom_command(OUTPUT ${completion}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/install
        COMMAND baton completion ${shell} > ${completion} DEPENDS baton VERBATIM)
    list(APPEND completions ${completion})
endforeach()
add_custom_target(installed_completion ALL DEPENDS ${completions})
install(FILES ${CMAKE_BINARY_DIR}/install/completion.bash RENAME baton
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/install/completion.zsh RENAME _baton
    DESTINATION ${CMAKE_INSTALL_DATADIR}/${zsh_folder})
install(FILES ${CMAKE_BINARY_DIR}/install/completion.fish RENAME baton.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(FILES deploy/baton.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR})
bt_pages(${CMAKE_INSTALL_DOCDIR} "" deploy/TOUR.md deploy/REMOTE.md deploy/FLEET.md deploy/HTTP.md deploy/UI.md deploy/WEBHOOKS.md deploy/HOOKS.md README.md ARCHITECTURE.md SECURITY.md
    protocol/WIRE.md protocol/EVENTS.md protocol/MESSAGES.md protocol/PLANS.md)
if(NOT BATON_PACKAGE) # Debian has the licence already, and a changelog of its own form
    install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
install(FILES protocol/plan.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/baton)
# Programs may not need what is in doc (Debian policy 12.3), and `baton init` and `baton recipes` need these.
install(DIRECTORY deploy/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/baton USE_SOURCE_PERMISSIONS)
