#include "supervisor/certs/certs.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/client/state.h"
#include "supervisor/certs/certs_internal.h"

enum { DAY_MS = 24 * 60 * 60 * 1000 };

static const char NO_AUTHORITY[] = "%s has no authority; make one with: baton certs init";

/* ---- the authority ---- */

static enum bt_code authority_new(struct authority **ret, struct bt_error *err)
{
    struct authority *a = calloc(1, sizeof *a);
    int rv;

    if (a == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an authority");
    }
    mbedtls_entropy_init(&a->entropy);
    mbedtls_ctr_drbg_init(&a->random);
    mbedtls_pk_init(&a->key);
    mbedtls_x509_crt_init(&a->cert);
    *ret = a;
    rv = mbedtls_ctr_drbg_seed(&a->random, mbedtls_entropy_func, &a->entropy, NULL, 0);
    return rv == 0 ? BT_OK : certs_error(err, BT_IO, rv, "no random numbers");
}

void certs_authority_free(struct authority *a)
{
    if (a != NULL) {
        mbedtls_x509_crt_free(&a->cert);
        mbedtls_pk_free(&a->key);
        mbedtls_ctr_drbg_free(&a->random);
        mbedtls_entropy_free(&a->entropy);
        free(a);
    }
}

static enum bt_code parse_authority(struct authority *a, const char *dir, unsigned char *key,
                                    struct bt_error *err)
{
    int rv = mbedtls_x509_crt_parse(&a->cert, a->cert_pem, strlen((char *)a->cert_pem) + 1);

    if (rv != 0) {
        (void)certs_error(err, BT_INVALID, rv, "ca.pem");
        return err_wrap(err, "%s", dir);
    }
    rv = mbedtls_pk_parse_key(&a->key, key, strlen((char *)key) + 1, NULL, 0);
    rv = rv != 0 ? rv : mbedtls_pk_check_pair(&a->cert.pk, &a->key);
    if (rv != 0) {
        (void)certs_error(err, BT_INVALID, rv, "ca.key is not the key of ca.pem");
        return err_wrap(err, "%s", dir);
    }
    return BT_OK;
}

enum bt_code certs_authority_load(const char *dir, struct authority **ret, struct bt_error *err)
{
    char path[CERTS_PATH_MAX];
    unsigned char key[CERTS_PEM_MAX];
    enum bt_code code = authority_new(ret, err);

    code = code == BT_OK ? certs_path(dir, "ca.pem", path, err) : code;
    code = code == BT_OK ? certs_file_read(path, false, (*ret)->cert_pem, err) : code;
    code = code == BT_OK ? certs_path(dir, "ca.key", path, err) : code;
    code = code == BT_OK ? certs_file_read(path, true, key, err) : code;
    if (code == BT_NOT_FOUND) {
        return err_set(err, code, NO_AUTHORITY, dir);
    }
    code = code == BT_OK ? parse_authority(*ret, dir, key, err) : code;
    mbedtls_platform_zeroize(key, sizeof key);
    return code;
}

/* ---- names, times, serials ---- */

static bool is_name(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(name);

    return n > 0 && n <= CERTS_NAME_MAX && strspn(name, allowed) == n && name[0] != '.' &&
           name[0] != '-' && strcmp(name, "ca") != 0;
}

static bool is_host(const char *host)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
    unsigned char bytes[sizeof(struct in6_addr)];
    const size_t n = strlen(host);

    return inet_pton(AF_INET6, host, bytes) == 1 ||
           (n > 0 && n <= CERTS_HOST_MAX && strspn(host, allowed) == n && host[0] != '.' &&
            host[0] != '-');
}

static enum bt_code check_ask(const struct certs_ask *ask, struct bt_error *err)
{
    if (!is_name(ask->name)) {
        return err_set(err, BT_INVALID,
                       "NAME '%.80s': expected at most %d letters, digits, '.', '_' and '-', not "
                       "'ca'",
                       ask->name, CERTS_NAME_MAX);
    }
    if (ask->days > CERTS_DAYS_MAX) {
        return err_set(err, BT_INVALID, "--days: expected 1 to %d", CERTS_DAYS_MAX);
    }
    return BT_OK;
}

