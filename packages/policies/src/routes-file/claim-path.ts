/** A parsed path such as `realm_access.roles[0]`: names of members and indexes of lists. */
export type ClaimPath = readonly (string | number)[];

type ParsedClaimPath =
  | { readonly ok: true; readonly path: ClaimPath }
  | { readonly ok: false; readonly reason: string };

const maxPathChars = 256;
const maxSegments = 8;
/** A name, after a dot unless it is the first; an index; a quoted name for those with dots. */
const segment = /(?:^|(?<!^)\.)([^.[\]"'\s]+)|\[(\d{1,4})\]|\["([^"\\]+)"\]/y;

/** Parses a path in claims: `plan`, `org.id`, `roles[0]`, `["https://example.com/plan"]`. */
export function parseClaimPath(text: string): ParsedClaimPath {
  if (text.length > maxPathChars) return reject(`it is longer than ${maxPathChars} characters`);
  const path: (string | number)[] = [];
  let at = 0;
  while (at < text.length) {
    segment.lastIndex = at;
    const [match = '', name, index, quoted] = segment.exec(text) ?? [];
    if (match === '') return reject(`it cannot be read from ${text.slice(at)}`);
    path.push(index === undefined ? (name ?? quoted ?? '') : Number(index));
    at += match.length;
  }
  if (path.length === 0 || typeof path[0] === 'number') return reject('it starts with the name of a claim');
  if (path.length > maxSegments) return reject(`it has more than ${maxSegments} parts`);
  return { ok: true, path };
}

/** The text that `parseClaimPath` reads as this path. */
export function formatClaimPath(path: ClaimPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    if (!plainName.test(part)) return `${text}["${part}"]`;
    return text === '' ? part : `${text}.${part}`;
  }, '');
}

/** A name that needs no quotes. */
const plainName = /^[^.[\]"'\s]+$/;

/** The value at a path; undefined if there is none. */
export function valueAt(root: unknown, path: ClaimPath): unknown {
  let value = root;
  for (const key of path) {
    if (typeof key === 'number') value = Array.isArray(value) ? value[key] : undefined;
    else value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return value;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function reject(reason: string): ParsedClaimPath {
  return { ok: false, reason };
}
