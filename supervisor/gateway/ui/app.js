// The frame of the page: log-in, navigation, what the address means, the state of the connection.

import { changed, get, logOut, lost, may, me, resume } from './api.js';
import { button, fill, h, icon, problem } from './dom.js';
import { dialog, shortcut, showKeys, toast } from './dialog.js';
import * as events from './events.js';
import { loginPage } from './login.js';
import { plansPage } from './plans.js';
import { planPage } from './plan.js';
import { reviewsPage } from './reviews.js';
import { agentsPage } from './agents.js';
import { sessionsPage } from './sessions.js';
import { schedulesPage } from './schedules.js';
import { costPage } from './cost.js';
import { submitPage } from './submit.js';

const PAGES = {
    plans: { title: 'Plans', page: (parts, q) => (parts[0] ? planPage(parts, q) : plansPage(q)), key: 'p' },
    reviews: { title: 'Reviews', page: reviewsPage, key: 'r' },
    agents: { title: 'Agents', page: agentsPage, key: 'a' },
    sessions: { title: 'Sessions', page: sessionsPage, key: 's' },
    schedules: { title: 'Schedules', page: schedulesPage, key: 't' },
    cost: { title: 'Cost', page: costPage, key: 'c' },
    submit: { title: 'New plan', page: submitPage, key: 'n', role: 'submitter' },
};

const main = h('main', { id: 'main', tabindex: -1 });
const banner = h('div', { class: 'banner', role: 'status', hidden: true });
const count = h('span', { class: 'count', hidden: true });
let leave = null; // what the page that is shown wants to do at its end
let links = new Map();

