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
