// Tokens and money: by day, by phase, by plan.

import { get } from './api.js';
import { badge, empty, fill, h, problem, s } from './dom.js';
import { ago, money, number, short, tokens } from './format.js';

const PHASES = ['planning', 'execution', 'replanning', 'synthesis', 'conversation'];
const SINCE = { 'last day': 864e5, 'last 7 days': 7 * 864e5, 'last 30 days': 30 * 864e5, 'all time': 0 };

function days(plans) {
    const by = new Map();
    for (const p of plans) {
        const d = (p.createdAt ?? '').slice(0, 10);
        by.set(d, (by.get(d) ?? 0) + tokens(p.total));
    }
    return [...by].sort(([a], [b]) => (a < b ? -1 : 1)).slice(-30);
}

function chart(list) {
    const most = Math.max(1, ...list.map(([, n]) => n));
    const w = 100 / Math.max(7, list.length);
    return h('figure', { class: 'chart' }, s('svg', { viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': 'Tokens by day: ' + list.map(([d, n]) => `${d} ${n}`).join(', ') },
        list.map(([d, n], i) => s('rect', { class: 'bar is-running', x: i * w + w * 0.15, width: w * 0.7, y: 40 - 38 * n / most, height: 38 * n / most }, s('title', null, `${d}: ${number(n)}`)))),
    h('figcaption', { class: 'row' }, h('span', { class: 'muted' }, list[0]?.[0] ?? ''), h('span', { class: 'grow' }), h('span', { class: 'muted' }, list.at(-1)?.[0] ?? '')));
}

export function costPage() {
    const since = h('select', { 'aria-label': 'Since' }, Object.keys(SINCE).map((x) => h('option', { value: x, selected: x === 'last 7 days' }, x)));
    const body = h('div', null);
    async function read() {
        try {
            const span = SINCE[since.value];
            const { plans = [], total = {}, truncated } = await get('/v1/cost', { limit: 1000, sinceMs: span ? Date.now() - span : undefined });
            const all = tokens(total.total);
            fill(body, h('div', { class: 'tiles' }, [['tokens', number(all)], ['cost', money(total.total?.costMicros) || '\u2013'], ['plans', number(plans.length) + (truncated ? '+' : '')], ...PHASES.filter((p) => tokens(total[p])).map((p) => [p, `${number(tokens(total[p]))} (${Math.round(100 * tokens(total[p]) / (all || 1))} %)`])]
                .map(([k, v]) => h('div', { class: 'card tile' }, h('span', { class: 'muted' }, k), h('strong', { class: 'num' }, v)))),
            all === 0 ? empty('Nothing was spent', 'Tokens and cost are what agents report with their results. Agents with a language model do.') : h('section', { class: 'card' }, h('h2', null, 'Tokens by day'), chart(days(plans))),
            all === 0 ? null : h('section', { class: 'card' }, h('h2', null, 'By plan'), h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Plans by cost' }, h('table', null, h('thead', null, h('tr', null, ['Plan', 'State', 'Began', 'Tokens', 'Cost'].map((x) => h('th', null, x)))),
                h('tbody', null, plans.filter((p) => tokens(p.total)).sort((a, b) => tokens(b.total) - tokens(a.total)).slice(0, 200).map((p) => h('tr', null, h('td', null, h('a', { href: '#/plans/' + p.planId }, p.task || short(p.planId))), h('td', null, badge(p.status)), h('td', null, ago(p.createdAt)), h('td', { class: 'num' }, number(tokens(p.total))), h('td', { class: 'num' }, money(p.total?.costMicros)))))))));
        } catch (e) {
            fill(body, problem(e, read));
        }
    }
    since.addEventListener('change', read);
    read();
    return { node: h('div', { class: 'page' }, h('header', { class: 'head' }, h('h1', null, 'Cost'), h('div', { class: 'grow' }), since), body) };
}
