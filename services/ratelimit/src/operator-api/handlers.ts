import type { StartReport } from '@tollgate/kit/start-report';
import type { Activity } from '../decision/activity.ts';
import type { Overrides } from '../decision/overrides.ts';
import { describeLimit, peekCounters } from '../decision/peek.ts';
import type { RateLimitRequest } from '../decision/wire/request.ts';
import { errors } from '../errors.ts';
import { jsonReply } from '../http/router.ts';
import type { StatsRegistry } from '../metrics/registry.ts';
import { createTrialReport } from '../trial/report.ts';
import { resetByPrefix, resetCounters } from './counters.ts';
import { listDomains, listLimits, selectDomain, selectPage } from './limit-list.ts';
import { type Handlers, operations } from './operations.ts';
import { overrideHandlers } from './override-handlers.ts';
import {
  parseListQuery,
  parseObject,
  parsePrefix,
  parseRequest,
  parseRequests,
  readNumber,
  readText,
  splitBody,
} from './requests.ts';
import { maxIdChars } from './reservation-id.ts';
import { commit, type ReservationContext, reserve } from './reservations.ts';

/** A decision has the same bound: more could overflow a counter. */
const maxHits = 2 ** 32;

/** Nothing that takes longer needs a reservation. */
const maxTtlSeconds = 24 * 60 * 60;

export interface HandlersContext extends ReservationContext {
  readonly overrides: Overrides;
  readonly nowMs: () => number;
  /** Activity of all processes that share the port. */
  readonly activity: Activity;
  readonly stats: StatsRegistry;
  readonly report: Pick<StartReport, 'get'>;
}

/** The counter API. @see docs/counter-api.md */
export function counterHandlers(context: HandlersContext): Handlers {
  const { activity } = context;
  const peek = async (request: RateLimitRequest) => ({
    domain: request.domain,
    ...(await peekCounters(context, request)),
  });
  return {
    ...overrideHandlers(context),
    ...ruleHandlers(context),
    getSettings: async () => jsonReply(context.report.get()),
    peekCounters: async ({ body }) => jsonReply(await peek(parseRequest(body))),
    peekDomains: async ({ body }) => jsonReply({ peeks: await Promise.all(parseRequests(body).map(peek)) }),
    async resetCounters({ body }, caller) {
      const fields = parseObject(body);
      if ('prefix' in fields) {
        const prefix = parsePrefix(fields);
        const reset = await resetByPrefix(context, prefix, caller);
        return jsonReply({ domain: prefix.domain, ...reset });
      }
      const request = parseRequest(body);
      const counters = await resetCounters(context, request, caller);
      return jsonReply({ domain: request.domain, counters });
    },
    async reserveHits({ body }) {
      const { rest, fields } = splitBody(body, ['hits', 'ttlSeconds']);
      const request = parseRequest(rest);
      const reserved = await reserve(context, request, {
        hits: readNumber(fields, 'hits', { min: 1, max: maxHits }),
        ttlSeconds: readNumber(fields, 'ttlSeconds', { min: 1, max: maxTtlSeconds, byDefault: 60 }),
      });
      if (reserved.ok) return jsonReply({ domain: request.domain, id: reserved.id, until: reserved.until });
      const { code, message } = errors.over_limit();
      const { retryAfterSeconds } = reserved;
      const reply = jsonReply({ code, message, retryAfterSeconds }, 429);
      return { ...reply, headers: { ...reply.headers, 'retry-after': String(retryAfterSeconds) } };
    },
    async commitReservation({ body }) {
      const fields = parseObject(body);
      const hits = readNumber(fields, 'hits', { max: maxHits });
      return jsonReply(await commit(context, readText(fields, 'id', maxIdChars), hits));
    },
    async listTopKeys({ url }) {
      const { domain, limit } = parseListQuery(url, operations.listTopKeys.list);
      const { keys, seconds, maxMissedHits } = activity.report();
      return jsonReply({ seconds, maxMissedHits, keys: selectDomain(keys, domain).slice(0, limit) });
    },
    async listKeysOfHour({ url }) {
      const query = parseListQuery(url, operations.listKeysOfHour.list);
      const { sinceMs, isComplete, keys } = activity.reportHour(query);
      return jsonReply({
        since: new Date(sinceMs).toISOString(),
        complete: isComplete,
        keys: keys.map(({ domain, entries, rule, isOwn, ...counted }) => {
          const override = context.overrides.findPublic(domain, entries);
          const limit = describeLimit({ rule, metricPath: rule.metricPath });
          return { domain, entries, ...limit, fromRequest: isOwn, ...(override && { override }), ...counted };
        }),
      });
    },
    async listRefusals({ url }) {
      const { domain, limit } = parseListQuery(url, operations.listRefusals.list);
      const { refusals } = activity.report();
      const listed = selectDomain(refusals, domain).slice(0, limit);
      return jsonReply({
        refusals: listed.map(({ atMs, ...refusal }) => ({
          time: new Date(atMs).toISOString(),
          ...refusal,
        })),
      });
    },
  };
}

/** The rules in force and on trial. */
function ruleHandlers({
  decisions,
  stats,
}: HandlersContext): Handlers<'listDomains' | 'listLimits' | 'getTrial'> {
  return {
    async listDomains({ url }) {
      const { domain, ...query } = parseListQuery(url, operations.listDomains.list);
      const all = selectDomain(listDomains(decisions.rules(), stats), domain);
      const { page: domains, ...next } = selectPage(all, (item) => item.domain, query);
      return jsonReply({ domains, ...next });
    },
    async listLimits({ url }) {
      const query = parseListQuery(url, operations.listLimits.list);
      return jsonReply(listLimits(decisions.rules(), stats, query));
    },
    async getTrial({ url }) {
      const { domain, limit } = parseListQuery(url, operations.getTrial.list);
      const report = createTrialReport(stats);
      return jsonReply({
        ...report,
        domains: selectDomain(report.domains, domain).slice(0, limit),
        rules: selectDomain(report.rules, domain).slice(0, limit),
      });
    },
  };
}
