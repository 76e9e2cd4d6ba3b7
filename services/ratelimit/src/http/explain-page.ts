import {
  type DescriptorExplanation,
  type Explanation,
  explain,
  formatExplanation,
} from '@tollgate/rules/explain';
import type { Entry } from '@tollgate/rules/match';
import { type RuleSet, type Unit, unitSeconds } from '@tollgate/rules/rule-set';
import { isCalendarUnit, Windows } from '@tollgate/rules/windows';
import type { CounterBackend, Hit } from '../backends/counter-backend.ts';
import { errors, invalidRequest } from '../errors.ts';
import { limitKey, secondsUntilReset } from '../ratelimit/limit.ts';
import {
  type LimitOverride,
  parseJsonRequest,
  type RateLimitRequest,
  unitFromWire,
  validateRequest,
} from '../ratelimit/request.ts';
import { getExampleQuery, parseExplainQuery } from './explain-query.ts';
import {
  type DebugPage,
  getBaseUrl,
  type HttpReply,
  type HttpRequest,
  jsonReply,
  textReply,
  wantsJson,
} from './router.ts';

/** The explanation by rules, the overrides, and the counters of both. */
interface ExplainResult extends Explanation {
  readonly descriptors: readonly (DescriptorExplanation & { readonly counter?: CounterState })[];
  /** Descriptors with an override; `index` is the one in the request. */
  readonly overrides: readonly OverrideExplanation[];
}

interface OverrideExplanation {
  readonly index: number;
  readonly requestsPerUnit: number;
  readonly unit: string;
  /** Absent when the domain has no rules, which counts nothing. */
  readonly counter?: CounterState;
}

type ExplainedRule = NonNullable<DescriptorExplanation['rule']>;

/** Each descriptor may be compared with many rules. */
const maxDescriptors = 100;

/**
 * `/explain`: which rule a request matches, why others do not, and the counters. It counts nothing.
 */
export function explainPage(rules: () => RuleSet | undefined, counters: CounterContext): DebugPage {
  const respond = async (request: HttpRequest, explained: RateLimitRequest): Promise<HttpReply> => {
    const result = await explainRequest(rules(), explained, counters);
    return wantsJson(request) ? jsonReply(result) : textReply(formatResult(result));
  };
  return {
    path: '/explain',
    help: 'which rule matches a request, why the nearest others do not, and the counters (GET shows the usage)',
    get(request) {
      const query = new URL(request.url, 'http://localhost').searchParams;
      if (query.size === 0) {
        return textReply(formatUsage(getBaseUrl(request), getExampleQuery(rules())));
      }
      const parsed = parseExplainQuery(query);
      if (!parsed.ok) {
        throw errors.malformed_request({ message: parsed.problem });
      }
      return respond(request, { ...parsed.request, hitsAddend: 0 });
    },
    post: (request) => respond(request, parseJsonRequest(request.body)),
  };
}

async function explainRequest(
  rules: RuleSet | undefined,
  request: RateLimitRequest,
  context: CounterContext,
): Promise<ExplainResult> {
  const { domain, descriptors } = request;
  requireExplainable(request);
  if (rules === undefined) {
    throw errors.no_configuration();
  }
  // Descriptors with an override match no rule, so they replace none either.
  const withoutOverride = descriptors.filter(({ limit }) => limit === undefined);
  const explained = explain(rules, {
    domain,
    descriptors: withoutOverride.map(({ entries }) => ({
      // Without the other fields of the protobuf messages.
      entries: entries.map(({ key, value }) => ({ key, value })),
    })),
  });
  const overrides = descriptors.flatMap(({ limit, entries }, index) =>
    limit === undefined ? [] : [{ index, entries, ...toOverride(limit) }],
  );
  const limits = [
    ...explained.descriptors.map((descriptor) => getRuleLimit(domain, descriptor)),
    ...overrides.map(({ entries, unit, requestsPerUnit }) =>
      unit === undefined || !explained.domainFound ? undefined : { domain, entries, unit, requestsPerUnit },
    ),
  ];
  const counters = await readByLimit(context, limits);
  return {
    ...explained,
    descriptors: explained.descriptors.map((descriptor, i) => ({ ...descriptor, ...counters[i] })),
    overrides: overrides.map(({ index, requestsPerUnit, unit = 'unknown' }, i) => ({
      index,
      requestsPerUnit,
      unit,
      ...counters[explained.descriptors.length + i],
    })),
  };
}

function requireExplainable(request: RateLimitRequest): void {
  const problem = validateRequest(request);
  if (problem !== undefined) {
    throw invalidRequest(problem);
  }
  if (request.descriptors.length > maxDescriptors) {
    throw errors.malformed_request({
      message: `at most ${maxDescriptors} descriptors are explained at once`,
    });
  }
}

/** The counter of each limit; undefined where there is no limit. */
async function readByLimit(
  context: CounterContext,
  limits: readonly (CounterLimit | undefined)[],
): Promise<readonly ({ readonly counter: CounterState } | undefined)[]> {
  const states = await readCounters(
    context,
    limits.filter((limit) => limit !== undefined),
  );
  let next = 0;
  return limits.map((limit) => {
    const counter = limit === undefined ? undefined : states[next++];
    return counter && { counter };
  });
}

