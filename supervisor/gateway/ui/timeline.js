// What happened when: a row for each step, with a bar for each attempt, wait, check and pause before the next attempt.

import { button, empty, h } from './dom.js';
import { duration, fully, ms } from './format.js';
import { vlist } from './vlist.js';

/** Bars of each step, from the events of the plan: {from, to, kind, text}; an open one has no end. */
export function spans(events) {
    const of = new Map();
    const open = new Map();
    const begin = (id, e, kind, text) => {
        finish(id, e);
        const bar = { from: e.tsMs, to: null, kind, text };
        open.set(id, bar);
        of.set(id, [...(of.get(id) ?? []), bar]);
    };
    const finish = (id, e, kind) => {
        const bar = open.get(id);
        if (bar) {
            bar.to = e.tsMs;
            bar.kind = kind ?? bar.kind;
            open.delete(id);
        }
    };
    for (const e of events) {
        const id = e.stepId;
        switch (id && e.type) {
        case 'plan_step_started': begin(id, e, 'running', 'attempt ' + (e.attempt ?? 1)); break;
        case 'plan_step_retry': finish(id, e, 'failed'); begin(id, e, 'sleeping', `waits before attempt ${(e.attempt ?? 1) + 1}: ${e.error ?? ''}`); break;
        case 'plan_step_round': finish(id, e, 'completed'); begin(id, e, 'sleeping', 'waits before the next round'); break;
        case 'calls_started': finish(id, e, 'completed'); begin(id, e, 'sleeping', `turn ${e.turn}: ${e.calls} calls`); break;
        case 'calls_finished': finish(id, e, 'completed'); begin(id, e, 'running', 'has the results of turn ' + e.turn); break;
        case 'plan_step_waiting': begin(id, e, 'waiting', 'waits for a person'); break;
        case 'wait_started': begin(id, e, 'sleeping', e.signal ? 'waits for the signal ' + e.signal : 'waits for a time'); break;
        case 'review_decided': begin(id, e, 'running', 'after the decision: ' + e.decision); break;
        case 'quality_gate_started': begin(id, e, 'gate', 'gate: may it begin?'); break;
        case 'quality_gate_passed': finish(id, e); break;
        case 'replan_started': begin(id, e, 'sleeping', 'an agent is asked for new steps'); break;
        case 'plan_step_progress':
            if (open.get(id)?.kind === 'sleeping') {
                begin(id, e, 'running', 'attempt ' + (e.attempt ?? ''));
            }
            break;
        case 'agent_handoff': break;
        case 'plan_step_completed': finish(id, e, e.status); break;
        default:
        }
    }
    return of;
}

/** Without events: what the daemon says of the step, as one bar. */
function rough(step) {
    return step.startedAt ? [{ from: ms(step.startedAt), to: step.completedAt ? ms(step.completedAt) : null, kind: step.completedAt ? step.status : 'running', text: step.attempts > 1 ? `${step.attempts} attempts` : 'ran' }] : [];
}

function ticks(span) {
    const about = span / 6;
    const steps = [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5];
    const width = steps.find((x) => x >= about) ?? Math.ceil(about / 864e5) * 864e5;
    return Array.from({ length: Math.floor(span / width) + 1 }, (_, i) => i * width);
}

export function timelineTab(model, pick) {
    let bars = new Map();
    let range = [0, 1];
    let zoom = 1;
    const note = h('p', { class: 'muted', 'aria-live': 'polite' });

    const place = (t) => 100 * (t - range[0]) / (range[1] - range[0]) + '%';
    function lane(step) {
        const now = Date.now();
        return h('div', { class: 'lane' }, (bars.get(step.stepId) ?? rough(step)).map((b) => h('span', {
            class: 'span is-' + b.kind,
            title: `${step.stepId}: ${b.text}, ${duration((b.to ?? now) - b.from)}`,
            style: { left: place(b.from), width: `max(3px, ${100 * ((b.to ?? Math.min(now, range[1])) - b.from) / (range[1] - range[0])}%)` },
        })));
    }
    const axis = h('div', { class: 'axis', 'aria-hidden': 'true' });
    const list = vlist({
        label: 'Timeline of steps',
        columns: [
            { title: 'Step', class: 'c-step', cell: (st) => h('span', { title: st.task ?? '' }, st.stepId) },
            { title: axis, class: 'c-lane', cell: lane },
            { title: 'Took', class: 'c-took num', cell: (st) => duration(st.durationMs ?? (st.startedAt && !st.completedAt ? Date.now() - ms(st.startedAt) : undefined)) },
        ],
        key: (st) => st.stepId,
        sign: (st) => [st.status, st.attempts, bars.get(st.stepId)?.length, range[0], range[1], st.completedAt ? '' : Math.floor(Date.now() / 500)].join('|'),
        rowHeight: 32,
        open: (st) => pick(st.stepId),
        emptyNode: () => empty('Nothing has begun', 'A bar appears here with the first attempt of a step.'),
    });
    list.root.classList.add('timeline');

    function draw() {
        const begun = model.steps.filter((st) => st.startedAt || bars.has(st.stepId));
        const plan = model.plan ?? {};
        const from = ms(plan.createdAt) || Date.now();
        const end = plan.completedAt ? ms(plan.completedAt) : Date.now();
        range = [from, Math.max(end, from + 10)];
        const span = range[1] - range[0];
        axis.replaceChildren(...ticks(span).map((t) => h('span', { style: { left: 100 * t / span + '%' } }, t === 0 ? '0' : duration(t))));
        axis.title = 'since ' + fully(plan.createdAt);
        list.set(begun.sort((a, b) => ms(a.startedAt) - ms(b.startedAt) || a.stepIndex - b.stepIndex));
        note.textContent = model.historyState === 'loading' ? `reading events: ${model.history.length}` : model.historyState === 'cut' ? 'The newest events are not here: only the first 60,000 are read.'
            : 'since the plan was made; bars: attempts, and what they waited for';
    }
    function read() {
        bars = spans(model.history);
        draw();
    }
    const clock = setInterval(() => model.plan && !model.plan.completedAt && draw(), 1000);
    function scale(by) {
        zoom = Math.max(1, Math.min(32, zoom * by));
        list.root.style.setProperty('--zoom', zoom);
    }
    const legend = h('ul', { class: 'legend' }, [['running', 'running'], ['completed', 'completed'], ['failed', 'failed'], ['waiting', 'waits for a person'], ['sleeping', 'waits for a time'], ['gate', 'gate']]
        .map(([kind, text]) => h('li', null, h('span', { class: 'span is-' + kind, 'aria-hidden': 'true' }), text)));
    return {
        node: h('div', { class: 'tab fills' }, h('div', { class: 'toolbar' }, legend, h('div', { class: 'grow' }), button('Smaller', () => scale(0.5), { kind: 'quiet small' }), button('Larger', () => scale(2), { kind: 'quiet small' })), note, list.root),
        structure: read,
        change: read,
        history: read,
        entered() {
            model.loadHistory();
            read();
            list.focus();
        },
        leave: () => clearInterval(clock),
    };
}