static enum bt_code check_uses(const struct certs_ask *ask, struct bt_error *err)
{
    if (!ask->server && !ask->client) {
        return err_set(err, BT_INVALID,
                       "what is it for? --server (of a daemon), --client (of "
                       "people and agents), or both");
    }
    if (ask->server && ask->hosts_n == 0) {
        return err_set(err, BT_INVALID,
                       "--server needs --host: the name or address that clients "
                       "dial");
    }
    if (ask->hosts_n > CERTS_HOSTS_MAX) {
        return err_set(err, BT_LIMIT, "--host: at most %d", CERTS_HOSTS_MAX);
    }
    for (uint32_t i = 0; i < ask->hosts_n; i++) {
        if (!is_host(ask->hosts[i])) {
            return err_set(err, BT_INVALID,
                           "--host '%.80s': expected a name or an address, without a port",
                           ask->hosts[i]);
        }
    }
    return BT_OK;
}

static enum bt_code make_serial(struct authority *a, struct cert *c, struct bt_error *err)
{
    unsigned char bytes[CERTS_SERIAL_LEN / 2];
    const int rv = mbedtls_ctr_drbg_random(&a->random, bytes, sizeof bytes);

    if (rv != 0) {
        return certs_error(err, BT_IO, rv, "no random numbers");
    }
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and of one length */
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(c->serial + 2 * i, 3, "%02x", bytes[i]);
    }
    return BT_OK;
}

/* Whole seconds, as certificates have. */
static void set_times(struct cert *c, uint32_t days, msec now)
{
    c->from = (now - CERTS_BACKDATED_MS) / 1000 * 1000;
    c->until = (now + (msec)days * DAY_MS) / 1000 * 1000;
}

/* ---- init ---- */

static enum bt_code write_authority(struct authority *a, const char *dir, const struct cert *c,
                                    struct bt_error *err)
{
    unsigned char pem[CERTS_PEM_MAX];
    char path[CERTS_PATH_MAX];
    enum bt_code code = certs_make_key(a, &a->key, err);

    code = code == BT_OK ? certs_sign(a, c, &a->key, false, a->cert_pem, err) : code;
    if (code == BT_OK && mbedtls_pk_write_key_pem(&a->key, pem, sizeof pem) != 0) {
        code = err_set(err, BT_INTERNAL, "the key cannot be written");
    }
    code = code == BT_OK ? certs_path(dir, "ca.key", path, err) : code;
    /* The key first: who has it is the authority. Without ca.pem it is one that was not finished.
     */
    code = code == BT_OK ? certs_file_write(path, pem, strlen((char *)pem), 0600, true, err) : code;
    code = code == BT_OK ? certs_path(dir, "ca.pem", path, err) : code;
    if (code == BT_OK) {
        code = certs_file_write(path, a->cert_pem, strlen((char *)a->cert_pem), 0644, false, err);
    }
    mbedtls_platform_zeroize(pem, sizeof pem);
    return code;
}

/* Of two that begin at once, the second one finds what the first one made. */
static enum bt_code lock(const char *dir, int *ret_fd, struct bt_error *err)
{
    *ret_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 && flock(*ret_fd, LOCK_EX) == 0 ? BT_OK : err_errno(err, errno, "%s", dir);
}

enum bt_code certs_init(const char *dir, const char *name, uint32_t days, msec now,
                        struct cert *ret, struct bt_error *err)
{
    struct authority *a = NULL;
    char path[CERTS_PATH_MAX];
    int locked = -1;
    enum bt_code code = authority_new(&a, err);

    *ret = (struct cert){.ca = true};
    if (code == BT_OK && (days > CERTS_DAYS_MAX || (name != NULL && !is_name(name)))) {
        code = err_set(err, BT_INVALID,
                       "a name has at most %d letters, digits, '.', '_' and '-'; --days is 1 to %d",
                       CERTS_NAME_MAX, CERTS_DAYS_MAX);
    }
    code = code == BT_OK ? state_dir_make(dir, err) : code;
    code = code == BT_OK ? lock(dir, &locked, err) : code;
    code = code == BT_OK ? certs_path(dir, "ca.pem", path, err) : code;
    if (code == BT_OK && access(path, F_OK) == 0) {
        code = err_set(err, BT_CONFLICT,
                       "%s exists already: with another authority every certificate of this one "
                       "would be refused",
                       path);
    }
    code = code == BT_OK ? certs_path(dir, "issued", path, err) : code;
    if (code == BT_OK && mkdir(path, 0700) != 0 && errno != EEXIST) {
        code = err_errno(err, errno, "%s", path);
    }
    code = code == BT_OK ? make_serial(a, ret, err) : code;
    if (code == BT_OK) {
        (void)snprintf(ret->name, sizeof ret->name, name != NULL ? "%s" : "Baton CA %.6s",
                       name != NULL ? name : ret->serial + 2);
        set_times(ret, days == 0 ? CERTS_CA_DAYS : days, now);
        code = write_authority(a, dir, ret, err);
    }
    if (locked >= 0) {
        (void)close(locked);
    }
    certs_authority_free(a);
    return code;
}

