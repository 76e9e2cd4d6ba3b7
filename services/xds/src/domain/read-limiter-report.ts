import {
  type LimiterReport,
  maxMessageLength,
  maxNodeLength,
  type ReportedGroup,
  type ReportedRejection,
} from './limiter-report.ts';

/** Longest report that is looked at; one of ours has 100 KB at most. */
const maxChars = 128 * 1024;

/** Most groups and names that are taken from one report; ours have a third of that. */
const maxItems = 100;

/** Most limiters of one group: more than a replica has streams. */
const maxCount = 100_000;

/** A report as text, with the number that makes it another one each time it is written. */
export function formatLimiterReport(report: LimiterReport, beat: number): string {
  return JSON.stringify({ beat, ...report });
}

/**
 * Reads what another replica has written, which may be of another release: groups of which no number can be read are left
 * out, and what is not understood of the others is passed over. Undefined for what is no report at all.
 */
export function readLimiterReport(text: string): LimiterReport | undefined {
  if (text.length > maxChars) return undefined;
  const value = parse(text);
  const groups = fieldOf(value, 'groups');
  if (!Array.isArray(groups)) return undefined;
  return {
    snapshot: textOf(value, 'snapshot'),
    groups: groups.slice(0, maxItems).flatMap((group: unknown) => readGroup(group) ?? []),
  };
}

function readGroup(value: unknown): ReportedGroup | undefined {
  const count = fieldOf(value, 'count');
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > maxCount)
    return undefined;
  return {
    count,
    names: textsOf(value, 'names'),
    accepted: textOf(value, 'accepted'),
    behind: textsOf(value, 'behind'),
    rejection: readRejection(fieldOf(value, 'rejection')),
  };
}

function readRejection(value: unknown): ReportedRejection | undefined {
  const message = textOf(value, 'message');
  const snapshot = textOf(value, 'snapshot');
  if (message === undefined || snapshot === undefined) return undefined;
  const node = textOf(value, 'node') ?? '';
  return { node: node.slice(0, maxNodeLength), message: message.slice(0, maxMessageLength), snapshot };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf(value: unknown, key: string): string | undefined {
  const field = fieldOf(value, key);
  return typeof field === 'string' ? field : undefined;
}

function textsOf(value: unknown, key: string): readonly string[] | undefined {
  const field = fieldOf(value, key);
  if (!Array.isArray(field) || field.length > maxItems) return undefined;
  return field.filter((item: unknown) => typeof item === 'string');
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
