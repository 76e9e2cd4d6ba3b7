import type { Logger } from '@tollgate/kit/logger';
import type { DecisionContext } from '../ratelimit/service.ts';
import type { AdminRoute, Caller } from './admin-server.ts';
import { peekCounters, resetCounters } from './counters.ts';
import { parseRequest } from './requests.ts';

export interface CounterApiContext {
  readonly decisions: DecisionContext;
  readonly logger: Logger;
}

/** The counter API. @see docs/counter-api.md */
export function counterRoutes({ decisions, logger }: CounterApiContext): readonly AdminRoute[] {
  const audit = (caller: Caller, fields: Readonly<Record<string, unknown>>): void =>
    // A warning, so that the default level keeps it.
    logger.warn({ audit: true, ...caller, ...fields }, 'counters changed by the counter API');
  return [
    {
      method: 'POST',
      path: '/v1/counters/peek',
      async run({ body }) {
        const request = parseRequest(body);
        return { domain: request.domain, descriptors: await peekCounters(decisions, request) };
      },
    },
    {
      method: 'POST',
      path: '/v1/counters/reset',
      async run({ body }, caller) {
        const request = parseRequest(body);
        const counters = await resetCounters(decisions, request);
        audit(caller, { action: 'reset', domain: request.domain, keys: counters.map(({ key }) => key) });
        return { domain: request.domain, counters };
      },
    },
  ];
}
