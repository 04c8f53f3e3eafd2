/* The cards of the skills. */
#include "agents/rag/rag.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct bt_skill rag_skills[] = {
    {.id = "index",
     .name = "Index the folder",
     .description = "Reads the new and changed files of the folder into the search index, and "
                    "forgets those that are gone.",
     .tags = LIST("index", "reindex", "refresh", "knowledge"),
     .examples = LIST("index the knowledge base", "refresh the search index"),
     .input_schema = "{\"type\":\"object\",\"properties\":{}}",
     .output_schema =
         "{\"type\":\"object\",\"required\":[\"files\",\"chunks\",\"indexed\",\"unchanged\","
         "\"removed\",\"skippedCount\"]}",
     .effects = "idempotent",
     .run = rag_index},
    {.id = "retrieve",
     .name = "Find passages",
     .description = "Finds the passages of the indexed documents that answer a question best, each "
                    "with its file, lines and score.",
     .tags = LIST("retrieve", "passages", "question", "documents", "knowledge", "cite", "rag"),
     .examples = LIST("retrieve what the handbook says about holidays",
                      "find passages about \"backups\" in the documents"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":16384,\"x-baton-fill\":"
         "\"quoted or clause\"},"
         "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"description\":\"how many "
         "passages; 5 when missing\"},"
         "\"files\":{\"type\":\"string\",\"maxLength\":1024,\"description\":\"a glob of paths "
         "below "
         "the folder: guide/*\"}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"query\",\"matches\",\"results\"]}",
     .effects = "none",
     .run = rag_retrieve},
};
const size_t rag_skill_count = sizeof rag_skills / sizeof rag_skills[0];
