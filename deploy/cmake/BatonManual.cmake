# The pages of the manual, made at build time from what they describe: the table of verbs, the cards, READMEs and help of
# the agents, the pages about plans and the protocol, the configuration with all its defaults. Without lowdown (Debian's
# package of that name) only the pages of the verbs are made. Sanitizer builds make none: making them runs programs.
if(BATON_SANITIZE)
    return()
endif()
find_program(LOWDOWN lowdown)
include(${CMAKE_CURRENT_LIST_DIR}/manual_date.cmake)
set(manual ${CMAKE_BINARY_DIR}/man)
set(manual_source ${PROJECT_SOURCE_DIR}/deploy/man)
file(MAKE_DIRECTORY ${manual}/verbs)

add_custom_command(OUTPUT ${manual}/verbs/baton.1
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}/verbs
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/verbs
    COMMAND baton_man ${manual}/verbs ${manual_date} DEPENDS baton_man VERBATIM)
set(manual_pages ${manual}/verbs/baton.1)

# bt_page(NAME SECTION "one line" FILE.md)
function(bt_page name section brief file)
    set(page ${manual}/${name}.${section})
    add_custom_command(OUTPUT ${page}
        COMMAND sh ${manual_source}/page.sh ${name} ${section} ${manual_day} ${brief}
            "baton(1), baton-plan(5), baton.yaml(5), baton-events(7), baton-messages(7), baton-protocol(7), batond(8)"
            ${file} > ${page}
        DEPENDS ${file} ${manual_source}/page.sh VERBATIM)
    set(manual_pages ${manual_pages} ${page} PARENT_SCOPE)
endfunction()

if(LOWDOWN)
    bt_page(baton-plan 5 "plans and recipes of Baton" ${PROJECT_SOURCE_DIR}/protocol/PLANS.md)
    bt_page(baton-protocol 7 "how agents and clients talk with Baton" ${PROJECT_SOURCE_DIR}/protocol/WIRE.md)
    bt_page(baton-events 7 "the events of Baton" ${PROJECT_SOURCE_DIR}/protocol/EVENTS.md)
    bt_page(baton-messages 7 "the messages of Baton's protocol" ${PROJECT_SOURCE_DIR}/protocol/MESSAGES.md)

    # The text, then the settings or the options as they are.
    set(text ${manual}/baton.yaml.md)
    add_custom_command(OUTPUT ${text}
        COMMAND sh -c "{ cat \"$1\"; printf '\\n```\\n'; cat \"$2\"; printf '```\\n'; } >\"$3\"" sh
            ${manual_source}/baton.yaml.md ${PROJECT_SOURCE_DIR}/deploy/baton.yaml ${text}
        DEPENDS ${manual_source}/baton.yaml.md ${PROJECT_SOURCE_DIR}/deploy/baton.yaml VERBATIM)
    bt_page(baton.yaml 5 "configuration of Baton" ${text})
    set(text ${manual}/batond.md)
    add_custom_command(OUTPUT ${text}
        COMMAND sh -c "{ cat \"$1\"; printf '\\n## Options and exit codes\\n\\n```\\n'; \"$2\" --help; printf '```\\n'; } >\"$3\"" sh
            ${manual_source}/batond.md $<TARGET_FILE:batond> ${text}
        DEPENDS ${manual_source}/batond.md batond VERBATIM)
    bt_page(batond 8 "the supervisor daemon of Baton" ${text})

    if(TARGET baton-gateway)
        set(text ${manual}/baton-gateway.md)
        add_custom_command(OUTPUT ${text}
            COMMAND sh -c "{ cat \"$1\"; printf '\\n## Options and exit codes\\n\\n```\\n'; \"$2\" --help; printf '```\\n'; } >\"$3\"" sh
                ${PROJECT_SOURCE_DIR}/deploy/HTTP.md $<TARGET_FILE:baton-gateway> ${text}
            DEPENDS ${PROJECT_SOURCE_DIR}/deploy/HTTP.md baton-gateway VERBATIM)
        bt_page(baton-gateway 8 "the HTTP API of Baton" ${text})
    endif()

    if(TARGET baton-bridge-nats)
        set(text ${manual}/baton-bridge-nats.md)
        add_custom_command(OUTPUT ${text}
            COMMAND sh -c "{ cat \"$1\"; printf '\\n## Options and exit codes\\n\\n```\\n'; \"$2\" --help; printf '```\\n'; } >\"$3\"" sh
                ${PROJECT_SOURCE_DIR}/deploy/NATS.md $<TARGET_FILE:baton-bridge-nats> ${text}
            DEPENDS ${PROJECT_SOURCE_DIR}/deploy/NATS.md baton-bridge-nats VERBATIM)
        bt_page(baton-bridge-nats 8 "the events of Baton in NATS" ${text})
    endif()

    bt_program(baton_card SOURCES deploy/man/card.c LINK PkgConfig::CJSON)
    foreach(agent IN LISTS BATON_AGENTS)
        set(page ${manual}/baton-agent-${agent}.1)
        add_custom_command(OUTPUT ${page}
            COMMAND sh ${manual_source}/agent.sh $<TARGET_FILE_DIR:baton_card> ${agent} ${manual_day}
                ${PROJECT_SOURCE_DIR}/agents/${agent}/README.md > ${page}
            DEPENDS ${PROJECT_SOURCE_DIR}/agents/${agent}/README.md ${manual_source}/agent.sh ${manual_source}/page.sh
                baton_card baton-agent-${agent} VERBATIM)
        list(APPEND manual_pages ${page})
    endforeach()

    foreach(program IN ITEMS check faulty) # what the program says of itself, then its options
        set(text ${manual}/baton-agent-${program}.md)
        set(source ${PROJECT_SOURCE_DIR}/agents/python/baton-agent-${program})
        add_custom_command(OUTPUT ${text}
            COMMAND sh ${manual_source}/python.sh ${source} > ${text}
            DEPENDS ${source} ${PROJECT_SOURCE_DIR}/agents/python/baton.py ${manual_source}/python.sh VERBATIM)
        set(python_brief_check "check an agent against the wire protocol of Baton")
        set(python_brief_faulty "an agent of Baton that fails as it is asked to")
        bt_page(baton-agent-${program} 1 ${python_brief_${program}} ${text})
    endforeach()
else()
    message(STATUS "lowdown is missing: of the manual only the pages of the verbs are made")
endif()
add_custom_target(manual ALL DEPENDS ${manual_pages})
install(DIRECTORY ${manual}/verbs/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
foreach(section IN ITEMS 1 5 7 8)
    install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
        FILES_MATCHING PATTERN "*.${section}" PATTERN verbs EXCLUDE PATTERN "baton-agent-check.1" EXCLUDE PATTERN "baton-agent-faulty.1" EXCLUDE PATTERN "baton-bridge-nats.8" EXCLUDE)
endforeach()
if(LOWDOWN)
    install(FILES ${manual}/baton-agent-check.1 ${manual}/baton-agent-faulty.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT python3-baton)
    if(TARGET baton-bridge-nats)
        install(FILES ${manual}/baton-bridge-nats.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT baton-bridge-nats)
    endif()
endif()
