/* config show: the configuration, without a daemon. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/wire/doc.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/config/config.h"

static void show_json(const struct config *c)
{
    cJSON *list = cJSON_CreateArray();
    uint32_t n = 0;
    const struct config_entry *entries = config_entries(c, &n);
    struct bt_error err;

    for (uint32_t i = 0; i < n; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON *value = NULL;
        (void)cJSON_AddStringToObject(row, "key", entries[i].key);
        if (json_parse(str_from(entries[i].value), &value, &err) == BT_OK) {
            (void)cJSON_AddItemToObject(row, "value", value);
        }
        (void)cJSON_AddStringToObject(row, "origin", entries[i].origin);
        (void)cJSON_AddItemToArray(list, row);
    }
    cli_print_json(list);
    cJSON_Delete(list);
}

enum cli_exit verb_config(struct cli *cli)
{
    struct config_request request = {
        .state_dir = cli_value(cli, "state"), .file = cli_value(cli, "config"), .check_only = true};
    struct config *config = NULL;
    struct buf notes;
    struct bt_error err;
    enum cli_exit code = CLI_OK;

    if (strcmp(cli->argv[0], "show") != 0) {
        cli_error_hint(
            "to see one: baton config show --origin; to change one: edit the file that it "
            "names, then baton reload",
            "config: expected show, got '%s'", cli->argv[0]);
        return CLI_USAGE;
    }
    buf_init(&notes, 1024 * 1024);
    if (config_load(&request, &config, &notes, &err) != BT_OK) {
        cli_print_notes(buf_cstr(&notes), &err);
        code = cli_fail(&err);
    } else if (cli->json) {
        show_json(config);
    } else {
        buf_clear(&notes);
        config_show(config, cli_flag(cli, "origin"), &notes);
        cli_print_safe(buf_cstr(&notes));
    }
    config_free(config);
    buf_done(&notes);
    return code;
}