function toOverride({ requestsPerUnit, unit }: LimitOverride) {
  return { requestsPerUnit, unit: unitFromWire(unit) };
}

/** The limit of a descriptor that has a counter. */
function getRuleLimit(
  domain: string,
  { outcome, rule, entries }: DescriptorExplanation,
): CounterLimit | undefined {
  if (outcome !== 'limited' || rule === undefined || rule.rate !== undefined) return undefined;
  const { unit, requestsPerUnit = 0, keyEntries = entries } = rule;
  return { domain, entries: keyEntries, unit, windows: getWindows(rule), requestsPerUnit };
}

function getWindows({ unit, periodSeconds, timeZone }: ExplainedRule): Windows | undefined {
  if (timeZone !== undefined && isCalendarUnit(unit)) return Windows.ofCalendar(unit, timeZone);
  return periodSeconds === undefined ? undefined : Windows.ofPeriod(periodSeconds);
}

function formatResult(result: ExplainResult): string {
  const overrides = result.overrides.map(
    ({ index, requestsPerUnit, unit, counter }) =>
      `  descriptors[${index}]: its own limit of ${requestsPerUnit} per ${unit} overrides any rule` +
      `${result.domainFound ? '' : ', if the domain had rules'}` +
      `${counter === undefined ? '' : `\n    ${formatCounter(counter)}`}`,
  );
  const rules = formatExplanation(result, (index) => {
    const counter = result.descriptors[index]?.counter;
    return counter && formatCounter(counter);
  });
  return `${[rules, ...overrides].join('\n')}\n`;
}

function formatUsage(base: string, query: string): string {
  return `Which rule matches a request, why the nearest others do not, and the counters. Nothing is counted.

  curl '${base}/explain?${query}'

descriptor=key=value,key2=value2 may be repeated. A request in JSON, as for /json, can be sent with POST:

  curl '${base}/explain' -d '{"domain":"…","descriptors":[{"entries":[{"key":"…","value":"…"}]}]}'

With -H 'Accept: application/json' the response is JSON.
`;
}

interface CounterLimit {
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly unit: Unit | undefined;
  readonly windows?: Windows | undefined;
  readonly requestsPerUnit: number;
}

interface CounterState {
  readonly key: string;
  /** Absent, with `error`, when the store does not answer. */
  readonly count?: number;
  readonly remaining?: number;
  readonly error?: string;
  readonly limit: number;
  readonly resetSeconds: number;
}

export interface CounterContext {
  readonly backend: Pick<CounterBackend, 'read'>;
  readonly nowSeconds: () => number;
  readonly cacheKeyPrefix: string;
  /** Windows of the unit `month`. */
  readonly calendarMonths?: Windows | undefined;
}

/**
 * Reads the counters of limits without changing them. Never rejects: an explanation is useful
 * without them.
 */
async function readCounters(
  { backend, nowSeconds, cacheKeyPrefix, calendarMonths }: CounterContext,
  limits: readonly CounterLimit[],
): Promise<readonly CounterState[]> {
  const now = nowSeconds();
  const hits = limits.map(({ domain, entries: keyEntries, unit, windows: own }): Hit => {
    const windows = own ?? (unit === 'month' ? calendarMonths : undefined);
    const window = windows?.at(now);
    const seconds = unit === undefined ? (windows?.currentSeconds ?? 0) : unitSeconds[unit];
    return {
      key: limitKey(cacheKeyPrefix, domain, { keyEntries, unitSeconds: seconds, windows }, now),
      addend: 0,
      unit: unit ?? (seconds === 1 ? 'second' : 'period'),
      secondsLeft: window === undefined ? secondsUntilReset(now, seconds) : window.end - now,
      ttlSeconds: seconds,
    };
  });
  const { counts, error } = await readHits(backend, hits);
  return limits.map(({ requestsPerUnit: limit }, i) => {
    const { key = '', secondsLeft: resetSeconds = 0 } = hits[i] ?? {};
    if (counts === undefined) return { key, limit, resetSeconds, error };
    const count = counts[i] ?? 0;
    return { key, count, limit, remaining: Math.max(0, limit - Math.max(0, count)), resetSeconds };
  });
}

type ReadResult =
  | { readonly counts: readonly number[]; readonly error?: undefined }
  | { readonly counts?: undefined; readonly error: string };

async function readHits(
  backend: CounterContext['backend'],
  hits: Parameters<CounterBackend['read']>[0],
): Promise<ReadResult> {
  try {
    return { counts: hits.length === 0 ? [] : await backend.read(hits) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

function formatCounter({ key, count, limit, remaining, error, resetSeconds }: CounterState): string {
  const state =
    count === undefined
      ? `cannot be read: ${error}`
      : `${count} now, limit ${limit}, ${remaining} remaining, reset in ${resetSeconds} s`;
  return `counter ${key}: ${state}`;
}
