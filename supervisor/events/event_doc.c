/* event_doc ABOUT: prints the events of one class of topic for protocol/EVENTS.md. `ninja messages`
 * writes them into the file; lint.events fails when the file has others. */
#include <stdio.h>
#include <string.h>

#include "protocol/wire/doc_print.h"

enum scope { PLAN_ONLY, STEP_ONLY, EITHER, NO_RUN };

struct event {
    const char *wire;
    bool is_public;
    const char *about;
    enum scope scope;
    enum msg_type message;
    const char *sentence;
};

static const struct event events[] = {
#define RECORD(name, wire, is_public, about, member, scope, message, codec, sentence)              \
    {wire, is_public, #about, scope, MSG_##message, sentence},
#include "supervisor/core/run/record.def"
};

enum { EVENTS_N = sizeof events / sizeof events[0] };

/* The first event that has the payload of this one: its fields are printed there. */
static const struct event *fields_of(const struct event *e)
{
    const struct event *first = events;

    while (first->message != e->message) {
        first++;
    }
    return first;
}

static void print_event(const struct event *e)
{
    static const char *const scopes[] = {
        [PLAN_ONLY] = "*Plan.* ",
        [STEP_ONLY] = "*Step.* ",
        [EITHER] = "*Step or plan.* ",
        [NO_RUN] = "",
    };
    const struct event *first = fields_of(e);

    (void)printf("### %s\n\n%s%s\n", e->wire, scopes[e->scope], e->sentence);
    if (first != e) {
        (void)printf("The fields are those of [%s](#%s).\n", first->wire, first->wire);
        return;
    }
    (void)printf("\n");
    doc_print_fields(&msg_table[e->message]);
}

int main(int argc, char **argv)
{
    unsigned n = 0;

    for (unsigned i = 0; argc == 2 && i < EVENTS_N; i++) {
        if (events[i].is_public && strcmp(events[i].about, argv[1]) == 0) {
            (void)printf("%s", n++ > 0 ? "\n" : "");
            print_event(&events[i]);
        }
    }
    if (argc == 2 && n == 0 && strcmp(argv[1], "HEARTBEAT") == 0) {
        n++;
        (void)printf("### %s\n\n", msg_wire_type(MSG_heartbeat));
        doc_print_fields(&msg_table[MSG_heartbeat]);
    }
    if (n == 0 && argc == 2 && strcmp(argv[1], "HEAD") == 0) {
        n++;
        doc_print_fields(&msg_table[MSG_event]);
    }
    if (n == 0) {
        (void)fprintf(stderr, "usage: event_doc PLAN|AGENT|SESSION|SYSTEM|HEARTBEAT|HEAD\n");
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
