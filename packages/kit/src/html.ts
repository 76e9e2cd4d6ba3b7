/** Markup, which is not escaped. A class, so that parsed JSON cannot pass for it. */
class Html {
  readonly #markup: string;

  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

export type { Html };

type HtmlValue = Html | string | number | false | undefined | readonly HtmlValue[];

/**
 * Template tag that escapes all values except markup, for text and for quoted attributes. Lists are
 * joined; `false` and `undefined` are omitted.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(parts.map((part, index) => part + toMarkup(values[index])).join(''));
}

/** Our own text that is markup already, such as the content of `<style>`. */
export function trustedHtml(markup: string): Html {
  return new Html(markup);
}

function toMarkup(value: HtmlValue): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Html) return value.toString();
  return typeof value === 'object' ? value.map(toMarkup).join('') : escapeText(String(value));
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeText(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => escapes[character] ?? '');
}
