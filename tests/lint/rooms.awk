# Which room may use which: the arrows of the architecture, read by layers.sh (includes), calls.sh (called names) and
# pages.sh (the table of rooms). `baton/` are the public headers.
BEGIN {
    # room: the rooms it may include, besides itself. Rooms are matched by the longest prefix.
    base = "protocol/limits.h protocol/errors.def protocol/base baton/error.h"
    may["protocol/base"] = base
    may["protocol/zone"] = base
    may["protocol/wire"] = base " protocol/messages.def"
    may["protocol/jsonschema"] = base
    may["protocol/artifact"] = base " protocol/wire"
    may["protocol/auth"] = base
    may["protocol/link"] = base
    may["protocol/compat"] = base " protocol/wire baton/vocabulary.h"
    may["protocol/client"] = base " protocol/artifact protocol/auth protocol/client/state protocol/client/credential protocol/client/exchange protocol/client/seeds protocol/wire protocol/link baton/client.h"
    # state.c is a library of its own, without a socket
    may["protocol/client/state"] = base " protocol/wire protocol/client/state"
    may["protocol/client/state_file"] = base " protocol/wire protocol/client/state"
    may["protocol/client/fleet_map"] = base " protocol/wire protocol/client/fleet_map.h"
    may["protocol/client/seeds"] = base " protocol/client/state.h protocol/client/seeds"
    may["protocol/client/credential"] = base " protocol/auth protocol/wire protocol/client/state protocol/client/credential"
    may["protocol/client/exchange"] = base " protocol/auth protocol/wire protocol/client/exchange"
    may["supervisor/auth"] = base " protocol/auth protocol/client/credential protocol/client/state.h supervisor/audit"
    may["registry"] = base " protocol/wire/doc.h protocol/wire/msg.h"
    may["supervisor/core/plan"] = base " protocol/wire/doc.h protocol/wire/msg.h registry supervisor/core/mutant.h"
    may["supervisor/core/run"] = base " protocol/wire/doc.h protocol/wire/msg.h registry supervisor/core/mutant.h supervisor/core/plan"
    may["supervisor/core/sched"] = base " protocol/wire/doc.h protocol/wire/msg.h registry supervisor/core/mutant.h supervisor/core/plan supervisor/core/run"
    may["supervisor/core/mutant.h"] = base
    may["supervisor/plan"] = base " protocol/artifact protocol/wire protocol/jsonschema registry supervisor/core/plan supervisor/core/run supervisor/plan/flow"
    may["supervisor/plan/flow"] = base " protocol/wire protocol/jsonschema registry supervisor/core/plan"
    may["supervisor/keyword"] = base " protocol/wire registry supervisor/plan"
    may["supervisor/journal"] = base " protocol/artifact supervisor/core/plan supervisor/core/mutant.h"
    may["supervisor/events"] = base " protocol/wire registry supervisor/core/plan supervisor/core/run supervisor/journal"
    may["supervisor/spawn"] = base
    may["supervisor/audit"] = base " protocol/wire/doc.h protocol/wire/json_tame.h"
    may["supervisor/certs"] = base " protocol/client/state.h"
    may["supervisor/gateway"] = base " protocol/messages.def protocol/wire protocol/auth protocol/link protocol/client/fleet_map.h protocol/client/state.h protocol/client/credential protocol/client/exchange protocol/client/listener.h supervisor/config/yaml.h supervisor/plan/recipe.h baton/vocabulary.h"
    may["supervisor/bridge"] = base " protocol/wire protocol/client/page.h protocol/link baton/client.h"
    may["supervisor/config"] = base " protocol/wire protocol/jsonschema protocol/client/state.h agents/llm/model/config.h supervisor/core/plan/plan.h supervisor/journal/journal.h supervisor/spawn/policy.h supervisor/spawn/group.h supervisor/schedule/cron_text.h supervisor/schedule/rules/cron.h"
    # the loop: engine <- query <- dispatch <- conversation <- api <- the daemon
    below = base " protocol/wire registry supervisor/core supervisor/journal supervisor/events supervisor/plan"
    may["supervisor/engine"] = below " protocol/artifact protocol/auth supervisor/auth protocol/client/credential protocol/link supervisor/keyword supervisor/audit"
    may["supervisor/query"] = below " supervisor/engine"
    may["supervisor/artifacts"] = below " protocol/artifact supervisor/engine supervisor/query"
    may["supervisor/schedule/rules"] = base " protocol/zone supervisor/core/mutant.h"
    may["supervisor/schedule"] = below " protocol/zone protocol/auth supervisor/auth supervisor/engine supervisor/schedule/rules"
    may["supervisor/retention"] = base " protocol/wire supervisor/journal supervisor/plan"
    may["supervisor/transfer"] = base " protocol/wire supervisor/core/run/record.h supervisor/journal supervisor/plan supervisor/schedule/rules/name.h"
    may["supervisor/dispatch"] = below " protocol/auth protocol/artifact protocol/jsonschema protocol/link supervisor/keyword supervisor/engine supervisor/query"
    may["supervisor/conversation"] = below " protocol/auth supervisor/audit supervisor/engine supervisor/query supervisor/dispatch"
    may["supervisor/api"] = below " protocol/client/fleet_map.h protocol/artifact protocol/auth supervisor/auth protocol/link protocol/messages.def supervisor/engine supervisor/query supervisor/artifacts supervisor/retention supervisor/schedule supervisor/transfer supervisor/dispatch supervisor/conversation supervisor/audit"
    # the command line: common <- view <- chat <- verbs <- usage <- entry.c; picture <- view
    common = base " protocol/wire protocol/client/state.h baton/client.h supervisor/cli/common"
    may["supervisor/cli/common"] = common " supervisor/core/plan supervisor/certs/certs.h supervisor/config/yaml.h supervisor/config/yaml_write.h supervisor/plan"
    may["supervisor/cli/view"] = common " protocol/messages.def supervisor/cli/picture"
    may["supervisor/cli/picture"] = base
    may["supervisor/cli/chat"] = common " supervisor/cli/view"
    may["supervisor/cli/verbs"] = common " protocol/client/fleet_map.h protocol/client/seeds.h protocol/client/listener.h protocol/auth protocol/client/credential baton/vocabulary.h protocol/artifact supervisor/cli/view supervisor/cli/picture supervisor/cli/chat supervisor/config supervisor/plan supervisor/journal/journal.h supervisor/journal/owner.h supervisor/journal/faults.h supervisor/certs/certs.h supervisor/spawn/apart.h"
    may["supervisor/cli/usage"] = common " baton/vocabulary.h supervisor/cli/verbs/verbs.h protocol/auth protocol/client/credential supervisor/cli/view/event_line.h"
    may["supervisor/cli"] = base " baton/client.h supervisor/cli"
    # shared with the configuration: it must not know agents or the daemon
    may["agents/web"] = base
    may["agents/web/settings"] = base " protocol/wire/doc.h agents/sdk/settings agents/web"
    may["agents/llm/model"] = base " protocol/wire protocol/jsonschema agents/web"
    may["agents/llm"] = base " protocol/wire protocol/jsonschema agents/sdk baton/agent.h agents/llm/model agents/web/secret.h"
    may["agents/mcp"] = base " protocol/wire protocol/jsonschema agents/sdk baton/agent.h agents/web"
    may["agents/http"] = base " protocol/wire protocol/jsonschema agents/sdk baton/agent.h agents/web"
    may["supervisor"] = base " protocol/wire/doc.h supervisor/auth protocol/link registry supervisor/core supervisor/journal supervisor/plan protocol/client/state.h supervisor/artifacts supervisor/retention supervisor/schedule supervisor/transfer protocol/artifact supervisor/engine supervisor/query supervisor/dispatch supervisor/conversation supervisor/api supervisor/config supervisor/spawn supervisor/audit"
    # the type of a cell: what tables, files and databases share
    may["agents/cells"] = base
    may["agents/sdk"] = base " protocol/client/fleet_map.h protocol/client/seeds.h protocol/client/transfer.h baton/client.h protocol/auth protocol/client/credential protocol/client/exchange agents/cells protocol/artifact protocol/wire protocol/jsonschema protocol/link protocol/client/state.h baton/agent.h"
    may["agents/calc"] = base " protocol/wire protocol/zone agents/cells agents/sdk baton/agent.h"
    may["agents/a2a"] = base " protocol/wire agents/sdk baton/agent.h agents/web"
    may["agents/rag"] = base " protocol/wire agents/sdk baton/agent.h agents/web"
    may["agents/report"] = base " protocol/wire protocol/zone agents/cells agents/sdk baton/agent.h"
    may["agents/"] = base " protocol/wire protocol/jsonschema agents/cells agents/sdk baton/agent.h"
    # a library: the only rooms that include it
    only["<nng/"] = "protocol/link"
    only["<sqlite3.h>"] = "supervisor/journal agents/sql agents/sdk/store agents/rag agents/graph"
    only["<libpq-fe.h>"] = "supervisor/journal/postgres"
    only["<msgpack"] = "protocol/wire"
    only["<mbedtls/"] = "protocol/artifact protocol/auth supervisor/certs supervisor/gateway"
    only["<cmark"] = "agents/report"
    only["<yaml.h>"] = "supervisor/config"
    only["<microhttpd.h>"] = "supervisor/gateway"
    only["<nats/"] = "supervisor/bridge"
    only["<curl/"] = "agents/web agents/llm supervisor/gateway"
    # rooms that decide: no clock, no file, no socket, no thread, no heap, no JSON library
    n_pure = split("registry supervisor/core supervisor/spawn/policy supervisor/cli/picture agents/sdk/agent_state agents/sdk/loop/quick", pure, " ")
    impure = "^<(time|stdio|stdlib|unistd|errno|fcntl|poll|signal|pthread|semaphore|threads|sys/|netinet/|arpa/|nng/|cjson/|sqlite3|pcre2|yaml|curl/|msgpack)"
}
function room_of(path,   name, best) {
    best = ""
    for (name in may) {
        if (index(path, name) == 1 && path_ends(path, name) && length(name) > length(best)) {
            best = name
        }
    }
    return best == "agents/" ? substr(path, 1, 6 + index(substr(path, 8), "/")) : best
}
# a prefix is whole path components, or a file name without its extension: agents/llm/model is no model_call.c
function path_ends(path, name) {
    return name ~ /\/$/ || substr(path, length(name) + 1, 1) ~ /^[\/.]?$/
}
# What a room may use, besides itself.
function allowed(room) {
    return room in may ? may[room] : may["agents/"]
}
function listed(path, list,   parts, n, i) {
    n = split(list, parts, " ")
    for (i = 1; i <= n; i++) {
        if (index(path, parts[i]) == 1) {
            return 1
        }
    }
    return 0
}
function folder_of(path) {
    sub(/\/[^\/]*$/, "", path)
    return path
}
