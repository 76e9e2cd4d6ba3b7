import { createHash } from 'node:crypto';
import { compareText } from '@tollgate/kit/text';

/** Markup that is safe to put into a page as it is. */
export interface Html {
  readonly html: string;
}

/** What may stand in a template: text is escaped, markup is not; lists are joined, and what is undefined is nothing. */
export type HtmlValue = string | number | undefined | Html | readonly HtmlValue[];

/** Builds markup: everything that is put into it is escaped, unless it is markup itself. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return { html: parts.map((part, index) => part + render(values[index])).join('') };
}

function render(value: HtmlValue): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return escapeText(value);
  if (typeof value === 'number') return String(value);
  return isMarkup(value) ? value.html : value.map(render).join('');
}

const isMarkup = (value: Html | readonly HtmlValue[]): value is Html => 'html' in value;

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');

/** How the page looks, in the light and in the dark. */
export const pageStyle = `
:root { color-scheme: light dark; --ok: light-dark(#17692f, #6fd08c); --bad: light-dark(#a4161a, #ff8a80);
  --wait: light-dark(#8a5a00, #ffc766); --line: light-dark(#d5d9e0, #3a4150); --dim: light-dark(#59616e, #a3abb8); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 80rem; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt, .dim { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .8rem .35rem 0; text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: 500; white-space: nowrap; } td { overflow-wrap: anywhere; }
code, .message { font: 13px/1.45 ui-monospace, monospace; } .message { max-width: 60ch; white-space: pre-wrap; }
.True { color: var(--ok); } .False { color: var(--bad); } .Unknown, .Pending { color: var(--wait); }
.notice { border-left: 4px solid var(--bad); margin: 1rem 0; padding: .3rem 0 .3rem .8rem; }
a { color: inherit; } input, button { font: inherit; padding: .2rem .5rem; }
`;

/** Lets the browser use this style and nothing else: no script, no other server. */
export const contentSecurityPolicy =
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(pageStyle).digest('base64')}'; ` +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** A part of a long list, in the order of the names. */
export interface PageOf<T> {
  /** All that there are. */
  readonly total: number;
  readonly items: readonly T[];
  /** Name of the last item when there are more: ask for those after it. */
  readonly next: string | undefined;
}

/** Which part. */
export interface PageQuery {
  /** Only what comes after this name. */
  readonly after: string;
  readonly limit: number;
}

/** Most items on one page, whoever asks for more: 10,000 objects with their messages are tens of megabytes. */
const maxPageSize = 1000;

/** Takes a page out of named items, in the order of the names by code units. */
export function pageOf<T>(
  named: Iterable<readonly [name: string, item: T]>,
  { after, limit }: PageQuery,
): PageOf<T> {
  const all = [...named];
  const left = all.filter(([name]) => after === '' || compareText(name, after) > 0);
  left.sort(([a], [b]) => compareText(a, b));
  const page = left.slice(0, Math.min(limit, maxPageSize));
  const isLast = page.length === left.length;
  return {
    total: all.length,
    items: page.map(([, item]) => item),
    next: isLast ? undefined : page.at(-1)?.[0],
  };
}

/** Reads `after` and `limit` of a query; what is no number is the default. */
export function readPageQuery(query: URLSearchParams, defaultLimit: number): PageQuery {
  const limit = Number(query.get('limit') ?? defaultLimit);
  return {
    after: query.get('after') ?? '',
    limit: Number.isInteger(limit) && limit > 0 ? limit : defaultLimit,
  };
}