/* ---- issue, renew ---- */

/* A list of revoked certificates may follow it. */
enum bt_code certs_check_authority(const struct authority *a, const char *path,
                                   struct bt_error *err)
{
    const size_t n = strlen((const char *)a->cert_pem);
    char found[CERTS_PEM_MAX] = "";
    FILE *f = fopen(path, "re");
    size_t got;

    if (f == NULL) {
        return err_errno(err, errno, "%s", path);
    }
    got = fread(found, 1, n, f);
    (void)fclose(f);
    return got == n && memcmp(found, a->cert_pem, n) == 0
               ? BT_OK
               : err_set(err, BT_CONFLICT, "%s is of another authority", path);
}

/* TO/ca.pem, unless it is there. */
static enum bt_code give_authority(const struct authority *a, const char *to, struct bt_error *err)
{
    char path[CERTS_PATH_MAX];
    enum bt_code code = certs_path(to, "ca.pem", path, err);

    code = code == BT_OK ? certs_check_authority(a, path, err) : code;
    return code == BT_NOT_FOUND
               ? certs_file_write(path, a->cert_pem, strlen((const char *)a->cert_pem), 0644, true,
                                  err)
               : code;
}

/* First the record, then the file: nothing is in use that the list lacks. */
static enum bt_code give(struct authority *a, const char *dir, const struct certs_ask *ask,
                         const struct cert *c, bool replace, struct bt_error *err)
{
    unsigned char pem[CERTS_PEM_MAX];
    char path[CERTS_PATH_MAX];
    char name[CERTS_NAME_MAX + 16];
    mbedtls_pk_context key;
    enum bt_code code;
    const char *end;

    mbedtls_pk_init(&key);
    code = certs_make_key(a, &key, err);
    code = code == BT_OK ? certs_sign(a, c, &key, true, pem, err) : code;
    (void)snprintf(name, sizeof name, "issued/%s", c->serial);
    code = code == BT_OK ? certs_path(dir, name, path, err) : code;
    if (code == BT_OK) {
        end = strstr((const char *)pem, "-----BEGIN EC");
        code = certs_file_write(path, pem, (size_t)(end - (const char *)pem), 0600, false, err);
    }
    (void)snprintf(name, sizeof name, "%s.pem", c->name);
    code = code == BT_OK ? certs_path(ask->to, name, path, err) : code;
    code =
        code == BT_OK ? certs_file_write(path, pem, strlen((char *)pem), 0600, replace, err) : code;
    mbedtls_pk_free(&key);
    mbedtls_platform_zeroize(pem, sizeof pem);
    return code;
}

static enum bt_code check_target(const struct certs_ask *ask, bool replace, struct bt_error *err)
{
    char name[CERTS_NAME_MAX + 8];
    char path[CERTS_PATH_MAX];
    enum bt_code code;

    if (mkdir(ask->to, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s", ask->to);
    }
    (void)snprintf(name, sizeof name, "%s.pem", ask->name);
    code = certs_path(ask->to, name, path, err);
    if (code == BT_OK && !replace && access(path, F_OK) == 0) {
        code = err_set(err, BT_CONFLICT, "%s exists already; to replace it: baton certs renew %s",
                       path, ask->name);
    }
    return code;
}

static enum bt_code issue(struct authority *a, const char *dir, const struct certs_ask *ask,
                          bool replace, msec now, struct cert *c, struct bt_error *err)
{
    struct cert ca;
    enum bt_code code = check_target(ask, replace, err);

    certs_view(&a->cert, &ca);
    (void)snprintf(c->name, sizeof c->name, "%s", ask->name);
    set_times(c, ask->days == 0 ? CERTS_LEAF_DAYS : ask->days, now);
    c->until = c->until > ca.until ? ca.until : c->until;
    c->from = c->from < ca.from ? ca.from : c->from;
    if (code == BT_OK && ca.until <= now) {
        code = err_set(err, BT_INVALID,
                       "the authority of %s has expired; make another one in "
                       "another directory: baton certs init --dir DIR",
                       dir);
    }
    code = code == BT_OK ? make_serial(a, c, err) : code;
    code = code == BT_OK ? give_authority(a, ask->to, err) : code;
    return code == BT_OK ? give(a, dir, ask, c, replace, err) : code;
}

enum bt_code certs_issue(const char *dir, const struct certs_ask *ask, msec now, struct cert *ret,
                         struct bt_error *err)
{
    struct authority *a = NULL;
    enum bt_code code = check_ask(ask, err);

