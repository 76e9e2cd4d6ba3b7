import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { Attributes, Context, Span, SpanKind, TextMapPropagator, Tracer } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from './logger.ts';

export type { Span } from '@opentelemetry/api';

/** Who the telemetry is about. */
export type ResourceOptions = {
  readonly serviceName: string;
  /** Left out when empty. */
  readonly serviceNamespace?: string;
  /** A random UUID when empty. */
  readonly serviceInstanceId?: string;
  /** Further attributes, such as the version of the build. */
  readonly resourceAttributes?: Attributes;
};

/**
 * The resource of traces and metrics: what the SDK says of itself, then the variable `OTEL_RESOURCE_ATTRIBUTES`, then the options.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/resource/#service
 */
export async function makeResource(options: ResourceOptions): Promise<Resource> {
  const { defaultResource, detectResources, resourceAttributesEnvDetector, resourceFromAttributes } =
    await import('@opentelemetry/resources');
  const { serviceName, serviceNamespace, serviceInstanceId, resourceAttributes } = options;
  return defaultResource()
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
    .merge(
      resourceFromAttributes({
        'service.name': serviceName,
        ...(serviceNamespace && { 'service.namespace': serviceNamespace }),
        'service.instance.id': serviceInstanceId || randomUUID(),
        ...resourceAttributes,
      }),
    );
}

/** OTLP over HTTP (`http` is JSON) or gRPC. */
export type OtlpProtocol = 'http' | 'http/protobuf' | 'grpc';

/** What traces are called, how many are kept and how they leave. */
export type TracingOptions = ResourceOptions & {
  readonly enabled: boolean;
  /** Where to is said by the standard `OTEL_EXPORTER_OTLP_*` variables, which the exporter reads. */
  readonly protocol: OtlpProtocol;
  /** The part of traces kept where the caller has not decided, 0 to 1. */
  readonly samplingRate: number;
  readonly logger?: Logger;
};

/** What a span is about. */
export type SpanOptions = {
  /** What it is a part of: from `extract`, or handed to the function of an outer span. Default the active span. */
  readonly parent?: Context;
  /** The span that it is a part of, in the place of `parent`; null begins a trace. */
  readonly parentSpan?: Span | null;
  /** `SpanKind` of the OpenTelemetry API: 0 internal (default), 1 server, 2 client. */
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
};

/** Spans, and their way in and out of a process. Nothing is global: what is active is known to this object only. */
export type Tracing = {
  readonly enabled: boolean;
  readonly tracer: Tracer;
  /** Reads the trace of a caller from header names in lower case: W3C tracecontext and baggage, B3 single and multi. */
  extract(carrier: Readonly<Record<string, string | string[] | undefined>>): Context;
  /** Writes the trace of a context into headers, in all of those formats. */
  inject(carrier: Record<string, string>, context: Context): void;
  /** The span that the caller runs in; undefined outside of all, and when tracing is off. */
  activeSpan(): Span | undefined;
  /** Begins a span, which the caller ends. */
  startSpan(name: string, options?: SpanOptions): Span;
  /** Makes a span the active one for a function and for everything that it awaits. */
  withSpan<T>(span: Span, fn: () => T): T;
  /** Runs a function inside a span, which is the active one then and ends with it, as failed when it throws. */
  inSpan<T>(
    name: string,
    options: SpanOptions,
    fn: (span: Span, context: Context) => Promise<T> | T,
  ): Promise<T>;
  /** Sends what is left and ends the export. Idempotent; never rejects. */
  shutdown(): Promise<void>;
};

type Api = typeof import('@opentelemetry/api');

/** Starts tracing. When it is off, the OpenTelemetry API is all that is loaded, and spans cost next to nothing. */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const api = await import('@opentelemetry/api');
  if (!options.enabled)
    return tracingOver(api, { tracer: new api.ProxyTracerProvider().getTracer('tollgate') });
  const provider = await makeProvider(options);
  return tracingOver(api, {
    tracer: provider.getTracer('tollgate'),
    propagator: await makePropagator(),
    provider,
  });
}

