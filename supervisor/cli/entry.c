/* Reads the command line, runs the verb. */
#include "supervisor/cli/entry.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/output.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/usage/usage.h"

static bool wants_color(const struct cli *cli)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return !cli_flag(cli, "no-color") && (no_color == NULL || no_color[0] == 0) &&
           isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
}

static enum cli_exit run(struct cli *cli)
{
    const bool help = cli_flag(cli, "help");
    enum cli_exit code;

    if (cli->verb == NULL || help) {
        if (!cli->json) {
            cli_pager_start(cli);
        }
        usage_show(cli, cli->verb);
        return help ? CLI_OK : CLI_USAGE;
    }
    if (!usage_check_arguments(cli)) {
        return CLI_USAGE;
    }
    if (cli->verb->local != NULL && cli_elsewhere(cli) != NULL) {
        cli_error_hint("for the daemon of this host: --state DIR, or baton context use local",
                       "%s works only on the daemon's own host: %s", cli->verb->name,
                       cli->verb->local);
        return CLI_USAGE;
    }
    if (!deadline_start(cli)) {
        return CLI_USAGE;
    }
    code = usage_resolve_ids(cli);
    if (code != CLI_OK) {
        return code;
    }
    if (cli->verb->paged && !cli->json && !cli_flag(cli, "follow") && !cli_flag(cli, "watch")) {
        cli_pager_start(cli);
    }
    return cli->verb->run(cli);
}

static void set_form(struct cli *cli, enum cli_form form)
{
    cli->json = form != CLI_TABLE;
    cli_form_set(form);
    cli_errors_as_json(cli->json);
}

int cli_entry(int argc, char **argv)
{
    struct cli cli = {0};
    enum cli_exit code = CLI_USAGE;
    enum cli_form form;

    output_reserve_streams();
    (void)signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_ERR, NULL, NULL);
    set_form(&cli, usage_wanted_form(argc, argv));
    if (usage_read(&cli, argc, argv) && usage_read_form(&cli, &form)) {
        set_form(&cli, form);
        cli.color = wants_color(&cli);
        cli_errors_of(&cli);
        if (cli_value(&cli, "credential") != NULL) { /* libbaton reads it */
            (void)setenv("BATON_CREDENTIAL", cli_value(&cli, "credential"), 1);
        }
        code = run(&cli);
    }
    if (code != CLI_OK && cli.json && !cli_has_printed() && !cli_has_error()) {
        cli_error("%s", usage_exit_meaning(code));
    }
    cli_errors_end(code);
    cli_errors_as_json(false);
    cli_errors_of(NULL);
    usage_free_ids(&cli);
    bt_client_close(cli.client);
    code = output_finish(code);
    cli_pager_end();
    return (int)code;
}
