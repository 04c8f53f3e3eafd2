// Questions, short messages, and keys.

import { button, h, icon, problem } from './dom.js';

const toasts = h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' });
document.body.append(toasts);

export function toast(text, kind = '') {
    const node = h('div', { class: 'toast ' + kind }, h('span', null, text));
    toasts.append(node);
    setTimeout(() => node.remove(), kind === 'bad' ? 10000 : 4000);
}

/** A window over the page. act(): what its main button does; it stays open, with the error, when that fails. */
export function dialog({ title, content, label = 'OK', kind = 'primary', act, wide = false }) {
    return new Promise((resolve) => {
        const errors = h('div', { 'aria-live': 'assertive' });
        const main = act ? h('button', { type: 'submit', class: 'button ' + kind }, label) : null;
        const form = h('form', { method: 'dialog' },
            h('header', null, h('h2', { id: 'dialog-title' }, title),
                button('Close', () => box.close(), { kind: 'icon quiet', icon: icon('close') })),
            h('div', { class: 'dialog-body' }, content, errors),
            h('footer', null, button(act ? 'Not now' : 'Close', () => box.close(), { kind: 'quiet' }), main));
        const box = h('dialog', { class: wide ? 'wide' : '', 'aria-labelledby': 'dialog-title' }, form);
        let result = null;
        form.addEventListener('submit', async (e) => {
            e.preventDefault();
            if (!main || main.disabled) {
                return;
            }
            main.disabled = true;
            try {
                result = (await act()) ?? true;
                box.close();
            } catch (error) {
                errors.replaceChildren(problem(error));
                main.disabled = false;
            }
        });
        box.addEventListener('close', () => {
            box.remove();
            resolve(result);
        });
        document.body.append(box);
        box.showModal();
        (form.querySelector('.dialog-body input, .dialog-body textarea, .dialog-body select') ?? main)?.focus();
    });
}

/** Does it, and says how it went. */
export async function tryTo(what, action) {
    try {
        const result = await action();
        if (what) {
            toast(what);
        }
        return result;
    } catch (e) {
        toast(`${e.message}${e.field ? ' (' + e.field + ')' : ''}`, 'bad');
        return null;
    }
}

const keys = new Map(); // key -> {text, go}

/** A shortcut; `?` lists them. A key of two letters ("g p") is typed one after the other. */
export function shortcut(key, text, go) {
    keys.set(key, { text, go });
}

let before = '';
document.addEventListener('keydown', (e) => {
    const typing = e.target.closest?.('input, textarea, select, [contenteditable]');
    if (typing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) {
        return;
    }
    const two = before + ' ' + e.key;
    const found = keys.get(two) ?? keys.get(e.key);
    before = e.key;
    if (found) {
        before = '';
        e.preventDefault();
        found.go();
    }
});

export function showKeys() {
    const rows = [...keys].map(([key, { text }]) => h('tr', null, h('td', null, key.split(' ').map((k) => h('kbd', null, k))), h('td', null, text)));
    const more = [['\u2191 \u2193 j k', 'in a list: up and down'], ['Enter', 'in a list: open'], ['Esc', 'close what is open'], ['Tab', 'to the next control']];
    return dialog({ title: 'Keys', content: h('table', { class: 'keys' }, h('tbody', null, rows,
        more.map(([k, t]) => h('tr', null, h('td', null, k.split(' ').map((x) => h('kbd', null, x))), h('td', null, t))))) });
}
