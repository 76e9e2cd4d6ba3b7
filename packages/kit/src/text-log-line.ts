/** What logrus leaves without quotes; anything else is quoted. */
const plain = /^[\w\-./@^+]+$/;

/**
 * Turns a JSON log line into text as logrus writes it: `time="…" level=info msg="…" key=value`, always on one line.
 * An error becomes `err="message"` with `err.code` and `err.cause` beside it; its stack is in the JSON format only.
 */
export function formatTextLine(json: string): string {
  // Parsed boundary: the line was written by the logger, as one object.
  const {
    '@timestamp': time,
    level,
    '@message': message,
    ...fields
  } = JSON.parse(json) as Record<string, unknown>;
  const head: [string, unknown][] = [
    ['time', time],
    ['level', level],
    ['msg', message ?? ''],
  ];
  const all = [...head, ...Object.entries(fields).flatMap(([name, value]) => flatten(name, value))];
  return `${all.map(([name, value]) => `${name}=${textOf(value)}`).join(' ')}\n`;
}

function flatten(name: string, value: unknown): [string, unknown][] {
  if (!isErrorRecord(value)) return [[name, value]];
  const { message, code, detail, cause, errors = [] } = value;
  return [
    [name, message],
    ...(code === undefined ? [] : ([[`${name}.code`, code]] satisfies [string, unknown][])),
    ...(detail === undefined ? [] : ([[`${name}.detail`, detail]] satisfies [string, unknown][])),
    ...(cause === undefined ? [] : flatten(`${name}.cause`, cause)),
    ...errors.flatMap((part, index) => flatten(`${name}.errors.${index}`, part)),
  ];
}

type ErrorRecord = {
  message: string;
  code?: unknown;
  detail?: unknown;
  cause?: unknown;
  errors?: readonly unknown[];
};

function isErrorRecord(value: unknown): value is ErrorRecord {
  return typeof value === 'object' && value !== null && 'message' in value && 'type' in value;
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // JSON's escapes keep line breaks and terminal control codes out of the line; the last three are breaks it leaves alone.
  return plain.test(text) ? text : JSON.stringify(text).replace(/[\u0085\u2028\u2029]/g, escapeUnicode);
}

function escapeUnicode(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
