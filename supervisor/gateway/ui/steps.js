// All steps as a table; only what is on the screen is drawn.

import { badge, empty, h } from './dom.js';
import { at, duration, fully, ms } from './format.js';
import { vlist } from './vlist.js';

const STATES = ['', 'pending', 'ready', 'in_progress', 'waiting', 'sleeping', 'completed', 'failed', 'skipped', 'cancelled'];

const took = (s) => s.durationMs ?? (s.startedAt ? (s.completedAt ? ms(s.completedAt) : Date.now()) - ms(s.startedAt) : undefined);
const says = (s) => s.error || s.progress?.text || (s.status === 'waiting' || s.status === 'pending' || s.status === 'sleeping' || s.status === 'in_progress' ? s.waiting?.text : '') || s.result || '';

const COLUMNS = [
    { title: '#', class: 'c-n num', cell: (s) => s.stepIndex + 1 },
    { title: 'State', class: 'c-state', cell: (s) => badge(s.superseded ? 'superseded' : s.status) },
    { title: 'Step', class: 'c-title', cell: (s) => [h('span', { class: 'strong', title: s.task ?? s.stepId }, s.stepId), h('span', { class: 'sub' }, (s.task ?? '').slice(0, 200))] },
    { title: 'Agent', class: 'c-agent', cell: (s) => s.agentName || s.agentId || s.type },
    { title: 'Tries', class: 'c-tries num', cell: (s) => s.attempts ?? '' },
    { title: 'Began', class: 'c-time', cell: (s) => h('span', { title: fully(s.startedAt) }, at(s.startedAt)) },
    { title: 'Took', class: 'c-took num', cell: (s) => duration(took(s)) },
    { title: 'Says', class: 'c-says', cell: (s) => h('span', { class: s.error ? 'is-failed-text' : 'muted' }, says(s).slice(0, 200)) },
];

export function stepsTab(model, pick) {
    let only = null; // of a group of the graph
    const status = h('select', { 'aria-label': 'State' }, STATES.map((x) => h('option', { value: x }, x === '' ? 'all states' : x === 'in_progress' ? 'running' : x)));
    const search = h('input', { type: 'search', placeholder: 'Search steps', 'aria-label': 'Search steps' });
    const count = h('span', { class: 'muted', 'aria-live': 'polite' });
    const back = h('button', { type: 'button', class: 'button quiet small', hidden: true }, 'All steps');
    const list = vlist({
        label: 'Steps',
        columns: COLUMNS,
        key: (s) => s.stepId,
        sign: (s) => [s.status, s.attempts, s.startedAt, s.durationMs, s.superseded, says(s).slice(0, 80), s.status === 'in_progress' ? Math.floor(Date.now() / 1000) : ''].join('|'),
        rowHeight: 48,
        open: (s) => pick(s.stepId),
        rowClass: (s) => (s.superseded ? 'is-old' : ''),
        emptyNode: () => empty('No step fits', 'Choose another state, or search for other words.'),
    });
    let shown = [];

    function filter() {
        const words = search.value.trim().toLowerCase();
        shown = model.steps.filter((s) => (!only || only.has(s.stepId)) && (!status.value || s.status === status.value)
            && (!words || [s.stepId, s.task, s.agentId, s.skill, s.error].some((x) => (x ?? '').toLowerCase().includes(words))));
        list.set(shown);
        count.textContent = `${shown.length} of ${model.steps.length} steps`;
    }
    status.addEventListener('change', filter);
    search.addEventListener('input', filter);
    back.addEventListener('click', () => {
        only = null;
        back.hidden = true;
        filter();
    });
    const clock = setInterval(() => list.redraw(), 1000);

    return {
        node: h('div', { class: 'tab fills' }, h('div', { class: 'filters' }, h('div', { class: 'searchbox' }, search), status, count, back), list.root),
        structure: filter,
        change() {
            if (status.value) {
                filter();
            } else {
                list.redraw();
            }
        },
        showGroup(steps) {
            only = new Set(steps.map((s) => s.stepId));
            back.hidden = false;
            filter();
        },
        entered: () => list.focus(),
        leave: () => clearInterval(clock),
    };
}