    code = code == BT_OK ? check_uses(ask, err) : code;
    code = code == BT_OK ? certs_authority_load(dir, &a, err) : code;
    if (code == BT_OK) {
        *ret = (struct cert){.server = ask->server, .client = ask->client, .hosts_n = ask->hosts_n};
        for (uint32_t i = 0; i < ask->hosts_n; i++) {
            (void)snprintf(ret->hosts[i], sizeof ret->hosts[i], "%s", ask->hosts[i]);
        }
        code = issue(a, dir, ask, false, now, ret, err);
    }
    certs_authority_free(a);
    return code;
}

enum bt_code certs_renew(const char *dir, const struct certs_ask *ask, msec now, struct cert *ret,
                         struct bt_error *err)
{
    struct authority *a = NULL;
    struct cert *all = NULL;
    bool found = false;
    uint32_t n = 0;
    enum bt_code code = check_ask(ask, err);

    code = code == BT_OK ? certs_authority_load(dir, &a, err) : code;
    code = code == BT_OK ? certs_list(dir, &all, &n, err) : code;
    for (uint32_t i = 1; i < n; i++) {
        if (strcmp(all[i].name, ask->name) == 0) {
            *ret = all[i];
            found = true;
        }
    }
    if (code == BT_OK && !found) {
        code = err_set(err, BT_NOT_FOUND,
                       "%s has issued no certificate '%.80s'; see: baton certs "
                       "show",
                       dir, ask->name);
    }
    code = code == BT_OK ? issue(a, dir, ask, true, now, ret, err) : code;
    free(all);
    certs_authority_free(a);
    return code;
}

/* ---- list ---- */

static int by_age(const void *a, const void *b)
{
    const struct cert *x = a;
    const struct cert *y = b;

    return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                              : (x->until > y->until) - (x->until < y->until);
}

static enum bt_code add(struct cert **list, uint32_t *n, const char *path, struct bt_error *err)
{
    struct cert *grown = realloc(*list, (*n + 1) * sizeof **list);

    if (grown == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list of certificates");
    }
    *list = grown;
    return certs_read(path, &grown[(*n)++], err);
}

static enum bt_code add_issued(const char *folder, struct cert **list, uint32_t *n,
                               struct bt_error *err)
{
    DIR *open_dir = opendir(folder);
    enum bt_code code = BT_OK;
    const struct dirent *e;

    while (open_dir != NULL && code == BT_OK && (e = readdir(open_dir)) != NULL) {
        char path[CERTS_PATH_MAX];
        if (strlen(e->d_name) != CERTS_SERIAL_LEN) {
            continue;
        }
        code = certs_path(folder, e->d_name, path, err);
        code = code == BT_OK ? add(list, n, path, err) : code;
    }
    if (open_dir != NULL) {
        (void)closedir(open_dir);
    }
    return code;
}

enum bt_code certs_list(const char *dir, struct cert **ret, uint32_t *ret_n, struct bt_error *err)
{
    struct cert *list = NULL;
    char path[CERTS_PATH_MAX];
    uint32_t n = 0;
    enum bt_code code = certs_path(dir, "ca.pem", path, err);

    code = code == BT_OK ? add(&list, &n, path, err) : code;
    if (code == BT_NOT_FOUND) {
        code = err_set(err, code, NO_AUTHORITY, dir);
    }
    code = code == BT_OK ? certs_path(dir, "issued", path, err) : code;
    code = code == BT_OK ? add_issued(path, &list, &n, err) : code;
    if (code != BT_OK) {
        free(list);
        return code;
    }
    qsort(list + 1, n - 1, sizeof *list, by_age);
    *ret = list;
    *ret_n = n;
    return BT_OK;
}
