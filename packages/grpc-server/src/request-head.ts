import type { HeaderField } from './hpack/static-table.ts';

/**
 * The header fields of a request, validated as HTTP/2 and read as gRPC. Shared by requests with
 * equal header blocks.
 */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  /** `grpc-encoding`; `identity` when absent. */
  readonly encoding: string;
  /** From `grpc-timeout` in milliseconds; infinite when absent, undefined when malformed. */
  readonly timeoutMs: number | undefined;
  /** From `content-length`; undefined when absent. */
  readonly contentLength: number | undefined;
  /** All regular fields in their order, names in lower case, values as latin1. */
  readonly fields: readonly HeaderField[];
}

/** RFC 9110 §5.1 (a token), without upper case (RFC 9113 §8.2). */
const validName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/** RFC 9113 §8.2.1: no NUL, CR or LF, no whitespace at either end. */
const invalidValue = /[\0\r\n]|^[\t ]|[\t ]$/;

const connectionSpecific = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'],
]);

const pseudoNames = new Set([':method', ':path', ':scheme', ':authority']);

/**
 * Validates the fields of a request.
 *
 * @returns the reason as a string when the request is malformed (RFC 9113 §8.1.1): a stream error.
 */
export function readRequestHead(list: readonly HeaderField[]): RequestHead | string {
  const pseudo = new Map<string, string>();
  const fields: HeaderField[] = [];
  for (const field of list) {
    const [name, value] = field;
    if (name.startsWith(':')) {
      if (!pseudoNames.has(name)) return `unknown pseudo-header ${name.slice(0, 20)}`;
      if (fields.length > 0) return 'pseudo-header after a regular field';
      if (pseudo.has(name)) return `duplicate ${name}`;
      pseudo.set(name, value);
    } else {
      const problem = fieldProblem(name, value);
      if (problem !== undefined) return problem;
      fields.push(field);
    }
  }
  const method = pseudo.get(':method');
  const path = pseudo.get(':path');
  if (method === undefined || path === undefined || path === '' || !pseudo.has(':scheme')) {
    return 'missing pseudo-header';
  }
  const value = (name: string) => fields.find((field) => field[0] === name)?.[1];
  const length = value('content-length');
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return 'invalid content-length';
  return {
    method,
    path,
    contentType: value('content-type') ?? '',
    encoding: value('grpc-encoding') ?? 'identity',
    timeoutMs: readTimeout(value('grpc-timeout')),
    contentLength: length === undefined ? undefined : Number(length),
    fields,
  };
}

/** Validates trailers; returns what is wrong with them. */
export function trailerProblem(list: readonly HeaderField[]): string | undefined {
  for (const [name, value] of list) {
    if (name.startsWith(':')) return 'pseudo-header in trailers';
    const problem = fieldProblem(name, value);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function fieldProblem(name: string, value: string): string | undefined {
  if (!validName.test(name)) return 'invalid field name';
  if (invalidValue.test(value)) return `invalid value of ${name.slice(0, 40)}`;
  if (connectionSpecific.has(name)) return `connection-specific field ${name}`;
  if (name === 'te' && value !== 'trailers') return 'te other than trailers';
  return undefined;
}

const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** The `grpc-timeout` header: at most eight digits and a unit. */
function readTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  const factor = unitsMs[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

/** Replaces a header list that exceeds the limit. */
export const oversizedHead: RequestHead = {
  method: '',
  path: '',
  contentType: '',
  encoding: 'identity',
  timeoutMs: Number.POSITIVE_INFINITY,
  contentLength: undefined,
  fields: [],
};
