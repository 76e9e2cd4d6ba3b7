import type { Logger } from '@tollgate/kit/logger';
import type { AdminRoute, Caller } from './admin-server.ts';
import { type CounterContext, peekCounters, resetByPrefix, resetCounters } from './counters.ts';
import { parseObject, parsePrefix, parseRequest } from './requests.ts';

/** The counter API. @see docs/counter-api.md */
export function counterRoutes(context: CounterContext, logger: Logger): readonly AdminRoute[] {
  const audit = (caller: Caller, fields: Readonly<Record<string, unknown>>): void =>
    // A warning, so that the default level keeps it.
    logger.warn({ audit: true, ...caller, ...fields }, 'counters changed by the counter API');
  return [
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
  ];
}
