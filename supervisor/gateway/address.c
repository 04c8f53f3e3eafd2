#include "supervisor/gateway/address.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "protocol/base/replace.h"
#include "protocol/wire/doc.h"

enum { FILE_MAX = 4096 };

static enum bt_code write_file(const char *dir, const char *text, struct bt_error *err)
{
    char path[4200];

    (void)snprintf(path, sizeof path, "%s/%s", dir, ADDRESS_FILE);
    return file_replace(path, text, strlen(text), err);
}

static const char *read_file(const char *dir, struct buf *out)
{
    char path[4200];
    char bytes[FILE_MAX];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", dir, ADDRESS_FILE);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0) {
        (void)close(fd);
    }
    return n <= 0 || json_to_doc((struct str){bytes, (size_t)n}, NULL, out, NULL) != BT_OK
               ? NULL
               : (const char *)out->at;
}

static uint64_t number(const char *dir, const char *name)
{
    struct buf b;
    uint64_t v = 0;

    buf_init(&b, (size_t)FILE_MAX * 4);
    if (read_file(dir, &b) != NULL) {
        const struct doc d = doc_get(doc_from_buf(&b), str_from(name));
        v = d.ptr != NULL && doc_head(d).kind == DOC_UINT ? doc_head(d).u : 0;
    }
    buf_done(&b);
    return v;
}

void address_url(const struct options *opt, uint16_t port, char *ret, size_t cap)
{
    const bool v6 = strchr(opt->host, ':') != NULL;

    if (opt->url != NULL) {
        size_t n = strlen(opt->url);
        n -= opt->url[n - 1] == '/' ? 1u : 0u;
        (void)snprintf(ret, cap, "%.*s", (int)n, opt->url);
        return;
    }
    (void)snprintf(ret, cap, "%s://%s%s%s:%u", opt->tls != NULL ? "https" : "http", v6 ? "[" : "",
                   opt->host, v6 ? "]" : "", port);
}

enum bt_code address_write(const char *state_dir, const struct options *opt, uint16_t port,
                           struct bt_error *err)
{
    const bool v6 = strchr(opt->host, ':') != NULL;
    char text[512];

    (void)snprintf(text, sizeof text,
                   "{\"url\":\"%s://%s%s%s:%u\",\"port\":%u,\"pid\":%ld,\"version\":\"%s\"}\n",
                   opt->tls != NULL ? "https" : "http", v6 ? "[" : "", opt->host, v6 ? "]" : "",
                   port, port, (long)getpid(), BATON_VERSION);
    return write_file(state_dir, text, err);
}

uint16_t address_last_port(const char *state_dir)
{
    const uint64_t port = number(state_dir, "port");

    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

void address_remove(const char *state_dir)
{
    char text[64];

    if (number(state_dir, "pid") == (uint64_t)getpid()) {
        (void)snprintf(text, sizeof text, "{\"port\":%u}\n", address_last_port(state_dir));
        (void)write_file(state_dir, text, NULL);
    }
}
