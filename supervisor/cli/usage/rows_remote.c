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

static const struct cli_option webhook_options[] = {
    {"url", "URL", "where the events go (put)"},
    {"topic", "GLOB...", "types of events: plan_completed, plan_step_* (put; every event)"},
    {"body", "cloudevents|chat|mail", "what is sent (put; cloudevents)"},
    {"secret-file", "FILE", "one secret, or the new and the old one, mode 0600 (put)"},
    {"secret-env", "NAME", "the same from a variable of the gateway (put)"},
    {"from", "SEQ", "the first event (put, resend; the next one)"},
    {NULL, NULL, NULL},
};

static const struct cli_option fleet_options[] = {
    {"config", "FILE", "configuration, instead of the user's file"},
    {"shards", "N", "parts that work beside each other, 1 to 64 (init; 1), or more of them (grow)"},
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
    {.name = "fleet",
     .args = "init|status|grow|finalize | move SHARD NODE | drain NODE [URL]",
     .brief = "make the journal that several daemons share, and see who leads",
     .text =
         "Several `batond --fleet URL` have one journal on PostgreSQL: one leads, the others "
         "wait. Init makes its tables, or brings them to this version; with --shards the "
         "journal has parts, which the daemons share out. Move gives a shard to a node, drain "
         "all of one to the others. Grow makes more parts. Finalize lets nodes use what an older "
         "program does not know, once all nodes have this version. Each prints who leads "
         "and what is missing, and ends with 3 when something is. URL is "
         "postgresql://HOST/DATABASE without a password, which "
         "libpq takes from ~/.pgpass; else `fleet.url` of the configuration.",
     .options = fleet_options,
     .examples = {{"baton fleet init postgresql://db1,db2/baton", "make the tables"},
                  {"baton fleet move 3 beta", "the node beta leads shard 3"},
                  {"baton fleet grow --shards 16", "8 shards become 16"}},
     .exits = {CLI_UNREACHABLE, CLI_FAILED, CLI_NOT_FOUND},
     .args_min = 1,
     .args_max = 4,
     .run = verb_fleet},
    {.name = "webhook",
     .args = "put|test|resend|rm WEBHOOK | list",
     .brief = "send events to an address, signed, until its receiver has taken them",
     .text =
         "baton-gateway sends each event as a CloudEvent with the signature of Standard Webhooks, "
         "one after the other. Put without a secret makes one: STATE/webhooks/WEBHOOK.secret. "
         "After a failure it tries again, later each time; after a day the webhook is parked. "
         "Resend goes on with the event that failed, or from SEQ. Test sends one event of its own. "
         "Private addresses need `gateway: {private: LIST}`.",
     .options = webhook_options,
     .examples = {{"baton webhook put ops --url https://ops.example.com/baton --topic 'plan_*'",
                   "send the events of plans"},
                  {"baton webhook test ops", "send one event and print what came back"},
                  {"baton webhook resend ops --from 1", "send all of them again"}},
     .exits = {CLI_NOT_FOUND, CLI_UNREACHABLE, CLI_TIMEOUT, CLI_FAILED},
     .args_min = 1,
     .args_max = 2,
     .local = "it changes files of the state directory",
     .run = verb_webhook},
    {.name = NULL},
};
