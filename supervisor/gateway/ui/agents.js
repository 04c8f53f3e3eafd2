// Who does the work: state, load, errors, instances and their restarts.

import { get, may, path, post } from './api.js';
import { badge, button, empty, fill, h, icon, problem, s } from './dom.js';
import { duration, fully, number } from './format.js';
import { dialog, tryTo } from './dialog.js';
import { listen } from './events.js';
import { tree } from './value.js';

const SAMPLES = 40;
const POLL_MS = 2000;

function load(now, capacity) {
    const part = capacity ? Math.min(1, now / capacity) : 0;
    return h('div', { class: 'load', title: `${now} of ${capacity}` }, s('svg', { viewBox: '0 0 100 6', preserveAspectRatio: 'none', class: 'progress', 'aria-hidden': 'true' }, s('rect', { class: 'bar is-' + (part >= 1 ? 'waiting' : 'running'), width: 100 * part, height: 6 })),
        h('span', { class: 'num' }, `${now} / ${capacity}`));
}

function spark(values, label) {
    const most = Math.max(1, ...values);
    const points = values.map((v, i) => `${100 * i / (SAMPLES - 1)},${22 - 20 * v / most}`).join(' ');
    return s('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${label}: now ${values.at(-1) ?? 0}, at most ${Math.max(0, ...values)}` }, s('polyline', { points }));
}

const ORDERS = {
    drain: ['Drain', 'Its instances finish what they have; it gets nothing new until you enable it.', 'danger'],
    enable: ['Enable', 'Its breaker closes and it takes steps again.', 'primary'],
    start: ['Start', 'Its processes start.', 'primary'],
    stop: ['Stop', 'Its processes end when they have finished what they have.', 'danger'],
    restart: ['Restart', 'New processes take over; the old ones finish what they have.', 'primary'],
};

export function agentsPage(parts) {
    let picked = parts[0] || null;
    let agents = [];
    const history = new Map(); // agentId -> numbers in flight
    const list = h('div', { class: 'cards' });
    const detail = h('div', { class: 'card detail', tabindex: -1, role: 'region', 'aria-label': 'Agent', hidden: true });
    const totals = h('span', { class: 'muted num', 'aria-live': 'off' });
    const errors = h('div', null);
    const page = h('div', { class: 'page' }, h('header', { class: 'head' }, h('h1', null, 'Agents'), totals), errors, detail, list);
    let sign = '';

    function cards() {
        const now = JSON.stringify(agents) + picked;
        if (now === sign) {
            return;
        }
        sign = now;
        const focused = document.activeElement?.closest?.('.agent')?.dataset.id;
        fill(list, agents.length === 0 ? empty('No agents', 'Agents are named in baton.yaml, or register themselves. `baton init` makes a project with some.') : agents.map((a) => {
            const c = a.card;
            return h('a', { class: 'card agent', href: '#/agents/' + encodeURIComponent(c.agentId), 'data-id': c.agentId, 'aria-current': c.agentId === picked ? 'true' : null },
                h('div', { class: 'row' }, h('h2', null, c.name || c.agentId), h('div', { class: 'grow' }), badge(a.state)),
                h('p', { class: 'sub mono' }, c.agentId, c.version ? ' ' + c.version : ''),
                load(a.inFlight ?? 0, a.capacity ?? 0), spark(history.get(c.agentId) ?? [0], 'Steps in flight'),
                h('dl', { class: 'figures' }, [['queued', number(a.queued)], ['steps', number(a.steps)], ['errors', a.errors ? `${number(a.errors)} (${Math.round(100 * (a.errorRate ?? 0))} %)` : '0'], ['average', a.averageMs !== undefined ? duration(a.averageMs) : '\u2013'], ['instances', number(a.instances)], ['breaker', a.breaker ?? '']]
                    .map(([k, v]) => h('div', null, h('dt', null, k), h('dd', { class: 'num' }, v)))));
        }));
        list.querySelector(`[data-id="${CSS.escape(focused ?? '')}"]`)?.focus();
    }

    async function order(id, name) {
        const [label, text, kind] = ORDERS[name];
        await dialog({ title: `${label} ${id}?`, label, kind, content: h('p', null, text), act: () => post(path('agents', id, name), {}) });
        show();
    }

    async function show() {
        detail.hidden = picked === null;
        if (picked === null) {
            return;
        }
        try {
            const a = await get(path('agents', picked));
            fill(detail,
                h('header', { class: 'row' }, h('h2', null, a.card.name || picked), badge(a.state), h('div', { class: 'grow' }), h('a', { class: 'button quiet small', href: '#/agents' }, icon('close', 16), 'Close')),
                h('p', { class: 'task' }, a.card.description ?? ''), a.reason ? h('div', { class: 'problem' }, a.reason, a.gaveUp ? ' It is not started again by itself.' : '') : null,
                may('admin') ? h('div', { class: 'row wraps' }, Object.entries(ORDERS).filter(([n]) => (n === 'drain' ? a.state !== 'disabled' : n === 'enable' ? a.state === 'disabled' || (a.breaker?.state ?? 'closed') !== 'closed' : !a.external)).map(([n, [label, , kind]]) => button(label, () => order(picked, n), { kind: kind === 'danger' ? kind : '', 'data-action': n }))) : null,
                a.processes?.length ? h('section', null, h('h3', null, 'Processes'), h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Processes' }, h('table', null, h('thead', null, h('tr', null, ['Process', 'State', 'Pid', 'Restarts', 'Doing', 'Reason'].map((x) => h('th', null, x)))),
                    h('tbody', null, a.processes.map((p) => h('tr', null, h('td', { class: 'mono' }, p.name), h('td', null, badge(p.state)), h('td', { class: 'num' }, p.pid ?? ''), h('td', { class: 'num' }, p.restarts ?? 0), h('td', null, p.doing ?? ''), h('td', null, p.reason ?? ''))))))) : null,
                h('section', null, h('h3', null, 'Instances'), a.instances?.length ? h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Instances' }, h('table', null, h('thead', null, h('tr', null, ['Instance', 'Health', 'Load', 'Breaker', 'Seen', 'Pid', 'Version'].map((x) => h('th', null, x)))),
                    h('tbody', null, a.instances.map((i) => h('tr', null, h('td', { class: 'mono' }, i.instanceId.slice(0, 8) + '\u2026' + i.instanceId.slice(-6)), h('td', null, badge(i.draining ? 'draining' : i.health)), h('td', null, load(i.outstanding ?? 0, i.capacity ?? 0)), h('td', null, i.breaker?.state ?? ''), h('td', { class: 'num' }, i.lastSeenMs !== undefined ? duration(i.lastSeenMs) + ' ago' : ''), h('td', { class: 'num' }, i.pid ?? ''), h('td', null, i.version ?? '')))))) : h('p', { class: 'muted' }, 'None is there.')),
                a.log ? h('p', { class: 'hint' }, 'Log: ', h('code', null, a.log)) : null,
                h('section', null, h('h3', null, 'Skills'), h('ul', { class: 'skills' }, (a.card.skills ?? []).map((k) => h('li', null, h('details', null, h('summary', null, h('strong', null, k.id), ' ', k.effects ? badge(k.effects === 'unsafe' ? 'failed' : 'pending', k.effects) : null, h('span', { class: 'muted brief' }, k.description ?? '')), k.description ? h('p', null, k.description) : null, k.inputSchema ? h('div', { class: 'value' }, tree(k.inputSchema, 2)) : null))))));
        } catch (e) {
            fill(detail, problem(e, show));
        }
    }

    async function read() {
        try {
            const [{ agents: cardsOf = [] }, stats] = await Promise.all([get('/v1/agents'), get('/v1/stats')]);
            const loads = new Map((stats.agents ?? []).map((a) => [a.agentId, a]));
            agents = cardsOf.map((a) => ({ ...a, ...loads.get(a.card.agentId), card: a.card }));
            for (const a of agents) {
                const id = a.card.agentId;
                history.set(id, [...(history.get(id) ?? Array(SAMPLES - 1).fill(0)), a.inFlight ?? 0].slice(-SAMPLES));
            }
            totals.textContent = `${number(stats.inFlight)} steps in flight, ${number(stats.queued)} queued`;
            fill(errors);
            cards();
        } catch (e) {
            if (agents.length === 0) {
                fill(errors, problem(e, read));
            }
        }
    }
    const timer = setInterval(() => !document.hidden && read(), POLL_MS);
    const deaf = listen((events) => {
        if (events === null || events.some((e) => e.type.startsWith('agent_') && e.type !== 'agent_handoff')) {
            read();
            show();
        }
    });
    read();
    show();
    return {
        node: page,
        update(p) {
            picked = p[0] || null;
            cards();
            tryTo('', show).then(() => picked && detail.focus({ preventScroll: true }));
        },
        escape: () => (location.hash = '#/agents'),
        leave() {
            deaf();
            clearInterval(timer);
        },
    };
}
