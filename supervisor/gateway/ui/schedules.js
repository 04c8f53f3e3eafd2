// What begins by itself: when, the last time, the next times.

import { ask, get, may, me, owns, path, post } from './api.js';
import { badge, button, empty, field, fill, h, icon, problem } from './dom.js';
import { ago, duration, fully, short } from './format.js';
import { jsonOf } from './actions.js';
import { dialog, tryTo } from './dialog.js';
import { listen } from './events.js';
import { tree } from './value.js';

const rule = (s) => (s.cron ? 'cron ' + s.cron : s.everyMs ? 'every ' + duration(s.everyMs) : s.at ? 'once, ' + s.at : '');

function make() {
    const name = h('input', { type: 'text', required: true, maxlength: 64, pattern: '[A-Za-z0-9_.\\-]+' });
    const kind = h('select', null, [['cron', 'by a cron rule'], ['every', 'every so many minutes'], ['at', 'once']].map(([v, t]) => h('option', { value: v }, t)));
    const when = h('input', { type: 'text', required: true, value: '0 3 * * *' });
    const zone = h('input', { type: 'text', value: Intl.DateTimeFormat().resolvedOptions().timeZone ?? '' });
    const goal = h('textarea', { rows: 2 });
    const plan = h('textarea', { rows: 4, class: 'mono', placeholder: '{"steps": [\u2026]}' });
    kind.addEventListener('change', () => (when.value = { cron: '0 3 * * *', every: '60', at: new Date(Date.now() + 3600e3).toISOString().slice(0, 19) + 'Z' }[kind.value]));
    return dialog({
        title: 'New schedule', label: 'Make it', wide: true,
        content: [field('Name', name), h('div', { class: 'row tops' }, field('Begins', kind), field('Rule', when, 'cron: minute hour day month weekday'), field('Time zone', zone)),
            field('Goal', goal, 'In words: a planner makes the plan each time. Or:'), field('Plan', plan, 'JSON')],
        act: () => ask('PUT', path('schedules', name.value.trim()), { body: {
            ...{ cron: { cron: when.value.trim() }, every: { everyMs: Math.round(Number(when.value) * 60000) }, at: { at: when.value.trim() } }[kind.value],
            ...(kind.value === 'cron' && zone.value.trim() ? { tz: zone.value.trim() } : {}), goal: goal.value.trim() || undefined, plan: jsonOf(plan, 'plan'),
        } }),
    });
}

export function schedulesPage(parts) {
    let picked = parts[0] || null;
    const list = h('div', { class: 'inbox' });
    const detail = h('div', { class: 'card detail', tabindex: -1, role: 'region', 'aria-label': 'Schedule', hidden: true });
    const create = async () => {
        if (await make()) {
            read();
        }
    };
    const page = h('div', { class: 'page two' }, h('header', { class: 'head' }, h('h1', null, 'Schedules'), h('div', { class: 'grow' }), may('submitter') ? button('New schedule', create, { kind: 'primary', icon: icon('submit'), 'data-action': 'schedule' }) : null), h('div', { class: 'columns' }, list, detail));

    async function read() {
        try {
            const { schedules = [] } = await get('/v1/schedules', { limit: 500 });
            fill(list, schedules.length === 0 ? empty('No schedules', may('submitter') ? 'A schedule begins a plan by itself: every night, every ten minutes, or once.' : 'What begins by itself appears here.', may('submitter') ? button('New schedule', create, { kind: 'primary' }) : null)
                : h('ul', { class: 'entries' }, schedules.map((s) => h('li', null, h('a', { class: 'entry', href: '#/schedules/' + encodeURIComponent(s.name), 'aria-current': s.name === picked ? 'true' : null }, h('span', { class: 'row' }, h('strong', null, s.name), h('span', { class: 'grow' }), badge(s.status)),
                    h('span', { class: 'sub' }, [rule(s), s.tz].filter(Boolean).join(', '), s.next?.[0] ? ` \u00b7 next ${ago(s.next[0])}` : ''))))));
        } catch (e) {
            fill(list, problem(e, read));
        }
    }

    async function act(text, method, name, ...more) {
        await tryTo(text, () => (method === 'DELETE' ? ask('DELETE', path('schedules', name)) : post(path('schedules', name, ...more), {})));
        read();
        show();
    }

    async function show() {
        detail.hidden = picked === null;
        page.classList.toggle('is-picked', picked !== null);
        if (picked === null) {
            return;
        }
        try {
            const { schedule: s } = await get(path('schedules', picked), { next: 5, document: true });
            const mine = owns(s) || me.role === 'admin';
            fill(detail, h('a', { class: 'back', href: '#/schedules' }, icon('back', 16), 'All schedules'), h('div', { class: 'row' }, h('h2', null, s.name), badge(s.status)), s.reason ? h('p', { class: 'muted' }, s.reason) : null,
                mine ? h('div', { class: 'row wraps' }, button('Begin now', () => act('A plan begins.', 'POST', s.name, 'trigger'), { kind: 'primary', 'data-action': 'trigger' }),
                    s.status === 'paused' ? button('Resume', () => act('It goes on.', 'POST', s.name, 'resume'), { 'data-action': 'resume' }) : button('Pause', () => act('It is paused.', 'POST', s.name, 'pause'), { 'data-action': 'pause' }),
                    button('Delete', async () => {
                        if (await dialog({ title: `Delete ${s.name}?`, label: 'Delete', kind: 'danger', content: h('p', null, 'Plans that it began go on.'), act: () => ask('DELETE', path('schedules', s.name)) })) {
                            location.hash = '#/schedules';
                            read();
                        }
                    }, { kind: 'danger', 'data-action': 'delete' })) : null,
                h('dl', { class: 'pairs' }, [['Rule', rule(s)], ['Time zone', s.tz], ['When one is open', s.overlap], ['Owner', s.owner], ['Begun', s.fired], ['Skipped', s.skipped], ['Failures', s.failures], ['Last', s.lastTime && fully(s.lastTime)]].filter(([, v]) => v !== undefined && v !== '').map(([k, v]) => [h('dt', null, k), h('dd', null, v)])),
                s.lastPlanId ? h('p', null, h('a', { href: '#/plans/' + s.lastPlanId }, 'The last plan ' + short(s.lastPlanId))) : null,
                s.next?.length ? h('section', null, h('h3', null, 'Next'), h('ol', { class: 'log' }, s.next.map((t) => h('li', null, fully(t), h('span', { class: 'muted' }, ' ' + ago(t)))))) : null,
                s.goal ? h('section', null, h('h3', null, 'Goal'), h('p', null, s.goal)) : null, s.plan ? h('section', null, h('h3', null, 'Plan'), h('div', { class: 'value' }, tree(s.plan, 2))) : null, s.inputs ? h('section', null, h('h3', null, 'Inputs'), h('div', { class: 'value' }, tree(s.inputs, 2))) : null);
        } catch (e) {
            fill(detail, problem(e, show));
        }
    }
    const deaf = listen((events) => {
        if (events === null || events.some((e) => e.type.startsWith('schedule_'))) {
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
            read();
            show().then(() => picked && detail.focus({ preventScroll: true }));
        },
        escape: () => (location.hash = '#/schedules'),
        leave: deaf,
    };
}
