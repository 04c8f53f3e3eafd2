/* The cards of the skills. The keyword planner selects by these words. */
#include "agents/files/files.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Members of input schemas, one property a line; clang-format would reflow them. */
/* clang-format off */
#define TEXT "\"type\":\"string\""
#define COUNT "\"type\":\"integer\",\"minimum\":1"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define SAYS(words) ",\"description\":\"" words "\""
#define PATH "\"path\":{" TEXT ",\"minLength\":1,\"maxLength\":4095,\"x-baton-fill\":\"path\"}"
#define ARTIFACT \
    "\"artifact\":{\"type\":\"boolean\"" \
    SAYS("put the result into a file of the plan, of any size; later steps name it by " \
         "{{results.STEP.artifact}}") "}"
#define PATTERN TEXT ",\"minLength\":1,\"maxLength\":4096"

static const char read_input[] =
    "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"path\"],\"properties\":{" PATH ","
    "\"offset\":{\"type\":\"integer\",\"minimum\":0" SAYS("first byte") "},"
    "\"limit\":{" COUNT SAYS("bytes; missing = the whole file, which must fit") "}," ARTIFACT "}}";

static const char list_input[] =
    "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"path\"],\"properties\":{" PATH ","
    "\"glob\":{" TEXT ",\"minLength\":1,\"maxLength\":255"
    SAYS("*, ?, [a-z]; of the name, or with a slash of the path") "},"
    "\"recursive\":" BOOLEAN ","
    "\"limit\":{" COUNT ",\"maximum\":20000" SAYS("get only so many; the result states that it is not whole") "}}}";

static const char grep_input[] =
    "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"path\",\"pattern\"],\"properties\":{" PATH ","
    "\"pattern\":{" PATTERN SAYS("PCRE2") ",\"x-baton-fill\":\"quoted or sought\"},"
    "\"ignoreCase\":" BOOLEAN ","
    "\"limit\":{" COUNT ",\"maximum\":4000000000" SAYS("get only the first; the result states that it is not whole") "},"
    "\"context\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":10}," ARTIFACT "}}";

static const char count_input[] =
    "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{" PATH ","
    "\"text\":{" TEXT SAYS("instead of a file") ",\"x-baton-fill\":\"previous.text\"},"
    "\"unit\":{\"enum\":[\"lines\",\"words\"],\"x-baton-fill\":\"choice\"}}}";

static const char csv_input[] =
    "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{" PATH ","
    "\"text\":{" TEXT SAYS("instead of a file") ",\"x-baton-fill\":\"previous.text\"},"
    "\"pattern\":{" PATTERN SAYS("PCRE2; its named groups are the columns") "},"
    "\"ignoreCase\":" BOOLEAN ","
    "\"delimiter\":{" TEXT SAYS("one character, or tab; a comma when there is no pattern") "},"
    "\"header\":{\"type\":\"boolean\"" SAYS("the first line is their names; default true") "},"
    "\"columns\":{\"type\":\"array\",\"items\":{" TEXT "},\"maxItems\":256"
    SAYS("which ones, in this order") "},"
    "\"where\":{\"type\":\"object\""
    SAYS("column: value, or list of values; rows with none of them are left out") "},"
    "\"types\":{\"type\":\"object\",\"additionalProperties\":{" TEXT "}"
    SAYS("column: text, integer, real, boolean or date, instead of the type that is found") "},"
    "\"limit\":{" COUNT "}," ARTIFACT "}}";

static const char write_input[] =
    "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"path\"],\"properties\":{" PATH ","
    "\"text\":{" TEXT SAYS("missing = the text of the step before")
    ",\"x-baton-fill\":\"previous.text or quoted\"},"
    "\"data\":{\"description\":\"instead of text: written as JSON\"},"
    "\"mkdirs\":{\"type\":\"boolean\"" SAYS("make the directories that are missing") "}}}";

static const char render_input[] =
    "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{"
    "\"title\":{" TEXT ",\"maxLength\":500,\"x-baton-fill\":\"quoted\"},"
    "\"text\":{" TEXT SAYS("stands before the sections") ",\"x-baton-fill\":\"previous.text\"},"
    "\"sections\":{\"type\":\"array\",\"maxItems\":200,\"items\":{\"type\":\"object\","
    "\"properties\":{\"heading\":{" TEXT "},\"text\":{},\"list\":{\"type\":\"array\"},"
    "\"table\":{\"description\":\"{columns, rows}, a list of objects, or CSV text\"}}}},"
    "\"template\":{" TEXT SAYS("{{name}} or {{a.0.b}} stands for a member of data") "},"
    "\"data\":{}}}";
