// The list of plans: newest first, page by page, live.

import { get, may, path } from './api.js';
import { badge, button, empty, h, icon, look, problem, s } from './dom.js';
import { ago, duration, fully, ms, short } from './format.js';
import { listen } from './events.js';
import { vlist } from './vlist.js';

const STATES = ['', 'pending', 'running', 'waiting', 'completed', 'failed', 'cancelled', 'planned', 'quarantined'];
const SCAN = 3000; // plans that one search looks through before it asks to go on

/** A bar of what became of the steps. */
export function progress(counts = {}) {
    const total = counts.total || 1;
    const rest = Math.max(0, total - (counts.completed ?? 0) - (counts.failed ?? 0) - (counts.skipped ?? 0) - (counts.cancelled ?? 0));
    const running = Math.min(rest, (counts.running ?? 0) + (counts.waiting ?? 0) + (counts.sleeping ?? 0));
    const parts = [['completed', counts.completed], ['failed', counts.failed], ['skipped', (counts.skipped ?? 0) + (counts.cancelled ?? 0)], ['running', running]];
    let x = 0;
    const text = parts.filter(([, n]) => n).map(([name, n]) => `${n} ${name}`).join(', ') || 'nothing yet';
    return s('svg', { class: 'progress', viewBox: '0 0 100 6', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${text} of ${counts.total ?? 0} steps` },
        parts.map(([name, n]) => {
            const w = 100 * (n ?? 0) / total;
            const bar = s('rect', { x, y: 0, width: Math.max(0, w), height: 6, class: 'bar is-' + look(name) });
            x += w;
            return bar;
        }));
}

const done = (c = {}) => (c.completed ?? 0) + (c.failed ?? 0) + (c.skipped ?? 0) + (c.cancelled ?? 0);
export const title = (p) => p.query || 'Plan ' + short(p.planId);

const COLUMNS = [
    { title: 'State', class: 'c-state', cell: (p) => badge(p.status) },
    { title: 'Plan', class: 'c-title', cell: (p) => [h('a', { href: '#/plans/' + p.planId, tabindex: -1, title: title(p) }, title(p)),
        h('span', { class: 'sub mono' }, short(p.planId), p.schedule ? ' \u00b7 ' + p.schedule : '')] },
    { title: 'Steps', class: 'c-steps', cell: (p) => (p.counts?.total ? [h('span', { class: 'num' }, `${done(p.counts)} / ${p.counts.total}`), progress(p.counts)] : '') },
    { title: 'Owner', class: 'c-owner', cell: (p) => p.owner ?? '' },
    { title: 'Began', class: 'c-time', cell: (p) => h('span', { title: fully(p.createdAt) }, ago(p.createdAt)) },
    { title: 'Took', class: 'c-took num', cell: (p) => duration(p.durationMs ?? (p.completedAt ? ms(p.completedAt) - ms(p.createdAt) : undefined)) },
];

const sign = (p) => p.status + '|' + JSON.stringify(p.counts ?? 0) + '|' + (p.completedAt ?? '') + '|' + ago(p.createdAt) + '|' + (p.query ?? '');

const STRUCTURE = new Set(['plan_generated', 'planning_started', 'planning_failed', 'plan_started']);
const STATUS = { plan_started: 'running', plan_cancelling: 'cancelling', planning_started: 'pending' };

export function plansPage(q) {
    const filters = { status: q.get('status') ?? '', sessionId: q.get('session') ?? '', text: q.get('q') ?? '' };
    const rows = new Map();
    let cursor = null;
    let loading = false;
    let all = false;
    let scanned = 0;
    let stamp = 0;
    const notes = h('div', { class: 'notes', 'aria-live': 'polite' });
    const status = h('span', { class: 'muted', 'aria-live': 'polite' });

    const select = h('select', { 'aria-label': 'State' }, STATES.map((x) => h('option', { value: x, selected: x === filters.status }, x || 'all states')));
    const search = h('input', { type: 'search', value: filters.text, placeholder: 'Search words or an id', 'aria-label': 'Search words or an id' });
    const session = h('input', { type: 'text', value: filters.sessionId, placeholder: 'Session', 'aria-label': 'Session' });

    const list = vlist({
        label: 'Plans',
        columns: COLUMNS,
        key: (p) => p.planId,
        sign,
        open: (p) => (location.hash = '#/plans/' + p.planId),
        more: () => load(),
        rowHeight: 56,
        emptyNode: () => {
            if (!all) {
                return h('p', { class: 'muted pad' }, 'Looking\u2026');
            }
            return filters.status || filters.text || filters.sessionId
                ? empty('No plan fits', 'Take a filter away, or search for other words.', button('Show all plans', () => (location.hash = '#/plans')))
                : empty('No plans yet', may('submitter') ? 'Say what you want done, or give a plan: agents do its steps, and you watch it here.' : 'Plans appear here as soon as somebody submits one.',
                    may('submitter') ? h('a', { class: 'button primary', href: '#/submit' }, 'New plan') : null);
        },
    });

    const isId = () => /^[0-9A-Fa-f-]{4,36}$/.test(filters.text) && /[0-9]/.test(filters.text);
    const fits = (p) => !filters.text || isId() || [p.query, p.planId, p.owner, p.sessionId, p.schedule].some((x) => (x ?? '').toLowerCase().includes(filters.text.toLowerCase()));

    function show() {
        const found = [...rows.values()].filter(fits).sort((a, b) => (a.planId < b.planId ? 1 : -1));
        list.set(found);
        status.textContent = rows.size === 0 ? '' : `${found.length}${all ? '' : '+'} plan${found.length === 1 ? '' : 's'}`;
        notes.replaceChildren();
        if (!all && filters.text && !isId() && scanned >= SCAN) {
            notes.append(h('p', null, `Looked through ${rows.size} plans. `, button('Look further', () => {
                scanned = 0;
                load();
            }, { kind: 'quiet' })));
        }
    }

    const ask = (from) => get('/v1/plans', { status: filters.status, sessionId: filters.sessionId, idPrefix: isId() ? filters.text.toUpperCase() : '', limit: 100, cursor: from });

    async function load() {
        if (loading || all || (filters.text && !isId() && scanned >= SCAN)) {
            return;
        }
        loading = true;
        const mine = stamp;
        try {
            const page = await ask(cursor);
            if (mine === stamp) {
                page.plans.forEach((p) => rows.set(p.planId, p));
                cursor = page.cursor ?? null;
                all = cursor === null;
                scanned += page.plans.length;
                loading = false;
                show();
                if (!all && list.rows.length < 60) {
                    load();
                }
            }
        } catch (e) {
            loading = false;
            notes.replaceChildren(problem(e, load));
        }
    }

    function restart() {
        stamp++;
        [cursor, loading, all, scanned] = [null, false, false, 0];
        rows.clear();
        list.reset();
        load();
    }

    // ---- live: what an event says at once, and the truth shortly after ----
    const dirty = new Set();
    let timer = 0;

    async function refresh() {
        timer = 0;
        const mine = stamp;
        const ids = [...dirty];
        dirty.clear();
        try {
            const page = await ask(null);
            if (mine !== stamp) {
                return;
            }
            const fresh = new Set(page.plans.map((p) => p.planId));
            page.plans.forEach((p) => rows.set(p.planId, p));
            const others = ids.filter((id) => rows.has(id) && !fresh.has(id)).slice(0, 20);
            for (const p of await Promise.all(others.map((id) => get(path('plans', id), { steps: false }).catch(() => null)))) {
                if (p && filters.status && p.status !== filters.status) {
                    rows.delete(p.planId);
                } else if (p) {
                    rows.set(p.planId, p);
                }
            }
            show();
        } catch {
            // the banner says that the gateway is away; events come again afterwards
        }
    }

    const deaf = listen((events) => {
        if (events === null) {
            restart();
            return;
        }
        let seen = false;
        for (const e of events) {
            const row = rows.get(e.planId);
            if (row || STRUCTURE.has(e.type)) {
                dirty.add(e.planId);
            }
            if (row && e.type === 'plan_completed') {
                rows.set(e.planId, { ...row, status: e.status, counts: e.counts ?? row.counts, durationMs: e.durationMs, completedAt: e.timestamp });
                seen = true;
            } else if (row && STATUS[e.type]) {
                row.status = STATUS[e.type];
                seen = true;
            }
        }
        if (seen) {
            show();
        }
        if (dirty.size > 0) {
            timer ||= setTimeout(refresh, 150);
        }
    });
    const clock = setInterval(() => list.redraw(), 5000);

    function put() {
        Object.assign(filters, { status: select.value, text: search.value.trim(), sessionId: session.value.trim() });
        const p = new URLSearchParams(Object.entries({ status: filters.status, q: filters.text, session: filters.sessionId }).filter(([, v]) => v));
        history.replaceState(null, '', '#/plans' + (p.size ? '?' + p : ''));
        restart();
    }
    let typed = 0;
    const later = () => {
        clearTimeout(typed);
        typed = setTimeout(put, 250);
    };
    select.addEventListener('change', put);
    search.addEventListener('input', later);
    session.addEventListener('change', put);
    search.addEventListener('keydown', (e) => e.key === 'ArrowDown' && list.focus());

    load();
    return {
        node: h('div', { class: 'page fills' },
            h('header', { class: 'head' }, h('h1', null, 'Plans'), status, h('div', { class: 'grow' }),
                may('submitter') ? h('a', { class: 'button primary', href: '#/submit' }, icon('submit'), 'New plan') : null),
            h('div', { class: 'filters', role: 'search' }, h('div', { class: 'searchbox' }, icon('search'), search), select, session),
            notes, list.root),
        entered: () => list.focus(),
        update(_, next) {
            select.value = next.get('status') ?? '';
            search.value = next.get('q') ?? '';
            session.value = next.get('session') ?? '';
            put();
        },
        leave() {
            deaf();
            clearTimeout(timer);
            clearInterval(clock);
        },
    };
}
