import { type Html, html } from '@tollgate/kit/html';

/** Steps of relative times, in seconds. */
const steps = [
  ['y', 31_557_600],
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const;

/** `3 min ago`, with the exact time on hover. Accepts RFC 3339, or milliseconds. */
export function time(at: string | number | null | undefined, nowMs: number): Html | undefined {
  if (at === undefined || at === null) return undefined;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return html`${at}`;
  const exact = date.toISOString();
  const readable = `${exact.slice(0, 19).replace('T', ' ')} UTC`;
  return html`<time datetime="${exact}" title="${readable}">${relative(date.getTime() - nowMs)}</time>`;
}

/** `3 min ago`, `in 2 h` or `now`. */
export function relative(differenceMs: number): string {
  const seconds = Math.round(Math.abs(differenceMs) / 1000);
  const step = steps.find(([, length]) => seconds >= length);
  if (step === undefined) return 'now';
  const text = `${Math.floor(seconds / step[1])} ${step[0]}`;
  return differenceMs > 0 ? `in ${text}` : `${text} ago`;
}

const formats = {
  integer: new Intl.NumberFormat('en', { maximumFractionDigits: 0 }),
  short: new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }),
};

/** A number with its unit: `1,234 req/s`. Small ones have three digits. */
export function quantity(value: number | undefined, unit: string): Html {
  if (value === undefined || !Number.isFinite(value)) return html`<span class="dim">–</span>`;
  const text = (Math.abs(value) < 100 ? formats.short : formats.integer).format(value);
  return html`<span class="n">${text} <span class="unit">${unit}</span></span>`;
}

/** `warn` and `bad` are for what needs a person. */
export type Tone = 'neutral' | 'ok' | 'warn' | 'bad';

export function badge(text: string, tone: Tone = 'neutral'): Html {
  return html`<span class="badge ${tone}">${text}</span>`;
}

/** A text with its parts in backticks as code. */
export function withCode(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

/** Text in a fixed-width font, with a button that copies it. */
export function copyable(text: string): Html {
  return html`<code>${text}</code> ${copyButton(text)}`;
}

/** A command to paste into a shell. */
export function command(text: string): Html {
  return html`<div class="command"><pre>${text}</pre>${copyButton(text)}</div>`;
}

/** Shown by the script that makes it work. */
function copyButton(text: string): Html {
  return html`<button type="button" class="copy" data-copy="${text}">Copy</button>`;
}

/** An id for an element from texts that tell it apart. */
export function elementId(...parts: readonly string[]): string {
  return parts.join('-').replaceAll(/\W/g, '-');
}

/** Part of a page with a heading. */
export function card(title: string, content: Html): Html {
  return html`<section class="card"><h2>${title}</h2>${content}</section>`;
}

/** Names and values. Undefined values are left out. */
export function details(entries: Readonly<Record<string, Html | string | number | undefined>>): Html {
  return html`<dl class="details">${Object.entries(entries).map(
    ([name, value]) => value !== undefined && html`<dt>${name}</dt><dd>${value}</dd>`,
  )}</dl>`;
}
