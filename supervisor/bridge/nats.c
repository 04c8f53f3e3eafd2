#include "supervisor/bridge/nats.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/bridge/nkey.h"

enum { CONNECT_MS = 3000, RECONNECT_MS = 100, PING_MS = 5000, SECRET_MAX = 4096 };

struct nats {
    natsConnection *nc;
    pthread_mutex_t lock;
    char said[256]; /* by the server, on its own; under the lock */
};

natsConnection *nats_connection(const struct nats *n)
{
    return n->nc;
}

bool nats_is_up(const struct nats *n)
{
    return natsConnection_Status(n->nc) == NATS_CONN_STATUS_CONNECTED;
}

bool nats_is_closed(const struct nats *n)
{
    return natsConnection_IsClosed(n->nc);
}

/* Texts of libnats begin with the place in its source: "(conn.c:2088): ". */
static const char *without_place(const char *text)
{
    const char *end = text[0] == '(' ? strstr(text, "): ") : NULL;

    return end != NULL ? end + 3 : text;
}

enum bt_code nats_explain(natsStatus s, jsErrCode js, const char *text, const char *what,
                          struct bt_error *err)
{
    const char *why = text != NULL && text[0] != 0 ? without_place(text) : natsStatus_GetText(s);

    switch ((int)js) {
    case JSStreamWrongLastMsgIDErr:
    case JSStreamWrongLastSequenceErr:
        return err_set(err, BT_BUSY, "%s: the stream has changed meanwhile (%s)", what, why);
    case JSStreamNotMatchErr:
    case JSStreamSealedErr:
    case JSStreamSubjectOverlapErr:
        return err_set(err, BT_CONFLICT, "%s: %s", what, why);
    case JSNotEnabledErr:
    case JSNotEnabledForAccountErr:
        return err_set(err, BT_UNAUTHORIZED,
                       "%s: %s; start the server with JetStream (nats-server -js), or allow it for "
                       "this account",
                       what, why);
    case JSStreamMessageExceedsMaximumErr:
        return err_set(err, BT_INVALID,
                       "%s: %s; give the stream a larger max_msg_size: an event has up to 32 KiB",
                       what, why);
    case 0:
        break;
    default:
        return err_set(err, BT_LIMIT, "%s: %s (JetStream %d)", what, why, (int)js);
    }
    switch ((int)s) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
    case NATS_SSL_ERROR:
    case NATS_SECURE_CONNECTION_REQUIRED:
    case NATS_SECURE_CONNECTION_WANTED:
        return err_set(err, BT_UNAUTHORIZED, "%s: %s", what, why);
    case NATS_NO_MEMORY:
        return err_set(err, BT_NOMEM, "%s: out of memory", what);
    default:
        return err_set(err, BT_UNAVAILABLE, "%s: %s", what, why);
    }
}

enum bt_code nats_error(struct nats *n, natsStatus s, jsErrCode js, const char *what,
                        struct bt_error *err)
{
    char said[sizeof n->said];

    (void)pthread_mutex_lock(&n->lock);
    memcpy(said, n->said, sizeof said);
    (void)pthread_mutex_unlock(&n->lock);
    if (js == 0 && (s == NATS_TIMEOUT || s == NATS_NO_RESPONDERS) && said[0] != 0) {
        return nats_explain(NATS_NOT_PERMITTED, 0, said, what, err);
    }
    if (js == 0 && !nats_is_up(n)) { /* libnats has several words for it */
        return err_set(err, BT_UNAVAILABLE, "%s: the connection to the server is lost", what);
    }
    return nats_explain(s, js, js != 0 ? nats_GetLastError(NULL) : NULL, what, err);
}

/* Called on a thread of libnats. */
static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus s, void *self)
{
    struct nats *n = self;
    const char *text = NULL;

    (void)sub;
    if (s != NATS_NOT_PERMITTED) {
        return;
    }
    (void)natsConnection_GetLastError(nc, &text);
    (void)pthread_mutex_lock(&n->lock);
    (void)snprintf(n->said, sizeof n->said, "%s", text != NULL ? text : "it is not permitted");
    (void)pthread_mutex_unlock(&n->lock);
}

/* A file that has a secret: nobody else may read it. */
static enum bt_code check_private(const char *option, const char *file, struct bt_error *err)
{
    const char *own = getenv("CREDENTIALS_DIRECTORY"); /* systemd lets only its unit in */
    struct stat st;

    if (stat(file, &st) != 0) {
        return err_set(err, BT_INVALID, "%s %s: %s", option, file, strerror(errno));
    }
    if (own != NULL && own[0] == '/' && strncmp(file, own, strlen(own)) == 0 &&
        file[strlen(own)] == '/' && strstr(file, "/../") == NULL) {
        return BT_OK;
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0) {
        return err_set(err, BT_INVALID,
                       "%s %s: it must be a file that only its owner can read (chmod 600)", option,
                       file);
    }
    return BT_OK;
}

/* The first line of a private file. */
static enum bt_code read_secret(const char *option, const char *file, char ret[SECRET_MAX],
                                struct bt_error *err)
{
    enum bt_code code = check_private(option, file, err);
    int fd;
    ssize_t n;

