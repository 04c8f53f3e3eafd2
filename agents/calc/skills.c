/* The cards of the skills. The keyword planner selects by these words. */
#include "agents/calc/calc.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#define ROWS_SAYS                                                                                  \
    "\"description\":\"rows: {columns, rows}, a list of objects, a map, or CSV text; when "        \
    "missing, the result of the step before\","
#define ROWS ROWS_SAYS "\"x-baton-fill\":\"previous\""
#define TYPES                                                                                      \
    "\"types\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"},"               \
    "\"description\":\"column: text, integer, real, boolean or date, instead of the type that is " \
    "found\"},"
#define ZONE                                                                                       \
    "\"zone\":{\"type\":\"string\",\"maxLength\":64,\"description\":\"a name of tzdata such as "   \
    "Europe/Berlin; UTC when missing\"}"
#define MOMENT                                                                                     \
    "{\"type\":\"object\",\"required\":[\"timestamp\",\"tsMs\",\"zone\",\"local\",\"date\"]}"
#define NUMBERS ROWS_SAYS "\"x-baton-fill\":\"numbers or previous\""

const struct bt_skill calc_skills[] = {
    {.id = "evaluate",
     .name = "Evaluate an expression",
     .description =
         "Calculates an arithmetic expression with + - * / % ^, parentheses, variables and "
         "functions such as "
         "min, max, sum, mean, median, stdev, percentile, round, abs, sqrt, ln, log, exp.",
     .tags = LIST("calculate", "compute", "arithmetic", "math", "expression", "formula", "number",
                  BT_TAG_QUICK),
     .examples =
         LIST("calculate (17 + 4) * 2", "compute round(sqrt(2), 3)", "evaluate total / days"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"expression\":{\"type\":\"string\",\"maxLength\":4096,\"x-baton-fill\":\"quoted or "
         "expression\"},"
         "\"variables\":{\"type\":\"object\"}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"value\"],\"properties\":{\"value\":{"
                      "\"type\":\"number\"}}}",
     .effects = "none",
     .run = calc_evaluate},
    {.id = "statistics",
     .name = "Statistics of a list",
     .description = "Describes a list of numbers or a column of rows: count, sum, mean (average), "
                    "median, standard "
                    "deviation, minimum, maximum and percentiles.",
     .tags = LIST("statistics", "average", "mean", "median", "percentile", "stdev", "summary",
                  "distribution"),
     .examples = LIST("compute the average and the median of the durations",
                      "statistics of the column size"),
     .input_schema = "{\"type\":\"object\",\"properties\":{" TYPES "\"values\":{" NUMBERS "},"
                     "\"field\":{\"type\":\"string\",\"description\":\"the column; missing = the "
                     "last column of "
                     "numbers\"}}}",
     .effects = "none",
     .run = calc_statistics},
    {.id = "shares",
     .name = "Shares in per cent",
     .description = "Computes the share of each row in the total, in per cent.",
     .tags = LIST("shares", "percent", "percentage", "proportion", "ratio", "fraction"),
     .examples = LIST("compute the share of each day in per cent",
                      "what percentage does each package have"),
     .input_schema = "{\"type\":\"object\",\"properties\":{" TYPES "\"values\":{" ROWS "},"
                     "\"label\":{\"type\":\"string\",\"description\":\"the column of names\"},"
                     "\"value\":{\"type\":\"string\",\"description\":\"the column of numbers\"}}}",
     .effects = "none",
     .run = calc_shares},
    {.id = "count_by",
     .name = "Count by a field",
     .description = "Counts how often each value occurs: of a column of rows, or of what a regular "
                    "expression finds in "
                    "the lines of a text. The most frequent first.",
     .tags = LIST("count", "frequency", "histogram", "group", "tally", "most", "top"),
     .examples = LIST("count the rows by status", "count which packages occur most often"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{" TYPES "\"items\":{" ROWS "},"
         "\"field\":{\"type\":\"string\",\"description\":\"the column; missing = the first\"},"
         "\"pattern\":{\"type\":\"string\",\"maxLength\":4096,\"description\":\"regular expression "
         "for lines of "
         "text; its first group is the label\"},"
         "\"limit\":{\"type\":\"integer\",\"minimum\":1}}}",
     .effects = "none",
     .run = calc_count_by},
    {.id = "count_per_day",
     .name = "Count log lines per day",
     .description = "Counts the lines of a log or text per day, per hour of the day or per month, "
                    "by the date in each "
                    "line. Counts only the lines with a word, such as install, upgrade, error or "
                    "login, when the task "
                    "names one.",
     .tags = LIST("count", "per", "day", "daily", "hour", "month", "log", "installs", "upgrades",
                  "errors", "events"),
     .examples = LIST("count the installs per day", "count the errors per hour",
                      "how many upgrades were there each "
                      "month",
                      "count events by day"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"text\":{\"type\":\"string\",\"description\":\"the lines; when missing, the result of "
         "the step "
         "before\",\"x-baton-fill\":\"previous.text\"},"
         "\"contains\":{\"type\":\"string\",\"description\":\"count only lines with this word\"},"
         "\"per\":{\"enum\":[\"day\",\"hour\",\"month\"]},"
         "\"limit\":{\"type\":\"integer\",\"minimum\":1}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"columns\",\"rows\",\"total\"]}",
     .effects = "none",
     .run = calc_count_per_day},
    {.id = "busiest",
     .name = "Report the busiest",
     .description = "Reports the busiest day, hour or row of counts: the maximum, its share of the "
                    "total, in a sentence "
                    "with a Markdown table.",
     .tags = LIST("report", "busiest", "maximum", "most", "peak", "highest", "largest", "day"),
     .examples =
         LIST("report the busiest day", "which hour is the peak", "report the highest count"),
     .input_schema = "{\"type\":\"object\",\"properties\":{" TYPES "\"counts\":{" ROWS "},"
                     "\"value\":{\"type\":\"string\",\"description\":\"the column of numbers\"},"
                     "\"rows\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"rows to show; "
                     "31 by default\"}}}",
     .effects = "none",
     .run = calc_busiest},
    {.id = "sort",
     .name = "Sort rows",
     .description = "Sorts rows by one or more columns, ascending or descending; equal rows keep "
                    "their order, empty cells come last.",
     .tags = LIST("sort", "order", "ascending", "descending", "rank"),
     .examples = LIST("sort the rows by amount, descending", "order the rows by name"),
     .input_schema =
         "{\"type\":\"object\",\"required\":[\"by\"],\"properties\":{" TYPES "\"values\":{" ROWS
         "},"
         "\"by\":{\"description\":\"a column, {field, order: asc or desc, per: day, week, month, "
         "quarter or year}, or a list of them\"},"
         "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"get only the first rows; "
         "the result states that it is not whole\"}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"columns\",\"rows\",\"rowCount\"]}",
     .effects = "none",
     .run = calc_sort},
    {.id = "group",
     .name = "Group rows",
     .description =
         "Groups rows by columns, or by the day, week, month, quarter or year of a date, and "
         "aggregates each group: count, sum, min, max, mean, median, percentile. Integers are "
         "exact.",
     .tags = LIST("group", "aggregate", "subtotal", "pivot", "sum", "quarter", "week"),
     .examples =
         LIST("group the rows by region and sum the amounts", "aggregate the sales by quarter"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{" TYPES "\"values\":{" ROWS "},"
         "\"by\":{\"description\":\"a column, {field, per: day, week, month, quarter or year, "
         "order}, or a list of them; missing = one group\"},"
         "\"calculate\":{\"type\":\"array\",\"maxItems\":32,\"description\":\"count when missing\","
         "\"items\":{\"type\":[\"object\",\"string\"],\"properties\":{"
         "\"function\":{\"enum\":[\"count\",\"sum\",\"min\",\"max\",\"mean\",\"avg\",\"median\","
         "\"percentile\"]},\"field\":{\"type\":\"string\"},"
         "\"percent\":{\"type\":\"number\",\"minimum\":0,\"maximum\":100},"
         "\"method\":{\"enum\":[\"linear\",\"nearest\"]},\"as\":{\"type\":\"string\"}}}},"
         "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"get only the first "
         "groups; "
         "the result states that it is not whole\"}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"columns\",\"rows\",\"rowCount\"]}",
     .effects = "none",
     .run = calc_group},
    {.id = "percentiles",
     .name = "Percentiles of a column",
     .description = "Finds percentiles (quantiles, quartiles) of a column of numbers: linear "
                    "interpolation, or the nearest rank.",
     .tags = LIST("percentiles", "quantiles", "quartiles", "p95"),
     .examples = LIST("find the quartiles of the durations", "percentiles of the column size"),
     .input_schema = "{\"type\":\"object\",\"properties\":{" TYPES "\"values\":{" NUMBERS "},"
                     "\"field\":{\"type\":\"string\",\"description\":\"the column; missing = the "
                     "last column of "
                     "numbers\"},"
                     "\"percents\":{\"type\":\"array\",\"maxItems\":100,\"items\":{\"type\":"
                     "\"number\",\"minimum\":"
                     "0,\"maximum\":100},\"description\":\"25, 50, 75, 90, 95, 99 when missing\"},"
                     "\"method\":{\"enum\":[\"linear\",\"nearest\"]}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"columns\",\"rows\",\"method\"]}",
     .effects = "none",
     .run = calc_percentiles},
    {.id = "now",
     .name = "Current time",
     .description = "Tells the current date, time and day of the week, in UTC or a time zone.",
     .tags = LIST("time", "now", "today", "clock", "date", "weekday", BT_TAG_QUICK),
     .examples = LIST("what time is it", "tell the current date", "which weekday is today"),
     .input_schema = "{\"type\":\"object\",\"properties\":{" ZONE "}}",
     .output_schema = MOMENT,
     .effects = "none",
     .run = calc_now},
    {.id = "time",
     .name = "Convert a time",
     .description = "Reads a timestamp and converts it to another time zone, or to a list of them: "
                    "offset, weekday, ISO week.",
     .tags = LIST("timezone", "zone", "convert", "timestamp", "utc", "offset"),
     .examples = LIST("convert 2026-11-21T03:53:00Z to the time zone Europe/Berlin",
                      "convert the timestamp 1795233180 to another zone"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"time\":{\"type\":[\"string\",\"integer\"],\"description\":\"ISO 8601, the form of "
         "mail, seconds or milliseconds since 1970, now, today; missing = now\"}," ZONE ","
         "\"to\":{\"type\":[\"string\",\"array\"],\"items\":{\"type\":\"string\"},\"maxItems\":64,"
         "\"description\":\"one time zone, or a list: then rows\"}}}",
     .output_schema = MOMENT,
     .effects = "none",
     .run = calc_time},
    {.id = "duration",
     .name = "Convert a duration",
     .description = "Reads a span such as PT1H30M, 90 minutes or 1:30:00, or takes the one between "
                    "two moments, in seconds, hours and ISO 8601.",
     .tags = LIST("span", "elapsed", "iso8601", "seconds", BT_TAG_QUICK),
     .examples = LIST("convert the span 1h 30m to seconds", "elapsed from 09:00Z until 17:30Z"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"value\":{\"type\":[\"string\",\"number\"],\"description\":\"PT1H30M, 1h 30m, 1:30:00; "
         "a number is seconds\"},"
         "\"from\":{\"type\":[\"string\",\"integer\"],\"description\":\"a time; missing = now\"},"
         "\"until\":{\"type\":[\"string\",\"integer\"]}," ZONE "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"iso\",\"ms\",\"seconds\"]}",
     .effects = "none",
     .run = calc_duration},
    {.id = "date",
     .name = "Date arithmetic",
     .description = "Adds days, weeks, months, years or a duration to a date, tells its day of the "
                    "week, and the distance between two dates.",
     .tags = LIST("date", "calendar", "weekday", "difference", "add", "days", "until", "between",
                  BT_TAG_QUICK),
     .examples = LIST("add 30 days to 2026-11-21", "how many days are there until 2027-01-01"),
     .input_schema = "{\"type\":\"object\",\"properties\":{"
                     "\"date\":{\"type\":[\"string\",\"integer\"],\"description\":\"2026-11-21 or "
                     "2026-11-21T03:53:00Z; missing = now\"},"
                     "\"amount\":{\"type\":\"integer\"},\"unit\":{\"type\":\"string\"},"
                     "\"duration\":{\"type\":\"string\",\"description\":\"P1M, 1h 30m\"},"
                     "\"until\":{\"type\":[\"string\",\"integer\"]}," ZONE "}}",
     .effects = "none",
     .run = calc_date},
};
const size_t calc_skill_count = sizeof calc_skills / sizeof calc_skills[0];
