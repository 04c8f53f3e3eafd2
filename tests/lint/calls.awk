# Second half of calls.sh: the list of symbols, given twice: "D symbol source" and "U symbol source".
function complain(text) {
    print text
    bad = 1
}
# A room may call a room of which it may include a header; a public header stands for its room.
function may_call(from, to,   parts, n, i) {
    face["baton/client.h"] = "protocol/client"
    face["baton/vocabulary.h"] = "protocol/compat"
    face["baton/agent.h"] = "agents/sdk"
    n = split(allowed(from), parts, " ")
    for (i = 1; i <= n; i++) {
        if (index(to, parts[i]) == 1 || room_of(parts[i]) == to || (parts[i] in face && face[parts[i]] == to)) {
            return 1
        }
    }
    return 0
}
FNR == NR {
    if ($1 == "D") {
        definitions[$2] = definitions[$2] " " $3
    }
    next
}
$1 == "U" && ($2 in definitions) && !((room_of($3), $2) in seen) {
    from = room_of($3)
    seen[from, $2] = 1
    # Two programs may use one name for two things: then the one that may be called is meant.
    n = split(definitions[$2], sources, " ")
    to = ""
    for (i = 1; i <= n && to == ""; i++) {
        if (room_of(sources[i]) == from || may_call(from, room_of(sources[i]))) {
            to = room_of(sources[i])
        }
    }
    if (to == "") {
        complain($3 ": " from " must not call " $2 " of" definitions[$2])
    } else if (to != from) {
        edge[from, to] = $2
        rooms[from] = 1
        rooms[to] = 1
    }
}
# A room that calls none of the rooms left, or is called by none of them, is in no circle.
function is_free(room,   other, calls, called) {
    for (other in rooms) {
        calls += (room, other) in edge
        called += (other, room) in edge
    }
    return calls == 0 || called == 0
}
END {
    do {
        taken = ""
        for (room in rooms) {
            if (taken == "" && is_free(room)) {
                taken = room
            }
        }
        delete rooms[taken]
    } while (taken != "")
    for (room in rooms) {
        for (other in rooms) {
            if ((room, other) in edge) {
                complain("a circle of calls: " room " -> " other " (" edge[room, other] ")")
            }
        }
    }
    exit bad
}
