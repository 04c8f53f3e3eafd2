/* On whose behalf a client decides: what it knows itself. The daemon takes it as a claim. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/utf8.h"
#include "protocol/client/client_internal.h"

enum { NAME_BYTES = 64, PASSWD_BYTES = 4096 };

void bt_client_via(struct bt_client *c, const char *via)
{
    (void)snprintf(c->via, sizeof c->via, "%s", via != NULL ? via : "");
}

/* Text that any terminal, log and journal can take; cut to the cap of the wire. */
static void put_member(struct buf *out, const char *name, const char *text)
{
    struct str s = {text, utf8_cut(text, strlen(text), NAME_BYTES)};

    doc_put_cstr(out, name);
    doc_put_str(out, utf8_valid(s.ptr, s.len) ? s : STR_LIT("?"));
}

void client_put_by(const struct bt_client *c, struct buf *out)
{
    char bytes[PASSWD_BYTES];
    char user[NAME_BYTES + 1] = "";
    char host[256] = "";
    struct passwd entry;
    struct passwd *found = NULL;

    if (getpwuid_r(getuid(), &entry, bytes, sizeof bytes, &found) == 0 && found != NULL) {
        (void)snprintf(user, sizeof user, "%s", found->pw_name);
    } else {
        (void)snprintf(user, sizeof user, "uid %lu", (unsigned long)getuid());
    }
    if (gethostname(host, sizeof host - 1) != 0) {
        host[0] = 0;
    }
    doc_put_map(out, 3);
    put_member(out, "user", user);
    put_member(out, "host", host);
    put_member(out, "via", c->via[0] != 0 ? c->via : "libbaton " BATON_VERSION);
}
