// The explorer page: three views over the API, chosen by the address after '#'.
//   #/                       the lake and its datasets
//   #/d/{domain}             which datasets hold the domain
//   #/d/{domain}/{dataset}   which URLs, page by page (?offset=, ?path=)
// URLs in a lake are hostile input: everything is put on the page as text, never as markup, and none is a link.
'use strict';

const PAGE = 50;
const main = document.getElementById('main');
const box = document.getElementById('box');
const list = document.getElementById('suggestions');

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === 'class') node.className = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, name === 'title' ? safe(value) : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (typeof c === 'string' ? safe(c) : c)));
  return node;
}

// A URL may turn the direction of writing, hide behind invisible characters or break lines: such characters (controls, formats,
// half characters, private ones, separators, and letters that look like nothing) are shown as escapes, so that what is read is
// what is there.
const HARMFUL = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;
const safe = (text) => String(text).replace(HARMFUL, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

const number = new Intl.NumberFormat('en');
const count = (n, one, many = one + 's') => `${number.format(n)} ${n === 1 ? one : many}`;
const bytes = (n) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return `${i ? n.toFixed(1) : n} ${units[i]}`;
};
// An upper bound is shown with ≤.
const atMost = (n, exact) => (exact ? '' : '≤ ') + number.format(n);
const day = (ts) => (ts ? ts.slice(0, 10) : '');
const moment = (ts) => (ts ? ts.slice(0, 19).replace('T', ' ') : '');

async function api(path) {
  document.getElementById('api').textContent = path;
  document.getElementById('api').href = path;
  const response = await fetch(path);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(answer.message || response.statusText), { code: answer.error });
  if (answer.version) document.getElementById('version').textContent = `version ${answer.version}`;
  return answer;
}

const domainPath = (domain) => `#/d/${encodeURIComponent(domain)}`;
const urlsPath = (domain, dataset, query = {}) => {
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v));
  return `${domainPath(domain)}/${dataset}${q.size ? '?' + q : ''}`;
};

// --- views -----------------------------------------------------------------------------------------------------------

async function home() {
  const [stats, catalogue, names] = await Promise.all([api('/v1/stats'), api('/v1/datasets'), api('/v1/domains?limit=24')]);
  const tile = (value, label) => el('div', { class: 'tile' }, el('b', {}, value), el('span', { class: 'quiet' }, label));
  const rows = catalogue.datasets.map((d) => el('tr', {},
    el('td', {}, el('b', {}, d.name), el('div', { class: 'quiet' }, d.source || '')),
    el('td', { class: 'num' }, number.format(d.rows)),
    el('td', { class: 'num' }, atMost(d.domains, d.domains_exact)),
    el('td', { class: 'num' }, bytes(d.bytes)),
    el('td', { class: 'time' }, day(d.created))));
  return [
    el('h1', {}, 'The lake'),
    el('p', { class: 'quiet' }, 'Type a domain above to see which datasets hold it and which of its URLs.'),
    el('div', { class: 'tiles' },
      tile(atMost(stats.domains, stats.domains_exact), 'domains'), tile(number.format(stats.rows), 'rows'),
      tile(number.format(stats.datasets), 'datasets'), tile(bytes(stats.bytes), 'on disk, index included')),
    el('h2', {}, 'Datasets'),
    catalogue.datasets.length
      ? table(['Name', '#Rows', '#Domains', '#Size', 'Created'], rows)
      : note('No datasets yet', 'trawl lake ingest --lake DIR --dataset NAME FILE…'),
    el('h2', {}, 'Domains'),
    el('div', {}, ...names.domains.map((d) => el('a', { class: 'chip', href: domainPath(d.domain) }, d.domain)),
      names.next_after ? el('span', { class: 'quiet' }, 'and more: type a name above') : null),
  ];
}

async function domainView(name) {
  const answer = await api(`/v1/domain/${encodeURIComponent(name)}`);
  return [...domainHead(answer, null)];
}

