/* The cards of the skills. The keyword planner selects by these words. */
#include "agents/sql/sql.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#define DATABASE                                                                                   \
    "\"database\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-]{1,64}$\",\"description\":"     \
    "\"name of the database; main when missing\"}"
#define STATEMENT                                                                                  \
    "\"sql\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000000,\"description\":\"one "    \
    "statement\",\"x-baton-fill\":\"quoted\"},"                                                    \
    "\"params\":{\"type\":[\"array\",\"object\"],\"description\":\"values for ? or :name; never "  \
    "part of the text\"},"                                                                         \
    "\"limit\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"get only the first rows; "    \
    "the "                                                                                         \
    "result states that it is not whole\"},"                                                       \
    "\"maxRows\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"the same\"}"

static const struct bt_skill skills[] = {
    {.id = "load",
     .name = "Load a table",
     .description =
         "Loads rows or CSV text into a new table of a SQL database; the types of the columns are "
         "found by themselves. Without rows it takes the result of the step before.",
     .tags = LIST("load", "import", "store", "csv", "table", "rows", "database", "sqlite"),
     .examples = LIST("load the csv into the table \"sales\"", "import the rows into the database",
                      "store the result in a table"),
     .input_schema =
         "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{" DATABASE ","
         "\"table\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64,\"description\":\"name "
         "of the table; data when missing\",\"x-baton-fill\":\"quoted\"},"
         "\"rows\":{\"type\":[\"array\",\"object\",\"string\"],\"description\":\"lists, objects, "
         "{columns, rows}, or CSV text; when missing, the result of the step "
         "before\",\"x-baton-fill\":\"previous\"},"
         "\"csv\":{\"type\":\"string\",\"description\":\"CSV text with a header line\"},"
         "\"artifact\":{\"type\":\"string\",\"description\":\"a file of an earlier step, of any "
         "size: {{results.STEP.artifact}}; CSV, or rows of sql.query\"},"
         "\"file\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4095,\"description\":\"a CSV "
         "file "
         "below the roots of this agent's settings\"},"
         "\"delimiter\":{\"type\":\"string\",\"description\":\"of CSV: one character, or "
         "tab; a comma when missing\"},"
         "\"columns\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1},"
         "\"description\":\"names for the columns, in order\"},"
         "\"types\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"},"
         "\"description\":\"column: text, integer, real, boolean or date, instead of the type that "
         "is found\"},"
         "\"replace\":{\"type\":\"boolean\",\"description\":\"put the rows in the place of a "
         "table of that name\"}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"table\",\"rows\",\"columns\"]}",
     .effects = "idempotent",
     .run = sql_load},
    {.id = "query",
     .name = "Query a database",
     .description =
         "Queries a SQL database (SQLite): runs one SELECT with parameters and returns its rows, "
         "with a Markdown table for people. Filters, joins, groups, sums, counts and sorts tables. "
         "It cannot change anything.",
     .tags = LIST("sql", "query", "select", "database", "sqlite", "table", "join", "group", "sum",
                  "filter", "sort"),
     .examples =
         LIST("query the database with \"SELECT name, sum(amount) FROM sales GROUP BY name\"",
              "run the sql \"SELECT count(*) FROM data\"", "select the rows of a table"),
     .input_schema =
         "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"sql\"],\"properties\":"
         "{" DATABASE "," STATEMENT ","
         "\"artifact\":{\"enum\":[true,false,\"ndjson\",\"csv\"],\"description\":\"put all rows "
         "into "
         "a file of the plan; later steps name it by {{results.STEP.artifact}}\"}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"columns\",\"rowCount\","
                      "\"truncated\"]}",
     .effects = "none",
     .run = sql_query},
    {.id = "schema",
     .name = "Describe a database",
     .description =
         "Lists the tables of a SQL database with their columns and types, and the databases there "
         "are.",
     .tags = LIST("schema", "tables", "columns", "describe", "database", "structure", "sqlite"),
     .examples = LIST("list the tables of the database", "describe the database schema",
                      "which columns does the table have"),
     .input_schema = "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{" DATABASE "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"database\",\"tables\"]}",
     .effects = "none",
     .run = sql_schema},
    {.id = "execute",
     .name = "Change a database",
     .description =
         "Executes one SQL statement that changes a database: insert, update, delete, create or "
         "drop, with parameters, in a transaction of its own.",
     .tags = LIST("execute", "insert", "update", "delete", "create", "drop", "alter", "change",
                  "database", "sql"),
     .examples = LIST("execute \"UPDATE sales SET amount = 0 WHERE amount IS NULL\"",
                      "insert a row into the table", "delete rows from the table"),
     .input_schema = "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"sql\"],"
                     "\"properties\":{" DATABASE "," STATEMENT "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"changes\"]}",
     .effects = "idempotent",
     .run = sql_execute},
};

const struct bt_skill *sql_skills(size_t *ret_n)
{
    *ret_n = sizeof skills / sizeof skills[0];
    return skills;
}

bool sql_skill_offered(const struct bt_skill *skill, const struct sql_settings *s)
{
    return !s->read_only ||
           (skill->run != sql_execute && (skill->run != sql_load || s->allow_load));
}
