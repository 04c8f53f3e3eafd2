#include "supervisor/bridge/options.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/shard.h"

void options_help(FILE *out)
{
    (void)fputs(
        "usage: baton-bridge-nats [options]\n"
        "\n"
        "Copies the daemon's events into a stream of NATS JetStream: each once, in their order,\n"
        "without gaps. It keeps no position of its own: it goes on behind the last event in the\n"
        "stream.\n"
        "\n"
        "  --state DIR           the state directory (default: as the other programs find it)\n"
        "  --server URL          a server, as nats://127.0.0.1:4222 or tls://HOST:4222 (default:\n"
        "                        nats://127.0.0.1:4222; may be repeated: servers of one cluster)\n"
        "  --name NAME           names the stream BATON_NAME, the subject baton.NAME.0 (default\n"
        "                        main); of a fleet with several shards a stream BATON_NAME_N and\n"
        "                        a subject baton.NAME.N for each\n"
        "  --shard N/SHARDS      only shard N of such a fleet (default: all, a process for each)\n"
        "  --creds FILE          proves itself with a file of credentials, as nsc writes it\n"
        "  --nkey FILE           proves itself with the seed of an nkey, its first line\n"
        "  --user NAME           proves itself with a name and the first line of a file:\n"
        "  --password-file FILE\n"
        "  --token-file FILE     proves itself with the first line of a file\n"
        "  --tls                 only over TLS (tls:// does the same)\n"
        "  --tls-ca FILE         the authorities that it trusts, PEM (default: the system's)\n"
        "  --tls-cert FILE       its own certificate, and\n"
        "  --tls-key FILE        the key of it\n"
        "  --replicas N          of a stream that it makes (default 1; 1 to 5)\n"
        "  --after SEQ           where to go on when the stream was emptied: after this event\n"
        "  --once                ends when the stream has all events\n"
        "  --status              says what the stream has and what it lacks, and ends\n"
        "  --version, --help\n"
        "\n"
        "Files with secrets may be readable by their owner only.\n"
        "\n"
        "Exit codes: 0 it was ended, or is done; 1 it cannot go on now (the server does not let\n"
        "it in, or refuses events); 2 wrong usage; 3 it refuses to go on: the stream is another\n"
        "journal's, or not as it must be.\n",
        out);
}

static enum bt_code read_number(const char *name, const char *text, uint64_t min, uint64_t max,
                                uint64_t *ret, struct bt_error *err)
{
    char *end = NULL;

    *ret = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || strlen(text) > 18 || *end != 0 || *ret < min ||
        *ret > max) {
        return err_set(err, BT_INVALID, "%s: expected a number, %llu to %llu, got '%.100s'", name,
                       (unsigned long long)min, (unsigned long long)max, text);
    }
    return BT_OK;
}

/* HOST, HOST:PORT, [ADDRESS], [ADDRESS]:PORT */
static bool is_place(const char *host)
{
    const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon =
        bracket != NULL ? (bracket[1] == ':' ? bracket + 1 : NULL) : strchr(host, ':');
    char *end = NULL;
    unsigned long port;

    if (host[0] == 0 || host[0] == ':' || strpbrk(host, "/, ?#") != NULL ||
        (bracket != NULL && bracket[1] != 0 && bracket[1] != ':')) {
        return false;
    }
    if (colon == NULL) {
        return true;
    }
    port = strtoul(colon + 1, &end, 10);
    return colon[1] >= '0' && colon[1] <= '9' && *end == 0 && port >= 1 && port <= UINT16_MAX;
}

static enum bt_code read_server(struct options *o, const char *url, struct bt_error *err)
{
    const bool known = strncmp(url, "nats://", 7) == 0 || strncmp(url, "tls://", 6) == 0;
    const char *host = known ? strstr(url, "://") + 3 : "";

    if (strchr(host, '@') != NULL) { /* others can read a command line */
        return err_set(err, BT_INVALID,
                       "--server: no name, password or token in it, because others can read it "
                       "there: use --user and --password-file, --token-file, --creds or --nkey");
    }
    if (!is_place(host)) {
        return err_set(err, BT_INVALID,
                       "--server: expected a URL as nats://127.0.0.1:4222, got '%.100s'", url);
    }
    if (o->servers_n == OPTIONS_SERVERS_MAX) {
        return err_set(err, BT_LIMIT, "--server: at most %d of them", OPTIONS_SERVERS_MAX);
    }
    o->tls = o->tls || url[0] == 't';
    o->servers[o->servers_n++] = url;
    return BT_OK;
}

static enum bt_code read_name(struct options *o, const char *name, struct bt_error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t n = strlen(name);

    if (n == 0 || n > OPTIONS_NAME_MAX || strspn(name, allowed) != n) {
        return err_set(err, BT_INVALID,
                       "--name: expected at most %d letters, digits, _ and -, got '%.100s'",
                       OPTIONS_NAME_MAX, name);
    }
    o->name = name;
    return BT_OK;
}