function domainHead(answer, chosen) {
  const most = Math.max(...answer.datasets.map((d) => d.url_count_est), 1);
  const hasPaths = answer.datasets.some((d) => d.top_paths.length);
  const rows = answer.datasets.map((d) => {
    const bar = el('span', { class: 'bar' });
    bar.style.width = `${(100 * d.url_count_est) / most}%`;
    const go = () => { location.hash = urlsPath(answer.domain, d.dataset_id); };
    return el('tr', { class: `go${d.dataset_id === chosen ? ' here' : ''}`, onclick: go },
      el('td', {}, el('a', { href: urlsPath(answer.domain, d.dataset_id) }, d.name)),
      el('td', { class: 'num' }, number.format(d.url_count_est)),
      el('td', { class: 'barbox' }, bar),
      el('td', { class: 'num' }, atMost(d.distinct_urls, d.distinct_exact || d.distinct_urls <= 1)),
      el('td', { class: 'time' }, [...new Set([day(d.first_ts), day(d.last_ts)])].join(' – ') || '–'),
      hasPaths ? el('td', {}, ...d.top_paths.slice(0, 4).map((p) =>
        el('a', { class: 'chip', href: urlsPath(answer.domain, d.dataset_id, { path: p.path }), title: count(p.rows, 'row'), onclick: (e) => e.stopPropagation() }, p.path))) : null);
  });
  return [
    el('h1', {}, answer.domain),
    el('p', { class: 'quiet' }, `${count(answer.datasets.length, 'dataset holds it', 'datasets hold it')} · domain_id ${answer.domain_id_hex}`),
    table(['Dataset', '#Rows', '|', '#URLs', 'Seen', ...(hasPaths ? ['Top paths'] : [])], rows),
  ];
}

async function urlsView(name, dataset, query) {
  const offset = Number(query.get('offset')) || 0;
  const path = query.get('path') || '';
  const cursor = query.get('cursor') || '';
  const q = new URLSearchParams({ limit: PAGE });
  if (cursor) q.set('cursor', cursor); else if (offset) q.set('offset', offset);
  if (path) q.set('path_prefix', path);
  const [answer, page] = await Promise.all([
    api(`/v1/domain/${encodeURIComponent(name)}`),
    api(`/v1/domain/${encodeURIComponent(name)}/datasets/${dataset}/urls?${q}`)]);
  const captured = page.items.some((i) => i.status !== undefined);
  const rows = page.items.map((item) => el('tr', {},
    el('td', { class: 'url' }, item.url),
    captured ? el('td', { class: `num status s${String(item.status ?? 0)[0]}`, title: reason(item) }, item.status ? String(item.status) : reason(item).slice(0, 40)) : null,
    captured ? el('td', { class: 'quiet wide' }, (item.content_type || '').split(';')[0]) : null,
    captured ? el('td', { class: 'num quiet wide' }, item.status && item.body_length !== undefined ? bytes(item.body_length) : '') : null,
    el('td', { class: 'time' }, moment(item.ts))));
  const title = answer.datasets.find((d) => d.dataset_id === Number(dataset));
  const last = offset + page.items.length;
  const where = path
    ? `${count(page.total_filtered ?? page.items.length, 'row')} under ${path}` + (page.progress && page.progress.seen < page.progress.of ? `, ${number.format(page.progress.seen)} of ${number.format(page.progress.of)} looked at` : '')
    : `${number.format(page.items.length ? offset + 1 : 0)}–${number.format(last)} of ${number.format(page.total_est)}`;
  const go = (q) => () => { location.hash = urlsPath(name, dataset, q); };
  const next = path ? page.next_cursor && { path, cursor: page.next_cursor } : page.next_offset && { offset: page.next_offset };
  const back = path ? cursor && { path } : offset && { offset: Math.max(0, offset - PAGE) };
  return [
    ...domainHead(answer, Number(dataset)),
    el('h2', {}, `URLs in ${title ? title.name : 'dataset ' + dataset}`),
    table(captured ? ['URL', '#Status', '~Type', '~#Size', 'Time (UTC)'] : ['URL', 'Time (UTC)'], rows),
    el('div', { class: 'pager' },
      el('button', { onclick: go(back || {}), ...(back ? {} : { disabled: '' }) }, path ? '← First' : '← Back'),
      el('span', { class: 'quiet' }, where),
      el('button', { onclick: go(next || {}), ...(next ? {} : { disabled: '' }) }, 'Next →'),
      path ? el('button', { onclick: go({}) }, 'All paths') : null),
  ];
}

