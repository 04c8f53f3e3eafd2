/* Verbs: what is kept, and copies of it. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option delete_options[] = {
    {"session", "SESSION", "delete this session with its messages, and no plan"},
    {"reason", "TEXT", "kept with the plan's id"},
    {NULL, NULL, NULL},
};

static const struct cli_option prune_options[] = {
    {"older-than", "AGE", "plans that ended so long ago: 30d, 12h"},
    {"status", "completed|failed|cancelled|planned|quarantined", "only plans that ended so"},
    {"dry-run", NULL, "only print which plans would go"},
    {NULL, NULL, NULL},
};

static const struct cli_option export_options[] = {
    {"since", "TIME", "what ended since then, and sessions: 30d ago, 2026-01-31"},
    {"all", NULL, "all ended plans and all sessions"},
    {"artifacts", "DIR", "the files of results go there"},
    {NULL, NULL, NULL},
};

static const struct cli_option import_options[] = {
    {"artifacts", "DIR", "where the files of results are"},
    {NULL, NULL, NULL},
};

static const struct cli_option restore_options[] = {
    {"force", NULL, "replace a journal that is there; it stays as journal.db.old"},
    {NULL, NULL, NULL},
};

const struct cli_verb storage_verbs[] = {
    {.name = "delete",
     .args = "[PLAN_ID...]",
     .brief = "delete ended plans for good",
     .text = "Events, results, files and jobs go; the id, the times and the reason stay, and the "
             "plan's key is never used again. A retry or fork keeps the results that it took over, "
             "but not the files. With --session a session goes, and its plans stay.",
     .options = delete_options,
     .examples = {{"baton delete 018f", "delete the plan whose id begins so"},
                  {"baton delete --session talk", "delete a conversation"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 0,
     .args_max = -1,
     .run = verb_delete},
    {.name = "prune",
     .brief = "delete plans that ended long ago",
     .text = "The settings `retention` do the same without being asked.",
     .options = prune_options,
     .examples = {{"baton prune --dry-run --older-than 30d", "show what would go"},
                  {"baton prune --older-than 90d --status failed", "delete old failures"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT},
     .run = verb_prune},
    {.name = "backup",
     .args = "FILE",
     .brief = "copy the journal and the files of results, also while the daemon runs",
     .text = "FILE must not exist. It is complete when it has its name; until then it is "
             "FILE.part. The files of results (STATE/artifacts) go to FILE.artifacts.",
     .examples = {{"baton backup /backup/baton.db", "and /backup/baton.db.artifacts"}},
     .exits = {CLI_UNREACHABLE, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 1,
     .local = "it writes a file there",
     .run = verb_backup},
    {.name = "export",
     .args = "[PLAN_ID...]",
     .brief = "write ended plans as lines of JSON",
     .text = "Events, results and the plans' jobs; with --since and --all also sessions. The files "
             "of results (artifacts) are beside the lines, in a directory, with --artifacts. The "
             "daemon goes on meanwhile. Every line has a number and a hash; the last line says "
             "that nothing follows. The same plan gives the same bytes in every journal, but for "
             "numbers and hashes; plans that ended at the same moment may be in another order.",
     .options = export_options,
     .examples = {{"baton export last > plan.ndjson", "one plan"},
                  {"baton export last --artifacts files > plan.ndjson", "with its files"},
                  {"baton export --since 30d > month.ndjson", "what ended in 30 days"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 0,
     .args_max = -1,
     .run = verb_export},
    {.name = "import",
     .args = "FILE",
     .brief = "take plans and sessions of an export into this journal",
     .text = "FILE is checked as a whole first; - is stdin. Plans keep their ids; a plan that is "
             "here already is skipped when it is the same, and refused otherwise. Events get new "
             "numbers. After a crash the same import goes on without doubles, and imports at once "
             "take turns. Old plans are subject to the settings `retention` at once. With "
             "--artifacts the files of results "
             "are compared with the results, copied to STATE/artifacts, and found there.",
     .options = import_options,
     .examples = {{"baton import plan.ndjson", "from a file"},
                  {"baton import plan.ndjson --artifacts files", "with files of results"},
                  {"baton import -", "from a pipe"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_min = 1,
     .args_max = 1,
     .run = verb_import},
    {.name = "restore",
     .args = "FILE",
     .brief = "make a copy the journal again, without a daemon",
     .text = "The copy is verified first. Plans that were open in it go on. FILE.artifacts goes to "
             "STATE/artifacts, and results name their files there.",
     .options = restore_options,
     .examples = {{"baton restore /backup/baton.db", "into an empty state directory"}},
     .exits = {CLI_NOT_FOUND},
     .args_min = 1,
     .args_max = 1,
     .local = "it writes a file there",
     .run = verb_restore},
    {.name = "verify",
     .args = "[FILE]",
     .brief = "check every row of the journal, or of a copy, against its hashes",
     .text = "Each plan has a chain of SHA-256 over its document, its rows and their results. The "
             "last line is a hash over all chains: note it elsewhere, and a journal that was "
             "written anew by somebody else has another one. Plans that go on change it. Files of "
             "results, also in FILE.artifacts, are compared with length and SHA-256; one that is "
             "not kept any more is no damage.",
     .examples = {{"baton verify", "the journal of the daemon, by a copy"},
                  {"baton verify /backup/baton.db", "a copy"}},
     .exits = {CLI_UNREACHABLE, CLI_NOT_FOUND, CLI_TIMEOUT},
     .args_max = 1,
     .local = "it reads the journal",
     .run = verb_verify},
    {.name = NULL},
};
