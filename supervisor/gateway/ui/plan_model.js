// A plan as the page knows it: what the daemon said, and the events since.

import { get, path } from './api.js';
import { listen } from './events.js';

const OVER = new Set(['completed', 'failed', 'cancelled', 'planned', 'quarantined']);
const STRUCTURE = new Set(['plan_generated', 'plan_modified', 'replan_finished', 'synthesis_retry', 'planning_failed']);
const ASLEEP = new Set(['timer', 'signal', 'backoff']);
const HISTORY_MAX = 60000;
export const DOCUMENT_STEPS_MAX = 3000; // a larger document does not fit into an answer

export const isOver = (status) => OVER.has(status);

/** What an event changes in its step, at once; the next reading has the rest. */
function stepAfter(step, e) {
    switch (e.type) {
    case 'plan_step_started':
        return { ...step, status: 'in_progress', startedAt: step.startedAt ?? e.timestamp, attempts: e.attempt, agentId: e.agentId || step.agentId, waiting: null };
    case 'plan_step_progress':
        return { ...step, progress: { text: e.text, percent: e.percent }, children: e.data?.planId ? { ...step.children, ...e.data } : step.children };
    case 'plan_step_retry':
        return { ...step, status: 'sleeping', attempts: e.attempt, error: e.error, errorClass: e.errorClass, waiting: { kind: 'time', text: `attempt ${e.attempt} failed; the next one follows`, until: e.until } };
    case 'plan_step_round':
        return { ...step, children: { ...step.children, rounds: e.rounds } };
    case 'calls_started':
        return { ...step, children: { ...step.children, kind: 'calls', rounds: e.turn }, progress: { text: `turn ${e.turn}: ${e.calls} calls` } };
    case 'calls_finished':
        return { ...step, progress: null };
    case 'plan_step_waiting':
        return { ...step, status: 'waiting', waiting: { kind: 'person', text: 'waits for a person', reviewId: e.reviewId } };
    case 'wait_started':
        return { ...step, status: 'sleeping', waiting: { kind: e.kind, text: e.signal ? `waits for the signal ${e.signal}` : 'waits for a time', signal: e.signal, until: e.until } };
    case 'review_decided':
        return { ...step, status: 'in_progress', waiting: null };
    case 'agent_handoff':
        return { ...step, agentId: e.toAgent.agentId, agentName: e.toAgent.agentName };
    case 'plan_step_completed':
        return { ...step, status: e.status, reason: e.reason, result: e.result, resultLen: e.resultLen, error: e.error, errorClass: e.errorClass, hint: e.hint,
            attempts: e.attempts, durationMs: e.durationMs, completedAt: e.timestamp, waiting: null, progress: null };
    default:
        return step;
    }
}

export class PlanModel extends EventTarget {
    constructor(planId) {
        super();
        this.planId = planId;
        this.plan = null;
        this.steps = []; // by stepIndex
        this.byId = new Map();
        this.document = new Map(); // stepId -> the step as it was written
        this.documentOf = 0; // the revision that it is of
        this.chain = false;
        this.history = []; // events, when somebody asked for them
        this.historyState = 'none'; // loading, all, cut
        this.early = []; // events that came while the daemon was asked
        this.loading = false;
        this.deaf = listen((events) => this.take(events));
    }

    close() {
        this.deaf();
        clearTimeout(this.timer);
        this.closed = true;
    }

    say(name) {
        this.dispatchEvent(new Event(name));
    }

    async load() {
        if (this.loading) {
            this.reload = true;
            return;
        }
        this.loading = true;
        try {
            const steps = [];
            let plan = null;
            let from = 0;
            do {
                const page = await get(path('plans', this.planId), { fromStep: from });
                plan ??= page;
                steps.push(...(page.steps ?? []));
                from = page.stepsTruncated && page.steps?.length ? steps.length : 0;
            } while (from > 0);
            this.set(plan, steps);
        } finally {
            this.loading = false;
        }
        const early = this.early.filter((e) => e.seq > (this.plan.lastSeq ?? 0));
        this.early = [];
        this.apply(early);
        this.say('structure');
        this.say('change');
        if (this.reload) {
            this.reload = false;
            await this.load();
        }
    }

    set(plan, steps) {
        for (const s of steps) {
            if (s.status === 'in_progress' && ASLEEP.has(s.waiting?.kind)) {
                s.status = 'sleeping'; // nobody works on it
            }
        }
        this.plan = plan;
        this.steps = steps;
        this.byId = new Map(steps.map((s) => [s.stepId, s]));
        // Steps without dependsOn are a chain, or all of them begin at once: the longest way has one then.
        this.chain = steps.length > 1 && steps.every((s) => !s.dependsOn?.length) && (plan.criticalPath?.length ?? 0) > 1;
        if (plan.revision !== this.documentOf) {
            this.documentOf = 0;
        }
        if (!isOver(plan.status)) {
            this.count(); // the daemon counts what is over; the rest is seen in the steps
        }
    }

