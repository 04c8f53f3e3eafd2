/*
 * What a model may say about the flow of its plan, in a new plan and in a replan: the words of the
 * prompt and the members of a step in the schema. Concurrency keys, rates and priorities are not
 * among them: the configuration and whoever submits the plan set them.
 */
#ifndef LLM_AGENT_PLAN_FLOW_H
#define LLM_AGENT_PLAN_FLOW_H

/* Sentences for the instructions. */
#define PLAN_FLOW_WORDS                                                                            \
    "A step that is wanted only in some case has when: {\"results.STEPID.member\": {\"gt\": 3}} "  \
    "(eq, ne, in, gt, gte, lt, lte, exists): when it is false, the step is skipped. A step that "  \
    "is to be done for each item of a list has forEach: \"{{results.STEPID.member}}\", the list; " \
    "\"{{item}}\" and \"{{item.member}}\" in its task and parameters stand for the item, and its " \
    "result is the list of theirs. onItemFailure \"continue\" goes on after an item that failed. " \
    "A step that changes something, and must be undone when the plan fails later, has "            \
    "compensate: the skill, task and parameters that undo it. "

/* Members of a step's schema, with a comma behind. forEach is one template: a list of free values
 * would be more than llama.cpp makes a grammar of. */
#define PLAN_FLOW_SCHEMA                                                                           \
    "\"when\":{\"type\":\"object\"},\"forEach\":{\"type\":\"string\",\"maxLength\":200},"          \
    "\"onItemFailure\":{\"enum\":[\"fail\",\"continue\"]},"                                        \
    "\"compensate\":{\"type\":\"object\",\"required\":[\"skill\",\"task\"],\"properties\":{"       \
    "\"agentId\":{\"type\":\"string\",\"maxLength\":64},"                                          \
    "\"skill\":{\"type\":\"string\",\"maxLength\":64},"                                            \
    "\"task\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1900},"                           \
    "\"parameters\":{\"type\":\"object\"}}},"
#endif
