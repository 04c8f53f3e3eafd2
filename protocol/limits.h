/* Every cap of the protocol and of a plan, with its reason. The configuration may lower most of
 * them and raise none. */
#ifndef PROTOCOL_LIMITS_H
#define PROTOCOL_LIMITS_H

enum {
    LIMIT_CONTROL_BYTES = 1024 * 1024,  /* a control body: a plan of 10,000 small steps fits */
    LIMIT_STEP_BYTES = 4 * 1024 * 1024, /* a body on a lane: context and results */
    LIMIT_EVENT_BYTES =
        4 * 1024,     /* times SENDBUF times subscribers: the worst memory of a publisher (N8) */
    LIMIT_DEPTH = 16, /* nesting of any body */
    LIMIT_NODES = 200000,                 /* values in one body */
    LIMIT_RESULT_BYTES = 3 * 1024 * 1024, /* a result; the envelope takes the rest of a lane body */
    LIMIT_RESULT_HEAD_BYTES = 64, /* names and heads of a result's members: no part of the result */
    LIMIT_PREVIEW_BYTES = 1024,   /* the part of a result that an event carries */
    LIMIT_TASK_BYTES = 8 * 1024,
    LIMIT_STATE_BYTES = 64 * 1024, /* a plan's state: it goes to each of its later steps */
    LIMIT_ID_BYTES = 64,           /* stepId, agentId, skill, sessionId */
    LIMIT_KEY_BYTES = 160,         /* idempotency key: planId/revision/stepId */
    LIMIT_TOKEN_BYTES = 128,
    LIMIT_STEPS = 10000,       /* steps of one plan */
    LIMIT_EDGES = 100000,      /* dependencies of one plan */
    LIMIT_PLAN_AGENTS = 64,    /* different agents of one plan: a set is one 64-bit word */
    LIMIT_PLAN_KEYS = 64,      /* concurrency keys of one plan and its steps */
    LIMIT_KEYS = 1024,         /* concurrency keys in use: memory that is reserved */
    LIMIT_RATE = 10000,        /* starts of one rate: each is remembered */
    LIMIT_REVISIONS = 1000,    /* of one plan */
    LIMIT_SIGNALS = 10000,     /* of one plan, taken or not: each is remembered by its clientKey */
    LIMIT_SIGNALS_KEPT = 64,   /* of one plan, that no step has taken yet */
    LIMIT_PLANS_AT_ONCE = 64,  /* of one plans.submit */
    LIMIT_PLANS_OPEN = 200000, /* plans that are not final */
    LIMIT_AGENTS = 16384,
    LIMIT_INSTANCES = 16384,          /* of all agents; an agent has one or more */
    LIMIT_PROCESSES = 1024,           /* instances that the daemon starts itself */
    LIMIT_CAPACITY = 64,              /* lanes of one instance, without the control lane */
    LIMIT_SKILLS = 64,                /* skills of one card */
    LIMIT_ARTIFACTS = 256,            /* files of earlier results that one step is given */
    LIMIT_ARTIFACT_PART = 512 * 1024, /* of one request: in a JSON body it is base64 */
    LIMIT_ATTEMPTS = 100,
    LIMIT_TURNS = 30, /* turns of a step in which its agent calls others */
    LIMIT_CALLS = 16, /* calls of one turn */
    LIMIT_EVENTS_READ =
        1000 /* events of one events.read answer, which also ends at half a control body */
};
#endif