    /** The steps as they were written, for parameters and rules; says 'change'. */
    async loadDocument() {
        const revision = this.plan?.revision;
        if (!revision || this.documentOf === revision || this.steps.length > DOCUMENT_STEPS_MAX) {
            return;
        }
        this.documentOf = revision;
        try {
            const { document } = await get(path('plans', this.planId), { steps: false, document: true });
            this.document = new Map((document?.steps ?? []).map((s) => [s.stepId, s]));
            this.say('change');
        } catch {
            this.documentOf = 0;
        }
    }

    /** The steps before it. */
    before(step) {
        const live = this.steps;
        if (step.dependsOn?.length) {
            return step.dependsOn;
        }
        if (!this.chain) {
            return [];
        }
        for (let i = step.stepIndex - 1; i >= 0; i--) {
            if (live[i] && !live[i].superseded) {
                return [live[i].stepId];
            }
        }
        return [];
    }

    take(events) {
        if (events === null) {
            this.load().catch(() => {});
            return;
        }
        const mine = events.filter((e) => e.planId === this.planId);
        if (mine.length === 0) {
            return;
        }
        if (this.loading || !this.plan) {
            this.early.push(...mine);
            return;
        }
        this.apply(mine.filter((e) => e.seq > (this.plan.lastSeq ?? 0)));
        this.say('change');
    }

    apply(events) {
        let structure = false;
        for (const e of events) {
            this.plan.lastSeq = e.seq;
            structure ||= STRUCTURE.has(e.type);
            this.plan.revision = Math.max(this.plan.revision ?? 1, e.revision ?? 0);
            const id = e.stepId ?? e.planStepId;
            const step = id && this.byId.get(id);
            if (step) {
                Object.assign(step, stepAfter(step, e));
            }
            if (e.type === 'plan_completed') {
                Object.assign(this.plan, { status: e.status, outcome: e.outcome, counts: e.counts ?? this.plan.counts, durationMs: e.durationMs, completedAt: e.timestamp,
                    failureReason: e.failureReason, summary: e.summary, hint: e.hint, usage: e.usage ?? this.plan.usage });
            } else if (e.type === 'plan_started' || e.type === 'plan_resumed') {
                this.plan.status = 'running';
            } else if (e.type === 'plan_paused') {
                this.plan.status = e.reason === 'requested' ? 'paused' : 'waiting';
            } else if (e.type === 'plan_cancelling') {
                this.plan.cancelling = true;
            }
        }
        if (this.historyState !== 'none' && this.historyState !== 'loading') {
            const last = this.history.at(-1)?.seq ?? 0;
            this.history.push(...events.filter((e) => e.seq > last));
        }
        if (events.length > 0) {
            this.count();
            clearTimeout(this.timer);
            this.timer = setTimeout(() => this.settle(structure), structure ? 60 : 400);
        }
    }

    count() {
        const c = { total: 0 };
        for (const s of this.steps) {
            if (s.superseded) {
                c.superseded = (c.superseded ?? 0) + 1;
                continue;
            }
            c.total++;
            c[s.status] = (c[s.status] ?? 0) + 1;
        }
        if (this.steps.length > 0) {
            this.plan.counts = c;
        }
    }

    /** The events pause: what they do not tell is read. */
    async settle(structure) {
        if (this.closed) {
            return;
        }
        try {
            if (structure || this.steps.length <= 500) {
                await this.load();
            } else {
                const plan = await get(path('plans', this.planId), { steps: false });
                Object.assign(this.plan, plan, { lastSeq: Math.max(plan.lastSeq ?? 0, this.plan.lastSeq ?? 0) });
                this.say('change');
            }
        } catch {
            // away: the banner says so, and events come again
        }
    }

    /** All events of the plan, page by page; says 'history' after each. */
    async loadHistory() {
        if (this.historyState !== 'none') {
            return;
        }
        this.historyState = 'loading';
        let after = 0;
        try {
            for (;;) {
                const page = await get(path('plans', this.planId, 'events'), { after, limit: 1000 });
                const list = page.events ?? [];
                this.history.push(...list);
                after = page.nextSeq - 1;
                if (this.closed) {
                    return;
                }
                if (this.history.length >= HISTORY_MAX) {
                    this.historyState = 'cut';
                    break;
                }
                if (page.nextSeq > page.lastSeq) {
                    this.historyState = 'all';
                    break;
                }
                this.say('history');
            }
        } catch (e) {
            this.historyState = 'none';
            this.historyError = e;
        }
        this.say('history');
    }
}