// Why a fetch has no status: the class of its failure, or what kind of record it is.
function reason(item) {
  const extras = item.extras || {};
  return String(extras.error_class || extras.error || extras.record_type || 'not fetched');
}

function table(heads, rows) {
  // '#' is a column of numbers, '|' one of bars. Phones leave out bars, and columns with '~', together with their headings.
  const head = heads.map((h) => {
    const kinds = [h === '|' && 'barbox', h.startsWith('~') && 'wide', h.includes('#') && 'num'].filter(Boolean);
    return el('th', kinds.length ? { class: kinds.join(' ') } : {}, h.replace(/^[~|]?#?/, ''));
  });
  return el('div', { class: 'card' }, el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows)));
}

function note(title, text) {
  return el('div', { class: 'card note' }, el('b', {}, title), text);
}

// --- the address -----------------------------------------------------------------------------------------------------

let turn = 0;
async function show() {
  const mine = ++turn;
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  let parts = [];
  let nodes;
  try {
    parts = path.split('/').filter(Boolean).map(decodeURIComponent);
    if (parts[0] !== 'd' || !parts[1]) nodes = await home();
    else if (parts[2]) nodes = await urlsView(parts[1], parts[2], new URLSearchParams(query));
    else nodes = await domainView(parts[1]);
  } catch (error) {
    const unknown = error.code === 'unknown_domain';
    const text = error instanceof URIError ? 'This address is not one of this page.' : error.message;
    nodes = [note(unknown ? `No dataset holds ${parts[1]}` : 'That did not work', unknown ? 'Try another spelling, or a shorter name.' : text)];
  }
  if (mine !== turn) return; // a newer address has been asked for meanwhile
  if (parts[0] === 'd' && (document.activeElement !== box || !box.value)) box.value = parts[1];
  document.title = parts[1] ? `${safe(parts[1])} · Trawl` : 'Trawl explorer';
  main.replaceChildren(...nodes);
}
window.addEventListener('hashchange', show);

// --- the search box --------------------------------------------------------------------------------------------------

// The host of a pasted URL; a name stays as it is.
function hostOf(text) {
  const typed = text.trim();
  try {
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(typed)) return new URL(typed).hostname;
    if (/[/?#]/.test(typed)) return new URL(`http://${typed}`).hostname;
  } catch { /* not a URL: the server says what is wrong with it */ }
  return typed;
}

let asked = 0;
let chosen = -1;
async function suggest() {
  const mine = ++asked;
  const prefix = hostOf(box.value).toLowerCase();
  if (!prefix) return hide();
  let names = [];
  try { names = (await (await fetch(`/v1/domains?limit=10&prefix=${encodeURIComponent(prefix)}`)).json()).domains || []; } catch { /* no suggestions */ }
  if (mine !== asked) return;
  chosen = -1;
  list.replaceChildren(...names.map((d) => el('li', { role: 'option', 'aria-selected': 'false', onmousedown: (e) => { e.preventDefault(); open(d.domain); } },
    el('span', {}, d.domain), el('span', { class: 'quiet' }, `${count(d.rows, 'row')} · ${count(d.datasets, 'dataset')}`))));
  list.hidden = !names.length;
  box.setAttribute('aria-expanded', String(!list.hidden));
}
function hide() { list.hidden = true; box.setAttribute('aria-expanded', 'false'); }
function open(domain) {
  asked++;
  hide();
  box.value = domain;
  box.blur();
  location.hash = domainPath(domain);
}
box.addEventListener('input', suggest);
box.addEventListener('blur', hide);
box.addEventListener('keydown', (event) => {
  const items = [...list.children];
  if (event.key === 'Escape') return hide();
  if (list.hidden || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return;
  event.preventDefault();
  chosen = (chosen + (event.key === 'ArrowDown' ? 1 : items.length - 1) + (chosen < 0 && event.key === 'ArrowUp' ? 1 : 0)) % items.length;
  items.forEach((item, i) => item.setAttribute('aria-selected', String(i === chosen)));
});
document.getElementById('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const item = list.children[chosen];
  const name = item ? item.firstChild.textContent : hostOf(box.value);
  if (name) open(name);
});

show();
