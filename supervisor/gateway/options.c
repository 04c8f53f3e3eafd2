#include "supervisor/gateway/options.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/str.h"

void options_help(FILE *out)
{
    (void)fputs(
        "usage: baton-gateway [options]\n"
        "\n"
        "The HTTP API of the daemon: requests of the wire protocol as JSON over HTTP, events as a\n"
        "stream. It has no rights of its own: each request carries its sender's.\n"
        "\n"
        "  --state DIR        the state directory (default: as the other programs find it)\n"
        "  --listen HOST:PORT where it listens (default 127.0.0.1:0). Port 0: that of the last "
        "time\n"
        "                     when it is free, else any; STATE/gateway.json has the address. "
        "Hosts\n"
        "                     beyond this machine need --tls, and then only credentials count\n"
        "  --tls FILE         certificate and key in one PEM file: https\n"
        "  --host NAME        another name that requests may have in Host (may be repeated)\n"
        "  --origin URL       an origin whose pages may use it, as https://ops.example.com\n"
        "                     (may be repeated; default: none)\n"
        "  --otlp URL         a collector of traces by OTLP/HTTP, as http://127.0.0.1:4318\n"
        "  --private LIST     private addresses that webhooks may reach, as 127.0.0.1,10.1.0.0/16\n"
        "  --hooks FILE       requests that start recipes: POST /hooks/NAME\n"
        "  --recipes DIR      recipes that are tools of MCP: files *.yaml, *.yml and *.json\n"
        "  --lease SECONDS    how long an agent over HTTP may be silent (default 30; 1 to 3600)\n"
        "  --url URL          this gateway as people reach it, for links in webhooks\n"
        "  --mcp              MCP over stdin and stdout, by the gateway of the state directory, "
        "or\n"
        "                     by one of its own\n"
        "  --openapi          print the OpenAPI document and exit\n"
        "  --version, --help\n"
        "\n"
        "Exit codes: 0 it was ended; 1 it could not start or go on; 2 wrong usage.\n",
        out);
}

static enum bt_code read_listen(struct options *o, const char *text, struct bt_error *err)
{
    const char *colon = strrchr(text, ':');
    const char *from = text;
    char *end = NULL;
    size_t n = colon == NULL ? 0 : (size_t)(colon - text);
    unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end, 10);

    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        from++;
        n -= 2;
    }
    if (colon == NULL || n == 0 || n >= sizeof o->host || end == colon + 1 || *end != 0 ||
        port > UINT16_MAX) {
        return err_set(err, BT_INVALID,
                       "--listen: expected HOST:PORT, as 127.0.0.1:7180 or [::1]:0, got '%.100s'",
                       text);
    }
    memcpy(o->host, from, n);
    o->host[n] = 0;
    o->port = (uint16_t)port;
    return BT_OK;
}

static bool is_http(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

/* Without a path it is that of the protocol. */
static enum bt_code read_otlp(struct options *o, const char *url, struct bt_error *err)
{
    static const char path[] = "/v1/traces";
    const char *slash = is_http(url) ? strchr(strstr(url, "://") + 3, '/') : NULL;
    const bool has_path = slash != NULL && slash[1] != 0;
    size_t n = strlen(url);

    if (!is_http(url) || n + sizeof path > sizeof o->otlp) {
        return err_set(err, BT_INVALID,
                       "--otlp: expected the URL of a collector, as http://127.0.0.1:4318, got "
                       "'%.100s'",
                       url);
    }
    n -= slash != NULL && !has_path ? 1u : 0u;
    memcpy(o->otlp, url, n);
    memcpy(o->otlp + n, path, has_path ? 0 : sizeof path);
    return BT_OK;
}

static enum bt_code add(const char **list, uint32_t *n, uint32_t max, const char *option,
                        const char *value, struct bt_error *err)
{
    if (*n == max) {
        return err_set(err, BT_LIMIT, "%s: at most %u of them", option, max);
    }
    list[(*n)++] = value;
    return BT_OK;
}

static enum bt_code read_lease(struct options *o, const char *text, struct bt_error *err)
{
    char *end = NULL;
    const unsigned long seconds = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != 0 || seconds < 1 || seconds > 3600) {
        return err_set(err, BT_INVALID, "--lease: expected seconds, 1 to 3600, got '%.100s'", text);
    }
    o->lease_ms = (msec)seconds * 1000;
    return BT_OK;
}

static enum bt_code take(struct options *o, const char *name, const char *value,
                         struct bt_error *err)
{
    if (strcmp(name, "--state") == 0) {
        o->state = value;
        return BT_OK;
    }
    if (strcmp(name, "--listen") == 0) {
        return read_listen(o, value, err);
    }
    if (strcmp(name, "--tls") == 0) {
        o->tls = value;
        return BT_OK;
    }
    if (strcmp(name, "--host") == 0) {
        return add(o->hosts, &o->hosts_n, OPTIONS_HOSTS_MAX, name, value, err);
    }
    if (strcmp(name, "--otlp") == 0) {
        return read_otlp(o, value, err);
    }
    if (strcmp(name, "--private") == 0) {
        return private_read(str_from(value), &o->hooks, err);
    }
    if (strcmp(name, "--hooks") == 0) {
        o->incoming = value;
        return BT_OK;
    }
    if (strcmp(name, "--recipes") == 0) {
        o->recipes = value;
        return BT_OK;
    }
    if (strcmp(name, "--lease") == 0) {
        return read_lease(o, value, err);
    }
    if (!is_http(value)) {
        return err_set(err, BT_INVALID,
                       "%s: expected an address as https://ops.example.com, got '%.100s'", name,
                       value);
    }
    if (strcmp(name, "--url") == 0) {
        o->url = value;
        return BT_OK;
    }
    return add(o->origins, &o->origins_n, OPTIONS_ORIGINS_MAX, name, value, err);
}

static bool takes_value(const char *name)
{
    static const char *const names[] = {"--state",  "--listen", "--tls",     "--host",
                                        "--origin", "--otlp",   "--private", "--url",
                                        "--hooks",  "--lease",  "--recipes"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static enum bt_code check(struct options *o, struct bt_error *err)
{
    o->loopback = strncmp(o->host, "127.", 4) == 0 || strcmp(o->host, "::1") == 0 ||
                  strcmp(o->host, "localhost") == 0;
    if (!o->loopback && o->tls == NULL) {
        return err_set(
            err, BT_INVALID,
            "--listen %s: other hosts can reach it, so it needs --tls FILE with a "
            "certificate and its key (baton certs issue makes them), or listen on 127.0.0.1",
            o->host);
    }
    return BT_OK;
}

enum bt_code options_parse(int argc, char **argv, struct options *ret, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (int i = 1; code == BT_OK && i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            ret->help = true;
        } else if (strcmp(name, "--version") == 0) {
            ret->version = true;
        } else if (strcmp(name, "--openapi") == 0) {
            ret->openapi = true;
        } else if (strcmp(name, "--mcp") == 0) {
            ret->mcp = true;
        } else if (!takes_value(name)) {
            code = err_set(err, BT_INVALID, "there is no option '%.100s'; see --help", name);
        } else if (i + 1 == argc) {
            code = err_set(err, BT_INVALID, "%s needs a value", name);
        } else {
            code = take(ret, name, argv[++i], err);
        }
    }
    if (code == BT_OK && ret->host[0] == 0) {
        code = read_listen(ret, "127.0.0.1:0", err);
    }
    return code == BT_OK ? check(ret, err) : code;
}
