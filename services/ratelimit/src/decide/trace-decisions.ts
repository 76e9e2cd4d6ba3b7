import type { Tracing } from '@tollgate/kit/telemetry';
import { traceCarrier } from '@tollgate/kit/trace-carrier';
import type { Decide } from './create-decider.ts';

/** Numbers of the OpenTelemetry API's SpanKind. */
const spanKind = { server: 1, client: 2 } as const;

/**
 * Wraps decisions of one surface in spans: the call as the server saw it, within it the decision with its domain and
 * request, within that the exchange with the backend. Without tracing it is the function that was given.
 */
export function traceDecisions(decide: Decide, tracing: Tracing, callName: string): Decide {
  if (!tracing.enabled) {
    return decide;
  }
  return (request, caller) =>
    tracing.inSpan(
      callName,
      { kind: spanKind.server, parent: tracing.extract(traceCarrier(caller.header)) },
      (_server, serverContext) =>
        tracing.inSpan(
          'ShouldRateLimit Execution',
          {
            parent: serverContext,
            attributes: { domain: request.domain, request: describe(request.descriptors) },
          },
          (_decision, context) =>
            decide(request, {
              ...caller,
              inSpan: (name, run) => tracing.inSpan(name, { kind: spanKind.client, parent: context }, run),
            }),
        ),
    );
}

/** Longest text of a request in a span. */
const maxRequestLength = 1024;

function describe(descriptors: Parameters<Decide>[0]['descriptors']): string {
  const text = descriptors
    .map(({ entries }) => `(${entries.map(({ key, value }) => `${key}=${value}`).join(',')})`)
    .join(' ');
  return text.slice(0, maxRequestLength);
}
