import { snakeCase } from '../keys.ts';
import { isObject } from '../objects.ts';
import { maskText } from './mask-text.ts';

/** How secrets are masked in debug output, inspection and messages. */
export type RedactOptions = {
  /** Written in their place. Default `[FILTERED]`. */
  readonly label?: string;
  /** Parameter and key names whose values are masked, beside the built-in ones. */
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

/**
 * A secret where it is sent and where it comes back: in requests, and in forms and URLs such as a callback's. In the JSON that servers
 * answer, `code` is an error's or a country's, which one wants to read.
 */
const CODE = 'code';

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
  /** Whether values of this name are masked in requests, in any spelling (`accessToken`, `access_token`). */
  readonly isSecretName: (name: string) => boolean;
  readonly header: (name: string, value: string) => string;
  readonly url: (url: string) => string;
  readonly form: (form: URLSearchParams) => string;
  /** A request's text of any kind: JSON and forms by structure, the rest by what looks like a named secret. */
  readonly text: (text: string) => string;
  /** The same for a response. */
  readonly responseText: (text: string) => string;
};

/** Makes a redactor. Options are read once. */
export function createRedactor(options: RedactOptions = {}): Redactor {
  const label = options.label ?? '[FILTERED]';
  const own = (options.keys ?? []).flatMap((key) => [key, snakeCase(key)]);
  const names = new Set<string>([...secretNames, ...own]);
  const requestNames = new Set<string>([...names, CODE]);
  // In another spelling a name is at most a little longer; of longer ones no spelling is worked out.
  const maxNameLength = 16 + 2 * Math.max(...[...names].map(({ length }) => length));
  const isAmong = (known: ReadonlySet<string>, name: string): boolean =>
    name.length <= maxNameLength && (known.has(name) || known.has(snakeCase(name)));
  const isSecretName = (name: string): boolean => isAmong(requestNames, name);

  function value(from: unknown, isSecret: (name: string) => boolean, depth = 0): unknown {
    if (typeof from !== 'object' || from === null) return from;
    if (depth > MAX_DEPTH) return label;
    if (Array.isArray(from)) return from.map((item) => value(item, isSecret, depth + 1));
    const to: Record<string, unknown> = Object.create(null);
    for (const [key, item] of Object.entries(from))
      to[key] = isSecret(key) ? label : value(item, isSecret, depth + 1);
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

  function masked(from: string, isSecretKey: (name: string) => boolean): string {
    const json = tryJson(from);
    if (isObject(json) || Array.isArray(json)) return JSON.stringify(value(json, isSecretKey));
    if (isForm(from)) return form(new URLSearchParams(from));
    return maskText(from, {
      ...{ label, maxNameLength },
      isSecretName: (name, syntax) => (syntax === 'json' ? isSecretKey(name) : isSecretName(name)),
    });
  }

  function header(name: string, text: string): string {
    const lower = name.toLowerCase();
    if (secretHeaders.has(lower) || isSecretName(lower)) return label;
    return urlHeaders.has(lower) ? url(text) : text;
  }

  return {
    ...{ label, isSecretName, header, url, form },
    text: (from) => masked(from, isSecretName),
    responseText: (from) => masked(from, (name) => isAmong(names, name)),
  };
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
