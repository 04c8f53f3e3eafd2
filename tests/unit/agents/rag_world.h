/* The rag agent over a folder of the test, with the service of its process (service.h) for vectors.
 */
#ifndef TEST_RAG_WORLD_H
#define TEST_RAG_WORLD_H

#include "agents/rag/rag.h"
#include "tests/unit/agents/service.h"
#include "tests/unit/agents/steps.h"

/* An agent over an empty folder with these further members of the settings ("," first; the form of
 * service_text). The folder and the database of before are gone. */
void rag_use(const char *members);
/* The same folder and database, other settings. */
void rag_change(const char *members);
struct rag *rag_used(void);
/* The folder; the path of the database. */
const char *rag_folder(void);
const char *rag_database(void);
/* A file below the folder, and its directories. */
void rag_write(const char *name, const void *bytes, size_t n);
void rag_text(const char *name, const char *text);
void rag_remove(const char *name);
/* Runs the skill; parameters in the form of service_text. */
const char *rag_do(const char *skill, const char *parameters);
void rag_says(const char *reply, const char *part);
/* Runs a statement of SQL on the database. */
void rag_sql(const char *sql);
/* The number that one returns. */
int64_t rag_count(const char *sql);
int rag_start(void **state);
int rag_stop(void **state);
#endif