/* clang-format on */

const struct bt_skill files_skills[] = {
    {.id = "read",
     .name = "Read a file",
     .description = "Reads a text file, such as a log, or a part of it, and hands on its text.",
     .tags = LIST("read", "file", "open", "load", "show", "text", "log", "contents", "cat"),
     .examples = LIST("read /var/log/dpkg.log", "open the file notes.txt",
                      "show the contents of /etc/hosts", "load the log"),
     .input_schema = read_input,
     .output_schema = "{\"type\":\"object\",\"required\":[\"path\",\"bytes\",\"truncated\"]}",
     .effects = "none",
     .run = files_read},
    {.id = "list",
     .name = "List a directory",
     .description = "Lists the files of a directory or folder with size, type and time of the last "
                    "change; by a name pattern such as *.log, and with its subdirectories when "
                    "recursive.",
     .tags = LIST("list", "ls", "directory", "folder", "files", "find", "names", "contents"),
     .examples = LIST("list the files in /var/log", "which files are in the folder /srv/data",
                      "find the files below /var/log"),
     .input_schema = list_input,
     .output_schema = "{\"type\":\"object\",\"required\":[\"entries\",\"count\",\"truncated\"]}",
     .effects = "none",
     .run = files_list},
    {.id = "grep",
     .name = "Search a file",
     .description = "Searches a file for a regular expression or word in quotes and hands on the "
                    "lines that match.",
     .tags = LIST("grep", "search", "find", "filter", "match", "lines", "pattern", "containing"),
     .examples = LIST("search /var/log/syslog for \"error\"", "grep \"install\" in the log",
                      "find the lines with \"timeout\" in the file"),
     .input_schema = grep_input,
     .output_schema = "{\"type\":\"object\",\"required\":[\"count\",\"truncated\"]}",
     .effects = "none",
     .run = files_grep},
    {.id = "count",
     .name = "Count lines",
     .description = "Counts the lines or words of a text.",
     .tags = LIST("count", "number", "wc"),
     .examples = LIST("count the lines in /var/log/syslog", "how many lines are in notes.txt"),
     .input_schema = count_input,
     .output_schema = "{\"type\":\"object\",\"required\":[\"lines\",\"words\"]}",
     .effects = "none",
     .run = files_count},
    {.id = "csv",
     .name = "Rows from lines",
     .description =
         "Parses a CSV file, or lines of a log by a pattern with named groups, into rows "
         "and columns for tables and SQL.",
     .tags = LIST("csv", "parse", "rows", "columns", "table", "split", "fields", "delimiter"),
     .examples = LIST("parse the csv file /srv/data/sales.csv", "split the lines into columns",
                      "turn the log into rows"),
     .input_schema = csv_input,
     .output_schema = "{\"type\":\"object\",\"required\":[\"columns\",\"rowCount\",\"skipped\"]}",
     .effects = "none",
     .run = files_csv},
    {.id = "write",
     .name = "Write a file",
     .description = "Writes, saves or stores a text or data as a file, replacing it at once.",
     .tags = LIST("write", "save", "store", "file", "export", "output"),
     .examples = LIST("write the report to /srv/reports/today.md", "save it as result.json",
                      "store the text in the file"),
     .input_schema = write_input,
     .output_schema = "{\"type\":\"object\",\"required\":[\"path\",\"bytes\"]}",
     .effects = "idempotent",
     .run = files_write},
    {.id = "render",
     .name = "Render a Markdown report",
     .description = "Renders a Markdown document from a title and sections with texts, tables and "
                    "lists, or from a template with data.",
     .tags = LIST("render", "markdown", "document", "format", "compose", "template", "sections"),
     .examples = LIST("render a markdown report", "format the result as a document",
                      "compose a report titled \"Installs\""),
     .input_schema = render_input,
     .effects = "none",
     .run = files_render},
};
const size_t files_skill_count = sizeof files_skills / sizeof files_skills[0];
