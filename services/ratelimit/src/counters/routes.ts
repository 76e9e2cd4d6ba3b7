import type { Logger } from '@tollgate/kit/logger';
import type { ActivityReport } from './activity.ts';
import type { AdminRoute, Audit } from './admin-server.ts';
import { type CounterContext, peekCounters, resetByPrefix, resetCounters } from './counters.ts';
import { overrideRoutes } from './override-routes.ts';
import type { Overrides } from './overrides.ts';
import { parseListQuery, parseObject, parsePrefix, parseRequest } from './requests.ts';

export interface CounterRoutesContext extends CounterContext {
  readonly overrides: Overrides;
  readonly nowMs: () => number;
  readonly logger: Logger;
  /** What all processes saw that share the port. */
  readonly getActivity: () => Promise<ActivityReport>;
}

/** The counter API. @see docs/counter-api.md */
export function counterRoutes(context: CounterRoutesContext): readonly AdminRoute[] {
  const { logger, getActivity } = context;
  const audit: Audit = (caller, change) =>
    // A warning, so that the default level keeps it.
    logger.warn({ audit: true, ...caller, ...change }, 'counters changed by the counter API');
  return [
    ...overrideRoutes({ ...context, audit }),
    {
      method: 'POST',
      path: '/v1/counters/peek',
      async run({ body }) {
        const request = parseRequest(body);
        return { domain: request.domain, descriptors: await peekCounters(context, request) };
      },
    },
    {
      method: 'POST',
      path: '/v1/counters/reset',
      async run({ body }, caller) {
        const fields = parseObject(body);
        if ('prefix' in fields) {
          const prefix = parsePrefix(fields);
          const reset = await resetByPrefix(context, prefix);
          audit(caller, { action: 'reset by prefix', domain: prefix.domain, ...reset });
          return { domain: prefix.domain, ...reset };
        }
        const request = parseRequest(body);
        const counters = await resetCounters(context, request);
        audit(caller, { action: 'reset', domain: request.domain, keys: counters.map(({ key }) => key) });
        return { domain: request.domain, counters };
      },
    },
    {
      method: 'GET',
      path: '/v1/top',
      async run({ url }) {
        const { domain, limit } = parseListQuery(url, { byDefault: 20, max: 1_000 });
        const { keys, seconds, maxMissedHits } = await getActivity();
        return { seconds, maxMissedHits, keys: selectDomain(keys, domain).slice(0, limit) };
      },
    },
    {
      method: 'GET',
      path: '/v1/refusals',
      async run({ url }) {
        const { domain, limit } = parseListQuery(url, { byDefault: 100, max: 1_000 });
        const { refusals } = await getActivity();
        return { refusals: selectDomain(refusals, domain).slice(0, limit) };
      },
    },
  ];
}

function selectDomain<T extends { readonly domain: string }>(
  items: readonly T[],
  domain: string | undefined,
): readonly T[] {
  return domain === undefined ? items : items.filter((item) => item.domain === domain);
}
