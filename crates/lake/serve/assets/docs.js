// Shows /openapi.json: every operation, its parameters and what it answers.
'use strict';

function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

function kind(schema) {
  if (schema.enum) return schema.enum.join(' | ');
  return schema.type || '';
}

function row(parameter) {
  const name = parameter.required ? el('b', '', parameter.name) : parameter.name;
  return el('tr', '', el('td', 'url', name), el('td', '', parameter.in), el('td', '', kind(parameter.schema)),
    el('td', '', parameter.description || ''));
}

function operation(path, get) {
  const parts = [el('h2', 'path', `GET ${path}`), el('p', 'quiet', get.summary)];
  if (get.parameters.length) {
    parts.push(el('div', 'card', el('table', '', el('tbody', '', ...get.parameters.map(row)))));
  }
  const types = Object.keys(get.responses['200'].content || {}).join(', ');
  parts.push(el('p', 'quiet', `Answers ${types}`));
  return parts;
}

fetch('/openapi.json').then((response) => response.json()).then((api) => {
  const paths = Object.entries(api.paths);
  document.getElementById('main').append(el('h1', '', `${api.info.title} API`), el('p', 'quiet', api.info.description),
    ...paths.flatMap(([path, methods]) => operation(path, methods.get)));
});
