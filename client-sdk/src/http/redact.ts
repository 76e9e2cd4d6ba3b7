import { snakeCase } from '../key-case.ts';
import { isObject } from '../objects.ts';

/** How secrets are masked in debug output, inspection and messages. */
export type RedactOptions = {
  /** Replaces a secret. Default `[FILTERED]`. */
  readonly label?: string;
  /** Names of parameters and keys whose values are masked, in addition to the built-in ones. */
  readonly keys?: readonly string[];
};

/** Parameters and keys whose values are credentials or can be exchanged for one. */
const secretNames = [
  'access_token',
  'refresh_token',
  'id_token',
  'id_token_hint',
  'logout_token',
  'token',
  'subject_token',
  'actor_token',
  'registration_access_token',
  'client_secret',
  'client_assertion',
  'assertion',
  'code_verifier',
  'device_code',
  'user_code',
  'password',
  'request',
] as const;

/** Headers whose whole value is masked. */
const secretHeaders = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'dpop',
  'x-api-key',
]);

/** Printed instead of a secret. */
export const DEFAULT_LABEL = '[FILTERED]';

/** Headers that are URLs. */
const urlHeaders = new Set(['location', 'content-location', 'referer']);

/** Values nested deeper are masked as a whole. */
const MAX_DEPTH = 50;

type IsSecret = (name: string) => boolean;

/** Masks secrets by structure: by the names of parameters, keys and headers. */
export class Redactor {
  /** Replaces a secret. */
  readonly label: string;
  readonly #names: ReadonlySet<string>;
  readonly #requestNames: ReadonlySet<string>;
  readonly #maxNameLength: number;

  constructor({ label = DEFAULT_LABEL, keys = [] }: RedactOptions = {}) {
    this.label = label;
    this.#names = new Set<string>([...secretNames, ...keys.flatMap((key) => [key, snakeCase(key)])]);
    this.#requestNames = new Set([...this.#names, 'code']);
    // Other spellings of a name are at most a little longer; longer names are not converted.
    this.#maxNameLength = 16 + 2 * Math.max(...[...this.#names].map(({ length }) => length));
  }

  /**
   * Whether values of this name are masked in requests, in any spelling (`accessToken`,
   * `access_token`).
   */
  readonly isSecretName: IsSecret = (name) => this.#isAmong(this.#requestNames, name);

  header(name: string, value: string): string {
    const lower = name.toLowerCase();
    if (secretHeaders.has(lower) || this.isSecretName(lower)) return this.label;
    return urlHeaders.has(lower) ? this.url(value) : value;
  }

  url(url: string): string {
    const [path = '', ...parts] = url.split(/(?=[?#])/);
    const masked = parts.map((part) =>
      part.includes('=') ? part[0] + this.form(new URLSearchParams(part.slice(1))) : part,
    );
    return path + masked.join('');
  }

  form(form: URLSearchParams): string {
    return [...form]
      .map(([name, text]) => `${name}=${this.isSecretName(name) ? this.label : encodeURIComponent(text)}`)
      .join('&');
  }

  /**
   * The text of a request: JSON and forms by structure, anything else by what looks like a named
   * secret.
   */
  text(text: string): string {
    return this.#text(text, this.isSecretName);
  }

  /** The text of a response. In its JSON, `code` is an error code or a country and not a secret. */
  responseText(text: string): string {
    return this.#text(text, this.#isSecretKey);
  }

  readonly #isSecretKey: IsSecret = (name) => this.#isAmong(this.#names, name);

  #isAmong(names: ReadonlySet<string>, name: string): boolean {
    return name.length <= this.#maxNameLength && (names.has(name) || names.has(snakeCase(name)));
  }

  #text(text: string, isSecretKey: IsSecret): string {
    const json = tryJson(text);
    if (isObject(json) || Array.isArray(json)) return JSON.stringify(this.#value(json, isSecretKey, 0));
    return isForm(text) ? this.form(new URLSearchParams(text)) : this.#unstructured(text, isSecretKey);
  }

  #value(value: unknown, isSecretKey: IsSecret, depth: number): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (depth > MAX_DEPTH) return this.label;
    if (Array.isArray(value)) return value.map((item) => this.#value(item, isSecretKey, depth + 1));
    const masked: Record<string, unknown> = Object.create(null);
    for (const [key, item] of Object.entries(value))
      masked[key] = isSecretKey(key) ? this.label : this.#value(item, isSecretKey, depth + 1);
    return masked;
  }

  /**
   * Masks `"name": value` and `name=value` in text such as truncated JSON or a page. Linear in the
   * length of the text: names are bounded, and the lookbehind lets a name begin only where a word
   * begins.
   */
  #unstructured(text: string, isSecretKey: IsSecret): string {
    const bound = `{1,${this.#maxNameLength}}`;
    const names = new RegExp(`"([^"\\\\\\x00-\\x1f]${bound})"\\s*:\\s*|(?<![\\w-])([\\w-]${bound})=`, 'g');
    let masked = '';
    let copiedTo = 0;
    for (let found = names.exec(text); found !== null; found = names.exec(text)) {
      const [, key, name = ''] = found;
      const start = names.lastIndex;
      if (!(key === undefined ? this.isSecretName(name) : isSecretKey(key))) continue;
      const end = key === undefined ? findEnd(/[^\s&"'<>]*/y, text, start) : endOfJsonValue(text, start);
      if (end === start) continue;
      masked += text.slice(copiedTo, start) + (key === undefined ? this.label : `"${this.label}"`);
      copiedTo = end;
      names.lastIndex = end;
    }
    return masked + text.slice(copiedTo);
  }
}

/**
 * A loop, because a regular expression over a long string with many escapes overflows the stack of
 * its engine.
 */
function endOfJsonValue(text: string, start: number): number {
  if (text[start] !== '"') return findEnd(/[^\s,\]}]*/y, text, start);
  let end = start + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
  return Math.min(end + 1, text.length);
}

function findEnd(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  pattern.exec(text);
  return pattern.lastIndex;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * One line of `name=value&name=value`, without the blanks and angle brackets of prose and markup.
 */
function isForm(text: string): boolean {
  return /^[^\s<>"=&]+=[^\s<>"]*$/.test(text);
}
