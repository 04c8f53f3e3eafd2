/* Between a prompt of Baton's planner and the toy model of tests/support/model: the goal and the agents are taken out of the
 * prompt's frames of data, the model is given the short form that it was trained on, and what it says is written as a plan.
 * It cannot read the prompt itself, and it knows a few dozen words: it shows that the pieces fit together, not how good a
 * plan is.
 */
"use strict";

/* The frames of a prompt: {"the goal": value, ...} by the last words of where they are from. */
function frames(prompt) {
    const found = {};
    for (const m of prompt.matchAll(/^\[data ([0-9a-f]+) from ([^\]\n]*)\]\n([^]*?)\n\[end \1\]$/gm)) {
        const name = m[2].split(": ").pop();
        try {
            found[name] = JSON.parse(m[3]);
        } catch {
            found[name] = m[3];
        }
    }
    return found;
}

const named = (data, word) => Object.entries(data).find(([name]) => name.includes(word))?.[1];

/* What the toy is asked; null when the prompt is no planner's. */
function question(prompt) {
    const data = frames(prompt);
    const goal = named(data, "goal");
    const agents = named(data, "agents");
    return typeof goal === "string" && Array.isArray(agents) ? { goal, agents, prompt: `GOAL: ${goal}\nPLAN: ` } : null;
}

/* {"steps":[{"agent":"web","after":[]},{"agent":"calc","after":[1]}]} as a plan: the n-th part of the goal is the n-th task. */
function plan(asked, said) {
    const parts = asked.goal.split(/ then | and /);
    const steps = JSON.parse(said).steps.map((step, i) => ({
        stepId: `s${i + 1}`,
        agentId: step.agent,
        skill: asked.agents.find((a) => a.agentId === step.agent)?.skills?.[0]?.id ?? "",
        task: parts[i] ?? asked.goal,
        dependsOn: step.after.map((n) => `s${n}`),
    }));
    return JSON.stringify({ steps, reasoning: "as the toy model says" });
}

module.exports = { frames, question, plan };
