/* The cards of the skills. */
#include "agents/graph/graph.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* clang-format off */
#define KEY "{\"type\":\"string\",\"minLength\":1,\"maxLength\":512}"
#define LIMIT "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10000,\"description\":\"get only the first; the result states that it is not whole\"}"
#define WALK(depth) \
    "\"depth\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":8,\"description\":\"" depth " when missing\"}," \
    "\"direction\":{\"enum\":[\"out\",\"in\",\"both\"],\"description\":\"both when missing\"}," \
    "\"kinds\":{\"type\":\"array\",\"maxItems\":32,\"items\":" KEY ",\"description\":\"of relations; all when missing\"}," LIMIT
#define ENTITY \
    "{\"type\":\"object\",\"required\":[\"key\"],\"additionalProperties\":false,\"properties\":{" \
    "\"key\":" KEY ",\"kind\":" KEY ",\"name\":" KEY ",\"properties\":{\"type\":\"object\"}}}"
#define RELATION \
    "{\"type\":\"object\",\"required\":[\"from\",\"kind\",\"to\"],\"additionalProperties\":false,\"properties\":{" \
    "\"from\":" KEY ",\"kind\":" KEY ",\"to\":" KEY ",\"properties\":{\"type\":\"object\"}}}"
/* clang-format on */

const struct bt_skill graph_skills[] = {
    {.id = "merge",
     .name = "Merge into the graph",
     .description = "Adds entities and relations, or merges what is new into those with the same "
                    "key; the same again changes nothing.",
     .tags = LIST("merge", "entities", "relations", "graph", "remember", "link"),
     .examples = LIST("merge the entities and relations into the graph"),
     .input_schema =
         "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{"
         "\"entities\":{\"type\":\"array\",\"items\":" ENTITY ",\"maxItems\":20000},"
         "\"relations\":{\"type\":\"array\",\"items\":" RELATION ",\"maxItems\":20000}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"entitiesAdded\",\"relationsAdded\"]}",
     .effects = "idempotent",
     .run = graph_merge},
    {.id = "remove",
     .name = "Remove from the graph",
     .description = "Removes entities with their relations, or single relations.",
     .tags = LIST("remove", "delete", "unlink", "graph"),
     .examples = LIST("remove the entity from the graph"),
     .input_schema =
         "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{"
         "\"entities\":{\"type\":\"array\",\"items\":" KEY ",\"maxItems\":20000},"
         "\"relations\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"from\","
         "\"kind\",\"to\"]},\"maxItems\":20000}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"entitiesRemoved\"]}",
     .effects = "idempotent",
     .run = graph_remove},
    {.id = "find",
     .name = "Find entities",
     .description = "Finds entities of the graph by a part of their key or name, or by their kind.",
     .tags = LIST("entities", "lookup", "graph"),
     .examples = LIST("find the entities of the kind service in the graph"),
     .input_schema =
         "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{"
         "\"text\":{\"type\":\"string\",\"maxLength\":512},\"kind\":" KEY "," LIMIT "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"entities\",\"count\"]}",
     .effects = "none",
     .run = graph_find},
    {.id = "neighbours",
     .name = "Neighbours of an entity",
     .description = "Lists the entities within some steps of one, and the relations that lead "
                    "there.",
     .tags = LIST("neighbours", "neighbors", "related", "connected", "graph", "depends"),
     .examples = LIST("list the neighbours of the entity \"billing\""),
     .input_schema = "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"key\"],"
                     "\"properties\":{\"key\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":"
                     "512,\"x-baton-fill\":\"quoted\"}," WALK("1") "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"entities\",\"count\"]}",
     .effects = "none",
     .run = graph_neighbours},
    {.id = "paths",
     .name = "Paths between entities",
     .description = "Finds the shortest paths between two entities of the graph.",
     .tags = LIST("paths", "path", "route", "between", "graph"),
     .examples = LIST("find the paths between two entities of the graph"),
     .input_schema = "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"from\",\"to\"],"
                     "\"properties\":{\"from\":" KEY ",\"to\":" KEY "," WALK("6") "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"paths\",\"count\"]}",
     .effects = "none",
     .run = graph_paths},
};
const size_t graph_skill_count = sizeof graph_skills / sizeof graph_skills[0];
