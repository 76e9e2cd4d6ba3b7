import { createHash } from 'node:crypto';
import { compareText } from '@tollgate/kit/text';

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

/** Allows only this style: no scripts, no other origins. */
export const contentSecurityPolicy =
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(pageStyle).digest('base64')}'; ` +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** Part of a list, sorted by name. */
export interface Page<T> {
  /** Size of the whole list. */
  readonly total: number;
  readonly items: readonly T[];
  /** Name of the last item when there are more: `after` of the next page. */
  readonly next: string | undefined;
}

export interface PageQuery {
  /** The page begins after this name. */
  readonly after: string;
  readonly limit: number;
}

/** Largest page: 10,000 objects with their messages are tens of megabytes. */
const maxPageSize = 1000;

/** Sorts by code units of the names. */
export function paginate<T>(
  named: Iterable<readonly [name: string, item: T]>,
  { after, limit }: PageQuery,
): Page<T> {
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

/** An invalid `limit` is replaced by the default. */
export function parsePageQuery(query: URLSearchParams, defaultLimit: number): PageQuery {
  const limit = Number(query.get('limit') ?? defaultLimit);
  return {
    after: query.get('after') ?? '',
    limit: Number.isInteger(limit) && limit > 0 ? limit : defaultLimit,
  };
}
