import { type Html, html } from '@tollgate/kit/html';

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
