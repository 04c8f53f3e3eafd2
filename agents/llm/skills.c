/* The cards of the skills. The keyword planner selects by these words. */
#include "agents/llm/llm_agent.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#define QUESTION_SCHEMA                                                                            \
    "{\"type\":\"object\",\"properties\":{\"stepId\":{\"type\":\"string\"},"                       \
    "\"agentId\":{\"type\":\"string\"},\"task\":{\"type\":\"string\"}}}"

/* The supervisor requests these skills by purpose; planners that read the tag make no steps of
 * them. */
#define SUPERVISOR_TAGS LIST(LLM_SUPERVISOR_TAG)

const struct bt_skill llm_skills[] = {
    {.id = "chat",
     .name = "Answer with a language model",
     .description = "Answers a question or writes a text with a language model, from the task and "
                    "the results before it.",
     .tags = LIST("answer", "explain", "write", "draft", "translate", "rewrite", "classify",
                  "extract", "question", "model", "text"),
     .examples = LIST("explain what the figures mean", "draft a reply to the customer",
                      "translate the text into French"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"prompt\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":65536,\"description\":"
         "\"what is to be done; when missing, the task\"},"
         "\"input\":{\"description\":\"what it is to be done with; when missing, the results "
         "before this step\"},"
         "\"schema\":{\"type\":\"object\",\"description\":\"JSON Schema of the answer; its root "
         "is an object; then the result is data\"},"
         "\"maxTokens\":{\"type\":\"integer\",\"minimum\":16,\"maximum\":1000000}}}",
     .effects = "none",
     .run = llm_chat},
    {.id = "summarize",
     .name = "Summarise",
     .description = "Summarises a text or the results of the steps before, with a language model.",
     .tags = LIST("summarize", "summarise", "summary", "condense", "digest", "overview", "key",
                  "points"),
     .examples = LIST("summarise the report", "give an executive summary of the results",
                      "condense the log into key points"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"text\":{\"description\":\"what is to be summarised; when missing, the results before "
         "this step\",\"x-baton-fill\":\"previous\"},"
         "\"words\":{\"type\":\"integer\",\"minimum\":10,\"maximum\":5000,\"description\":\"about "
         "how long; 200 by default\"},"
         "\"focus\":{\"type\":\"string\",\"maxLength\":2000,\"description\":\"what matters\"}}}",
     .effects = "none",
     .run = llm_summarize},
    {.id = "work",
     .name = "Work with tools",
     .description = "Does a task in a role with a language model that calls the skills of the "
                    "other agents of the plan, turn by turn, until it has the answer.",
     .tags = LIST("research", "investigate", "tools", "role", "agent", "loop", LLM_CALLS_TAG),
     .examples = LIST("find out why the build fails", "research the market and write it down"),
     .input_schema =
         "{\"type\":\"object\",\"properties\":{"
         "\"prompt\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":65536,\"description\":"
         "\"what is to be done; when missing, the task\"},"
         "\"role\":{\"type\":\"string\",\"maxLength\":16384,\"description\":\"who it is, and "
         "how it works\"},"
         "\"input\":{\"description\":\"what it is to be done with; when missing, the results "
         "before this step\"},"
         "\"handoffTo\":{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"string\"},"
         "\"description\":\"agents that it may hand the task to\"},"
         "\"maxTokens\":{\"type\":\"integer\",\"minimum\":16,\"maximum\":1000000}}}",
     .effects = "none",
     .run = llm_work},
    {.id = "gate",
     .name = "Quality gate",
     .description = "Judges whether the results before a step are enough for it to begin. Asked by "
                    "the supervisor.",
     .tags = SUPERVISOR_TAGS,
     .input_schema = QUESTION_SCHEMA,
     .output_schema = "{\"type\":\"object\",\"required\":[\"passed\"],\"properties\":{\"passed\":{"
                      "\"type\":\"boolean\"},\"reason\":{\"type\":\"string\"},\"missing\":{"
                      "\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}",
     .effects = "none",
     .run = llm_gate},
    {.id = "verify",
     .name = "Verification",
     .description = "Judges whether a step's result is a right and complete answer to its task. "
                    "Asked by the supervisor.",
     .tags = SUPERVISOR_TAGS,
     .input_schema = QUESTION_SCHEMA,
     .output_schema = "{\"type\":\"object\",\"required\":[\"passed\"],\"properties\":{\"passed\":{"
                      "\"type\":\"boolean\"},\"diagnosis\":{\"type\":\"string\"}}}",
     .effects = "none",
     .run = llm_verify},
    {.id = "plan",
     .name = "Plan",
     .description = "Makes a plan for a goal, or for what is left of one after a step has failed. "
                    "Asked by the supervisor.",
     .tags = SUPERVISOR_TAGS,
     .input_schema =
         "{\"type\":\"object\",\"properties\":{\"goal\":{\"type\":\"string\"},\"agents\":{"
         "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"agentId\"],"
         "\"properties\":{\"agentId\":{\"type\":\"string\"},\"skills\":{\"type\":\"array\","
         "\"items\":{\"type\":\"object\"}}}}},\"constraints\":{\"type\":\"array\"},"
         ""
         "\"completed\":{\"type\":\"array\"},"
         "\"failed\":{\"type\":\"array\"},\"history\":{\"type\":\"array\"}}}",
     /* No outputSchema: a new plan is passed on unchanged and checked by the supervisor. */
     .effects = "none",
     .run = llm_plan},
    {.id = "synthesize",
     .name = "Executive summary",
     .description = "Writes what a plan came to, from the results of all its steps. Asked by the "
                    "supervisor.",
     .tags = SUPERVISOR_TAGS,
     .input_schema = "{\"type\":\"object\",\"required\":[\"steps\"],\"properties\":{"
                     "\"goal\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"},"
                     "\"durationMs\":{\"type\":\"number\"},\"agents\":{\"type\":\"array\"},"
                     "\"steps\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
                     "\"mayRetry\":{\"type\":\"number\"}}}",
     .effects = "none",
     .run = llm_synthesize},
    {.id = "converse",
     .name = "Conversation",
     .description = "Tells what a person's message means for the plan that runs. Asked by the "
                    "supervisor.",
     .tags = SUPERVISOR_TAGS,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},"
                     "\"plan\":{\"type\":[\"object\",\"null\"]},"
                     "\"session\":{\"type\":[\"object\",\"null\"]}}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"action\"],\"properties\":{"
                      "\"action\":{\"type\":\"string\"}}}",
     .effects = "none",
     .run = llm_converse},
};
const size_t llm_skill_count = sizeof llm_skills / sizeof llm_skills[0];
