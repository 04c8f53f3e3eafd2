// Conversations: what was said, the answer as it is written, and the plan beside it.

import { get, may, path, post } from './api.js';
import { badge, button, empty, fill, h, icon, problem } from './dom.js';
import { ago, at, short } from './format.js';
import { listen } from './events.js';
import { progress } from './plans.js';
import { markdown } from './value.js';

const RELOADS = /^(turn_|plan_generated|plan_completed|plan_started|plan_step_waiting|review_|plan_step_completed|plan_paused|plan_resumed|planning_)/;

export function sessionsPage(parts) {
    let id = parts[0] || null;
    let session = null;
    let plan = null;
    let delta = ''; // of the answer that is being written
    let sending = '';
    let known = null; // ids of sessions that there are; null: not read, or too many
    const list = h('div', { class: 'inbox' });
    const log = h('div', { class: 'chat-log', role: 'log', 'aria-live': 'polite', 'aria-label': 'Conversation', tabindex: 0 });
    const beside = h('div', { class: 'chat-plan' });
    const text = h('textarea', { rows: 2, maxlength: 8192, placeholder: 'Say what you want, or what should change', 'aria-label': 'Message' });
    const send = h('button', { type: 'submit', class: 'button primary', 'data-action': 'say' }, 'Send');
    const errors = h('div', { 'aria-live': 'assertive' });
    const form = h('form', { class: 'chat-form' }, text, send);
    const name = h('h2', null);
    const chat = h('div', { class: 'card chat', hidden: true, role: 'region', 'aria-label': 'Session' }, h('header', { class: 'row' }, h('a', { class: 'back', href: '#/sessions' }, icon('back', 16), 'Sessions'), name), beside, log, errors,
        may('submitter') ? form : h('p', { class: 'hint' }, 'Your role reads: a submitter can answer here.'));
    const fresh = () => (location.hash = '#/sessions/web-' + crypto.randomUUID().slice(0, 8));
    const page = h('div', { class: 'page two' }, h('header', { class: 'head' }, h('h1', null, 'Sessions'), h('div', { class: 'grow' }), may('submitter') ? button('New session', fresh, { kind: 'primary', icon: icon('submit') }) : null), h('div', { class: 'columns' }, list, chat));

    async function readList() {
        try {
            const { sessions = [] } = await get('/v1/sessions', { limit: 500 });
            known = sessions.length < 500 ? new Set(sessions.map((s) => s.sessionId)) : null;
            fill(list, sessions.length === 0 ? empty('No sessions yet', may('submitter') ? 'Talk about a task here: plans are made from what you say, and you can change them in words.' : 'Conversations appear here.', may('submitter') ? button('New session', fresh, { kind: 'primary' }) : null)
                : h('ul', { class: 'entries' }, sessions.map((s) => h('li', null, h('a', { class: 'entry', href: '#/sessions/' + encodeURIComponent(s.sessionId), 'aria-current': s.sessionId === id ? 'true' : null }, h('strong', null, s.title || s.lastMessage || s.sessionId),
                    h('span', { class: 'sub' }, `${s.sessionId.slice(0, 40)} \u00b7 ${ago(s.updatedAt ?? s.createdAt)}`))))));
        } catch (e) {
            fill(list, problem(e, readList));
        }
    }

    function bubble(role, body, more) {
        return h('div', { class: 'bubble is-' + (role === 'user' ? 'user' : 'other') }, h('div', { class: 'markdown' }, body), h('div', { class: 'sub' }, more));
    }

    let drawn = '';
    function show() {
        const now = JSON.stringify([session?.messages, delta, sending]);
        if (now === drawn) {
            return;
        }
        drawn = now;
        const low = log.scrollTop + log.clientHeight >= log.scrollHeight - 80;
        const messages = session?.messages ?? [];
        fill(log, messages.length === 0 && !sending ? h('p', { class: 'muted pad' }, 'Nothing was said yet. For example: \u201cread /var/log/dpkg.log, then count the installs per day\u201d.') : null,
            messages.map((m) => bubble(m.role, markdown(m.text ?? ''), [at(m.timestamp), m.planId ? h('span', null, ' \u00b7 ', h('a', { href: '#/plans/' + m.planId }, 'plan ' + short(m.planId))) : null, m.truncated ? ' \u00b7 cut' : ''])),
            sending ? bubble('user', [h('p', null, sending)], 'sending\u2026') : null,
            delta ? bubble('assistant', markdown(delta), 'is being written\u2026') : null);
        if (low) {
            log.scrollTop = log.scrollHeight;
        }
    }

    async function showPlan() {
        const planId = session?.openPlanId ?? session?.planHistory?.at(-1)?.planId;
        try {
            plan = planId ? await get(path('plans', planId), { steps: false }) : null;
        } catch {
            plan = null;
        }
        fill(beside, plan ? h('a', { class: 'plan-strip', href: '#/plans/' + plan.planId }, badge(plan.status), h('span', { class: 'strip-title' }, plan.query || short(plan.planId)), progress(plan.counts), h('span', { class: 'muted' }, 'open the plan')) : null);
    }

    async function read() {
        chat.hidden = id === null;
        page.classList.toggle('is-picked', id !== null);
        if (id === null) {
            return;
        }
        name.textContent = id;
        const mine = id;
        if (known && !known.has(id)) {
            session = null; // nothing was said in it yet
            show();
            showPlan();
            return;
        }
        try {
            const answer = await get(path('sessions', id), { limit: 200 });
            if (mine !== id) {
                return;
            }
            session = answer;
            fill(errors);
        } catch (e) {
            session = null;
            if (e.status !== 404) {
                fill(errors, problem(e, read));
            }
        }
        show();
        showPlan();
    }

    form.addEventListener('submit', async (e) => {
        e.preventDefault();
        const said = text.value.trim();
        if (!said || send.disabled) {
            return;
        }
        send.disabled = true;
        sending = said;
        text.value = '';
        delta = '';
        show();
        log.scrollTop = log.scrollHeight;
        try {
            const answer = await post(path('sessions', id, 'say'), { text: said }, { key: crypto.randomUUID() });
            fill(errors);
            if (answer.sessionId && answer.sessionId !== id) { // a submitter's has its credential in front
                location.replace('#/sessions/' + encodeURIComponent(answer.sessionId));
            }
        } catch (error) {
            text.value = said;
            fill(errors, problem(error));
        }
        sending = '';
        send.disabled = false;
        await readList();
        await read();
        text.focus();
    });
    text.addEventListener('keydown', (e) => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            form.requestSubmit();
        }
    });

    let timer = 0;
    const deaf = listen((events) => {
        let again = events === null;
        for (const e of events ?? []) {
            const ours = e.sessionId === id || (session?.openPlanId && e.planId === session.openPlanId);
            if (!ours) {
                continue;
            }
            if (e.type === 'text_delta') {
                delta = e.index === 0 || e.index === undefined ? e.text ?? '' : delta + (e.text ?? '');
                show();
            }
            if (e.type === 'plan_completed') {
                delta = '';
            }
            again ||= RELOADS.test(e.type);
        }
        if (again) {
            timer ||= setTimeout(() => {
                timer = 0;
                read();
            }, 120);
        }
    });
    readList().then(read);
    return {
        node: page,
        entered: () => id !== null && text.focus(),
        update(p) {
            id = p[0] || null;
            [session, plan, delta, drawn] = [null, null, '', ''];
            readList().then(read).then(() => id !== null && text.focus());
        },
        escape: () => (location.hash = '#/sessions'),
        leave() {
            deaf();
            clearTimeout(timer);
        },
    };
}
