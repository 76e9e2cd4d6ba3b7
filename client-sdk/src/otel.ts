/**
 * Traces and metrics through a given OpenTelemetry tracer and meter; no dependency.
 *
 * @module
 */

import type { ClientHooks, RequestContext, RequestEvent } from './hooks.ts';
import { assertKnownOptions, type OptionNames } from './option-names.ts';

/** Attributes, whose values are from bounded sets. */
export type Attributes = Record<string, string | number>;

const knownGrantTypes: ReadonlySet<string> = new Set([
  'authorization_code',
  'client_credentials',
  'password',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:device_code',
  'urn:ietf:params:oauth:grant-type:jwt-bearer',
  'urn:ietf:params:oauth:grant-type:token-exchange',
]);

/**
 * RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1, RFC 7009 §2.2.1, RFC 8628 §3.5, RFC 8693 §2.2.2, RFC
 * 9126, RFC 9449.
 */
const knownErrorCodes: ReadonlySet<string> = new Set([
  'access_denied',
  'authorization_pending',
  'expired_token',
  'insufficient_scope',
  'invalid_client',
  'invalid_dpop_proof',
  'invalid_grant',
  'invalid_request',
  'invalid_scope',
  'invalid_target',
  'invalid_token',
  'server_error',
  'slow_down',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_token_type',
  'use_dpop_nonce',
]);

/** The attributes of a call: operation, grant and client authentication. */
function contextAttributes({ operation, grantType, clientAuth }: RequestContext): Attributes {
  return {
    'oauth.operation': operation,
    ...(grantType !== undefined && { 'oauth.grant_type': bounded(grantType, knownGrantTypes) }),
    ...(clientAuth !== undefined && { 'oauth.client_auth': clientAuth }),
  };
}

/** The server's `error`, or `other` if no specification defines it. */
function errorCodeAttribute(code: string | undefined): Attributes {
  return code === undefined ? {} : { 'error.type': bounded(code, knownErrorCodes) };
}

function bounded(value: string, known: ReadonlySet<string>): string {
  return known.has(value) ? value : 'other';
}

/** The part of an OpenTelemetry span that is used. */
export interface SpanLike {
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

/** The part of an OpenTelemetry tracer that is used, such as `trace.getTracer('…')`. */
export interface TracerLike {
  startSpan(name: string, options?: { kind?: number; attributes?: Attributes }): SpanLike;
}

/** The part of an OpenTelemetry meter that is used, such as `metrics.getMeter('…')`. */
export interface MeterLike {
  createHistogram(
    name: string,
    options?: InstrumentOptions,
  ): { record(value: number, attributes?: Attributes): void };
  createCounter(
    name: string,
    options?: InstrumentOptions,
  ): { add(value: number, attributes?: Attributes): void };
}

/** Description, unit and bucket bounds of an instrument. */
export interface InstrumentOptions {
  description?: string;
  unit?: string;
  advice?: { explicitBucketBoundaries?: number[] };
}

/** At least one of the two is required. */
export interface OtelHooksOptions {
  tracer?: TracerLike;
  meter?: MeterLike;
}

const optionNames: OptionNames<OtelHooksOptions> = { tracer: 1, meter: 1 };

/** SpanKind.CLIENT and SpanStatusCode.ERROR of `@opentelemetry/api`. */
const spanKindClient = 2;
const spanStatusError = 2;

/** Seconds, as in the semantic conventions for HTTP clients. */
const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/**
 * Makes hooks for a Client that record each attempt as a span `oauth.<operation>`, and the metrics
 * `oauth.client.request.duration` (histogram, s), `oauth.client.retries`, `oauth.client.refreshes`
 * and `oauth.client.revocations` (counters). Attributes are from bounded sets: operation, grant
 * type, authentication method, attempt (spans only), status and error; never ids, URLs or tokens.
 */
export function otelHooks(options: OtelHooksOptions): Required<ClientHooks> {
  assertKnownOptions('otelHooks', options, optionNames);
  const { tracer, meter } = options;
  const instruments = meter === undefined ? undefined : createInstruments(meter);
  // All events of a call have the same context, and its attempts are sequential.
  const spans = new WeakMap<RequestContext, SpanLike>();

  function finish(event: RequestEvent & { durationMs: number }, outcome: Attributes, failed: boolean): void {
    const { context, durationMs } = event;
    instruments?.duration.record(durationMs / 1000, { ...contextAttributes(context), ...outcome });
    const span = spans.get(context);
    if (span === undefined) return;
    spans.delete(context);
    span.setAttributes(outcome);
    if (failed) span.setStatus({ code: spanStatusError });
    span.end();
  }

  return {
    onRequest({ context, attempt }) {
      if (tracer === undefined) return;
      const attributes = { ...contextAttributes(context), 'oauth.attempt': attempt };
      spans.set(
        context,
        tracer.startSpan(`oauth.${context.operation}`, { kind: spanKindClient, attributes }),
      );
    },
    onResponse(event) {
      const outcome = { 'http.response.status_code': event.status, ...errorCodeAttribute(event.code) };
      finish(event, outcome, event.status >= 400);
    },
    onError(event) {
      finish(event, { 'error.type': event.error.kind }, true);
    },
    onRetry({ context }) {
      instruments?.retries.add(1, contextAttributes(context));
    },
    onRefresh({ rotated }) {
      instruments?.refreshes.add(1, { 'oauth.rotated': String(rotated) });
    },
    onRevoke({ hint }) {
      const known = hint === 'access_token' || hint === 'refresh_token' ? hint : 'none';
      instruments?.revocations.add(1, { 'oauth.token_type_hint': known });
    },
  };
}

function createInstruments(meter: MeterLike) {
  return {
    duration: meter.createHistogram('oauth.client.request.duration', {
      description: 'Time from sending a request to its complete response, per attempt',
      unit: 's',
      advice: { explicitBucketBoundaries: durationBuckets },
    }),
    retries: meter.createCounter('oauth.client.retries', { description: 'Attempts after the first' }),
    refreshes: meter.createCounter('oauth.client.refreshes', { description: 'Tokens refreshed' }),
    revocations: meter.createCounter('oauth.client.revocations', { description: 'Tokens revoked' }),
  };
}
