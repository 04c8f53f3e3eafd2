/* Verbs: daemons on other hosts. */
#include <stddef.h>

#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/verbs/verbs.h"

static const struct cli_option certs_options[] = {
    {"dir", "DIR", "directory of the authority (certs in the state directory)"},
    {"host", "HOST...", "name or address of the server, as clients dial it"},
    {"server", NULL, "for a daemon"},
    {"client", NULL, "for people and agents"},
    {"days", "N", "valid so long (365; the authority 3650)"},
    {"to", "DIR", "where NAME.pem and ca.pem are written (.)"},
    {NULL, NULL, NULL},
};

const struct cli_verb remote_verbs[] = {
    {.name = "certs",
     .args = "init|issue|renew|revoke|show [NAME]",
     .brief = "make certificates for daemons, clients and agents on other hosts",
     .text =
         "init makes an authority. Issue writes NAME.pem, certificate and key in one file, and "
         "ca.pem. Renew issues NAME again, with another key. Revoke puts all certificates of "
         "NAME, or one by its serial, on a list in the ca.pem that the daemon reads. Show lists "
         "them. Whoever has ca.key can make certificates: it stays on one host.",
     .options = certs_options,
     .examples = {{"baton certs issue hub --server --host 10.0.0.5", "for the daemon there"},
                  {"baton certs issue worker --client --to worker", "for an agent elsewhere"},
                  {"baton certs revoke worker --to hub", "the daemon of hub/ca.pem refuses it"}},
     .exits = {CLI_NOT_FOUND},
     .args_min = 1,
     .args_max = 2,
     .run = verb_certs},
    {.name = "context",
     .args = "add NAME | use|remove CONTEXT | show [CONTEXT] | list",
     .brief = "name daemons on other hosts, and say which one is meant",
     .text = "Add keeps --connect, --credential, --ca and --cert under a name. The daemon in use "
             "is asked when neither --connect, --context, --state nor their variables say "
             "otherwise; `local` is the daemon of this host.",
     .examples = {{"baton context add hub --connect tls+tcp://10.0.0.5:7443 --credential ann.key "
                   "--ca ca.pem --cert ann.pem",
                   "name a daemon"},
                  {"baton context use hub", "ask it from now on"},
                  {"baton context show", "which one is asked now"}},
     .exits = {CLI_NOT_FOUND},
     .args_min = 1,
     .args_max = 2,
     .run = verb_context},
    {.name = NULL},
};
