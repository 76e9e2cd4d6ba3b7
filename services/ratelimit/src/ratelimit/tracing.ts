import { toPublicError } from '@tollgate/kit/errors';
import { type SpanOptions, type Tracing, traceCarrier } from '@tollgate/kit/telemetry';
import type { Count, Counted } from './hits.ts';
import { Code, type Decision } from './response.ts';
import type { Decide } from './service.ts';

type Attributes = NonNullable<SpanOptions['attributes']>;

/** Numbers of the OpenTelemetry API's SpanKind. */
const spanKind = { internal: 0, server: 1, client: 2 } as const;

/**
 * Wraps decisions of one surface in spans: the call as the server saw it, within it the decision with its domain,
 * request, rules, codes and hits of the local cache, within that the exchange with the backend. Without tracing it is the function that was given.
 */
export function traceDecisions(decide: Decide, tracing: Tracing, callName: string): Decide {
  if (!tracing.enabled) {
    return decide;
  }
  return (request, caller) =>
    tracing.inSpan(
      callName,
      { kind: spanKind.server, parent: tracing.extract(traceCarrier((name) => caller.header(name))) },
      (_server, serverContext) =>
        tracing.inSpan(
          'ShouldRateLimit Execution',
          {
            parent: serverContext,
            attributes: { domain: request.domain, request: describe(request.descriptors) },
          },
          async (span, context) => {
            try {
              const decision = await decide(request, {
                ...caller,
                inSpan: ({ name, attributes }, run) =>
                  tracing.inSpan(name, { kind: kindOf(attributes), parent: context, attributes }, run),
                onCounted: (counted, counts) => span.setAttributes(countedAttributes(counted, counts)),
              });
              span.setAttributes(decisionAttributes(decision));
              return decision;
            } catch (error) {
              span.setAttribute('error.type', toPublicError(error).code);
              throw error;
            }
          },
        ),
    );
}

/** A database is another process; memory is not. */
function kindOf(attributes: Attributes): NonNullable<SpanOptions['kind']> {
  return 'db.system.name' in attributes ? spanKind.client : spanKind.internal;
}

/** What was matched and counted: lists have an element for each descriptor with a limit. */
function countedAttributes(counted: readonly Counted[], counts: readonly Count[]): Attributes {
  return {
    'tollgate.ratelimit.rules': counted.map(({ limit }) =>
      limit.metricPath.join('.').slice(0, maxRuleLength),
    ),
    'tollgate.ratelimit.limits': counted.map(({ limit }) => `${limit.requestsPerUnit}/${limit.unit}`),
    'tollgate.ratelimit.cache_hits': counts.map(({ fromLocalCache }) => fromLocalCache),
  };
}

function decisionAttributes({ overallCode, statuses }: Decision): Attributes {
  return {
    'tollgate.ratelimit.code': codeName(overallCode),
    'tollgate.ratelimit.codes': statuses.map(({ code }) => codeName(code)),
  };
}

const codeName = (code: Code): string => (code === Code.OVER_LIMIT ? 'OVER_LIMIT' : 'OK');

/** Longest name of a rule in a span. */
const maxRuleLength = 256;
/** Longest text of a request in a span. */
const maxRequestLength = 1024;

function describe(descriptors: Parameters<Decide>[0]['descriptors']): string {
  const text = descriptors
    .map(({ entries }) => `(${entries.map(({ key, value }) => `${key}=${value}`).join(',')})`)
    .join(' ');
  return text.slice(0, maxRequestLength);
}
