import { toPublicError } from '@tollgate/kit/errors';
import { type SpanOptions, type Tracing, traceCarrier } from '@tollgate/kit/telemetry';
import type { Settings } from '../config/settings.ts';
import { counterStores } from '../stores/registry.ts';
import type { LimitCheck } from './check.ts';
import type { Decide } from './decide.ts';
import type { Descriptor } from './wire/request.ts';
import { Code, type Decision } from './wire/response.ts';

type Attributes = NonNullable<SpanOptions['attributes']>;

const spanKind = { internal: 0, server: 1, client: 2 } as const;

/** Longest name of a rule in a span. */
const maxRuleLength = 256;
/** Longest text of a request in a span. */
const maxRequestLength = 1024;

/**
 * Runs decisions in spans: the server span of the call, in it the decision with its domain,
 * request, rules, codes and hits of the local cache, in that the exchange with the store. Returns
 * `decide` itself when tracing is disabled.
 */
export function traceDecisions(
  decide: Decide,
  tracing: Tracing,
  options: { readonly callName: string; readonly backendType: Settings['backendType'] },
): Decide {
  if (!tracing.enabled) {
    return decide;
  }
  const { span: name, database } = counterStores[options.backendType];
  const kind = database === undefined ? spanKind.internal : spanKind.client;
  const databaseAttributes = database && {
    'db.system.name': database.system,
    'db.operation.name': database.operation,
  };
  return (request, call) =>
    tracing.inSpan(
      options.callName,
      { kind: spanKind.server, parent: tracing.extract(traceCarrier((name) => call.header(name))) },
      (_server, serverContext) =>
        tracing.inSpan(
          'ShouldRateLimit Execution',
          {
            parent: serverContext,
            attributes: { domain: request.domain, request: describe(request.descriptors) },
          },
          async (span, parent) => {
            try {
              const decision = await decide(request, {
                ...call,
                trace: {
                  inBackendSpan(descriptors, run) {
                    const attributes = { ...databaseAttributes, 'db.operation.batch.size': descriptors };
                    return tracing.inSpan(name, { kind, parent, attributes }, run);
                  },
                  onResults: (limited) => span.setAttributes(resultAttributes(limited)),
                },
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

/** Lists have an element for each descriptor with a limit. */
function resultAttributes(limited: readonly LimitCheck[]): Attributes {
  return {
    'tollgate.ratelimit.rules': limited.map(({ limit }) =>
      limit.metricPath.join('.').slice(0, maxRuleLength),
    ),
    'tollgate.ratelimit.limits': limited.map(
      ({ limit }) => `${limit.rule.requestsPerUnit}/${limit.rule.unit ?? `${limit.rule.unitSeconds}s`}`,
    ),
    'tollgate.ratelimit.cache_hits': limited.map(({ result }) => result?.fromLocalCache === true),
  };
}

function decisionAttributes({ overallCode, statuses, storeFailure }: Decision): Attributes {
  return {
    'tollgate.ratelimit.code': codeName(overallCode),
    'tollgate.ratelimit.codes': statuses.map(({ code }) => codeName(code)),
    ...(storeFailure !== undefined && { 'tollgate.ratelimit.store_failure': storeFailure }),
  };
}

const codeName = (code: Code): string => (code === Code.OVER_LIMIT ? 'OVER_LIMIT' : 'OK');

function describe(descriptors: readonly Descriptor[]): string {
  const text = descriptors
    .map(({ entries }) => `(${entries.map(({ key, value }) => `${key}=${value}`).join(',')})`)
    .join(' ');
  return text.slice(0, maxRequestLength);
}