function tracingOver(
  api: Api,
  parts: {
    readonly tracer: Tracer;
    readonly propagator?: TextMapPropagator;
    readonly provider?: TracerProvider;
  },
): Tracing {
  const { tracer, propagator, provider } = parts;
  let ended: Promise<void> | undefined;
  const contexts = provider && new AsyncLocalStorage<Context>();
  const active = (): Context => contexts?.getStore() ?? api.ROOT_CONTEXT;
  const within = <T>(context: Context, fn: () => T): T =>
    contexts === undefined ? fn() : contexts.run(context, fn);
  const parentOf = ({ parent, parentSpan }: SpanOptions): Context => {
    if (parentSpan === undefined) return parent ?? active();
    return parentSpan === null ? api.ROOT_CONTEXT : api.trace.setSpan(api.ROOT_CONTEXT, parentSpan);
  };
  const startSpan: Tracing['startSpan'] = (name, options = {}) => {
    const { kind, attributes } = options;
    return tracer.startSpan(
      name,
      { ...(kind && { kind }), ...(attributes && { attributes }) },
      parentOf(options),
    );
  };
  return {
    enabled: provider !== undefined,
    tracer,
    extract: (carrier) =>
      propagator?.extract(api.ROOT_CONTEXT, carrier, api.defaultTextMapGetter) ?? api.ROOT_CONTEXT,
    inject: (carrier, context) => propagator?.inject(context, carrier, api.defaultTextMapSetter),
    activeSpan: () => api.trace.getSpan(active()),
    withSpan: (span, fn) => within(api.trace.setSpan(active(), span), fn),
    startSpan,
    async inSpan(name, options, fn) {
      const span = startSpan(name, options);
      try {
        const context = api.trace.setSpan(parentOf(options), span);
        return await within(context, () => fn(span, context));
      } catch (error) {
        span.setStatus({
          code: api.SpanStatusCode.ERROR,
          ...(error instanceof Error && { message: error.message }),
        });
        throw error;
      } finally {
        span.end();
      }
    },
    shutdown() {
      // It rejects with what the last export failed with, which is logged where that happens.
      ended ??= provider?.shutdown().catch(() => undefined) ?? Promise.resolve();
      return ended;
    },
  };
}

async function makeProvider(options: TracingOptions): Promise<TracerProvider> {
  const sdk = await import('@opentelemetry/sdk-trace');
  const exporter = reportOutages(await makeExporter(options.protocol), options.logger);
  return new sdk.TracerProvider({
    resource: await makeResource(options),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(options.samplingRate) }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
}

async function makeExporter(protocol: TracingOptions['protocol']): Promise<SpanExporter> {
  if (protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    return new OTLPTraceExporter();
  }
  if (protocol === 'http/protobuf') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
    return new OTLPTraceExporter();
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  return new OTLPTraceExporter();
}

async function makePropagator(): Promise<TextMapPropagator> {
  const { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } = await import(
    '@opentelemetry/core'
  );
  const { B3InjectEncoding, B3Propagator } = await import('@opentelemetry/propagator-b3');
  // The last that finds something wins: tracecontext where a caller sends both.
  return new CompositePropagator({
    propagators: [
      new B3Propagator({ injectEncoding: B3InjectEncoding.SINGLE_HEADER }),
      new B3Propagator({ injectEncoding: B3InjectEncoding.MULTI_HEADER }),
      new W3CTraceContextPropagator(),
      new W3CBaggagePropagator(),
    ],
  });
}

/** Logs the first failed export of an outage, and its end; the SDK itself would say nothing. */
function reportOutages(exporter: SpanExporter, logger: Logger | undefined): SpanExporter {
  let failing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.code !== 0;
        if (failed && !failing)
          logger?.warn({ err: result.error, spans: spans.length }, 'spans not exported');
        if (!failed && failing) logger?.info('spans are exported again');
        failing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}

/** Writes what the OpenTelemetry SDK has to say of itself to the log, at its own levels. Process-wide, as that log is. */
export async function logTelemetrySdk(logger: Logger): Promise<void> {
  const { DiagLogLevel, diag } = await import('@opentelemetry/api');
  const log = logger.child({ component: 'telemetry SDK' });
  diag.setLogger(
    {
      error: (text) => log.error({ text }, 'from the SDK'),
      warn: (text) => log.warn({ text }, 'from the SDK'),
      info: (text) => log.info({ text }, 'from the SDK'),
      debug: (text) => log.debug({ text }, 'from the SDK'),
      verbose: (text) => log.trace({ text }, 'from the SDK'),
    },
    { logLevel: DiagLogLevel.ALL, suppressOverrideMessage: true },
  );
}

/** Headers that carry a trace: W3C tracecontext and baggage, B3 in both forms. */
const traceHeaders = [
  'traceparent',
  'tracestate',
  'baggage',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-parentspanid',
  'x-b3-sampled',
  'x-b3-flags',
];

/** What `Tracing.extract` looks at, from requests that tell one header at a time. */
export function traceCarrier(
  header: (name: string) => string | undefined,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(traceHeaders.map((name) => [name, header(name)]));
}
