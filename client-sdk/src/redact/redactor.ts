import { isObject } from '../keys/convert-keys.ts';
import { snakeCase } from '../keys/snake-case.ts';
import type { RedactOptions } from './redact-options.ts';

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
  'code',
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

/** Headers that are URLs. */
const urlHeaders = new Set(['location', 'content-location', 'referer']);

/** Deeper than this, a value is masked whole: no honest body is. */
const MAX_DEPTH = 50;

/** Masks secrets by structure: by the names of parameters, keys and headers. */
export type Redactor = {
  /** What is written in place of a secret. */
  readonly label: string;
  /** Whether values of this name are masked, in any spelling (`accessToken`, `access_token`). */
  readonly isSecretName: (name: string) => boolean;
  readonly header: (name: string, value: string) => string;
  readonly url: (url: string) => string;
  readonly form: (form: URLSearchParams) => string;
  /** A copy of parsed data. */
  readonly value: (value: unknown) => unknown;
  /** Text of any kind: JSON and forms by structure, the rest by what looks like a named secret. */
  readonly text: (text: string) => string;
};

/** Makes a redactor. Options are read once. */
export function createRedactor(options: RedactOptions = {}): Redactor {
  const label = options.label ?? '[FILTERED]';
  const names = new Set<string>([...secretNames, ...(options.keys ?? []).map(snakeCase)]);
  const isSecretName = (name: string): boolean => names.has(snakeCase(name)) || names.has(name);

  function value(from: unknown, depth = 0): unknown {
    if (typeof from !== 'object' || from === null) return from;
    if (depth > MAX_DEPTH) return label;
    if (Array.isArray(from)) return from.map((item) => value(item, depth + 1));
    const to: Record<string, unknown> = Object.create(null);
    for (const [key, item] of Object.entries(from))
      to[key] = isSecretName(key) ? label : value(item, depth + 1);
    return to;
  }

  function form(from: URLSearchParams): string {
    return [...from]
      .map(([name, text]) => `${name}=${isSecretName(name) ? label : encodeURIComponent(text)}`)
      .join('&');
  }

  function url(from: string): string {
    const [path = '', ...marks] = from.split(/(?=[?#])/);
    return (
      path +
      marks
        .map((part) => (part.includes('=') ? part[0] + form(new URLSearchParams(part.slice(1))) : part))
        .join('')
    );
  }

  function text(from: string): string {
    const json = tryJson(from);
    if (isObject(json) || Array.isArray(json)) return JSON.stringify(value(json));
    if (isForm(from)) return form(new URLSearchParams(from));
    return from
      .replace(/"([\w.-]+)"(\s*:\s*)("(?:[^"\\]|\\.)*"?|[^\s,}\]]+)/g, (all, name: string, colon: string) =>
        isSecretName(name) ? `"${name}"${colon}"${label}"` : all,
      )
      .replace(/\b([\w.-]+)=([^&\s"'<>]+)/g, (all, name: string) =>
        isSecretName(name) ? `${name}=${label}` : all,
      );
  }

  function header(name: string, text: string): string {
    const lower = name.toLowerCase();
    if (secretHeaders.has(lower) || isSecretName(lower)) return label;
    return urlHeaders.has(lower) ? url(text) : text;
  }

  return { label, isSecretName, header, url, form, value: (from) => value(from), text };
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One line of `name=value&name=value`, without the blanks and angle brackets of prose and markup. */
function isForm(text: string): boolean {
  return /^[^\s<>"=&]+=[^\s<>"]*$/.test(text);
}
