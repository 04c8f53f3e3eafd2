# The second half of layers.sh, after rooms.awk.
function say(text) {
    print FILENAME ":" FNR ": " text
    bad = 1
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    room = room_of(FILENAME)
    if (index(quoted[2], "/") == 0) {
        if (quoted[2] !~ /^embedded/) {
            say("include by the path from the root: " quoted[2])
        }
    } else if (quoted[2] ~ /_internal\.h$/ && quoted[2] !~ /^supervisor\/core\// &&
               folder_of(quoted[2]) != folder_of(FILENAME)) {
        say("only its own room may include " quoted[2])
    } else if (index(quoted[2], room "/") != 1 && index(FILENAME, quoted[2]) == 0 && !listed(quoted[2], allowed(room))) {
        say(room " must not include " quoted[2])
    }
}
/^[ \t]*#[ \t]*include[ \t]*</ {
    match($0, /<.*>/)
    header = substr($0, RSTART, RLENGTH)
    for (prefix in only) {
        if (index(header, prefix) == 1 && !listed(FILENAME, only[prefix])) {
            say("only " only[prefix] " may include " header)
        }
    }
    for (i = 1; i <= n_pure; i++) {
        if (index(FILENAME, pure[i]) == 1 && header ~ impure) {
            say(pure[i] " is pure and must not include " header)
        }
    }
}
END { exit bad }
