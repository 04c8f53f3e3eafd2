/* export: ended plans, sessions and schedules as lines of JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/storage/carried.h"
#include "supervisor/cli/verbs/storage/lines.h"
#include "supervisor/cli/verbs/verbs.h"

struct out {
    struct export_sum sum;
    struct carried files;
    uint64_t damaged;
};

static bool write_text(struct out *o, const char *text)
{
    return export_put(stdout, &o->sum, str_from(text)) && ferror(stdout) == 0;
}

/* With the first slice: what is refused leaves no file that looks like an export. */
static bool begin(struct out *o)
{
    char line[96];

    (void)snprintf(line, sizeof line, "{\"kind\":\"baton export\",\"format\":%d}", EXPORT_FORMAT);
    return o->sum.lines > 0 || write_text(o, line);
}

static bool write_line(struct str body, void *self)
{
    struct out *o = self;

    if (export_is(body, "damaged")) {
        o->damaged++;
        cli_note("left out, because it is damaged: %.*s\n", STR_ARG(body));
        carried_forget(&o->files);
    }
    return begin(o) && export_put(stdout, &o->sum, body) && ferror(stdout) == 0 &&
           carried_line(&o->files, body) && (!export_is(body, "end") || carried_plan(&o->files));
}

/* Whether the daemon gives it: its first lines are asked for, and not kept. */
static enum cli_exit try(struct cli *cli, const char *id)
{
    cJSON *answer = NULL;
    const enum cli_exit code = cli_call(cli, "journal.export", cli_fields("planId", id), &answer);

    cJSON_Delete(answer);
    return code;
}

static enum cli_exit export_plans(struct cli *cli, struct out *o)
{
    char(*ids)[CLI_ID_MAX] = calloc((size_t)cli->argc, sizeof *ids);
    enum cli_exit code = CLI_OK;

    if (ids == NULL) {
        cli_error("out of memory");
        return CLI_INTERNAL;
    }
    for (int i = 0; i < cli->argc && code == CLI_OK; i++) {
        code = cli_plan_id(cli, cli->argv[i], ids[i]);
        if (code == CLI_OK && cli->argc > 1) {
            code = try(cli, ids[i]);
        }
    }
    for (int i = 0; i < cli->argc && code == CLI_OK; i++) {
        cJSON *fields = cli_fields("planId", ids[i]);
        code = export_ask(cli, fields, write_line, o);
        cJSON_Delete(fields);
    }
    free(ids);
    return code;
}

static enum cli_exit export_since(struct cli *cli, msec from, struct out *o)
{
    cJSON *fields = cJSON_CreateObject();
    enum cli_exit code;

    (void)cJSON_AddNumberToObject(fields, "sinceMs", (double)from);
    code = export_ask(cli, fields, write_line, o);
    cJSON_Delete(fields);
    return code;
}

static enum cli_exit export_file(struct cli *cli, msec from, struct out *o)
{
    char line[96];
    enum cli_exit code;

    code = cli->argc > 0 ? export_plans(cli, o) : export_since(cli, from, o);
    if (code == CLI_OK && !begin(o)) {
        code = CLI_INTERNAL;
    }
    if (code == CLI_OK) {
        (void)snprintf(line, sizeof line, "{\"kind\":\"sum\",\"lines\":%" PRIu64 "}", o->sum.lines);
        code = write_text(o, line) && o->damaged + o->files.bad == 0 ? CLI_OK : CLI_INTERNAL;
    }
    return code;
}

enum cli_exit verb_export(struct cli *cli)
{
    const char *since = cli_value(cli, "since");
    struct out o = {.damaged = 0};
    msec from = 0;
    enum cli_exit code;

    if ((cli->argc > 0) + (since != NULL) + cli_flag(cli, "all") != 1) {
        cli_error("export: expected either plans, --since TIME or --all; see: baton export --help");
        return CLI_USAGE;
    }
    if (since != NULL && !cli_moment(since, "--since", clock_wall_ms(), &from)) {
        return CLI_USAGE; /* before the first line: what was wrong leaves no file */
    }
    code = carried_begin(&o.files, cli, true);
    code = code == CLI_OK ? cli_connect(cli) : code;
    code = code == CLI_OK ? export_file(cli, from, &o) : code;
    if (code == CLI_OK) {
        carried_report(&o.files);
    }
    carried_done(&o.files);
    return code;
}
