/* config show, completion: verbs without a daemon. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "baton/vocabulary.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/config/config.h"

static void show_json(const struct config *c)
{
    cJSON *list = cJSON_CreateArray();
    uint32_t n = 0;
    const struct config_entry *entries = config_entries(c, &n);

    for (uint32_t i = 0; i < n; i++) {
        cJSON *row = cJSON_CreateObject();
        (void)cJSON_AddStringToObject(row, "key", entries[i].key);
        (void)cJSON_AddRawToObject(row, "value", entries[i].value);
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
        cli_error("usage: baton config show [--origin] [--config FILE]");
        return CLI_USAGE;
    }
    buf_init(&notes, 1024 * 1024);
    if (config_load(&request, &config, &notes, &err) != BT_OK) {
        (void)fputs(buf_cstr(&notes), stderr);
        code = cli_fail(&err);
    } else if (cli->json) {
        show_json(config);
    } else {
        buf_clear(&notes);
        config_show(config, cli_flag(cli, "origin"), &notes);
        (void)fputs(buf_cstr(&notes), stdout);
    }
    config_free(config);
    buf_done(&notes);
    return code;
}

static void print_words(const struct cli_option *o)
{
    for (int i = 0; o != NULL && o[i].name != NULL; i++) {
        (void)printf("--%s ", o[i].name);
    }
}

enum cli_exit verb_completion(struct cli *cli)
{
    if (strcmp(cli->argv[0], "bash") != 0) {
        cli_error("completion: only bash is supported, got '%s'", cli->argv[0]);
        return CLI_USAGE;
    }
    (void)printf("_baton() {\n    local cur=${COMP_WORDS[COMP_CWORD]} words\n    COMPREPLY=()\n"
                 "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='");
    for (const struct cli_verb *v = cli_verbs; v->name != NULL; v++) {
        (void)printf("%s ", v->name);
    }
    (void)printf("--help --version'\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (const struct cli_verb *v = cli_verbs; v->name != NULL; v++) {
        (void)printf("        %s) words='", v->name);
        print_words(v->options);
        print_words(cli_global_options);
        (void)printf("' ;;\n");
    }
    (void)printf("        *) words='' ;;\n        esac\n    fi\n"
                 "    [ \"${COMP_WORDS[COMP_CWORD-1]}\" = --vocabulary ] && {\n        words='");
    for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
        (void)printf("%s ", *name);
    }
    (void)printf("'\n        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                 "        return\n    }\n    case $cur in\n    -*) ;;\n"
                 "    *) [ \"$COMP_CWORD\" -gt 1 ] && { mapfile -t COMPREPLY < <(compgen -f -- "
                 "\"$cur\"); return; } ;;\n    esac\n"
                 "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\ncomplete -F "
                 "_baton baton\n");
    return CLI_OK;
}
