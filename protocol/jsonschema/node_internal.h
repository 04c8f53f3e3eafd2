/*
 * A compiled schema: nodes (one per subschema) with rules (one per keyword that checks something).
 * A node refers to another one by index, so recursive schemas need no cyclic pointers. Private to
 * this room.
 */
#ifndef JSONSCHEMA_NODE_INTERNAL_H
#define JSONSCHEMA_NODE_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <cjson/cJSON.h>
#include <pcre2.h>

#include "protocol/base/arena.h"
#include "protocol/base/map.h"
#include "protocol/jsonschema/schema.h"

/* Caps of a schema and of a check, with their reasons. */
enum {
    SCHEMA_BYTES = 64 * 1024, /* a card of 64 skills stays below a control body */
    SCHEMA_DEPTH = 32,    /* twice the depth of an instance: a level costs a keyword and a name */
    SCHEMA_VALUES = 4096, /* JSON values in a schema; also bounds nodes and rules */
    SCHEMA_POINTER_BYTES = 512,  /* a $ref */
    SCHEMA_PATTERN_BYTES = 1024, /* a pattern; PCRE2 bounds the compiled form (64 Ki units) */
    SCHEMA_WORK = 100000,        /* units of work of one check: a node applied, a member visited */
    SCHEMA_WORK_PER_VALUE = 4,   /* further units per value of the instance, for large results */
    SCHEMA_CHECK_DEPTH = 256     /* nested nodes in a check: 256 C frames of about 500 bytes */
};

#define NODE_NONE UINT32_MAX

enum type_bit {
    TYPE_NULL = 1u << 0,
    TYPE_BOOLEAN = 1u << 1,
    TYPE_NUMBER = 1u << 2,
    TYPE_INTEGER = 1u << 3,
    TYPE_STRING = 1u << 4,
    TYPE_ARRAY = 1u << 5,
    TYPE_OBJECT = 1u << 6,
    TYPE_ANY = (1u << 7) - 1
};

/* In checking order: rules that make further ones pointless come first. */
enum rule_kind {
    RULE_TYPE,
    RULE_CONST,
    RULE_ENUM,
    RULE_MULTIPLE_OF,
    RULE_MINIMUM,
    RULE_MAXIMUM,
    RULE_EXCLUSIVE_MINIMUM,
    RULE_EXCLUSIVE_MAXIMUM,
    RULE_MIN_LENGTH,
    RULE_MAX_LENGTH,
    RULE_PATTERN,
    RULE_MIN_ITEMS,
    RULE_MAX_ITEMS,
    RULE_UNIQUE_ITEMS,
    RULE_MIN_PROPERTIES,
    RULE_MAX_PROPERTIES,
    RULE_REQUIRED,
    RULE_DEPENDENCIES,
    RULE_PROPERTY_NAMES,
    RULE_MEMBERS,
    RULE_ITEMS,
    RULE_CONTAINS,
    RULE_ALL_OF,
    RULE_ANY_OF,
    RULE_ONE_OF,
    RULE_NOT,
    RULE_IF,
    RULE_COUNT
};

struct pattern {
    pcre2_code *code; /* owned by schema.codes */
    const char *text;
};

struct node_list {
    uint32_t *at;
    uint32_t n;
};

struct member_pattern {
    pcre2_code *code; /* owned by schema.codes */
    uint32_t node;
};

/* properties, patternProperties and additionalProperties; one walk over the members checks all
 * three. */
struct members {
    struct members *next; /* list of schema.members, for map_done */
    struct map by_name;   /* name -> node; the names live in schema.tree */
    const cJSON *names;   /* the properties object, for "allowed: ..."; may be NULL */
    struct member_pattern *patterns;
    uint32_t n_patterns;
    uint32_t additional; /* NODE_NONE = no restriction */
};

/* items and additionalItems. */
struct items {
    struct node_list tuple;
    uint32_t rest; /* after the tuple; NODE_NONE = no restriction */
};

struct dependency {
    const char *name;
    const cJSON *needs; /* an array of names; NULL = use node */
    uint32_t node;
};

struct dependencies {
    struct dependency *at;
    uint32_t n;
};

struct conditional {
    uint32_t if_node;
    uint32_t then_node; /* NODE_NONE = nothing to check */
    uint32_t else_node;
};

struct rule {
    enum rule_kind kind;
    union {
        double number;
        uint64_t count;
        uint32_t types; /* enum type_bit */
        uint32_t node;
        const cJSON *json;
        struct pattern pattern;
        struct node_list list;
        const struct members *members;
        struct items items;
        struct dependencies dependencies;
        struct conditional conditional;
    } u;
};

/* `true` has no rules. */
enum node_kind { NODE_RULES, NODE_FALSE, NODE_REF };

struct node {
    enum node_kind kind;
    uint32_t ref;  /* NODE_REF: the target; after compiling never a NODE_REF itself */
    cJSON *source; /* in schema.tree */
    struct rule *rules;
    uint32_t n_rules;
    /* The path for messages: parent's pointer / keyword / key or ix. */
    uint32_t parent; /* NODE_NONE: `keyword` is a whole pointer */
    const char *keyword;
    const char *key;
    uint32_t ix; /* NODE_NONE: no index */
};

struct schema {
    struct arena arena; /* nodes, rules, lists */
    cJSON *tree;        /* our copy; names, enums and consts are borrowed from it */
    struct node *nodes;
    uint32_t n_nodes;
    uint32_t max_nodes;
    struct members *members; /* list of all, for map_done */
    pcre2_code **codes;
    uint32_t n_codes;
};

static inline uint32_t node_type(const cJSON *v)
{
    switch (v->type & 0xff) {
    case cJSON_NULL:
        return TYPE_NULL;
    case cJSON_True:
    case cJSON_False:
        return TYPE_BOOLEAN;
    case cJSON_Number:
        return TYPE_NUMBER;
    case cJSON_String:
        return TYPE_STRING;
    case cJSON_Array:
        return TYPE_ARRAY;
    case cJSON_Object:
        return TYPE_OBJECT;
    default:
        return 0;
    }
}
#endif
