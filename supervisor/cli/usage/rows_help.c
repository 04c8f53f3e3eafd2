/* Verbs: help. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

const struct cli_verb help_verbs[] = {
    {.name = "help",
     .args = "[VERB]",
     .brief = "list the verbs, or show what one does",
     .examples = {{"baton help", "list the verbs"},
                  {"baton help run", "the same as baton run --help"},
                  {"baton help --json", "the whole table, for a program"}},
     .args_max = 1,
     .paged = true,
     .run = verb_help},
    {.name = "version",
     .brief = "print the version of this program",
     .text = "The daemon's version: baton info.",
     .examples = {{"baton version", "print it"}},
     .run = verb_version},
    {.name = "completion",
     .args = "bash|zsh|fish | words [WORD...]",
     .brief = "print a completion script for a shell",
     .text = "Verbs, options, ids of plans, sessions, reviews and steps, agents and recipes are "
             "completed. The scripts ask `baton completion words`, which prints what the last "
             "WORD can be, with a tab before its meaning; it waits for the daemon less than a "
             "second and is silent without one.\n"
             "For this shell only:\n"
             "  eval \"$(baton completion bash)\"\n"
             "  source <(baton completion zsh)\n"
             "  baton completion fish | source",
     .examples = {{"baton completion bash > ~/.local/share/bash-completion/completions/baton",
                   "complete in new shells of bash"},
                  {"baton completion zsh > ~/.zfunc/_baton",
                   "the same of zsh, with ~/.zfunc in fpath"},
                  {"baton completion fish > ~/.config/fish/completions/baton.fish",
                   "the same of fish"}},
     .args_min = 1,
     .args_max = -1,
     .run = verb_completion},
    {.name = NULL},
};
