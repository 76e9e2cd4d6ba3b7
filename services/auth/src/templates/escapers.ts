import { isSafeName } from './attributes.ts';
import { escapeCssString, filterCssValue } from './escape-css.ts';
import { escapeHtmlValue, escapeUnquoted, unsafeValue } from './escape-html.ts';
import { escapeJsRegExp, escapeJsString, escapeJsTemplate, escapeJsValue } from './escape-js.ts';
import { escapeSrcset, escapeUrlPart, filterUrl, normalizeUrl } from './escape-url.ts';
import { callFunction } from './functions.ts';
import { printAll, type Value } from './values.ts';

interface Escaper {
  readonly escape: (value: Value) => string;
  /** The function of templates that does the same. */
  readonly sameAs?: 'html' | 'urlquery';
}

/** A nil is nothing, everything else what `print` makes of it. */
export function textOfValue(value: Value): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : printAll([value]);
}

const onText =
  (escapeText: (text: string) => string): Escaper['escape'] =>
  (value) =>
    escapeText(textOfValue(value));

export type EscaperName =
  | 'htmlText'
  | 'htmlUnquoted'
  | 'htmlName'
  | 'urlFilter'
  | 'urlWhole'
  | 'urlPart'
  | 'srcset'
  | 'jsValue'
  | 'jsString'
  | 'jsTemplate'
  | 'jsRegExp'
  | 'cssValue'
  | 'cssString'
  | 'nothing'
  | 'html'
  | 'urlquery';

/** What is done to values, by what they are in. */
export const htmlEscapers: Readonly<Record<EscaperName, Escaper>> = {
  htmlText: { escape: onText(escapeHtmlValue), sameAs: 'html' },
  htmlUnquoted: { escape: onText(escapeUnquoted) },
  htmlName: { escape: onText(filterName) },
  urlFilter: { escape: onText(filterUrl) },
  urlWhole: { escape: onText(normalizeUrl), sameAs: 'urlquery' },
  urlPart: { escape: onText(escapeUrlPart), sameAs: 'urlquery' },
  srcset: { escape: onText(escapeSrcset) },
  jsValue: { escape: escapeJsValue },
  jsString: { escape: onText(escapeJsString) },
  jsTemplate: { escape: onText(escapeJsTemplate) },
  jsRegExp: { escape: onText(escapeJsRegExp) },
  cssValue: { escape: onText(filterCssValue) },
  cssString: { escape: onText(escapeCssString) },
  nothing: { escape: () => '' },
  html: { escape: (value) => String(callFunction('html', [value])) },
  urlquery: { escape: (value) => String(callFunction('urlquery', [value])) },
};

function filterName(text: string): string {
  const name = text.toLowerCase();
  return isSafeName(name) ? name : unsafeValue;
}
