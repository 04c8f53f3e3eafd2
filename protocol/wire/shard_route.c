#include "protocol/wire/shard_route.h"

#include <string.h>

#include "protocol/base/shard.h"

static int of_key(struct str key, uint32_t shards)
{
    return key.len == 0 ? SHARD_ANY : (int)shard_of_key(key, shards);
}

/* The id is the whole text, or what is before its first slash. */
static bool is_id(struct str text, struct uuid *ret)
{
    return text.len >= UUID_TEXT_LEN &&
           (text.len == UUID_TEXT_LEN || text.ptr[UUID_TEXT_LEN] == '/') &&
           uuid_parse((struct str){text.ptr, UUID_TEXT_LEN}, ret);
}

static int of_blob(struct doc id, uint32_t shards)
{
    const struct doc_head head = id.ptr != NULL ? doc_head(id) : (struct doc_head){.kind = DOC_NIL};
    const uint64_t shard = head.kind == DOC_UINT ? head.u >> SHARD_BLOB_BITS : shards;

    return shard < shards ? (int)shard : SHARD_ANY;
}

/* A file of a plan: a part of its uri is the plan's id. */
static bool id_in_uri(struct str uri, struct uuid *ret)
{
    bool found = false;

    for (size_t i = 1; i + UUID_TEXT_LEN <= uri.len && !found; i++) {
        found = uri.ptr[i - 1] == '/' && is_id((struct str){uri.ptr + i, uri.len - i}, ret);
    }
    return found;
}

static struct str text_at(struct doc body, const char *path)
{
    return doc_string(doc_path(body, str_from(path)));
}

static struct str key_of_new_plan(struct doc body, enum shard_key *ret)
{
    static const struct {
        const char *path;
        enum shard_key key;
    } keys[] = {
        {"sessionId", SHARD_KEY_SESSION},
        {"plan.sessionId", SHARD_KEY_SESSION},
        {"plan.session_id", SHARD_KEY_SESSION},
        {"policy.concurrencyKey", SHARD_KEY_RUNNING},
        {"policy.concurrency_key", SHARD_KEY_RUNNING},
        {"plan.policy.concurrencyKey", SHARD_KEY_RUNNING},
        {"plan.policy.concurrency_key", SHARD_KEY_RUNNING},
        {"clientKey", SHARD_KEY_CLIENT},
    };
    struct str found = {"", 0};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && found.len == 0; i++) {
        found = text_at(body, keys[i].path);
        *ret = keys[i].key;
    }
    return found;
}

static bool begins(struct str type, const char *with)
{
    const size_t n = strlen(with);

    return type.len >= n && memcmp(type.ptr, with, n) == 0;
}

static bool is_list(struct str type)
{
    static const char *const lists[] = {"plan.list", "review.list", "session.list", "schedule.list",
                                        "supervisor.stats"};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (str_is(type, lists[i])) {
            return true;
        }
    }
    return false;
}

static bool has_no_shard(struct str type)
{
    return begins(type, "agent") || begins(type, "step.") || begins(type, "auth.") ||
           str_is(type, "artifact.store") || str_is(type, "artifact.fetch");
}

struct str shard_key_of_request(struct str type, struct doc body, enum shard_key *ret)
{
    struct str key = {"", 0};

    *ret = SHARD_KEY_NONE;
    if (has_no_shard(type) || str_is(type, "artifact.read") || str_is(type, "blob.get")) {
        return key;
    }
    if (str_is(type, "plan.submit")) {
        key = key_of_new_plan(body, ret);
    } else if (text_at(body, "planId").len == 0) {
        key = text_at(body, "sessionId");
        *ret = SHARD_KEY_SESSION;
        if (key.len == 0 && (begins(type, "schedule.") || str_is(type, "journal.import"))) {
            key = text_at(body, "name");
            *ret = SHARD_KEY_NAME;
        }
    }
    *ret = key.len == 0 ? SHARD_KEY_NONE : *ret;
    return key;
}

bool shard_id_of_request(struct str type, struct doc body, struct uuid *ret)
{
    if (has_no_shard(type) || str_is(type, "blob.get") || str_is(type, "plan.submit")) {
        return false;
    }
    if (str_is(type, "artifact.read")) {
        return id_in_uri(text_at(body, "uri"), ret);
    }
    return is_id(text_at(body, "planId"), ret) || is_id(text_at(body, "reviewId"), ret);
}

int shard_of_request(struct str type, struct doc body, uint32_t shards)
{
    enum shard_key kind;
    struct uuid id;
    int shard = SHARD_ANY;

    if (has_no_shard(type)) {
        return SHARD_ANY;
    }
    if (str_is(type, "blob.get")) {
        return of_blob(doc_get(body, STR_LIT("blobId")), shards);
    }
    if (shard_id_of_request(type, body, &id) && shard_of_id(id) < shards) {
        shard = (int)shard_of_id(id);
    }
    if (shard == SHARD_ANY) {
        shard = of_key(shard_key_of_request(type, body, &kind), shards);
    }
    return shard == SHARD_ANY && is_list(type) ? SHARD_ALL : shard;
}
