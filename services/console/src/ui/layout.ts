import { type Html, html } from '@tollgate/kit/html';
import type { Assets } from './assets.ts';

export interface NavigationEntry {
  readonly title: string;
  readonly path: string;
  readonly group: string;
}

export interface LayoutOptions {
  readonly title: string;
  readonly content: Html;
  readonly assets: Assets;
  /** Path of the page, to mark its entry. */
  readonly path: string;
  /** Pages that the person may see; empty before the sign-in. */
  readonly navigation: readonly NavigationEntry[];
  /** The button to sign out, with the name of the person. */
  readonly account: Html;
  /** Shown once after an action. */
  readonly notice: string | undefined;
}

/** No evaluation of attributes as code, no injected styles; errors leave a region as it is. */
const htmxConfig = JSON.stringify({
  includeIndicatorCSS: false,
  noSwap: [204, 304, '4xx', '5xx'],
  extensions: 'none',
});

/** The document around the content of a page. */
export function layout({ title, content, assets, path, navigation, account, notice }: LayoutOptions): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="htmx-config" content="${htmxConfig}">
<title>${title} · Tollgate</title>
<link rel="icon" href="${assets.url('icon.svg')}" type="image/svg+xml">
${assets.styles.map((url) => html`<link rel="stylesheet" href="${url}">`)}
${assets.scripts.map((url) => html`<script src="${url}" defer></script>`)}
${assets.modules.map((url) => html`<script src="${url}" type="module"></script>`)}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><a class="brand" href="/">Tollgate</a>${account}</header>
<div class="shell">
${navigation.length > 0 && pageList(navigation, path)}
<main id="main" tabindex="-1">
<div class="title"><h1>${title}</h1><p class="stale-mark" role="status">Not updated: the console does not answer. Values are old.</p></div>
${notice !== undefined && html`<div class="notice" role="status"><p>${notice}</p></div>`}
${content}
</main>
</div>
${keyboardHelp}
</body>
</html>
`;
}

function pageList(navigation: readonly NavigationEntry[], current: string): Html {
  const groups = Map.groupBy(navigation, ({ group }) => group);
  return html`<nav class="pages" aria-label="Pages">${[...groups].map(
    ([group, entries]) => html`<p>${group}</p>${entries.map((entry) => pageLink(entry, current))}`,
  )}</nav>`;
}

function pageLink({ title, path }: NavigationEntry, current: string): Html {
  const isCurrent = path === '/' ? current === '/' : current === path || current.startsWith(`${path}/`);
  return html`<a href="${path}"${isCurrent && html` aria-current="page"`}>${title}</a>`;
}

interface Tab {
  readonly title: string;
  readonly path: string;
}

/** Links to the pages of an area. */
export function tabs(label: string, items: readonly Tab[], current: string): Html {
  return html`<nav class="tabs" aria-label="${label}">${items.map(
    ({ title, path }) =>
      html`<a href="${path}"${path === current && html` aria-current="page"`}>${title}</a>`,
  )}</nav>`;
}

const keyboardHelp = html`<dialog id="help" aria-labelledby="help-title">
<h2 id="help-title">Keyboard</h2>
<dl class="details">
<dt><kbd>/</kbd></dt><dd>Search</dd>
<dt><kbd>?</kbd></dt><dd>This help</dd>
<dt><kbd>Esc</kbd></dt><dd>Close</dd>
</dl>
</dialog>`;