function theme(to) {
    document.documentElement.dataset.theme = to;
    localStorage.setItem('baton.theme', to);
}
const dark = () => (document.documentElement.dataset.theme ?? '') === 'dark'
    || (!document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
if (localStorage.getItem('baton.theme')) {
    theme(localStorage.getItem('baton.theme'));
}
const switchTheme = () => theme(dark() ? 'light' : 'dark');

function frame() {
    links = new Map();
    const nav = h('nav', { 'aria-label': 'Main' }, Object.entries(PAGES).filter(([, p]) => !p.role || may(p.role)).map(([name, p]) => {
        const a = h('a', { href: '#/' + name, class: name === 'submit' ? 'nav-new' : 'nav-' + name, title: `${p.title} (g ${p.key})` },
            icon(name, 20), h('span', null, p.title), name === 'reviews' ? count : null);
        links.set(name, a);
        return a;
    }));
    const person = h('div', { class: 'person' },
        h('div', { class: 'who' }, h('strong', null, me.credential), h('span', { class: 'muted' }, me.role)),
        button('Light or dark', switchTheme, { kind: 'icon quiet', icon: icon('theme'), title: 'Light or dark (d)' }),
        button('Keys', showKeys, { kind: 'icon quiet', icon: icon('help'), title: 'Keys (?)' }),
        button('Log out', logOut, { kind: 'icon quiet', icon: icon('out'), title: 'Log out' }));
    fill(document.getElementById('root'),
        h('a', { class: 'skip', href: '#main', onclick: (e) => {
            e.preventDefault();
            main.focus();
        } }, 'To the content'),
        h('div', { class: 'side' }, h('a', { class: 'brand', href: '#/plans' }, h('span', { class: 'mark', 'aria-hidden': 'true' }), 'Baton'), nav,
            button('More', more, { kind: 'icon quiet more', icon: icon('more') }), person),
        h('div', { class: 'content' }, banner, main));
}

/** On a small screen: what has no room in the bar. */
function more() {
    const pick = (text, go, mark) => h('button', { type: 'button', class: 'button quiet', onclick: (e) => {
        e.target.closest('dialog').close();
        go();
    } }, icon(mark), text);
    dialog({ title: `${me.credential} (${me.role})`, content: h('div', { class: 'menu' }, pick('Cost', () => go('/cost'), 'cost'), may('submitter') ? pick('New plan', () => go('/submit'), 'submit') : null,
        pick('Light or dark', switchTheme, 'theme'), pick('Log out', logOut, 'out')) });
}

export function go(hash) {
    location.hash = hash;
}

function where() {
    const [path, q] = location.hash.replace(/^#\/?/, '').split('?');
    const parts = path.split('/').map((p) => {
        try {
            return decodeURIComponent(p);
        } catch {
            return p;
        }
    });
    return { name: parts[0] || 'plans', parts: parts.slice(1), q: new URLSearchParams(q) };
}

let shownName = '';
let shownPlan = '';
let current = null;

function route() {
    if (!me.role) {
        return;
    }
    const { name, parts, q } = where();
    const page = PAGES[name];
    if (!page) {
        leave?.();
        leave = null;
        current = null;
        fill(main, problem({ title: 'There is no such page', message: 'Choose one on the left.' }));
        return;
    }
    if (current?.update && shownName === name && (name !== 'plans' || shownPlan === (parts[0] ?? ''))) {
        current.update(parts, q); // the same page with another part of the address: it stays
        return;
    }
    leave?.();
    [shownName, shownPlan] = [name, parts[0] ?? ''];
    document.title = page.title + ' \u00b7 Baton';
    for (const [n, a] of links) {
        a.toggleAttribute('aria-current', n === name);
        if (n === name) {
            a.setAttribute('aria-current', 'page');
        }
    }
    current = page.page(parts, q);
    leave = current.leave ?? null;
    fill(main, current.node);
    main.scrollTop = 0;
    current.entered?.();
}

async function countReviews() {
    try {
        const { reviews = [], truncated } = await get('/v1/reviews', { limit: 100 });
        count.textContent = reviews.length + (truncated ? '+' : '');
        count.hidden = reviews.length === 0;
        count.setAttribute('aria-label', `${reviews.length} wait`);
    } catch {
        count.hidden = true;
    }
}

let counting = 0;
const REVIEWED = new Set(['plan_step_waiting', 'review_decided', 'review_voided', 'plan_paused', 'plan_completed', 'plan_resumed', 'plan_step_completed']);
events.listen((list) => {
    if (list === null || list.some((e) => REVIEWED.has(e.type))) {
        counting ||= setTimeout(() => {
            counting = 0;
            countReviews();
        }, 700);
    }
});

let since = 0;
function connection() {
    const live = events.state.live;
    document.documentElement.dataset.live = live;
    clearTimeout(since);
    if (live) {
        if (!banner.hidden) {
            toast('Connected again. Nothing was lost.');
        }
        banner.hidden = true;
    } else if (me.role) {
        since = setTimeout(() => {
            banner.hidden = events.state.live;
            fill(banner, h('span', { class: 'spinner', 'aria-hidden': 'true' }), 'The gateway is away. What is shown may be old; the page connects again by itself.');
        }, 600);
    }
}

function begin() {
    frame();
    events.start(me.info.lastSeq ?? 0);
    countReviews();
    shownName = '';
    route();
}

function askLogin() {
    events.end();
    leave?.();
    leave = null;
    current = null;
    document.title = 'Log in \u00b7 Baton';
    banner.hidden = true;
    fill(document.getElementById('root'), loginPage());
}

for (const [name, p] of Object.entries(PAGES)) {
    shortcut('g ' + p.key, 'go to ' + p.title, () => me.role && (!p.role || may(p.role)) && go('/' + name));
}
shortcut('?', 'show these keys', showKeys);
shortcut('d', 'switch between light and dark', switchTheme);
shortcut('/', 'search', () => document.querySelector('input[type=search]')?.focus());
shortcut('Escape', 'close what is open', () => current?.escape?.());

changed.addEventListener('login', begin);
changed.addEventListener('logout', askLogin);
changed.addEventListener('online', connection);
changed.addEventListener('offline', connection);
addEventListener('hashchange', route);

document.body.prepend(h('div', { id: 'root' }));
async function boot() {
    try {
        if (!(await resume())) {
            lost();
        }
    } catch (e) {
        fill(document.getElementById('root'), h('main', { class: 'login' }, problem(e, boot)));
        setTimeout(() => !me.role && boot(), 2000);
    }
}
boot();
