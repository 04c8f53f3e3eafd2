// The first page: who are you?

import { logIn } from './api.js';
import { field, h, problem } from './dom.js';

/** What a file of `baton credential add` has, as ID:KEY; other text as it is. */
function bearerOf(text) {
    try {
        const c = JSON.parse(text);
        if (c.id && c.key) {
            return `${c.id}:${c.key}`;
        }
    } catch {
        // no JSON: a token, or ID:KEY
    }
    return text.trim();
}

export function loginPage() {
    const input = h('input', { type: 'password', autocomplete: 'current-password', required: true, spellcheck: 'false', placeholder: 'token or ID:KEY' });
    const file = h('input', { type: 'file', 'aria-label': 'Credential file' });
    const errors = h('div', { 'aria-live': 'assertive' });
    const submit = h('button', { type: 'submit', class: 'button primary' }, 'Log in');

    async function log(text) {
        submit.disabled = true;
        errors.replaceChildren();
        try {
            await logIn(bearerOf(text));
        } catch (e) {
            e.title = e.status === 401 ? 'That is not a token or credential of this daemon' : e.title;
            errors.replaceChildren(problem(e));
            input.select();
        }
        submit.disabled = false;
    }
    file.addEventListener('change', async () => file.files[0] && log(await file.files[0].text()));
    const form = h('form', { class: 'card' },
        h('div', { class: 'brand' }, h('span', { class: 'mark', 'aria-hidden': 'true' }), 'Baton'),
        h('h1', null, 'Log in'),
        h('input', { type: 'text', autocomplete: 'username', hidden: true, 'aria-hidden': 'true', tabindex: -1 }),
        field('Token or credential', input),
        errors, submit,
        h('details', null, h('summary', null, 'Where do I get one?'),
            h('p', null, 'On the machine of the daemon, ', h('code', null, 'baton ui'), ' names the file of its token: an administrator\u2019s. For others:'),
            h('pre', null, 'baton credential add ann --role reviewer'),
            h('p', null, 'Then choose the file that it wrote, or type ID:KEY of it.'), file));
    form.addEventListener('submit', (e) => {
        e.preventDefault();
        log(input.value);
    });
    queueMicrotask(() => input.focus());
    return h('main', { class: 'login' }, form);
}