/* N/SHARDS */
static enum bt_code read_shard(struct options *o, const char *text, struct bt_error *err)
{
    char *end = NULL;
    const unsigned long shard = strtoul(text, &end, 10);
    const unsigned long shards = *end == '/' ? strtoul(end + 1, &end, 10) : 0;

    if (text[0] < '0' || text[0] > '9' || *end != 0 || shards < 2 || shards > SHARDS_MAX ||
        shard >= shards) {
        return err_set(err, BT_INVALID,
                       "--shard: expected N/SHARDS, as 0/4 to 3/4 for a fleet of 4 shards, got "
                       "'%.100s'",
                       text);
    }
    o->shard = (uint32_t)shard;
    o->shards = (uint32_t)shards;
    return BT_OK;
}

/* The member that an option sets as it is; NULL = it is another kind of option. */
static const char **plain(struct options *o, const char *name)
{
    const struct {
        const char *name;
        const char **at;
    } all[] = {{"--state", &o->state},
               {"--creds", &o->creds},
               {"--nkey", &o->nkey},
               {"--user", &o->user},
               {"--token-file", &o->token_file},
               {"--password-file", &o->password_file},
               {"--tls-ca", &o->tls_ca},
               {"--tls-cert", &o->tls_cert},
               {"--tls-key", &o->tls_key}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].at;
        }
    }
    return NULL;
}

static enum bt_code take(struct options *o, const char *name, const char *value,
                         struct bt_error *err)
{
    const char **at = plain(o, name);
    uint64_t n = 0;
    enum bt_code code;

    if (at != NULL) {
        *at = value;
        return BT_OK;
    }
    if (strcmp(name, "--server") == 0) {
        return read_server(o, value, err);
    }
    if (strcmp(name, "--name") == 0) {
        return read_name(o, value, err);
    }
    if (strcmp(name, "--shard") == 0) {
        return read_shard(o, value, err);
    }
    if (strcmp(name, "--replicas") == 0) {
        code = read_number(name, value, 1, 5, &n, err);
        o->replicas = (uint32_t)n;
        return code;
    }
    o->after_given = true;
    return read_number(name, value, 0, INT64_MAX, &o->after, err);
}

static bool takes_value(struct options *o, const char *name)
{
    return plain(o, name) != NULL || strcmp(name, "--server") == 0 || strcmp(name, "--name") == 0 ||
           strcmp(name, "--replicas") == 0 || strcmp(name, "--after") == 0 ||
           strcmp(name, "--shard") == 0;
}

static bool *flag(struct options *o, const char *name)
{
    const struct {
        const char *name;
        bool *at;
    } all[] = {{"--help", &o->help}, {"-h", &o->help},     {"--version", &o->version},
               {"--tls", &o->tls},   {"--once", &o->once}, {"--status", &o->status}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].at;
        }
    }
    return NULL;
}

static enum bt_code check(const struct options *o, struct bt_error *err)
{
    const int ways =
        (o->creds != NULL) + (o->nkey != NULL) + (o->user != NULL) + (o->token_file != NULL);

    if ((o->user == NULL) != (o->password_file == NULL)) {
        return err_set(err, BT_INVALID, "--user and --password-file go together");
    }
    if (ways > 1) {
        return err_set(err, BT_INVALID,
                       "one of --creds, --nkey, --user and --token-file: a server takes one proof");
    }
    if ((o->tls_cert == NULL) != (o->tls_key == NULL)) {
        return err_set(err, BT_INVALID, "--tls-cert and --tls-key go together");
    }
    return BT_OK;
}

enum bt_code options_parse(int argc, char **argv, struct options *ret, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (int i = 1; code == BT_OK && i < argc; i++) {
        const char *name = argv[i];
        bool *on = flag(ret, name);
        if (on != NULL) {
            *on = true;
        } else if (!takes_value(ret, name)) {
            code = err_set(err, BT_INVALID, "there is no option '%.100s'; see --help", name);
        } else if (i + 1 == argc) {
            code = err_set(err, BT_INVALID, "%s needs a value", name);
        } else {
            code = take(ret, name, argv[++i], err);
        }
    }
    ret->tls = ret->tls || ret->tls_ca != NULL || ret->tls_cert != NULL;
    ret->name = ret->name != NULL ? ret->name : "main";
    ret->replicas = ret->replicas > 0 ? ret->replicas : 1;
    if (ret->servers_n == 0) {
        ret->servers[ret->servers_n++] = "nats://127.0.0.1:4222";
    }
    return code == BT_OK ? check(ret, err) : code;
}
