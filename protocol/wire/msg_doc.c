/* msg_doc TABLE: prints one table of protocol/WIRE.md or MESSAGES.md. `ninja messages` writes them
 * into the files; lint.messages fails when a file has another. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "protocol/wire/catalog.h"
#include "protocol/wire/doc_print.h"

/* ---- MESSAGES.md ---- */

/* EVENTS.md has these. */
static bool is_event(const struct msg_desc *desc)
{
    return strcmp(desc->name, "event") == 0 || strcmp(desc->name, "heartbeat") == 0 ||
           (strncmp(desc->name, "ev_", 3) == 0 && desc->wire[0] != 0);
}

static bool is_record(const struct msg_desc *desc)
{
    return strncmp(desc->name, "rec_", 4) == 0;
}

static bool is_part(const struct msg_desc *desc)
{
    return desc->wire[0] == 0 && !is_event(desc);
}

static bool is_message(const struct msg_desc *desc)
{
    return !is_event(desc) && !is_record(desc) && !is_part(desc);
}

static void print_group(bool (*belongs)(const struct msg_desc *desc))
{
    unsigned n = 0;

    for (unsigned type = 0; type < MSG_TYPE_COUNT; type++) {
        const struct msg_desc *desc = &msg_table[type];
        if (belongs(desc)) {
            (void)printf("%s### %s\n\n", n++ > 0 ? "\n" : "",
                         is_part(desc) ? desc->name : desc->wire);
            doc_print_fields(desc);
        }
    }
}

static void print_messages(void)
{
    print_group(is_message);
}

static void print_parts(void)
{
    print_group(is_part);
}

static void print_records(void)
{
    print_group(is_record);
}

/* ---- WIRE.md ---- */

static bool is_of_agents(const struct catalog_request *rq)
{
    return rq->role != NULL && strcmp(rq->role, "AGENT") == 0;
}

static void print_agent_requests(void)
{
    for (uint32_t i = 0; i < catalog_requests_n; i++) {
        const struct catalog_request *rq = &catalog_requests[i];
        char head[160];
        if (is_of_agents(rq)) {
            (void)snprintf(head, sizeof head, "`%s` → `%s`", msg_wire_type(rq->type),
                           msg_wire_type(rq->answer));
            doc_print_item(head, rq->sentence);
        }
    }
}

static void print_client_requests(void)
{
    for (uint32_t i = 0; i < catalog_requests_n; i++) {
        const struct catalog_request *rq = &catalog_requests[i];
        char role[16];
        char head[160];
        if (rq->role == NULL || is_of_agents(rq)) {
            continue;
        }
        for (size_t k = 0; k < sizeof role; k++) {
            role[k] = (char)tolower((unsigned char)rq->role[k]);
            if (role[k] == 0) {
                break;
            }
        }
        (void)snprintf(head, sizeof head, "`%s` → `%s` (%.15s)", msg_wire_type(rq->type),
                       msg_wire_type(rq->answer), role);
        doc_print_item(head, rq->sentence);
    }
}

static void print_on_lane(const char *lane)
{
    for (uint32_t i = 0; i < catalog_requests_n; i++) {
        const struct catalog_request *rq = &catalog_requests[i];
        char head[160];
        if (rq->lane != NULL && strcmp(rq->lane, lane) == 0) {
            (void)snprintf(head, sizeof head, "`%s` → `%s`", msg_wire_type(rq->type),
                           msg_wire_type(rq->answer));
            doc_print_item(head, rq->sentence);
        }
    }
}

static void print_lane_requests(void)
{
    (void)printf("On every lane:\n\n");
    print_on_lane("EVERY");
    (void)printf("\nOn a work lane:\n\n");
    print_on_lane("WORK");
    (void)printf("\nOn the control lane:\n\n");
    print_on_lane("CONTROL");
}

static void print_code(enum bt_code code, const char *sentence)
{
    char head[96];

    if (code == BT_OK) {
        return;
    }
    if (err_code_wait_ms(code) > 0) {
        (void)snprintf(head, sizeof head, "`%s` (retryable, retryAfterMs %u)", bt_code_name(code),
                       (unsigned)err_code_wait_ms(code));
    } else {
        (void)snprintf(head, sizeof head, "`%s`%s", bt_code_name(code),
                       err_code_retryable(code) ? " (retryable)" : "");
    }
    doc_print_item(head, sentence);
}

static void print_codes(void)
{
#define CODE(name, retryable, wait_ms, sentence) print_code(BT_##name, sentence);
#include "protocol/errors.def"
}

static void print_class(enum err_class c, const char *sentence)
{
    char head[64];

    if (c != CLASS_NONE) {
        (void)snprintf(head, sizeof head, "`%s`%s", err_class_name(c),
                       err_class_retryable(c) ? " (retryable)" : "");
        doc_print_item(head, sentence);
    }
}

static void print_classes(void)
{
#define CLASS(name, retryable, sentence) print_class(CLASS_##name, sentence);
#include "protocol/errors.def"
}

static void print_limits(void)
{
    static const struct {
        const char *what;
        unsigned value;
    } limits[] = {
        {"Bytes of a request on the control socket", LIMIT_CONTROL_BYTES},
        {"Bytes of a late `step.result`, of an answer, and of every body on a lane",
         LIMIT_STEP_BYTES},
        {"Bytes of an event frame, with its topic", LIMIT_EVENT_BYTES},
        {"Nesting of a body", LIMIT_DEPTH},
        {"Values in a body", LIMIT_NODES},
        {"Bytes of a result", LIMIT_RESULT_BYTES},
        {"Bytes of a result's preview in an event", LIMIT_PREVIEW_BYTES},
        {"Bytes of a task", LIMIT_TASK_BYTES},
        {"Bytes of an id", LIMIT_ID_BYTES},
        {"Bytes of an idempotency key", LIMIT_KEY_BYTES},
        {"Steps of a plan", LIMIT_STEPS},
        {"Dependencies of a plan", LIMIT_EDGES},
        {"Agents of a plan", LIMIT_PLAN_AGENTS},
        {"Revisions of a plan", LIMIT_REVISIONS},
        {"Attempts of a step", LIMIT_ATTEMPTS},
        {"Plans that are open", LIMIT_PLANS_OPEN},
        {"Agents", LIMIT_AGENTS},
        {"Instances", LIMIT_INSTANCES},
        {"Work lanes of an instance", LIMIT_CAPACITY},
        {"Skills of a card", LIMIT_SKILLS},
        {"Events of one answer to `events.read`", LIMIT_EVENTS_READ},
    };

    (void)printf("| what | at most |\n|---|---|\n");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        (void)printf("| %s | %u |\n", limits[i].what, limits[i].value);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } tables[] = {
        {"messages", print_messages},
        {"parts", print_parts},
        {"records", print_records},
        {"agent requests", print_agent_requests},
        {"client requests", print_client_requests},
        {"lane requests", print_lane_requests},
        {"codes", print_codes},
        {"classes", print_classes},
        {"limits", print_limits},
    };

    for (size_t i = 0; argc == 2 && i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(argv[1], tables[i].name) == 0) {
            tables[i].print();
            return fflush(stdout) == 0 ? 0 : 1;
        }
    }
    (void)fprintf(stderr, "usage: msg_doc TABLE\n");
    return 2;
}