    if (code != BT_OK) {
        return code;
    }
    fd = open(file, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, ret, SECRET_MAX - 1) : -1;
    if (n < 0) {
        code = err_set(err, BT_INVALID, "%s %s: %s", option, file, strerror(errno));
    } else {
        ret[n] = 0;
        ret[strcspn(ret, "\r\n")] = 0;
        if (ret[0] == 0) {
            code = err_set(err, BT_INVALID, "%s %s: its first line is empty", option, file);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

static enum bt_code prove(natsOptions *no, const struct options *o, struct bt_error *err)
{
    char secret[SECRET_MAX];
    char public_key[NKEY_PUBLIC_LEN + 1];
    natsStatus s = NATS_OK;
    enum bt_code code = BT_OK;

    if (o->creds != NULL) {
        code = check_private("--creds", o->creds, err);
        s = code == BT_OK ? natsOptions_SetUserCredentialsFromFiles(no, o->creds, NULL) : NATS_OK;
    } else if (o->nkey != NULL) {
        code = read_secret("--nkey", o->nkey, secret, err);
        if (code == BT_OK && !nkey_public(secret, public_key)) {
            code = err_set(err, BT_INVALID,
                           "--nkey %s: its first line is no seed of a user (SU...)", o->nkey);
        }
        s = code == BT_OK ? natsOptions_SetNKeyFromSeed(no, public_key, o->nkey) : NATS_OK;
    } else if (o->user != NULL) {
        code = read_secret("--password-file", o->password_file, secret, err);
        s = code == BT_OK ? natsOptions_SetUserInfo(no, o->user, secret) : NATS_OK;
    } else if (o->token_file != NULL) {
        code = read_secret("--token-file", o->token_file, secret, err);
        s = code == BT_OK ? natsOptions_SetToken(no, secret) : NATS_OK;
    }
    explicit_bzero(secret, sizeof secret);
    if (code == BT_OK && s != NATS_OK) {
        code = nats_explain(s, 0, NULL, "the proof for the server", err);
    }
    return code;
}

static enum bt_code secure(natsOptions *no, const struct options *o, struct bt_error *err)
{
    static const char system_ca[] = "/etc/ssl/certs/ca-certificates.crt";
    const char *ca = o->tls_ca != NULL ? o->tls_ca : system_ca;
    const char *text;
    natsStatus s = natsOptions_SetSecure(no, true);

    if (access(ca, R_OK) != 0) {
        return err_set(err, BT_INVALID, "--tls-ca %s: %s", ca, strerror(errno));
    }
    if (s == NATS_OK) {
        s = natsOptions_LoadCATrustedCertificates(no, ca);
    }
    if (s != NATS_OK) {
        text = nats_GetLastError(NULL);
        return err_set(err, BT_INVALID, "--tls-ca %s: %s", ca,
                       text != NULL ? without_place(text) : "unreadable");
    }
    if (o->tls_cert == NULL) {
        return BT_OK;
    }
    if (check_private("--tls-key", o->tls_key, err) != BT_OK) {
        return BT_INVALID;
    }
    if (natsOptions_LoadCertificatesChain(no, o->tls_cert, o->tls_key) != NATS_OK) {
        text = nats_GetLastError(NULL);
        return err_set(err, BT_INVALID, "--tls-cert %s, --tls-key %s: %s", o->tls_cert, o->tls_key,
                       text != NULL ? without_place(text) : "unreadable");
    }
    return BT_OK;
}

static enum bt_code make_options(struct nats *n, const struct options *o, natsOptions **ret,
                                 struct bt_error *err)
{
    const char *servers[OPTIONS_SERVERS_MAX];
    natsOptions *no = NULL;
    natsStatus s = natsOptions_Create(&no);
    enum bt_code code;

    memcpy(servers, o->servers, sizeof servers);
    *ret = no;
    s = s == NATS_OK ? natsOptions_SetServers(no, servers, o->servers_n) : s;
    s = s == NATS_OK ? natsOptions_SetName(no, "baton-bridge-nats") : s;
    s = s == NATS_OK ? natsOptions_SetTimeout(no, CONNECT_MS) : s;
    s = s == NATS_OK ? natsOptions_SetMaxReconnect(no, -1) : s;
    s = s == NATS_OK ? natsOptions_SetReconnectWait(no, RECONNECT_MS) : s;
    s = s == NATS_OK ? natsOptions_SetPingInterval(no, PING_MS) : s;
    s = s == NATS_OK ? natsOptions_SetErrorHandler(no, on_error, n) : s;
    /* What was not sent is asked of the daemon again, so nothing is kept for a later connection. */
    s = s == NATS_OK ? natsOptions_SetReconnectBufSize(no, 0) : s;
    s = s == NATS_OK ? natsOptions_SetFailRequestsOnDisconnect(no, true) : s;
    if (s != NATS_OK) {
        return nats_explain(s, 0, NULL, "--server", err);
    }
    code = prove(no, o, err);
    return code == BT_OK && o->tls ? secure(no, o, err) : code;
}

enum bt_code nats_open(const struct options *o, struct nats **ret, struct bt_error *err)
{
    struct nats *n = calloc(1, sizeof *n);
    natsOptions *no = NULL;
    char what[300];
    enum bt_code code;
    natsStatus s;

    if (n == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a connection");
    }
    (void)pthread_mutex_init(&n->lock, NULL);
    code = make_options(n, o, &no, err);
    if (code == BT_OK) {
        s = natsConnection_Connect(&n->nc, no);
        if (s != NATS_OK) {
            (void)snprintf(what, sizeof what, "the server at %s", o->servers[0]);
            code = nats_explain(s, 0, nats_GetLastError(NULL), what, err);
        }
    }
    natsOptions_Destroy(no);
    if (code != BT_OK) {
        nats_free(n);
        return code;
    }
    *ret = n;
    return BT_OK;
}

void nats_free(struct nats *n)
{
    if (n == NULL) {
        return;
    }
    natsConnection_Destroy(n->nc);
    (void)pthread_mutex_destroy(&n->lock);
    free(n);
}
